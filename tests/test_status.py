"""What status shows of hand edits and other files, each provoked with an editor's means or plain git."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import gitmem
from tests.support import git, git_fails, killed_at

DOCUMENT = {"title": "Mine", "text": ["by", "hand"]}


@pytest.fixture
def folder(environment: gitmem.Environment) -> Path:
    """The working tree, with the documents "a", "b" and "gone" (deleted)."""
    notes = environment.documents("notes")
    notes.create("a", title="A", text="one")
    notes.create("b", title="B")
    notes.delete("gone", if_match=notes.create("gone", title="Gone").revision)
    environment.close()
    return Path(environment.folder)


def write(folder: Path, name: str, value: object = DOCUMENT) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def fill(environment: gitmem.Environment, count: int) -> None:
    new = [gitmem.NewDocument(id=f"n{number}", title="x") for number in range(count)]
    assert len(list(environment.documents("notes").create_many(new))) == count
    environment.close()


def shown(environment: gitmem.Environment) -> list[tuple[str, str, str | None]]:
    """Each file of the status: path, state, and what changed or else the reason."""
    return [(file.path, file.state, file.change or file.reason) for file in environment.status().files]


def test_a_clean_environment_shows_nothing(environment: gitmem.Environment, folder: Path) -> None:
    assert environment.status().to_json() == {
        "branch": "main",
        "onMain": True,
        "operation": None,
        "lock": None,
        "indexCurrent": True,
        "documents": 2,
        "files": [],
    }


def test_an_environment_that_was_never_made_is_empty(store: gitmem.Store) -> None:
    found = store.project("none").environment().status()
    assert (found.documents, found.files) == (0, ())
    assert not os.path.exists(store.project("none").folder)


def test_edits_that_will_be_adopted(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/a.json")
    (folder / "notes/b.json").unlink()
    write(folder, "notes/new.json")
    assert shown(environment) == [
        ("notes/a.json", "unadopted", "edited"),
        ("notes/b.json", "unadopted", "deleted"),
        ("notes/new.json", "unadopted", "created"),
    ]
    assert environment.status().files[0].to_json() == {
        "path": "notes/a.json",
        "state": "unadopted",
        "document": "notes/a",
        "change": "edited",
        "reason": None,
    }


def test_status_changes_nothing(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/a.json")
    git(folder, "add", "notes/a.json")
    write(folder, "notes/b.json", "half wr")
    before = git(folder, "status", "--porcelain"), git(folder, "rev-parse", "main")
    environment.status()
    environment.close()
    assert (git(folder, "status", "--porcelain"), git(folder, "rev-parse", "main")) == before


def test_the_same_document_in_another_form_is_put_back_without_a_commit(
    environment: gitmem.Environment, folder: Path
) -> None:
    content = json.loads((folder / "notes/a.json").read_text())
    write(folder, "notes/a.json", content | {"text": "one"})
    write(folder, "notes/gone.json", '{"deleted":   true}')
    tip = git(folder, "rev-parse", "main")
    assert shown(environment) == [
        ("notes/a.json", "unadopted", "reformatted"),
        ("notes/gone.json", "unadopted", "reformatted"),
    ]
    notes = environment.documents("notes")
    notes.replace("a", text="one", if_match=notes.read("a").revision)
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.create("gone", title="Back")
    environment.close()
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "rev-parse", "main") == tip


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{", "the file is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("<<<<<<< HEAD\n", "the file is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ('{"title": ""}', "title is empty"),
        ('{"txt": ""}', "the file has an unknown key 'txt'"),
        (json.dumps({"text": "x" * 9000}), "text has 9000 bytes; the limit is 8192. Shorten it."),
    ],
)
def test_an_edit_that_is_no_document_is_invalid(
    environment: gitmem.Environment, folder: Path, value: str, reason: str
) -> None:
    write(folder, "notes/a.json", value)
    assert shown(environment) == [("notes/a.json", "invalid", reason)]


def test_a_file_over_a_deleted_id_is_invalid(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/gone.json")
    assert shown(environment) == [("notes/gone.json", "invalid", "its id is reserved by a deletion")]


def test_a_tombstone_written_by_hand_is_a_deletion(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/a.json", {"deleted": True})
    assert shown(environment) == [("notes/a.json", "unadopted", "deleted")]
    notes = environment.documents("notes")
    with pytest.raises(gitmem.NotFoundError):
        notes.patch("a", title="x", if_match=notes.read("a").revision)
    assert git(folder, "log", "-1", "--format=%s") == "delete notes/a"


def test_links_are_not_followed(environment: gitmem.Environment, folder: Path, tmp_path: Path) -> None:
    write(tmp_path, "secret.json")
    (folder / "notes/a.json").unlink()
    (folder / "notes/a.json").symlink_to(tmp_path / "secret.json")
    (folder / "notes/linked.json").symlink_to(tmp_path / "secret.json")
    assert shown(environment) == [
        ("notes/a.json", "invalid", "it is a symbolic link"),
        ("notes/linked.json", "invalid", "it is a symbolic link"),
    ]


@pytest.mark.findings("worktree")
def test_files_that_can_be_no_document_are_misplaced(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/ab/a.json")
    write(folder, "notes/two words.json")
    write(folder, "notes/a.json.kept-12-3")
    write(folder, "notes/README.md", "hello")
    write(folder, "notes/.a.json.swp", "editor")
    assert [(path, state) for path, state, _ in shown(environment)] == [
        ("notes/a.json.kept-12-3", "misplaced"),
        ("notes/ab/a.json", "misplaced"),
        ("notes/two words.json", "misplaced"),
    ]


def test_a_file_in_a_split_folder_is_new_or_a_second_one(environment: gitmem.Environment, folder: Path) -> None:
    fill(environment, 130)
    write(folder, "notes/new.json")
    write(folder, "notes/n1.json")
    second, new = environment.status().files
    assert (new.state, new.document, new.change) == ("unadopted", "notes/new", "created")
    assert (second.state, second.document) == ("misplaced", "notes/n1")
    assert (second.reason or "").startswith("the file of notes/n1 belongs at notes/")


def test_a_declaration_is_committed_by_its_person(environment: gitmem.Environment, folder: Path) -> None:
    declared = json.loads((folder / "notes/.resource.json").read_text())
    write(folder, "notes/.resource.json", declared | {"description": "Mine."})
    write(folder, "plans/.resource.json", declared)
    write(folder, "plans/a.json")
    write(folder, "src/package.json", {"name": "not ours"})
    assert [(path, state) for path, state, _ in shown(environment)] == [
        ("notes/.resource.json", "unadopted"),
        ("plans/.resource.json", "unadopted"),
        ("plans/a.json", "invalid"),
    ]
    git(folder, "add", "notes", "plans")
    git(folder, "commit", "--quiet", "-m", "plans")
    assert shown(environment) == []
    assert [resource.id for resource in environment.inventory()] == ["notes", "plans"]


@pytest.mark.parametrize("tool", ["mv", "rm -r"])
def test_a_vanished_folder_is_one_line_and_no_deletion(
    environment: gitmem.Environment, folder: Path, tool: str
) -> None:
    if tool == "mv":
        (folder / "notes").rename(folder / "elsewhere")
    else:
        shutil.rmtree(folder / "notes")
    (missing,) = [file for file in environment.status().files if file.state == "missing"]
    assert (missing.path, missing.reason) == ("notes", "the folder of notes, or its declaration, has vanished")
    notes = environment.documents("notes")
    assert notes.read("a").text == "one"
    git(folder, "checkout", "notes")
    assert "missing" not in {file.state for file in environment.status().files}


def test_most_files_gone_at_once_is_one_line(environment: gitmem.Environment, folder: Path) -> None:
    fill(environment, 20)
    for index in range(14):
        (folder / f"notes/n{index}.json").unlink()
    assert shown(environment) == [("notes", "missing", "most files of notes are gone")]


def test_git_need_not_look_into_files_that_were_just_created(environment: gitmem.Environment, folder: Path) -> None:
    fill(environment, 5)
    for file in (folder / "notes").glob("n*.json"):
        staged = git(folder, "ls-files", "--debug", f"notes/{file.name}")
        stat = file.stat()
        for name, time in (("ctime", stat.st_ctime_ns), ("mtime", stat.st_mtime_ns)):
            assert f"{name}: {time // 1_000_000_000}:{time % 1_000_000_000}\n" in staged


def test_a_sparse_checkout_deletes_nothing(environment: gitmem.Environment, folder: Path) -> None:
    git(folder, "sparse-checkout", "set", "--no-cone", "/notes/a.json", "/notes/.resource.json", "/.gitattributes")
    assert not (folder / "notes/b.json").exists()
    assert shown(environment) == []


def test_what_lags_after_a_kill_is_stale(environment: gitmem.Environment, folder: Path) -> None:
    code = (
        "import sys, gitmem\n"
        "notes = gitmem.open_store(sys.argv[1]).project('bot').environment().documents('notes')\n"
        "notes.replace('a', text='two', if_match=notes.read('a').revision)\n"
        "notes.create('c', title='C')\n"
    )
    killed_at("before-projection", code, str(folder.parent.parent))
    (folder / ".git/gitmem/index.sqlite").unlink()
    for suffix in ("-wal", "-shm"):
        (folder / f".git/gitmem/index.sqlite{suffix}").unlink(missing_ok=True)
    found = environment.status()
    reason = "gitmem has yet to bring it to the newest version"
    assert [(file.path, file.state, file.reason) for file in found.files] == [("notes/a.json", "stale", reason)]
    assert not found.index_current
    environment.close()
    assert shown(environment) == []
    assert environment.status().index_current


def test_an_edit_on_top_of_an_older_version_is_stale(environment: gitmem.Environment, folder: Path) -> None:
    git(folder, "branch", "old")
    notes = environment.documents("notes")
    notes.replace("a", text="two", if_match=notes.read("a").revision)
    environment.close()
    git(folder, "checkout", "--quiet", "old")
    write(folder, "notes/a.json")
    git(folder, "symbolic-ref", "HEAD", "refs/heads/main")
    (folder / ".git/gitmem/index.sqlite").unlink()
    first, second = (
        revision[:12] for revision in git(folder, "log", "--reverse", "--format=%H", "--", "notes/a.json").split()
    )
    reason = (
        f"it was edited on top of an older version: the edit of {first} and {second} do not merge, "
        "as they changed the same lines"
    )
    assert shown(environment) == [("notes/a.json", "stale", reason)]
    environment.close()
    assert shown(environment) == [("notes/a.json", "stale", reason)]
    git(folder, "checkout", "notes/a.json")
    environment.close()
    assert shown(environment) == []


def test_on_another_branch_files_are_not_compared_with_main(environment: gitmem.Environment, folder: Path) -> None:
    git(folder, "checkout", "--quiet", "--orphan", "other")
    git(folder, "rm", "--quiet", "-rf", ".")
    found = environment.status()
    assert (found.branch, found.on_main, found.documents, found.files) == ("other", False, 2, ())
    git(folder, "checkout", "--quiet", "main")
    git(folder, "checkout", "--quiet", "--detach")
    found = environment.status()
    assert (found.branch, found.on_main) == (None, False)


def test_edits_wait_while_a_merge_is_under_way(environment: gitmem.Environment, folder: Path) -> None:
    git(folder, "checkout", "--quiet", "-b", "other")
    write(folder, "notes/a.json")
    git(folder, "commit", "--quiet", "-a", "-m", "theirs")
    git(folder, "checkout", "--quiet", "main")
    write(folder, "notes/a.json", {"title": "Ours", "text": "x"})
    git(folder, "commit", "--quiet", "-a", "-m", "ours")
    git_fails(folder, "merge", "other")
    found = environment.status()
    assert (found.operation, found.files) == ("merge", ())
    git(folder, "merge", "--abort")
    assert environment.status().operation is None


def test_a_lock_of_another_git_process_is_named(environment: gitmem.Environment, folder: Path) -> None:
    lock = folder / ".git/index.lock"
    lock.touch()
    assert environment.status().lock == str(lock)
    lock.unlink()
    assert environment.status().lock is None


@pytest.mark.findings("documents")
def test_committed_files_that_do_not_count_are_rejected(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/a.json", "{")
    git(folder, "commit", "--quiet", "-a", "-m", "half a document")
    commit = git(folder, "rev-parse", "--short=12", "HEAD")
    (found,) = environment.status().files
    assert (found.path, found.state, found.document) == ("notes/a.json", "rejected", "notes/a")
    assert found.reason is not None
    assert found.reason.startswith(f"committed in {commit}, but the file is not JSON")
    assert environment.documents("notes").read("a").text == "one"


def test_a_revert_of_a_deletion_is_rejected_until_it_is_reverted(environment: gitmem.Environment, folder: Path) -> None:
    git(folder, "revert", "--no-edit", "HEAD")
    (found,) = environment.status().files
    assert (found.path, found.state) == ("notes/gone.json", "rejected")
    assert (found.reason or "").endswith("but its id is reserved by a deletion")
    git(folder, "revert", "--no-edit", "HEAD")
    assert environment.status().files == ()


def test_without_a_working_tree_there_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare/gitmem.toml").write_text("worktree = false\n")
    with gitmem.open_store(tmp_path / "bare") as store:
        environment = store.project("bot").environment()
        environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="Notes.")])
        environment.documents("notes").create("a", title="A")
        found = environment.status()
    assert (found.documents, found.files, found.on_main) == (1, (), True)
