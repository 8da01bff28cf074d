"""Doctor finds what is broken by plain git, by a disk or by a kill, names it, and mends what loses nothing."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path

import pytest

import gitmem
from gitmem import doctor
from gitmem.doctor import Finding
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.layout import shards
from tests.support import clean_environment, fsck, git, killed_at, python

GITMEM = {"GIT_COMMITTER_NAME": "gitmem", "GIT_COMMITTER_EMAIL": "gitmem@localhost"}
OPEN = """
import os, sys, gitmem
environment = gitmem.open_store(sys.argv[1]).project("bot").environment()
notes = environment.documents("notes")
"""


@pytest.fixture
def folder(environment: gitmem.Environment) -> Path:
    """The working tree of a closed environment with the documents "a", "b" and "gone" (deleted)."""
    notes = environment.documents("notes")
    notes.replace("a", text="two", if_match=notes.create("a", title="A", text="one").revision)
    notes.create("b", title="B")
    notes.delete("gone", if_match=notes.create("gone", title="Gone").revision)
    environment.close()
    return Path(environment.folder)


@pytest.fixture
def control(store: gitmem.Store, folder: Path) -> Path:
    """The project's closed control repository."""
    store.project("bot").control.close()
    return folder.parent / "control.git"


def found(environment: gitmem.Environment) -> list[tuple[str, str]]:
    """The findings' checks and subjects, by a fresh process's eyes: nothing is open, nothing remembered."""
    environment.close()
    findings = doctor.examine(EnvironmentRepository(environment.folder))
    assert all("\n" not in finding.message and finding.message.endswith(".") for finding in findings)
    return [(finding.check, finding.subject) for finding in findings]


def mended(environment: gitmem.Environment) -> list[str]:
    """The checks of what a repair mended; nothing is left to find after it."""
    environment.close()
    repaired = [finding.check for finding in doctor.repair(environment)]
    environment.close()
    assert found(environment) == []
    return repaired


def oid(folder: Path, revision: str) -> str:
    return git(folder, "rev-parse", revision)


def loose(folder: Path, name: str) -> Path:
    path = folder / "objects" / name[:2] / name[2:]
    path = path if path.exists() else folder / ".git/objects" / name[:2] / name[2:]
    path.chmod(0o644)
    return path


def empty(path: Path) -> None:
    path.write_bytes(b"")


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def swap(path: Path) -> None:
    """Well-formed, but another object's bytes."""
    path.write_bytes(zlib.compress(b"blob 5\0other"))


def remove(path: Path) -> None:
    path.unlink()


DAMAGE = [empty, zero, halve, flip, swap, remove]


def write(folder: Path, name: str, value: object) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def commit_all(folder: Path, message: str, env: dict[str, str] | None = None) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message, env=env)
    return oid(folder, "HEAD")


def test_a_finding_says_check_subject_and_message() -> None:
    finding = Finding(check="objects", subject="ab12", message="It is gone.")
    assert finding.to_json() == {"check": "objects", "subject": "ab12", "message": "It is gone."}


# Healthy ones


def test_everyday_git_is_healthy(environment: gitmem.Environment, folder: Path, tmp_path: Path) -> None:
    git(folder, "checkout", "--quiet", "-b", "side")
    write(folder, "notes/b.json", {"title": "B", "text": "theirs"})
    write(folder, "notes/README.md", "Not a document.")
    write(folder, "src/settings.json", {"not": "ours"})
    commit_all(folder, "on a branch")
    git(folder, "checkout", "--quiet", "main")
    notes = environment.documents("notes")
    notes.replace("a", text="three", if_match=notes.read("a").revision)
    environment.close()
    git(folder, "merge", "--quiet", "--no-edit", "side")
    assert notes.read("b").text == "theirs"
    git(folder, "revert", "--no-edit", "-m", "1", "HEAD")
    git(folder, "commit", "--quiet", "--amend", "-m", "amended")
    notes.create("c", title="C")
    environment.close()
    git(folder, "gc", "--quiet")
    assert found(environment) == []
    git(tmp_path, "clone", "--quiet", str(folder), "copy")
    git(tmp_path, "clone", "--quiet", "--depth", "1", folder.as_uri(), "shallow")
    for name in ("copy", "shallow"):
        assert doctor.examine(EnvironmentRepository(str(tmp_path / name))) == []


