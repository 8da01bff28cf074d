"""Whatever people do with plain git, an open handle and a fresh one see it alike, and nothing is out of step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gitmem
from tests.hazards import done, file_of, folder, git_dir, handwritten, shown, status
from tests.support import git


def by_hand(environment: gitmem.Environment, document_id: str, text: str, message: str | None = "by hand") -> None:
    """Write a document in an editor, and commit it with plain git unless `message` is None."""
    file_of(environment, document_id).write_text(handwritten(document_id.upper(), text))
    if message:
        git(environment.folder, "add", f"notes/{document_id}.json")
        git(environment.folder, "commit", "-qm", message)


def side(environment: gitmem.Environment, document_id: str, text: str) -> None:
    """A branch "side" with one commit on top of main's last but one; main is checked out again."""
    git(environment.folder, "checkout", "-qb", "side", "main")
    by_hand(environment, document_id, text, "side")
    git(environment.folder, "checkout", "-q", "main")


def commit(e: gitmem.Environment) -> None:
    by_hand(e, "a", "committed")


def amend(e: gitmem.Environment) -> None:
    git(e.folder, "commit", "-q", "--amend", "-m", "amended")


def revert(e: gitmem.Environment) -> None:
    git(e.folder, "revert", "--no-edit", "HEAD")


def restore(e: gitmem.Environment) -> None:
    by_hand(e, "a", "not wanted", None)
    git(e.folder, "checkout", "--", "notes/a.json")


def take_old(e: gitmem.Environment) -> None:
    git(e.folder, "checkout", "HEAD~1", "--", "notes/a.json")
    git(e.folder, "commit", "-qm", "the older one")


def remove(e: gitmem.Environment) -> None:
    git(e.folder, "rm", "-q", "notes/a.json")
    git(e.folder, "commit", "-qm", "removed")


def move(e: gitmem.Environment) -> None:
    git(e.folder, "mv", "notes/a.json", "notes/z.json")
    git(e.folder, "commit", "-qm", "moved")


def fast_forward(e: gitmem.Environment) -> None:
    side(e, "a", "of the side")
    git(e.folder, "merge", "-q", "--ff-only", "side")


def merge(e: gitmem.Environment) -> None:
    side(e, "a", "of the side")
    by_hand(e, "b", "of main")
    git(e.folder, "merge", "-q", "--no-edit", "side")


def rebase(e: gitmem.Environment) -> None:
    side(e, "b", "of the side")
    by_hand(e, "a", "rebased")
    git(e.folder, "rebase", "-q", "side")


def cherry_pick(e: gitmem.Environment) -> None:
    side(e, "a", "picked")
    git(e.folder, "cherry-pick", "side")


def reset_hard(e: gitmem.Environment) -> None:
    git(e.folder, "reset", "-q", "--hard", "HEAD~1")


def reset_soft(e: gitmem.Environment) -> None:
    git(e.folder, "reset", "-q", "--soft", "HEAD~1")
    git(e.folder, "commit", "-qm", "again")


def reset_mixed(e: gitmem.Environment) -> None:
    git(e.folder, "reset", "-q", "--mixed", "HEAD~1")
    git(e.folder, "commit", "-qam", "again")


def stash(e: gitmem.Environment) -> None:
    by_hand(e, "a", "stashed", None)
    git(e.folder, "stash", "-q")
    git(e.folder, "stash", "pop", "-q")
    git(e.folder, "commit", "-qam", "popped")


def pull(e: gitmem.Environment) -> None:
    clone = folder(e).parent.parent.parent / "clone"
    git(clone.parent, "clone", "-q", e.folder, "clone")
    (clone / "notes" / "a.json").write_text(handwritten("A", "pulled"))
    git(clone, "commit", "-qam", "elsewhere")
    git(e.folder, "pull", "-q", "--ff-only", str(clone), "main")


def branch_and_tag(e: gitmem.Environment) -> None:
    git(e.folder, "tag", "before")
    git(e.folder, "checkout", "-qb", "topic")
    by_hand(e, "a", "on a branch")
    git(e.folder, "checkout", "-q", "main")
    git(e.folder, "branch", "-q", "-D", "topic")


def linked(e: gitmem.Environment) -> None:
    place = folder(e).parent.parent.parent / "linked"
    git(e.folder, "worktree", "add", "-q", "-b", "topic", str(place))
    (place / "notes" / "a.json").write_text(handwritten("A", "in a worktree"))
    git(place, "commit", "-qam", "there")
    git(e.folder, "merge", "-q", "--ff-only", "topic")
    git(e.folder, "worktree", "remove", str(place))


def collect(e: gitmem.Environment) -> None:
    git(e.folder, "gc", "-q", "--prune=now")


