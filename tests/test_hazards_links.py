"""Hazard "links and odd files": never followed for read or write, never taken for a deletion, reported."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gitmem
from tests.hazards import done, edited, file_of, folder, handwritten, shown, status, subjects
from tests.support import git

SECRET = handwritten("secret", "s3cr3t")


@pytest.fixture
def a(environment: gitmem.Environment, notes: gitmem.Documents) -> gitmem.Document:
    """A document, saved by a command that has ended."""
    document = notes.create("a", title="A", text="one")
    environment.close()
    return document


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder outside of the store, with a file that nobody may read or write through a link."""
    place = tmp_path / "outside"
    place.mkdir()
    for name in ("a.json", "b.json", ".resource.json"):
        (place / name).write_text(SECRET)
    yield place
    assert {path.name: path.read_text() for path in place.iterdir()} == dict.fromkeys(
        ("a.json", "b.json", ".resource.json"), SECRET
    )


def never_read(environment: gitmem.Environment) -> None:
    """Nothing of the secret is in the repository, in any object."""
    listed = git(environment.folder, "cat-file", "--batch-all-objects", "--batch-check")
    blobs = [line.split()[0] for line in listed.splitlines() if " blob " in line]
    assert not [oid for oid in blobs if "s3cr3t" in git(environment.folder, "cat-file", "blob", oid)]


def reported(environment: gitmem.Environment, path: str) -> None:
    """`gitmem status` names the path."""
    assert path in [file.path for file in environment.status().files]
    environment.close()
    assert path in done(environment, "status")


def link(path: Path, target: Path) -> None:
    path.unlink()
    path.symlink_to(target)


def folder_for(path: Path, target: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path, target: Path) -> None:
    path.unlink()
    os.mkfifo(path)


ODD: dict[str, Callable[[Path, Path], None]] = {
    "a link out": link,
    "a link to nothing": lambda path, target: link(path, target / "nothing"),
    "a link to itself": lambda path, target: link(path, path),
    "a folder": folder_for,
    "a pipe": pipe,
}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_at_a_documents_place_is_left_alone_and_reported(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, outside: Path, kind: str
) -> None:
    path = file_of(environment, "a")
    ODD[kind](path, outside / "a.json")
    before = os.lstat(path)
    two = notes.replace("a", text="two", if_match=a.revision)
    notes.replace("a", text="three", if_match=two.revision)
    environment.close()
    after = os.lstat(path)
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert shown(environment, "a") == "three"
    assert subjects(environment)[:3] == ["replace notes/a", "replace notes/a", "create notes/a"]
    never_read(environment)
    reported(environment, "notes/a.json")
    path.rmdir() if kind == "a folder" else path.unlink()
    git(environment.folder, "checkout", "notes/a.json")
    edited(environment, "a", "four")
    assert status(environment) == ""


def test_a_link_where_a_new_document_goes_is_not_written_through(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, outside: Path
) -> None:
    path = file_of(environment, "b")
    path.symlink_to(outside / "b.json")
    notes.create("b", title="B", text="mine")
    environment.close()
    assert path.is_symlink()
    assert notes.read("b").text == "mine"
    never_read(environment)
    reported(environment, "notes/b.json")
    path.unlink()
    git(environment.folder, "checkout", "notes/b.json")


def test_a_linked_resource_folder_is_not_entered(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, outside: Path
) -> None:
    resource = folder(environment) / "notes"
    shutil.rmtree(resource)
    resource.symlink_to(outside)
    notes.replace("a", text="two", if_match=a.revision)
    notes.create("b", title="B", text="mine")
    environment.close()
    assert resource.is_symlink()
    assert (notes.read("a").text, notes.read("b").text) == ("two", "mine")
    never_read(environment)
    assert environment.status().files
    environment.close()
    resource.unlink()
    git(environment.folder, "checkout", "notes")
    edited(environment, "a", "three")
    assert status(environment) == ""


def test_a_linked_declaration_is_not_read(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, outside: Path
) -> None:
    path = folder(environment) / "notes" / ".resource.json"
    link(path, outside / ".resource.json")
    notes.replace("a", text="two", if_match=a.revision)
    environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="Another.")])
    environment.close()
    assert path.is_symlink()
    never_read(environment)
    path.unlink()
    git(environment.folder, "checkout", "notes/.resource.json")


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_fan_out_folder_that_is_none_is_no_deletion_of_what_lay_in_it(
    store: gitmem.Store, environment: gitmem.Environment, notes: gitmem.Documents, outside: Path, kind: str
) -> None:
    saved = [notes.create(f"d{number}", title="T", text=f"text {number}") for number in range(140)]
    environment.close()
    shard, document = next(
        (path.parent, document)
        for document in saved
        for path in (folder(environment) / "notes").glob(f"??/{document.id}.json")
    )
    shutil.rmtree(shard)
    if kind == "link":
        shard.symlink_to(outside)
    else:
        shard.write_text("a file\n")
    changed = notes.replace(document.id, text="changed", if_match=document.revision)
    environment.close()
    assert notes.read(document.id) == changed
    assert shard.is_symlink() or shard.read_text() == "a file\n"
    never_read(environment)
    blocked = [file for file in environment.status().files if file.document == f"notes/{document.id}"]
    assert [(file.state, file.reason) for file in blocked] == [("stale", "a link or a file stands in its path")]
    environment.close()
    shard.unlink()
    git(environment.folder, "checkout", "notes")