def test_a_store_is_examined_as_a_whole(store: gitmem.Store, environment: gitmem.Environment, folder: Path) -> None:
    (Path(store.folder) / "Not A Project").mkdir()
    (Path(store.folder) / "unused").mkdir()
    assert doctor.examine(store) == []
    blob = oid(folder, "main:notes/b.json")
    empty(loose(folder, blob))
    environment.close()
    (finding,) = doctor.examine(store)
    assert (finding.check, finding.subject) == ("objects", f"bot/development: {blob}")
    (repaired,) = doctor.repair(store)
    assert (repaired.check, repaired.subject) == ("objects", f"bot/development: {blob}")
    assert doctor.examine(store) == []


def test_split_folders_are_healthy(environment: gitmem.Environment, folder: Path) -> None:
    new = [gitmem.NewDocument(id=f"n{number}", title="x") for number in range(300)]
    assert len(list(environment.documents("notes").create_many(new))) == 300
    assert found(environment) == []
    assert len(list(folder.glob("notes/*/*.json"))) > 200


def test_a_split_of_a_split_folder_is_no_document(
    environment: gitmem.Environment, folder: Path, tmp_path: Path
) -> None:
    together = [name for name in (f"d{number}" for number in range(40_000)) if shards(name)[0] == "35"][:140]
    ids = [f"z{number}" for number in range(130)] + together
    new = [gitmem.NewDocument(id=name, title="x") for name in ids]
    assert len(list(environment.documents("notes").create_many(new))) == 270
    environment.close()
    subjects = git(folder, "log", "--format=%s").splitlines()
    behind = subjects.index("reshard notes/35") + 1
    git(tmp_path, "clone", "--quiet", str(folder), "copy")
    git(tmp_path / "copy", "reset", "--quiet", "--hard", f"HEAD~{behind}")
    copy = EnvironmentRepository(str(tmp_path / "copy"))
    copy.resources()
    git(tmp_path / "copy", "merge", "--quiet", "--ff-only", "origin/main")
    for place in (copy, environment):
        assert doctor.examine(place) == []
        assert [count for _, count in place.resources()] == [272]


def test_a_persons_unfinished_work_is_no_finding(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/a.json", {"title": "A", "text": "staged"})
    git(folder, "add", "notes/a.json")
    write(folder, "notes/b.json", "half wr")
    write(folder, "notes/new.json", {"title": "New"})
    before = git(folder, "status", "--porcelain")
    assert found(environment) == []
    assert doctor.repair(environment) == []
    environment.close()
    assert git(folder, "status", "--porcelain") == before
    git(folder, "checkout", "--quiet", "-f", "main")
    git(folder, "checkout", "--quiet", "--detach")
    write(folder, "notes/a.json", {"title": "A", "text": "elsewhere"})
    assert found(environment) == []


def test_examining_beside_a_writer_finds_nothing(environment: gitmem.Environment, folder: Path) -> None:
    code = OPEN + "for number in range(150):\n    notes.create(f'w{number}', title='W')\nenvironment.close()\n"
    writer = subprocess.Popen([sys.executable, "-c", code, str(folder.parent.parent)], env=clean_environment())
    rounds = 0
    while writer.poll() is None:
        assert doctor.examine(environment) == []
        rounds += 1
    assert writer.returncode == 0
    assert rounds > 1


def test_progress_is_reported(environment: gitmem.Environment, folder: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    doctor.examine(environment, lambda what, done, total: seen.append((what, done, total)))
    assert ("examining history", 7, 7) in seen


def test_an_environment_without_a_working_tree(tmp_path: Path) -> None:
    write(tmp_path, "store/gitmem.toml", "worktree = false\n")
    with gitmem.open_store(tmp_path / "store") as store:
        environment = store.project("bot").create().environment()
        environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="Notes.")])
        environment.documents("notes").create("a", title="A")
        assert doctor.examine(environment) == []
        with environment.parts().catalog.transaction() as connection:
            connection.execute("UPDATE documents SET updated = 1")
        assert [finding.check for finding in doctor.examine(environment)] == ["index"]
        assert [finding.check for finding in doctor.repair(environment)] == ["index"]


