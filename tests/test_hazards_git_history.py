"""Hazard "history that others wrote": odd commits, rewritten and purged history are read as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

import gitmem
from tests.hazards import done, edited, file_of, git_dir, handwritten, shown, status
from tests.support import git


@pytest.fixture
def a(environment: gitmem.Environment, notes: gitmem.Documents) -> gitmem.Document:
    """A document, saved by a command that has ended."""
    document = notes.create("a", title="A", text="one")
    environment.close()
    return document


def forget_index(environment: gitmem.Environment) -> None:
    environment.close()
    for path in (git_dir(environment) / "gitmem").glob("index*"):
        path.unlink()


COMMITTERS = {
    "far future": b"committer P <p@x> 99999999999999 +0000",
    "beyond every number": b"committer P <p@x> 999999999999999999999999999999 +0000",
    "before 1970": b"committer P <p@x> -5 +0000",
    "no time": b"committer P <p@x>",
    "no zone": b"committer P <p@x> 5 +99999",
    "no address": b"committer P 5 +0000",
    "not utf-8": b"committer \xff\xfe <\xff@x> 5 +0000",
    "none": b"",
    "signed": b"committer P <p@x> 5 +0000\ngpgsig begin\n committer gitmem <gitmem@localhost> 9 +0000\n end",
}


@pytest.mark.parametrize("committer", COMMITTERS.values(), ids=COMMITTERS)
def test_a_commit_of_any_form_is_an_owners_version(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, tmp_path: Path, committer: bytes
) -> None:
    file_of(environment, "a").write_text(handwritten("A", "odd"))
    git(environment.folder, "add", "notes/a.json")
    tree = git(environment.folder, "write-tree")
    raw = f"tree {tree}\nparent {a.revision}\nauthor \N{SNOWMAN}\n".encode() + committer + b"\n\nodd \xff\n"
    (tmp_path / "raw").write_bytes(raw)
    commit = git(environment.folder, "hash-object", "-w", "-t", "commit", "--literally", str(tmp_path / "raw"))
    git(environment.folder, "config", "core.logAllRefUpdates", "false")
    git(environment.folder, "update-ref", "refs/heads/main", commit)
    for _ in range(2):
        odd = notes.read("a")
        assert (odd.text, odd.revision, odd.writer.kind) == ("odd", commit, "owner")
        assert len(odd.updated_at) == len("2026-09-10T12:00:00.000Z")
        assert [d.id for d in notes.list().documents] == ["a"]
        assert [v.operation for v in notes.history("a").versions] == ["edit", "create"]
        forget_index(environment)
    edited(environment, "a", "two")
    assert status(environment) == ""
    git(environment.folder, "update-ref", "refs/heads/main", a.revision)
    git(environment.folder, "read-tree", "--reset", "-u", "main")
    git(environment.folder, "prune", "--expire=now")


def test_an_amended_save_is_its_persons(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    session = gitmem.Writer(kind="agent", session_id="ses_1")
    notes.replace("a", text="by the agent", if_match=a.revision, writer=session)
    environment.close()
    git(environment.folder, "commit", "-q", "--amend", "-m", "better said")
    amended = notes.read("a")
    assert (amended.text, amended.writer.kind) == ("by the agent", "owner")
    assert amended.updated_at.endswith(".000Z")
    assert amended.revision == git(environment.folder, "rev-parse", "main")
    forget_index(environment)
    assert notes.read("a") == amended


def test_a_reverted_deletion_stays_dead_and_is_reported(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    notes.delete("a", if_match=a.revision)
    environment.close()
    git(environment.folder, "revert", "--no-edit", "HEAD")
    for _ in range(2):
        with pytest.raises(gitmem.NotFoundError):
            notes.read("a")
        assert notes.list().documents == ()
        forget_index(environment)
    assert "notes/a" in done(environment, "status")
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.create("a", title="A")
    environment.close()
    git(environment.folder, "revert", "--no-edit", "HEAD")


def rewrite(environment: gitmem.Environment, script: str) -> None:
    """Run a script on the index of every commit of main. The committers stay as they are: gitmem."""
    quiet = {"FILTER_BRANCH_SQUELCH_WARNING": "1"}
    git(environment.folder, "filter-branch", "--index-filter", script, "main", env=quiet)


@pytest.mark.findings("commits")
def test_a_document_purged_from_history_never_was(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    b = notes.create("b", title="B", text="stays")
    notes.replace("a", text="two", if_match=a.revision)
    environment.close()
    rewrite(environment, "git rm -q --cached --ignore-unmatch notes/a.json")
    for _ in range(2):
        assert [d.id for d in notes.list().documents] == ["b"]
        assert shown(environment, "b") == "stays"
        with pytest.raises(gitmem.NotFoundError):
            notes.read("a")
        forget_index(environment)
    assert notes.read("b").revision != b.revision
    notes.create("a", title="A new one")
    environment.close()
    assert status(environment) == ""


@pytest.mark.findings("commits")
def test_documents_whose_folder_history_renamed_are_found_there(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    environment.close()
    script = 'git ls-files -s | sed "s:\tnotes/:\tplans/:" | GIT_INDEX_FILE=new git update-index --index-info'
    rewrite(environment, f"{script} && mv new $GIT_INDEX_FILE")
    plans = environment.documents("plans")
    assert plans.read("a").text == "one"
    with pytest.raises(gitmem.NotFoundError):
        notes.read("a")
    plans.replace("a", text="two", if_match=plans.read("a").revision)
    environment.close()
    assert status(environment) == ""