def rewrite(e: gitmem.Environment) -> None:
    git(e.folder, "rebase", "-q", "--force-rebase", "HEAD~3")


OPERATIONS: dict[Callable[[gitmem.Environment], None], dict[str, str | None]] = {
    commit: {"a": "committed"},
    amend: {"a": "two"},
    revert: {"a": "one"},
    restore: {"a": "two"},
    take_old: {"a": "one"},
    remove: {"a": None},
    move: {"a": None, "z": "two"},
    fast_forward: {"a": "of the side"},
    merge: {"a": "of the side", "b": "of main"},
    rebase: {"a": "rebased", "b": "of the side"},
    cherry_pick: {"a": "picked"},
    reset_hard: {"a": "one"},
    reset_soft: {"a": "two"},
    reset_mixed: {"a": "two"},
    stash: {"a": "stashed"},
    pull: {"a": "pulled"},
    branch_and_tag: {"a": "two"},
    linked: {"a": "in a worktree"},
    collect: {"a": "two"},
    rewrite: {"a": "two"},
}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_an_open_handle_and_a_fresh_one_see_what_was_done(
    environment: gitmem.Environment, notes: gitmem.Documents, operation: Callable[[gitmem.Environment], None]
) -> None:
    made = notes.create("a", title="A", text="one")
    notes.create("b", title="B", text="b")
    saved = notes.replace("a", text="two", if_match=made.revision)
    assert notes.read("a") == saved  # the handle stays open
    operation(environment)
    expected = {"a": "two", "b": "b"} | OPERATIONS[operation]
    texts = {document_id: text for document_id, text in expected.items() if text is not None}
    for document_id, text in texts.items():
        found = notes.read(document_id)
        assert (found.text, shown(environment, document_id)) == (text, text)
        changed = git(
            environment.folder, "log", "-1", "--first-parent", "--format=%H", "--", f"notes/{document_id}.json"
        )
        if operation is not merge:
            assert found.revision == changed
        assert notes.history(document_id).versions[0].revision == found.revision
    assert sorted(document.id for document in notes.list().documents) == sorted(texts)
    for document_id in expected.keys() - texts.keys():
        with pytest.raises(gitmem.NotFoundError):
            notes.read(document_id)
        with pytest.raises(gitmem.PreconditionFailedError, match="deleted"):
            notes.create(document_id, title="Again")
    before = {document_id: notes.read(document_id) for document_id in texts}
    environment.close()
    for path in (git_dir(environment) / "gitmem").glob("index*"):
        path.unlink()
    assert {document_id: notes.read(document_id) for document_id in texts} == before  # from history alone
    for document_id, document in before.items():
        notes.replace(document_id, text="saved after", if_match=document.revision)
    environment.close()
    assert status(environment) == ""
    assert done(environment, "doctor") == "healthy\n"


# A linked worktree on main


@pytest.fixture
def linked_main(environment: gitmem.Environment, notes: gitmem.Documents, tmp_path: Path) -> Path:
    """A linked worktree that has main checked out; the environment's own folder is on another branch."""
    notes.create("a", title="A", text="one")
    notes.create("b", title="B", text="b")
    environment.close()
    git(environment.folder, "checkout", "-qb", "elsewhere")
    git(environment.folder, "worktree", "add", "-q", str(tmp_path / "linked"), "main")
    return tmp_path / "linked"


@pytest.mark.parametrize("how", ["-qm", "-qam"])
def test_a_commit_in_a_linked_worktree_of_main_undoes_no_save(
    environment: gitmem.Environment, notes: gitmem.Documents, linked_main: Path, how: str
) -> None:
    saved = notes.replace("a", text="two", if_match=notes.read("a").revision)
    made = notes.create("c", title="C")
    assert git(linked_main, "status", "--porcelain") == ""
    (linked_main / "notes" / "b.json").write_text(handwritten("B", "by hand"))
    git(linked_main, "add", "notes/b.json")
    git(linked_main, "commit", how, "there")
    assert (notes.read("a"), notes.read("c")) == (saved, made)
    assert notes.read("b").text == "by hand"


def test_an_edit_in_a_linked_worktree_of_main_is_left_as_it_is(
    environment: gitmem.Environment, notes: gitmem.Documents, linked_main: Path
) -> None:
    mine = handwritten("A", "under way")
    (linked_main / "notes" / "a.json").write_text(mine)
    notes.replace("a", text="two", if_match=notes.read("a").revision)
    notes.delete("b", if_match=notes.read("b").revision)
    assert (linked_main / "notes" / "a.json").read_text() == mine
    assert git(linked_main, "status", "--porcelain") == " M notes/a.json"
    assert "two" in git(linked_main, "diff")
    git(linked_main, "stash", "-q")
    git(linked_main, "stash", "drop", "-q")
    assert notes.read("a").text == "two"