# Objects


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("revision", ["main~4:notes/a.json", "main:notes", "main^{tree}", "main", "main~2"])
@pytest.mark.findings("objects")
def test_a_damaged_object_is_named(
    environment: gitmem.Environment, folder: Path, revision: str, damage: Callable[[Path], None]
) -> None:
    name = oid(folder, revision)
    damage(loose(folder, name))
    assert ("objects", name) in found(environment)


@pytest.mark.findings("objects")
def test_every_damaged_object_is_named_at_once(environment: gitmem.Environment, folder: Path) -> None:
    names = {oid(folder, f"main:notes/{file}") for file in (".resource.json", "b.json", "gone.json")}
    names |= {oid(folder, "main~2:notes"), oid(folder, "main~4:notes/a.json")}
    for name in names:
        remove(loose(folder, name))
    assert {subject for check, subject in found(environment) if check == "objects"} == names


@pytest.mark.findings("objects")
def test_damage_on_a_merged_branch_is_found(environment: gitmem.Environment, folder: Path) -> None:
    git(folder, "checkout", "--quiet", "-b", "side")
    write(folder, "notes/b.json", {"title": "B", "text": "first"})
    commit_all(folder, "first")
    write(folder, "notes/b.json", {"title": "B", "text": "second"})
    commit_all(folder, "second")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "--no-ff", "--no-edit", "side")
    name = oid(folder, "side~1:notes/b.json")
    zero(loose(folder, name))
    assert found(environment) == [("objects", name)]


@pytest.mark.parametrize("damage", [empty, halve, flip])
@pytest.mark.findings("objects", "packs")
def test_a_damaged_pack_is_named(environment: gitmem.Environment, folder: Path, damage: Callable[[Path], None]) -> None:
    git(folder, "gc", "--quiet")
    (pack,) = (folder / ".git/objects/pack").glob("*.pack")
    pack.chmod(0o644)
    damage(pack)
    findings = found(environment)
    assert ("packs", pack.name) in findings
    assert any(check == "objects" for check, _ in findings)