# Links and the like that somebody committed


def committed(environment: gitmem.Environment, *entries: str) -> None:
    """A commit on main, made with plain git, that adds entries to the folder "notes"; checked out."""
    tree = git(environment.folder, "ls-tree", "main:notes").splitlines()
    notes = git(environment.folder, "mktree", "--missing", stdin="\n".join([*tree, *entries]) + "\n")
    root = [line for line in git(environment.folder, "ls-tree", "main:").splitlines() if not line.endswith("\tnotes")]
    made = git(environment.folder, "mktree", stdin="\n".join([*root, f"040000 tree {notes}\tnotes"]) + "\n")
    commit = git(environment.folder, "commit-tree", made, "-p", "main", "-m", "odd")
    git(environment.folder, "reset", "-q", "--hard", commit)


def blob(environment: gitmem.Environment, text: str) -> str:
    return git(environment.folder, "hash-object", "-w", "--stdin", stdin=text)


def test_a_committed_link_is_no_document_and_is_reported(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, outside: Path
) -> None:
    target = blob(environment, str(outside / "a.json"))
    committed(environment, f"120000 blob {target}\tlink.json", f"120000 blob {target}\t3f")
    assert file_of(environment, "link").is_symlink()
    assert [d.id for d in notes.list().documents] == ["a"]
    with pytest.raises(gitmem.NotFoundError):
        notes.read("link")
    edited(environment, "a", "two")
    assert file_of(environment, "link").is_symlink()
    never_read(environment)
    reported(environment, "notes/link.json")
    git(environment.folder, "rm", "-q", "notes/link.json", "notes/3f")
    git(environment.folder, "commit", "-qm", "gone")


def test_a_document_that_became_a_link_stays_served_as_it_was(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, outside: Path
) -> None:
    link(file_of(environment, "a"), outside / "a.json")
    git(environment.folder, "commit", "-qam", "now a link")
    assert shown(environment, "a") == "one"
    assert notes.read("a") == a
    never_read(environment)
    reported(environment, "notes/a.json")
    git(environment.folder, "revert", "--no-edit", "HEAD")
    assert notes.read("a").text == "one"


def test_a_committed_submodule_is_no_document(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    committed(environment, f"160000 commit {a.revision}\tsub.json", f"160000 commit {a.revision}\tff")
    assert [d.id for d in notes.list().documents] == ["a"]
    with pytest.raises(gitmem.NotFoundError):
        notes.read("sub")
    edited(environment, "a", "two")
    assert git(environment.folder, "ls-tree", "main:notes", "sub.json").startswith("160000")
    reported(environment, "notes/sub.json")
    git(environment.folder, "rm", "-q", "--cached", "notes/sub.json", "notes/ff")
    git(environment.folder, "commit", "-qm", "gone")
    for name in ("sub.json", "ff"):
        shutil.rmtree(folder(environment) / "notes" / name)


@pytest.mark.parametrize("mode", ["100755", "100664"])
def test_another_file_mode_is_the_same_document(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, mode: str
) -> None:
    committed(environment, f"{mode} blob {blob(environment, handwritten('B', 'by hand'))}\tb.json")
    document = notes.read("b")
    assert document.text == "by hand"
    edited(environment, "b", "two")
    assert git(environment.folder, "ls-tree", "main:notes", "b.json").startswith("100644")
    assert status(environment) == ""


def test_a_file_in_the_place_of_a_resource_is_not_replaced(
    environment: gitmem.Environment, a: gitmem.Document, outside: Path
) -> None:
    place = folder(environment) / "plans"
    place.symlink_to(outside)
    git(environment.folder, "add", "plans")
    git(environment.folder, "commit", "-qm", "plans is a link")
    with pytest.raises(gitmem.StorageError, match="plans"):
        environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="plans", description="Plans.")])
    environment.close()
    assert place.is_symlink()
    assert status(environment) == ""
    git(environment.folder, "rm", "-q", "plans")
    git(environment.folder, "commit", "-qm", "gone")


@pytest.mark.parametrize("name", ["..", ".git", "a/b", "."])
def test_a_tree_with_forbidden_names_writes_nothing_outside(
    environment: gitmem.Environment, a: gitmem.Document, tmp_path: Path, name: str
) -> None:
    inner = git(environment.folder, "rev-parse", "main:notes")
    entries = [(b"40000", name.encode(), inner), (b"40000", b"notes", inner)]
    raw = b"".join(mode + b" " + entry + b"\0" + bytes.fromhex(oid) for mode, entry, oid in entries)
    (tmp_path / "raw").write_bytes(raw)
    tree = git(environment.folder, "hash-object", "-w", "-t", "tree", "--literally", str(tmp_path / "raw"))
    good = git(environment.folder, "rev-parse", "main")
    commit = git(environment.folder, "commit-tree", tree, "-p", "main", "-m", "forbidden")
    git(environment.folder, "config", "core.logAllRefUpdates", "false")
    git(environment.folder, "update-ref", "refs/heads/main", commit)
    before = sorted(str(path) for path in tmp_path.rglob("*") if ".git" not in path.parts)
    assert shown(environment, "a") == "one"
    done(environment, "resources")
    assert sorted(str(path) for path in tmp_path.rglob("*") if ".git" not in path.parts) == before
    git(environment.folder, "update-ref", "refs/heads/main", good)
    for bad in (commit, tree):
        (folder(environment) / ".git/objects" / bad[:2] / bad[2:]).unlink()
