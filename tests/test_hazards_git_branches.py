"""Hazard "what people do with branches": nothing they have under way is taken for edits, lost, or committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gitmem
from tests.hazards import done, edited, file_of, folder, git_dir, handwritten, refused, shown, status, subjects
from tests.support import git, git_fails


@pytest.fixture
def two(environment: gitmem.Environment, notes: gitmem.Documents) -> dict[str, gitmem.Document]:
    """Documents "a" and "b", saved by a command that has ended."""
    documents = {i: notes.create(i, title=i.upper(), text=f"text of {i}") for i in ("a", "b")}
    environment.close()
    return documents


def write(environment: gitmem.Environment, document_id: str, text: str) -> None:
    file_of(environment, document_id).write_text(handwritten(document_id.upper(), text))


def side_branch(environment: gitmem.Environment, **texts: str) -> None:
    """A branch "side" with one commit that changes documents; main is checked out again."""
    git(environment.folder, "checkout", "-qb", "side")
    for document_id, text in texts.items():
        write(environment, document_id, text)
    git(environment.folder, "commit", "-qam", "side")
    git(environment.folder, "checkout", "-q", "main")


# HEAD is elsewhere


def orphan(environment: gitmem.Environment) -> None:
    git(environment.folder, "checkout", "-q", "--orphan", "fresh")
    git(environment.folder, "rm", "-rqf", ".")


def bisect(environment: gitmem.Environment) -> None:
    git(environment.folder, "bisect", "start", "main", "main~3")


ELSEWHERE: dict[str, Callable[[gitmem.Environment], object]] = {
    "detached": lambda e: git(e.folder, "checkout", "-q", "--detach"),
    "an old commit": lambda e: git(e.folder, "checkout", "-q", "main~1"),
    "a new branch": lambda e: git(e.folder, "checkout", "-qb", "side"),
    "an old branch": lambda e: git(e.folder, "checkout", "-qb", "side", "main~2"),
    "an orphan": orphan,
    "bisect": bisect,
}


@pytest.mark.parametrize("where", ELSEWHERE)
def test_with_another_head_saves_go_to_main_and_its_tree_is_left_alone(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document], where: str
) -> None:
    ELSEWHERE[where](environment)
    head = (git_dir(environment) / "HEAD").read_text()
    files = sorted(path.name for path in folder(environment).rglob("*.json"))
    assert notes.read("a") == two["a"]
    notes.replace("a", text="two", if_match=two["a"].revision)
    notes.create("c", title="C")
    notes.delete("b", if_match=two["b"].revision)
    environment.close()
    assert status(environment) == ""
    assert sorted(path.name for path in folder(environment).rglob("*.json")) == files
    assert (git_dir(environment) / "HEAD").read_text() == head
    assert subjects(environment)[:3] == ["delete notes/b", "create notes/c", "replace notes/a"]

    git(environment.folder, "checkout", "-q", "main")
    assert status(environment) == ""
    edited(environment, "a", "three")
    assert status(environment) == ""
    assert [v.operation for v in notes.history("a").versions] == ["replace", "replace", "create"]


def test_edits_on_another_branch_are_no_edits_of_main(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    git(environment.folder, "checkout", "-qb", "side")
    write(environment, "a", "of the side")
    file_of(environment, "b").unlink()
    notes.replace("a", text="two", if_match=two["a"].revision)
    notes.replace("b", text="two", if_match=two["b"].revision)
    environment.close()
    assert status(environment) == " M notes/a.json\n D notes/b.json"
    assert subjects(environment, "side")[0] == "create notes/b"
    git(environment.folder, "checkout", "-qf", "main")
    assert (shown(environment, "a"), shown(environment, "b")) == ("two", "two")
    assert status(environment) == ""


def test_a_stash_and_its_return(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    write(environment, "b", "stashed")
    git(environment.folder, "stash")
    notes.replace("a", text="two", if_match=two["a"].revision)
    environment.close()
    assert status(environment) == ""
    git(environment.folder, "stash", "pop")
    assert status(environment) == " M notes/b.json"
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.replace("b", text="three", if_match=two["b"].revision)
    assert notes.read("b").text == "stashed"


# An operation under way


def conflicting_merge(environment: gitmem.Environment) -> None:
    git_fails(environment.folder, "merge", "side")


def conflicting_pick(environment: gitmem.Environment) -> None:
    git_fails(environment.folder, "cherry-pick", "side")


def conflicting_revert(environment: gitmem.Environment) -> None:
    edited(environment, "a", "later than the mainline")
    git_fails(environment.folder, "revert", "--no-edit", "main~1")


def conflicting_stash(environment: gitmem.Environment) -> None:
    write(environment, "a", "stashed")
    git(environment.folder, "stash")
    edited(environment, "a", "later than the stash")
    git_fails(environment.folder, "stash", "pop")


CONFLICTS: dict[str, tuple[Callable[[gitmem.Environment], None], tuple[str, ...]]] = {
    "merge": (conflicting_merge, ("merge", "--abort")),
    "cherry-pick": (conflicting_pick, ("cherry-pick", "--abort")),
    "revert": (conflicting_revert, ("revert", "--abort")),
    "stash": (conflicting_stash, ("checkout", "HEAD", "--", "notes/a.json")),
}


@pytest.mark.parametrize("kind", CONFLICTS)
def test_conflict_markers_never_become_a_version(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document], kind: str
) -> None:
    begin, abort = CONFLICTS[kind]
    side_branch(environment, a="of the side")
    notes.replace("a", text="mainline", if_match=two["a"].revision)
    environment.close()
    begin(environment)
    markers = file_of(environment, "a").read_text()
    assert "<<<<<<<" in markers
    assert status(environment) == "UU notes/a.json"

    edited(environment, "b", "during")
    edited(environment, "a", "during")
    assert file_of(environment, "a").read_text() == markers
    assert status(environment) == "UU notes/a.json"
    git(environment.folder, *abort)
    assert (shown(environment, "a"), shown(environment, "b")) == ("during", "during")
    edited(environment, "a", "after")
    assert status(environment) == ""
    assert "<<<<<<<" not in git(environment.folder, "log", "-p", "main", "--format=")


def test_a_merge_that_is_finished_after_a_save_undoes_nothing(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    side_branch(environment, a="of the side")
    notes.replace("a", text="mainline", if_match=two["a"].revision)
    environment.close()
    git_fails(environment.folder, "merge", "side")
    saved = notes.replace("b", text="during", if_match=two["b"].revision)
    environment.close()
    write(environment, "a", "resolved")
    git(environment.folder, "add", "notes/a.json")
    git(environment.folder, "commit", "-qm", "merged")
    assert status(environment) == ""
    assert notes.read("b") == saved
    assert notes.read("a").text == "resolved"
    assert notes.history("a").versions[0].message == "merged"


def test_what_a_merge_has_put_in_place_is_not_lost_by_a_save_of_it(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    side_branch(environment, a="of the side", b="of the side")
    notes.replace("a", text="mainline", if_match=two["a"].revision)
    environment.close()
    git_fails(environment.folder, "merge", "side")
    notes.replace("b", text="during", if_match=two["b"].revision)
    environment.close()
    assert "of the side" in file_of(environment, "b").read_text()
    write(environment, "a", "resolved")
    git(environment.folder, "add", "notes/a.json")
    git(environment.folder, "commit", "-qm", "merged")
    assert notes.read("b").text == "during"
    assert "of the side" in file_of(environment, "b").read_text()
    assert status(environment) == " M notes/b.json"
    git(environment.folder, "checkout", "notes/b.json")


@pytest.mark.parametrize("backend", ["--merge", "--apply"])
def test_while_main_is_rebased_saves_are_busy_and_reads_go_on(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document], backend: str
) -> None:
    side_branch(environment, a="of the side")
    mainline = notes.replace("a", text="mainline", if_match=two["a"].revision)
    environment.close()
    git_fails(environment.folder, "rebase", backend, "side")
    assert "rebase" in refused(environment, "edit", "notes", "b", "--text-stdin", stdin="two")
    with pytest.raises(gitmem.BusyError):
        notes.create("c", title="C")
    assert (shown(environment, "a"), shown(environment, "b")) == ("mainline", "text of b")
    git(environment.folder, "rebase", "--abort")
    assert notes.read("a") == mainline

    git_fails(environment.folder, "rebase", backend, "side")
    write(environment, "a", "resolved")
    git(environment.folder, "add", "notes/a.json")
    git(environment.folder, "-c", "core.editor=true", "rebase", "--continue")
    assert notes.read("a").text == "resolved"
    edited(environment, "b", "two")
    assert status(environment) == ""


def test_a_rebase_of_another_branch_holds_nothing_up(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    side_branch(environment, a="of the side")
    notes.replace("a", text="mainline", if_match=two["a"].revision)
    environment.close()
    git(environment.folder, "checkout", "-q", "side")
    git_fails(environment.folder, "rebase", "main")
    edited(environment, "b", "during")
    git(environment.folder, "rebase", "--abort")
    git(environment.folder, "checkout", "-q", "main")
    assert shown(environment, "b") == "during"
    assert status(environment) == ""


def test_a_rebase_of_main_in_a_linked_worktree_holds_saves_up_too(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document], tmp_path: Path
) -> None:
    side_branch(environment, a="of the side")
    notes.replace("a", text="mainline", if_match=two["a"].revision)
    environment.close()
    git(environment.folder, "checkout", "-q", "side")
    linked = tmp_path / "linked"
    git(environment.folder, "worktree", "add", "-q", str(linked), "main")
    git_fails(linked, "rebase", "side")
    with pytest.raises(gitmem.BusyError):
        notes.replace("b", text="two", if_match=two["b"].revision)
    git(linked, "rebase", "--abort")
    assert notes.replace("b", text="two", if_match=two["b"].revision).text == "two"


# Staged and untracked files


def test_staged_and_untracked_files_are_never_swept_into_a_save(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    write(environment, "b", "staged")
    write(environment, "new", "staged")
    for name in ("README", "untracked.txt"):
        (folder(environment) / name).write_text(name)
    git(environment.folder, "add", "notes/b.json", "notes/new.json", "README")
    before = status(environment)
    saved = notes.replace("a", text="two", if_match=two["a"].revision)
    environment.close()
    assert status(environment) == before
    assert git(environment.folder, "show", "--format=", "--name-only", "main") == "notes/a.json"
    git(environment.folder, "commit", "-qm", "mine")
    assert git(environment.folder, "show", "--format=", "--name-only", "main").split() == [
        "README",
        "notes/b.json",
        "notes/new.json",
    ]
    assert notes.read("a") == saved
    assert (notes.read("b").text, notes.read("new").text) == ("staged", "staged")
    assert status(environment) == "?? untracked.txt"


def test_a_staged_change_of_the_saved_document_is_adopted_first(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    write(environment, "a", "staged")
    git(environment.folder, "add", "notes/a.json")
    assert "has changed" in refused(environment, "edit", "notes", "a", "--text-stdin", stdin="not knowing of it")
    assert shown(environment, "a") == "staged"
    edited(environment, "a", "two")
    assert [v.operation for v in notes.history("a").versions] == ["replace", "edit", "create"]
    environment.close()
    assert status(environment) == ""


def test_a_staged_removal_of_the_saved_document_is_its_deletion(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    git(environment.folder, "rm", "-q", "notes/a.json")
    with pytest.raises(gitmem.NotFoundError):
        notes.replace("a", text="two", if_match=two["a"].revision)
    environment.close()
    assert [v.operation for v in notes.history("a").versions] == ["delete", "create"]


def test_a_plain_commit_after_any_save_undoes_nothing(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    done(environment, "create", "notes", "c", "--title", "C")
    edited(environment, "a", "two")
    done(environment, "freeze", "notes", "a")
    done(environment, "remove", "notes", "b")
    tree = git(environment.folder, "rev-parse", "main:")
    git(environment.folder, "commit", "--allow-empty", "-qm", "by hand")
    git(environment.folder, "commit", "--allow-empty", "-qam", "by hand, all")
    assert git(environment.folder, "rev-parse", "main:") == tree


def test_a_reset_of_main_is_taken_as_it_is(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    two_b = notes.replace("b", text="two", if_match=two["b"].revision)
    notes.delete("a", if_match=two["a"].revision)
    environment.close()
    git(environment.folder, "reset", "-q", "--hard", two["b"].revision)
    assert notes.read("a") == two["a"]
    assert notes.read("b") == two["b"]
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.replace("b", text="three", if_match=two_b.revision)
    edited(environment, "a", "after the reset")
    assert status(environment) == ""


def test_a_main_under_another_name_is_reported_and_comes_back(
    environment: gitmem.Environment, two: dict[str, gitmem.Document]
) -> None:
    git(environment.folder, "branch", "-m", "main", "trunk")
    assert "refs/heads/main" in refused(environment, "show", "notes", "a")
    git(environment.folder, "branch", "-m", "trunk", "main")
    assert shown(environment, "a") == "text of a"
