"""Memory files: paths, limits, revisions, roles, privacy, and a person's own Git."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import gitmem
from gitmem.errors import ErrorCode, GitmemError
from gitmem.filepaths import Scope
from gitmem.files import Files

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@pytest.fixture
def project(store: gitmem.Store) -> gitmem.Project:
    return store.project("acme").create()


@pytest.fixture
def anna(project: gitmem.Project) -> Files:
    return project.files(member="anna@example.com", role="admin")


@pytest.fixture
def bob(project: gitmem.Project) -> Files:
    return project.files(member="bob", role="member")


def refused(code: ErrorCode, work: Callable[[], object]) -> str:
    with pytest.raises(GitmemError) as raised:
        work()
    assert raised.value.code == code, raised.value
    return raised.value.message


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("Web-App", "web-app.md"), ("web-app.md", "web-app.md"), ("memory:/Projects/Web-App.MD", "projects/web-app.md"),
        ("team:/a/b/c/d", "a/b/c/d.md"), ("memory", "MEMORY.md"), ("MEMORY.md", "MEMORY.md"),
        ("Memory.MD", "MEMORY.md"),
    ],
)  # fmt: skip
def test_a_path_has_one_spelling(bob: Files, given: str, path: str) -> None:
    assert bob.put("personal", given, "text").path == path
    assert bob.read("personal", given.upper()).path == path


@pytest.mark.parametrize(
    ("scope", "path"),
    [
        ("personal", "a/b/c/d/e"), ("team", "a/b"), ("team", "a/b/c/d"), ("personal", "../x"), ("personal", "/x"),
        ("personal", "x/"), ("personal", ""), ("personal", "x.txt"), ("personal", ".git/x"), ("personal", "a/.md"),
        ("personal", "projects/MEMORY.md"), ("personal", "memory:/team:/x"), ("personal", "a/memory:/x"),
        ("personal", "\u212a"), ("personal", "e\u0301"), ("personal", "a b"), ("personal", "a\0"),
        ("personal", "\ud800"),
        ("personal", "x.md.json/y"), ("personal", "x" * 200), ("personal", "--output=x"),
    ],
)  # fmt: skip
def test_a_path_outside_the_rules_is_refused(anna: Files, scope: Scope, path: str) -> None:
    refused(ErrorCode.INVALID_PATH, lambda: anna.put(scope, path, "text"))
    refused(ErrorCode.INVALID_PATH, lambda: anna.read(scope, path))


def test_limits(bob: Files) -> None:
    bob.put("personal", "note", "x" * 32_768)
    bob.put("personal", "MEMORY.md", "")
    bob.put("personal", "MEMORY.md", "x" * 12_288)
    refused(ErrorCode.TOO_LARGE, lambda: bob.put("personal", "note", "x" * 32_769))
    refused(ErrorCode.TOO_LARGE, lambda: bob.put("personal", "MEMORY.md", "é" * 6_145))
    refused(ErrorCode.EMPTY, lambda: bob.put("personal", "note", " \n\t"))
    refused(ErrorCode.INVALID_REQUEST, lambda: bob.put("personal", "note", "\ud800"))
    assert bob.read("personal", "note").content == "x" * 32_768


def test_a_full_folder_takes_no_new_note(bob: Files) -> None:
    bob.put("personal", "MEMORY.md", "does not count")
    for number in range(200):
        bob.put("personal", f"n{number}", "text")
    refused(ErrorCode.FOLDER_FULL, lambda: bob.put("personal", "one-more", "text"))
    assert bob.put("personal", "n7", "changed").updated
    bob.put("personal", "folder/one-more", "text")
    bob.remove("personal", "n8")
    bob.put("personal", "one-more", "text")
    first = bob.list("personal")
    paths = [file.path for file in first.files]
    while first.next_cursor:
        first = bob.list("personal", cursor=first.next_cursor)
        paths += [file.path for file in first.files]
    assert len(paths) == 202
    assert paths[0] == "MEMORY.md"
    assert paths[-1] == "folder/one-more.md"


def test_expected_revisions(bob: Files) -> None:
    first = bob.put("personal", "note", "one", expected_revision_id=None)
    refused(ErrorCode.REVISION_CONFLICT, lambda: bob.put("personal", "note", "one", expected_revision_id=None))
    second = bob.put("personal", "note", "two", expected_revision_id=first.revision_id)
    # A conflict goes before "nothing changed".
    refused(
        ErrorCode.REVISION_CONFLICT, lambda: bob.put("personal", "note", "two", expected_revision_id=first.revision_id)
    )
    same = bob.put("personal", "note", "two")
    assert (same.updated, same.revision_id) == (False, second.revision_id)
    refused(ErrorCode.REVISION_CONFLICT, lambda: bob.remove("personal", "note", expected_revision_id=first.revision_id))
    refused(ErrorCode.REVISION_CONFLICT, lambda: bob.put("personal", "other", "x", expected_revision_id="0" * 40))
    assert len(bob.history("personal", "note").revisions) == 2


def test_a_removed_path_may_be_written_again(bob: Files, project: gitmem.Project) -> None:
    first = bob.put("personal", "projects/note", "one")
    bob.remove("personal", "projects/note")
    refused(ErrorCode.NOT_FOUND, lambda: bob.read("personal", "projects/note"))
    refused(ErrorCode.NOT_FOUND, lambda: bob.remove("personal", "projects/note"))
    assert not Path(project.personal_files("bob").folder, "projects/note.md.json").exists()
    back = bob.restore("personal", "projects/note", first.revision_id[:9], expected_revision_id=None)
    assert (back.content, back.updated) == ("one", True)
    bob.remove("personal", "projects/note")
    bob.put("personal", "projects/note", "two", expected_revision_id=None)
    expected = ["put", "remove", "restore", "remove", "put"]
    assert [one.operation for one in bob.history("personal", "projects/note").revisions] == expected
    index = Path(project.personal_files("bob").folder, ".git/gitmem/index.sqlite")
    project.close()
    index.unlink()
    again = project.files(member="bob").history("personal", "projects/note").revisions
    assert [one.operation for one in again] == expected
    assert "+two" in bob.diff("personal", "projects/note")


def test_team_memory_is_written_by_owners_and_admins(anna: Files, bob: Files) -> None:
    put = anna.put("team", "reasons/abc/why", "because")
    assert put.updated_by == "anna@example.com"
    assert bob.read("team", "reasons/abc/why").content == "because"
    for write in (
        lambda: bob.put("team", "x", "y"),
        lambda: bob.remove("team", "reasons/abc/why"),
        lambda: bob.restore("team", "reasons/abc/why", put.revision_id),
    ):
        refused(ErrorCode.FORBIDDEN, write)
    assert anna.read("team", "reasons/abc/why") == bob.read("team", "reasons/abc/why")


@pytest.mark.parametrize("other", ["Bob", "bob ", "../bob", "bob/..", "%62ob", "böb", ".bob", "B" * 120])
def test_personal_memory_is_nobody_elses(project: gitmem.Project, bob: Files, other: str) -> None:
    put = bob.put("personal", "secret-plan", "xyzzy")
    theirs = project.files(member=other, role="owner")
    assert theirs.list("personal").files == ()
    for look in (
        lambda: theirs.read("personal", "secret-plan"),
        lambda: theirs.read("personal", "secret-plan", at=put.revision_id),
        lambda: theirs.history("personal", "secret-plan"),
        lambda: theirs.restore("personal", "secret-plan", put.revision_id),
    ):
        assert "xyzzy" not in refused(ErrorCode.NOT_FOUND, look)
    own = theirs.put("personal", "mine", "text")
    assert own.updated_by == other
    assert [file.path for file in bob.list("personal").files] == ["secret-plan.md"]
    assert len(project.file_repositories()) == 2
    refused(ErrorCode.FORBIDDEN, lambda: project.files(member=None).read("personal", "secret-plan"))


def test_personal_memory_can_be_turned_off(bob: Files, anna: Files) -> None:
    first = bob.put("personal", "MEMORY.md", "mine")
    anna.put("team", "MEMORY.md", "ours")
    assert [file.content for file in bob.context()] == ["ours", "mine"]
    bob.enable(False)
    assert not bob.is_enabled()
    for change in (
        lambda: bob.put("personal", "MEMORY.md", "mine"),
        lambda: bob.remove("personal", "MEMORY.md"),
        lambda: bob.restore("personal", "MEMORY.md", first.revision_id),
    ):
        refused(ErrorCode.MEMORY_DISABLED, change)
    assert bob.read("personal", "MEMORY.md").content == "mine"
    assert [file.content for file in bob.context()] == ["ours"]
    bob.enable(True)
    assert bob.put("personal", "MEMORY.md", "again").updated


def test_a_session_writes_for_its_member_and_keeps_its_context(
    environment: gitmem.Environment, store: gitmem.Store
) -> None:
    project = store.project("bot")
    bob = project.files(member="bob", role="member")
    bob.put("personal", "MEMORY.md", "before")
    session = environment.sessions.create(agent="tutor")
    agent = project.files(member="bob", role="member", session=session)
    agent.put("personal", "MEMORY.md", "after")
    assert [file.content for file in agent.context()] == ["before"]
    assert [file.content for file in bob.context()] == ["after"]
    newest, oldest = bob.history("personal", "MEMORY.md").revisions
    assert (newest.created_by, newest.session_id) == ("bob", session.id)
    assert (oldest.created_by, oldest.session_id) == ("bob", None)


def test_a_refused_text_leaves_nothing(bob: Files, project: gitmem.Project) -> None:
    bob.put("personal", "note", "text")
    message = refused(ErrorCode.SECRET_REFUSED, lambda: bob.put("personal", "note", f"line\nkey {SECRET}"))
    assert SECRET not in message
    assert "line 2" in message
    project.close()
    for path in Path(project.folder).rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()
    assert len(bob.history("personal", "note").revisions) == 1


def test_edits_by_hand_are_adopted(bob: Files, project: gitmem.Project) -> None:
    bob.put("personal", "projects/note", "text")
    folder = Path(project.personal_files("bob").folder)
    (folder / "projects/note.md.json").write_text('{"text": "by hand"}')
    (folder / "new.md.json").write_text('{"text": ["one", "two"]}')
    assert not bob.put("personal", "projects/note", "by hand").updated
    bob.put("personal", "new", "three")
    assert [one.operation for one in bob.history("personal", "new").revisions] == ["put", "create"]
    (folder / "new.md.json").unlink()
    refused(ErrorCode.NOT_FOUND, lambda: bob.remove("personal", "new"))
    (folder / "projects/note.md.json").write_text('{"text": ["by git"]}')
    git = ["git", "-C", str(folder), "-c", "user.name=Bob", "-c", "user.email=bob@example.com"]
    subprocess.run([*git, "commit", "-qam", "by git"], check=True)
    read = bob.read("personal", "projects/note")
    assert (read.content, read.updated_by) == ("by git", "bob@example.com")