def test_a_pack_without_its_index_is_named(environment: gitmem.Environment, folder: Path) -> None:
    git(folder, "gc", "--quiet")
    (pack,) = (folder / ".git/objects/pack").glob("*.pack")
    pack.with_suffix(".idx").unlink()
    assert ("packs", pack.name) in found(environment)
    git(folder, "index-pack", str(pack))
    assert found(environment) == []


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_blob_of_the_tip_is_mended_from_its_file(
    environment: gitmem.Environment, folder: Path, damage: Callable[[Path], None]
) -> None:
    damage(loose(folder, oid(folder, "main:notes/b.json")))
    assert mended(environment) == ["objects"]
    assert fsck(folder) == ""


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_save_that_waits_for_its_flush_is_mended_from_the_journal(
    environment: gitmem.Environment, folder: Path, damage: Callable[[Path], None]
) -> None:
    code = OPEN + "notes.replace('a', text='three', if_match=notes.read('a').revision)\nos._exit(0)\n"
    assert python(code, str(folder.parent.parent)).returncode == 0
    blob = oid(folder, "main:notes/a.json")
    damage(loose(folder, blob))
    (folder / "notes/a.json").unlink()
    with open(folder / ".git/gitmem/journal", "rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_SH)  # as a writer that is alive: an abandoned journal is mended on opening
        reader = EnvironmentRepository(str(folder))
        findings = doctor.examine(reader)
        assert [(finding.check, finding.subject) for finding in findings] == [("objects", blob), ("journal", blob)]
        (repaired,) = doctor.repair(reader)
        assert repaired.message == "It was written again from the journal."
        reader.close()
    git(folder, "checkout", "notes/a.json")
    assert environment.documents("notes").read("a").text == "three"


# The branch


@pytest.mark.parametrize("damage", [empty, zero, halve, remove])
def test_a_damaged_main_is_brought_back(
    environment: gitmem.Environment, folder: Path, damage: Callable[[Path], None]
) -> None:
    tip = oid(folder, "main")
    damage(folder / ".git/refs/heads/main")
    assert found(environment) == [("refs", "refs/heads/main")]
    assert mended(environment) == ["refs"]
    assert oid(folder, "main") == tip


def test_a_main_that_names_nothing_is_brought_back(environment: gitmem.Environment, folder: Path) -> None:
    tip = oid(folder, "main")
    (folder / ".git/refs/heads/main").write_text(f"{sha1(b'').hexdigest()}\n")
    assert found(environment) == [("refs", "refs/heads/main")]
    assert mended(environment) == ["refs"]
    assert oid(folder, "main") == tip


def test_the_newest_of_what_remembers_main_counts(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/b.json", {"title": "B", "text": "by git"})
    tip = commit_all(folder, "newer than the index")
    empty(folder / ".git/refs/heads/main")
    assert mended(environment) == ["refs"]
    assert oid(folder, "main") == tip


def test_the_reflog_alone_remembers_main(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/b.json", {"title": "B", "text": "by git"})
    tip = commit_all(folder, "newer than the index")
    remove(folder / ".git/refs/heads/main")
    for file in (folder / ".git/gitmem").glob("index.sqlite*"):
        file.unlink()
    assert found(environment) == [("refs", "refs/heads/main")]
    assert mended(environment) == ["refs"]
    assert oid(folder, "main") == tip


@pytest.mark.findings("refs")
def test_a_main_that_nothing_remembers_is_left_to_a_person(environment: gitmem.Environment, folder: Path) -> None:
    empty(folder / ".git/refs/heads/main")
    for file in (folder / ".git/gitmem").glob("index.sqlite*"):
        file.unlink()
    assert found(environment) == [("refs", "refs/heads/main")]
    assert doctor.repair(environment) == []


@pytest.mark.parametrize(("content", "check"), [("", "head"), ("\0\0", "head"), (None, "repository")])
def test_a_damaged_head_is_named(
    environment: gitmem.Environment, folder: Path, content: str | None, check: str
) -> None:
    head = folder / ".git/HEAD"
    kept = head.read_text()
    head.unlink()
    if content is not None:
        head.write_text(content)
    assert [found_check for found_check, _ in found(environment)] == [check]
    assert doctor.repair(environment) == []
    head.write_text(kept)


@pytest.mark.parametrize("content", ["[core", "\0" * 40])
def test_a_damaged_configuration_is_named(environment: gitmem.Environment, folder: Path, content: str) -> None:
    config = folder / ".git/config"
    kept = config.read_text()
    config.write_text(content)
    assert found(environment) == [("repository", ".git/config")]
    config.write_text(kept)


# Commits of gitmem's own


@pytest.mark.parametrize(
    ("subject", "file", "wrong"),
    [
        ("edit notes/a", "notes/b.json", "it changes notes/b.json"),
        ("create notes/zz", "notes/a.json", "it changes notes/a.json"),
        ("reshard notes", "notes/a.json", "it does more than move files"),
        ("declare notes", "notes/a.json", "it changes notes/a.json"),
        ("delete notes/a", "notes/a.json", "it leaves a document"),
    ],
)
@pytest.mark.findings("commits", "index")
def test_a_commit_that_does_not_do_what_it_says(
    environment: gitmem.Environment, folder: Path, subject: str, file: str, wrong: str
) -> None:
    write(folder, file, {"title": "Changed", "text": "by something else"})
    commit = commit_all(folder, subject, GITMEM)
    environment.close()
    findings = doctor.examine(environment)
    (finding,) = [finding for finding in findings if finding.check == "commits"]
    assert finding.subject == commit
    assert finding.message.startswith(f"Its subject is {subject!r}, but {wrong}.")
    assert "index" in {finding.check for finding in findings}


@pytest.mark.findings("commits", "index")
def test_a_tombstone_that_no_deletion_left(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/a.json", '{"deleted": true}\n')
    commit = commit_all(folder, "edit notes/a", GITMEM)
    assert ("commits", commit) in found(environment)


@pytest.mark.findings("commits")
def test_an_own_commit_that_changes_no_document(environment: gitmem.Environment, folder: Path) -> None:
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "declare notes", env=GITMEM)
    assert found(environment) == []
    write(folder, "README.md", "Hello.")
    commit = commit_all(folder, "init", GITMEM)
    assert found(environment) == [("commits", commit)]


# The index


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET revision = zeroblob(20) WHERE id = 'a'",
        "UPDATE documents SET dead = 1 WHERE id = 'a'",
        "UPDATE documents SET dead = 0 WHERE id = 'gone'",
        "UPDATE documents SET title = 'Other', summary = '', policy = 'enabled', bytes = 0 WHERE id = 'a'",
        "UPDATE documents SET session = 'ses_x' WHERE id = 'a'",
        "DELETE FROM documents WHERE id = 'b'",
        "INSERT INTO documents SELECT resource, 'zz', revision, blob, updated, session, dead, merged, title, summary,"
        " policy, bytes FROM documents WHERE id = 'a'",
        "DELETE FROM versions WHERE id = 'a' AND operation = 'create'",
        "UPDATE versions SET operation = 'restore' WHERE id = 'a' AND operation = 'replace'",
        "UPDATE resources SET max_bytes = 1",
        "DELETE FROM resources",
    ],
)
def test_an_index_that_history_contradicts_is_made_anew(
    environment: gitmem.Environment, folder: Path, statement: str
) -> None:
    connection = sqlite3.connect(folder / ".git/gitmem/index.sqlite", isolation_level=None)
    assert connection.execute(statement).rowcount > 0
    connection.close()
    assert {check for check, _ in found(environment)} == {"index"}
    assert mended(environment) == ["index"]
    assert environment.documents("notes").read("a").text == "two"


@pytest.mark.parametrize("damage", [empty, zero, halve, remove])
def test_a_damaged_index_heals_by_itself(
    environment: gitmem.Environment, folder: Path, damage: Callable[[Path], None]
) -> None:
    damage(folder / ".git/gitmem/index.sqlite")
    assert found(environment) == []
    assert len(environment.documents("notes").list().documents) == 2


# The tree


@pytest.mark.findings("tombstones")
def test_a_deleted_id_in_use_again(environment: gitmem.Environment, folder: Path) -> None:
    git(folder, "revert", "--no-edit", "HEAD")
    assert found(environment) == [("tombstones", "notes/gone")]
    git(folder, "revert", "--no-edit", "HEAD")
    assert found(environment) == []
    write(folder, "notes/gone.json", "{ broken")
    commit_all(folder, "over a tombstone")
    assert found(environment) == [("tombstones", "notes/gone")]


def test_a_committed_file_that_is_no_document(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/a.json", "{ broken")
    write(folder, "notes/new.json", {"title": "x" * 500})
    commit_all(folder, "invalid")
    assert found(environment) == [("documents", "notes/a"), ("documents", "notes/new")]
    write(folder, "notes/a.json", {"title": "A"})
    write(folder, "notes/new.json", {"title": "New"})
    commit_all(folder, "valid")
    assert found(environment) == []


@pytest.mark.findings("layout")
def test_files_where_no_document_is_looked_for(environment: gitmem.Environment, folder: Path) -> None:
    document = {"title": "T"}
    write(folder, "notes/ab/a.json", document)
    write(folder, "notes/two words.json", document)
    write(folder, "notes/ca/a.json", document)
    (folder / "notes/link.json").symlink_to("a.json")
    commit_all(folder, "odd files")
    assert sorted(found(environment)) == [
        ("layout", "notes/a.json"),
        ("layout", "notes/ab/a.json"),
        ("layout", "notes/link.json"),
        ("layout", "notes/two words.json"),
    ]


def test_ids_that_differ_in_case_only_on_a_disk_that_ignores_case(
    environment: gitmem.Environment, folder: Path
) -> None:
    environment.documents("notes").create("A", title="A")
    assert found(environment) == []
    git(folder, "config", "core.ignorecase", "true")
    assert found(environment) == [("layout", "notes/a.json")]
    git(folder, "config", "core.ignorecase", "false")


def test_declarations_that_are_none(environment: gitmem.Environment, folder: Path) -> None:
    kept = (folder / "notes/.resource.json").read_text()
    write(folder, "notes/.resource.json", {"description": "Notes."})
    commit_all(folder, "no provider")
    assert found(environment) == [("resources", "notes/.resource.json")]
    git(folder, "rm", "--quiet", "notes/.resource.json")
    commit_all(folder, "no declaration")
    assert found(environment) == [("resources", "notes")]
    write(folder, "notes/.resource.json", kept)
    commit_all(folder, "declared again")
    assert found(environment) == []


# The working tree and what lies beside it


def test_an_index_entry_that_would_undo_a_save(environment: gitmem.Environment, folder: Path) -> None:
    old = oid(folder, "main~4:notes/a.json")
    assert old != oid(folder, "main:notes/a.json")
    git(folder, "update-index", "--cacheinfo", f"100644,{old},notes/a.json")
    git(folder, "update-index", "--force-remove", "notes/b.json")
    assert found(environment) == [("staging", "notes/a.json"), ("staging", "notes/b.json")]
    assert mended(environment) == ["staging"]
    assert git(folder, "status", "--porcelain") == ""


@pytest.mark.parametrize("damage", [halve, flip])
def test_a_corrupt_git_index_is_made_anew(
    environment: gitmem.Environment, folder: Path, damage: Callable[[Path], None]
) -> None:
    damage(folder / ".git/index")
    assert ("staging", ".git/index") in found(environment)
    assert mended(environment) == ["staging"]
    assert git(folder, "status", "--porcelain") == ""
    assert (folder / ".git/index.damaged").exists()


def test_an_edit_on_top_of_an_older_version(environment: gitmem.Environment, folder: Path) -> None:
    killed_at("before-projection", OPEN + "notes.patch('a', title='New', if_match=notes.read('a').revision)",
              str(folder.parent.parent))  # fmt: skip
    write(folder, "notes/a.json", {"title": "Mine"})
    assert found(environment) == [("worktree", "notes/a.json")]
    git(folder, "checkout", "notes/a.json")
    assert found(environment) == []


def test_an_edit_that_was_kept_aside(environment: gitmem.Environment, folder: Path) -> None:
    write(folder, "notes/a.json.kept-77-1", {"title": "Mine"})
    assert found(environment) == [("worktree", "notes/a.json.kept-77-1")]
    (folder / "notes/a.json.kept-77-1").unlink()


@pytest.mark.parametrize("name", ["index.lock", "refs/heads/main.lock", "HEAD.lock", "packed-refs.lock"])
def test_a_lock_of_another_process(environment: gitmem.Environment, folder: Path, name: str) -> None:
    lock = folder / ".git" / name
    lock.touch()
    assert found(environment) == [("locks", str(lock))]
    lock.unlink()


@pytest.mark.parametrize("failpoint", ["before-objects", "after-objects", "before-barrier", "after-barrier",
                                       "before-swap", "after-swap", "before-projection", "before-stage"])  # fmt: skip
def test_a_kill_leaves_nothing_to_find(environment: gitmem.Environment, folder: Path, failpoint: str) -> None:
    killed_at(failpoint, OPEN + "notes.create('new', title='New')", str(folder.parent.parent))
    assert found(environment) == []
    assert not list((folder / ".git").rglob("*.lock"))
    assert list((folder / ".git/gitmem/tmp").iterdir()) == []


def test_temporary_files_go_unless_a_persons_text_is_in_them(environment: gitmem.Environment, folder: Path) -> None:
    tmp = folder / ".git/gitmem/tmp"
    (tmp / "77-0").write_bytes(b"")
    (tmp / "77-1").write_bytes((folder / "notes/a.json").read_bytes())
    (tmp / "77-2").write_bytes(loose(folder, oid(folder, "main")).read_bytes())
    (tmp / "77-3").write_bytes((folder / ".git/index").read_bytes())
    (tmp / "77-4").write_text(f"{oid(folder, 'main')}\n")
    (tmp / "77-5").write_text(json.dumps({"title": "Taken out of the working tree a moment before the kill"}))
    assert found(environment) == [("scratch", str(tmp / "77-5"))]
    assert os.listdir(tmp) == ["77-5"]
    (tmp / "77-5").unlink()


# The control repository


def control_found(control: Path, store: gitmem.Store) -> list[tuple[str, str]]:
    prefix = "bot/control.git: "
    findings = doctor.examine(store)
    assert all(finding.subject.startswith(prefix) for finding in findings)
    return [(finding.check, finding.subject.removeprefix(prefix)) for finding in findings]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.findings("objects")
def test_a_damaged_object_of_the_control_repository(
    store: gitmem.Store, control: Path, damage: Callable[[Path], None]
) -> None:
    name = oid(control, "main^{tree}")
    damage(loose(control, name))
    assert control_found(control, store) == [("objects", name)]


@pytest.mark.parametrize("damage", [empty, remove])
def test_a_damaged_main_of_the_control_repository(
    store: gitmem.Store, control: Path, damage: Callable[[Path], None]
) -> None:
    tip = oid(control, "main")
    damage(control / "refs/heads/main")
    assert control_found(control, store) == [("refs", "refs/heads/main")]
    (control / "refs/heads/main").write_text(f"{tip}\n")
    assert control_found(control, store) == []


@pytest.mark.findings("control")
def test_records_that_do_not_fit_together(store: gitmem.Store, control: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(control), "copy")
    copy = tmp_path / "copy"
    (pointer,) = copy.glob("active/development/*.json")
    pointer.write_text(json.dumps({"deployment": "dep_gone"}))
    write(copy, "active/production/other.json", "{")
    commit_all(copy, "by hand")
    git(copy, "push", "--quiet", "origin", "main")
    assert control_found(control, store) == [
        ("control", "active/production/other.json"),
        ("control", "active/development/tutor.json"),
    ]


@pytest.mark.findings("repository")
def test_a_control_folder_that_is_no_repository(store: gitmem.Store, control: Path) -> None:
    (control / "HEAD").unlink()
    assert control_found(control, store) == [("repository", str(control))]


# Nothing at all makes doctor fail


@pytest.mark.parametrize("damage", [empty, zero, halve, flip, remove])
@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_doctor_answers_whatever_file_is_damaged(
    environment: gitmem.Environment, control: Path, folder: Path, tmp_path: Path, packed: bool,
    damage: Callable[[Path], None],
) -> None:  # fmt: skip
    if packed:
        git(folder, "gc", "--quiet")
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.stat().st_size]
    objects = [file for file in files if file.match(".git/objects/??/*")]
    files = [file for file in files if file not in objects] + objects[:4]
    assert len(files) > 12
    for number, file in enumerate(files):
        copy = tmp_path / f"copy{number}"
        subprocess.run(["cp", "-r", str(folder), str(copy)], check=True)
        (copy / file).chmod(0o644)
        damage(copy / file)
        broken = EnvironmentRepository(str(copy))
        before = doctor.examine(broken)
        doctor.repair(broken)
        broken.close()
        after = doctor.examine(EnvironmentRepository(str(copy)))
        assert len(after) <= len(before), (file, before, after)
        subprocess.run(["rm", "-rf", str(copy)], check=True)
