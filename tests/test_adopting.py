"""Adopting hand edits at once, and giving one up: what is committed, what is left, and where bytes are kept."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import gitmem
from tests.cli import Cli, prepared
from tests.support import git, git_fails

EDIT = {"title": "Mine", "text": ["by", "hand"]}


@pytest.fixture
def folder(environment: gitmem.Environment) -> Path:
    """The working tree, with the documents a, b, c and "gone" (deleted), and Pat Person as its owner."""
    notes = environment.documents("notes")
    for name in ("a", "b", "c"):
        notes.create(name, title=name.upper(), text="one\ntwo\nthree\nfour\nfive")
    notes.delete("gone", if_match=notes.create("gone", title="Gone").revision)
    environment.close()
    place = Path(environment.folder)
    git(place, "config", "user.name", "Pat Person")
    git(place, "config", "user.email", "pat@example.org")
    return place


def write(path: Path, value: object) -> None:
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def log(folder: Path, count: int) -> list[str]:
    """The newest commits, oldest first: subject and author."""
    return git(folder, "log", f"-{count}", "--reverse", "--format=%s by %an <%ae>").splitlines()


def left(done: gitmem.Adoption) -> list[tuple[str, str]]:
    return [(file.path, file.state) for file in done.left]


def many(environment: gitmem.Environment, count: int) -> list[str]:
    """So many more documents; their ids."""
    new = [gitmem.NewDocument(id=f"n{number}", title="x") for number in range(count)]
    assert len(list(environment.documents("notes").create_many(new))) == count
    environment.close()
    return [document.id for document in new]


def file_of(folder: Path, document_id: str) -> Path:
    (found,) = (folder / "notes").rglob(f"{document_id}.json")
    return found


def test_each_hand_edit_becomes_one_owner_commit(environment: gitmem.Environment, folder: Path) -> None:
    write(folder / "notes/a.json", EDIT)
    (folder / "notes/b.json").unlink()
    write(folder / "notes/new.json", {"text": "new"})
    (folder / "notes/c.json").rename(folder / "notes/renamed.json")
    assert {(file.path, file.change) for file in environment.status().files} == {
        ("notes/a.json", "edited"),
        ("notes/b.json", "deleted"),
        ("notes/c.json", "deleted"),
        ("notes/new.json", "created"),
        ("notes/renamed.json", "created"),
    }
    done = environment.adopt()
    by_pat = [
        f"{subject} by Pat Person <pat@example.org>"
        for subject in (
            "edit notes/a",
            "create notes/new",
            "create notes/renamed",  # before its old name is deleted, so that its text is never nowhere
            "delete notes/b",
            "delete notes/c",
        )
    ]
    assert log(folder, 5) == by_pat
    assert [f"{found.operation} {found.document}" for found in done.adopted] == [
        line.split(" by ")[0] for line in by_pat
    ]
    assert done.adopted[0].revision == environment.documents("notes").read("a").revision
    assert left(done) == []
    assert environment.status().files == ()
    environment.close()
    assert git(folder, "status", "--porcelain") == ""
    assert environment.documents("notes").read("renamed").text == "one\ntwo\nthree\nfour\nfive"


def test_adopting_twice_commits_nothing_more(environment: gitmem.Environment, folder: Path) -> None:
    write(folder / "notes/a.json", EDIT)
    environment.adopt()
    tip = git(folder, "rev-parse", "main")
    assert environment.adopt() == gitmem.Adoption(adopted=(), left=())
    assert git(folder, "rev-parse", "main") == tip


def test_what_cannot_be_committed_is_left_and_named(environment: gitmem.Environment, folder: Path) -> None:
    write(folder / "notes/a.json", "{")
    write(folder / "notes/gone.json", EDIT)
    write(folder / "notes/b.json", EDIT)
    (folder / "notes/not a name.json").write_text("{}")
    done = environment.adopt()
    assert [found.document for found in done.adopted] == ["notes/b"]
    assert left(done) == [
        ("notes/a.json", "invalid"),
        ("notes/gone.json", "invalid"),
        ("notes/not a name.json", "misplaced"),
    ]
    assert (folder / "notes/a.json").read_text() == "{"
    assert environment.documents("notes").read("a").text.startswith("one\n")
    assert done.left == environment.status().files


def lose_most(folder: Path) -> None:
    for path in sorted((folder / "notes").rglob("n*.json"))[:12]:
        path.unlink()


def lose_folder(folder: Path) -> None:
    shutil.rmtree(folder / "notes")


def lose_tree(folder: Path) -> None:
    lose_folder(folder)
    (folder / ".gitattributes").unlink()


@pytest.mark.parametrize("lose", [lose_most, lose_folder, lose_tree])
def test_what_looks_like_a_loss_waits_for_a_word(
    environment: gitmem.Environment, folder: Path, lose: Callable[[Path], None]
) -> None:
    many(environment, 15)
    tip = git(folder, "rev-parse", "main")
    lose(folder)
    assert {file.state for file in environment.status().files if file.document or file.state == "missing"} == {
        "missing"
    }
    done = environment.adopt()
    assert done.adopted == ()
    assert "missing" in {file.state for file in done.left}
    assert git(folder, "rev-parse", "main") == tip
    environment.close()
    live = {info.id for info in environment.documents("notes").list().documents}
    still_there = {path.stem for path in (folder / "notes").rglob("*.json")} if (folder / "notes").exists() else set()
    done = environment.adopt(deletions=True)
    assert {found.document for found in done.adopted} == {f"notes/{name}" for name in live - still_there}
    assert {found.operation for found in done.adopted} == {"delete"}
    assert done.left == ()
    environment.close()
    assert git(folder, "status", "--porcelain") == ""
    assert {info.id for info in environment.documents("notes").list().documents} == live & still_there


def test_a_few_removals_need_no_word(environment: gitmem.Environment, folder: Path) -> None:
    ids = many(environment, 30)
    for name in ids[:9]:
        file_of(folder, name).unlink()
    assert {found.document for found in environment.adopt().adopted} == {f"notes/{name}" for name in ids[:9]}


def test_two_hundred_edits_of_a_folder_that_splits(environment: gitmem.Environment, folder: Path) -> None:
    for number in range(200):
        write(folder / f"notes/n{number}.json", {"title": "By hand", "text": str(number)})
    done = environment.adopt()
    assert len(done.adopted) == 200
    assert done.left == ()
    environment.close()
    assert git(folder, "status", "--porcelain") == ""
    assert len(environment.documents("notes").ids()) == 203


def test_a_file_in_the_folder_of_its_resource_goes_where_it_belongs(
    environment: gitmem.Environment, folder: Path
) -> None:
    many(environment, 150)
    assert not (folder / "notes/a.json").exists()
    file_of(folder, "b").rename(folder / "notes/b.json")
    file_of(folder, "c").rename(folder / "notes/c.json")
    write(folder / "notes/c.json", EDIT)
    write(folder / "notes/new.json", EDIT)
    write(folder / "notes/a.json", EDIT)
    assert [(file.path, file.state, file.change) for file in environment.status().files] == [
        ("notes/a.json", "misplaced", None),
        ("notes/b.json", "stale", None),
        ("notes/c.json", "unadopted", "edited"),
        ("notes/new.json", "unadopted", "created"),
    ]
    done = environment.adopt()
    assert [f"{found.operation} {found.document}" for found in done.adopted] == ["edit notes/c", "create notes/new"]
    assert left(done) == [("notes/a.json", "misplaced")]
    (folder / "notes/a.json").unlink()
    environment.close()
    assert git(folder, "status", "--porcelain") == ""
    assert environment.documents("notes").read("new").title == "Mine"
    assert len(file_of(folder, "new").relative_to(folder).parts) == 3


def test_nothing_is_adopted_while_git_is_in_the_middle_of_something(
    environment: gitmem.Environment, folder: Path
) -> None:
    git(folder, "checkout", "--quiet", "-b", "other")
    write(folder / "notes/a.json", EDIT)
    tip = git(folder, "rev-parse", "main")
    with pytest.raises(gitmem.BusyError, match="the working tree is on other; check out main"):
        environment.adopt()
    git(folder, "commit", "--quiet", "-a", "-m", "theirs")
    git(folder, "checkout", "--quiet", "main")
    write(folder / "notes/a.json", {"title": "Ours", "text": "x"})
    git(folder, "commit", "--quiet", "-a", "-m", "ours")
    git_fails(folder, "merge", "other")
    with pytest.raises(gitmem.BusyError, match="a merge is under way"):
        environment.adopt()
    with pytest.raises(gitmem.BusyError, match="a merge is under way"):
        environment.discard("notes", "a")
    git(folder, "merge", "--abort")
    assert environment.adopt().adopted == ()
    assert git(folder, "rev-parse", "main~1") == tip


def test_an_edit_of_an_older_version_is_merged_where_lines_do_not_overlap(
    environment: gitmem.Environment, folder: Path
) -> None:
    notes, path = environment.documents("notes"), folder / "notes/a.json"
    valid = json.loads(path.read_text())
    path.write_text("half an edit")
    notes.replace("a", text="ONE\ntwo\nthree\nfour\nfive", if_match=notes.read("a").revision)
    environment.close()
    assert path.read_text() == "half an edit"
    write(path, valid | {"text": [*valid["text"][:4], "FIVE"], "title": "Mended"})
    (shown,) = environment.status().files
    assert (shown.state, shown.change, shown.reason) == (
        "unadopted",
        "edited",
        "it was edited on top of an older version",
    )
    assert environment.adopt().left == ()
    found = notes.read("a")
    assert (found.title, found.text) == ("Mended", "ONE\ntwo\nthree\nfour\nFIVE")
    assert json.loads(path.read_text())["text"] == found.text.split("\n")
    assert environment.status().files == ()


@pytest.mark.findings("worktree")
def test_an_edit_of_an_older_version_that_overlaps_names_both_versions(
    environment: gitmem.Environment, folder: Path
) -> None:
    notes, path = environment.documents("notes"), folder / "notes/a.json"
    valid, older = json.loads(path.read_text()), notes.read("a").revision
    path.write_text("half an edit")
    newer = notes.replace("a", text="ONE\ntwo\nthree\nfour\nfive", if_match=older).revision
    environment.close()
    write(path, valid | {"text": ["eins", *valid["text"][1:]]})
    done = environment.adopt()
    assert done.adopted == ()
    (shown,) = done.left
    assert shown.state == "stale"
    assert shown.reason is not None
    assert older[:12] in shown.reason
    assert newer[:12] in shown.reason
    assert json.loads(path.read_text())["text"][0] == "eins"
    assert notes.read("a").text.startswith("ONE\n")


def test_a_plain_commit_settles_an_edit_that_overlaps(environment: gitmem.Environment, folder: Path) -> None:
    notes, path = environment.documents("notes"), folder / "notes/a.json"
    valid = json.loads(path.read_text())
    path.write_text("half an edit")
    notes.replace("a", text="ONE", if_match=notes.read("a").revision)
    environment.close()
    write(path, valid | {"text": ["eins"]})
    git(folder, "commit", "--quiet", "-m", "mine is right", "notes/a.json")
    assert notes.read("a").text == "eins"
    environment.close()
    assert environment.status().files == ()


def make_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("b.json")


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("kept")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: write(path, EDIT),
        lambda path: path.write_bytes(b"\xff no JSON"),
        lambda path: path.write_bytes(b"x" * 600_000),
        make_link,
        make_folder,
        lambda path: git(path.parent, "rm", "--quiet", "--cached", path.name),
    ],
)
def test_an_edit_that_is_given_up_stays_retrievable(
    environment: gitmem.Environment, folder: Path, spoil: Callable[[Path], object]
) -> None:
    path = folder / "notes/a.json"
    before = path.read_bytes()
    spoil(path)
    if path.is_file() and path.read_bytes() == before:
        path.write_text("also changed")
    kind, data = path.is_symlink(), path.read_bytes() if path.is_file() else None
    done = environment.discard("notes", "a")
    environment.close()
    assert path.read_bytes() == before
    assert git(folder, "status", "--porcelain") == ""
    assert environment.status().files == ()
    assert done.kept is not None
    kept = Path(done.kept)
    assert kept.is_symlink() == kind
    if kind:
        assert os.readlink(kept) == "b.json"
    elif data is None:
        assert (kept / "inside").read_text() == "kept"
    else:
        assert kept.read_bytes() == data


def test_giving_up_a_removal_and_a_new_file(environment: gitmem.Environment, folder: Path) -> None:
    before = (folder / "notes/a.json").read_bytes()
    (folder / "notes/a.json").unlink()
    assert environment.discard("notes", "a").kept is None
    assert (folder / "notes/a.json").read_bytes() == before
    write(folder / "notes/new.json", EDIT)
    write(folder / "notes/gone.json", EDIT)
    for name in ("new", "gone"):
        kept = environment.discard("notes", name).kept
        assert kept is not None
        assert json.loads(Path(kept).read_text()) == EDIT
    assert not (folder / "notes/new.json").exists()
    assert environment.status().files == ()


def test_each_edit_that_is_given_up_is_kept(environment: gitmem.Environment, folder: Path) -> None:
    kept = []
    for text in ("first", "second"):
        (folder / "notes/a.json").write_text(text)
        kept.append(environment.discard("notes", "a").kept)
    assert [Path(place or "").read_text() for place in kept] == ["first", "second"]


def test_where_there_is_no_edit_there_is_nothing_to_give_up(environment: gitmem.Environment, folder: Path) -> None:
    for name in ("a", "never"):
        with pytest.raises(gitmem.NotFoundError, match="no hand edit"):
            environment.discard("notes", name)


def test_what_lies_behind_a_link_is_not_given_up(environment: gitmem.Environment, folder: Path, tmp_path: Path) -> None:
    (folder / "notes").rename(tmp_path / "elsewhere")
    (folder / "notes").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(gitmem.StorageError):
        environment.discard("notes", "a")
    assert (tmp_path / "elsewhere/a.json").exists()
    (folder / "notes").unlink()
    (tmp_path / "elsewhere").rename(folder / "notes")


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    run = prepared(tmp_path / "memory")
    run.ok("create", "notes", "a", "--title", "A")
    return run


def test_the_commands(run: Cli) -> None:
    write(run.tree / "notes/a.json", EDIT)
    done = run.json("adopt")
    assert done == {
        "adopted": [{"document": "notes/a", "operation": "edit", "revision": done["adopted"][0]["revision"]}],
        "left": [],
    }
    assert run.ok("adopt") == ""
    write(run.tree / "notes/b.json", EDIT)
    write(run.tree / "notes/a.json", "{")
    answer = run("adopt")
    committed, invalid = answer.out.splitlines()
    assert committed.startswith("committed  create notes/b  ")
    assert invalid.startswith("invalid  notes/a.json  the file is not JSON")
    assert answer.status == 3
    gave_up, kept = run.ok("discard", "notes", "a").splitlines()
    assert gave_up == "gave up the edit of notes/a"
    assert Path(kept.removeprefix("kept as ")).read_text() == "{"
    assert run.refused("discard", "notes", "a")["code"] == "not_found"
    assert run.refused("discard", "notes", "../a", status=2)["code"] == "invalid_request"
    (run.tree / "notes/a.json").unlink()
    assert run.json("discard", "notes", "a") == {"document": "notes/a", "kept": None}


def test_deletions_on_the_command_line(run: Cli) -> None:
    shutil.rmtree(run.tree / "notes")
    answer = run("adopt")
    assert answer.status == 3
    assert "missing" in answer.out
    assert [found["document"] for found in run.json("adopt", "--deletions")["adopted"]] == ["notes/a"]
    assert run.json("list", "notes")["documents"] == []
