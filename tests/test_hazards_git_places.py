"""Hazard "repositories in, beside and behind one another": only the one that was named is touched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import gitmem
from gitmem.environment.engine import EnvironmentRepository
from tests.hazards import done, edited, file_of, folder, git_dir, handwritten, refused, shown, status, subjects
from tests.support import git
from tests.support import gitmem as run


@pytest.fixture
def a(environment: gitmem.Environment, notes: gitmem.Documents) -> gitmem.Document:
    """A document, saved by a command that has ended."""
    document = notes.create("a", title="A", text="one")
    environment.close()
    return document


def opened(store: gitmem.Store) -> gitmem.Environment:
    return store.project("bot").environment("development")


def store_of(environment: gitmem.Environment) -> Path:
    return folder(environment).parents[1]


# Within another repository


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    """Somebody's repository, with a commit."""
    place = tmp_path / "outer"
    place.mkdir()
    (place / "file").write_text("mine\n")
    git(place, "init", "-qb", "main")
    git(place, "add", "file")
    git(place, "commit", "-qm", "mine")
    return place


def test_a_store_inside_another_repository_commits_only_to_its_own(outer: Path) -> None:
    store = outer / "memory"
    assert run("init", str(store), "--project", "bot", cwd=outer).returncode == 0
    (store / "gitmem.toml").write_text('project = "bot"\n[memory.notes]\ndescription = "Notes."\n')
    for args in (["deploy", "--agent", "tutor"], ["create", "notes", "a", "--title", "A"]):
        assert run(*args, cwd=store).returncode == 0
    assert git(outer, "log", "--format=%s", "--all") == "mine"
    assert git(outer, "status", "--porcelain") == "?? memory/"
    assert git(store / "bot/development", "log", "--format=%s").splitlines()[0] == "create notes/a"


def test_an_environment_that_lost_its_repository_never_falls_through_to_the_outer_one(outer: Path) -> None:
    with gitmem.open_store(outer / "memory", create=True) as store:
        environment = opened(store)
        environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="Notes.")])
        environment.documents("notes").create("a", title="A")
    kept = outer / "kept.git"
    (folder(environment) / ".git").rename(kept)
    for empty in (False, True):
        if empty:
            (folder(environment) / ".git").mkdir()
        assert str(folder(environment)) in refused(environment, "create", "notes", "b", "--title", "B")
        assert str(folder(environment)) in refused(environment, "show", "notes", "a")
    assert git(outer, "log", "--format=%s", "--all") == "mine"
    shutil.rmtree(folder(environment) / ".git")
    kept.rename(folder(environment) / ".git")
    assert shown(environment, "a") == ""


def test_a_repository_nested_in_a_resource_is_left_alone(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    inner = folder(environment) / "notes" / "inner.json"
    inner.mkdir()
    (inner / "b.json").write_text(handwritten("B", "inner"))
    git(inner, "init", "-qb", "main")
    git(inner, "add", "b.json")
    git(inner, "commit", "-qm", "inner")
    notes.replace("a", text="two", if_match=a.revision)
    notes.create("inner", title="I")
    environment.close()
    assert [d.id for d in notes.list().documents] == ["inner", "a"]
    assert git(inner, "log", "--format=%s") == "inner"
    assert (inner / "b.json").read_text() == handwritten("B", "inner")
    assert environment.status().files[0].path == "notes/inner.json"
    environment.close()
    shutil.rmtree(inner)
    git(environment.folder, "checkout", "notes/inner.json")


# Linked, copied, cut off


def test_a_linked_worktree_is_refused_and_its_repository_is_named(
    environment: gitmem.Environment, a: gitmem.Document, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    git(environment.folder, "worktree", "add", "-q", "--detach", str(linked))
    with pytest.raises(gitmem.StorageError, match="worktree"):
        EnvironmentRepository(str(linked)).resources()
    edited(environment, "a", "two")
    assert git(linked, "status", "--porcelain") == ""
    assert status(environment) == ""


def test_a_copy_of_an_open_store_and_its_origin_go_their_own_ways(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, tmp_path: Path
) -> None:
    two = notes.replace("a", text="two", if_match=a.revision)
    shutil.copytree(store_of(environment), tmp_path / "copy", symlinks=True)
    with gitmem.open_store(tmp_path / "copy") as other:
        theirs = opened(other).documents("notes")
        assert theirs.read("a") == two
        theirs.replace("a", text="in the copy", if_match=two.revision)
        notes.replace("a", text="in the origin", if_match=two.revision)
        assert (theirs.read("a").text, notes.read("a").text) == ("in the copy", "in the origin")
        opened(other).close()
        assert status(opened(other)) == ""
    environment.close()
    assert status(environment) == ""


@pytest.mark.parametrize("depth", ["1", "2"])
def test_a_shallow_clone_reads_and_saves(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, tmp_path: Path, depth: str
) -> None:
    newest = notes.create("b", title="B", text="newest")
    environment.close()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", depth, f"file://{environment.folder}", str(clone))
    shallow = EnvironmentRepository(str(clone))
    documents = gitmem.Documents(shallow, "notes")
    assert documents.read("b") == newest
    assert documents.read("a").text == "one"
    documents.replace("a", text="two", if_match=documents.read("a").revision)
    shallow.close()
    assert git(clone, "status", "--porcelain") == ""
    git(clone, "push", "-q", "origin", "main:refs/heads/back")
    assert subjects(environment, "back")[:2] == ["replace notes/a", "create notes/b"]


def test_a_clone_agrees_on_every_revision(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, tmp_path: Path
) -> None:
    notes.replace("a", text="two", if_match=a.revision)
    notes.create("b", title="B")
    environment.close()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--shared", environment.folder, str(clone))
    other = EnvironmentRepository(str(clone))
    documents = gitmem.Documents(other, "notes")
    assert documents.list() == notes.list()
    assert documents.history("a") == notes.history("a")
    documents.create("c", title="C")
    other.close()
    assert git(clone, "status", "--porcelain", "--branch") == "## main...origin/main [ahead 1]"


# Reached through links


@pytest.mark.parametrize("which", ["environment", "project", "store"])
def test_a_place_that_is_itself_a_link_works_like_any_other(
    environment: gitmem.Environment, a: gitmem.Document, tmp_path: Path, which: str
) -> None:
    place = {"environment": folder(environment), "project": folder(environment).parent, "store": store_of(environment)}
    elsewhere = tmp_path / "elsewhere"
    place[which].rename(elsewhere)
    place[which].symlink_to(elsewhere)
    edited(environment, "a", "two")
    assert status(environment) == ""
    file_of(environment, "a").write_text(handwritten("A", "by hand"))
    assert "has changed" in refused(environment, "edit", "notes", "a", "--text-stdin", stdin="not knowing")
    assert shown(environment, "a") == "by hand"
    assert status(environment) == ""
    place[which].unlink()
    elsewhere.rename(place[which])


# Made by hand


def test_a_repository_laid_out_with_plain_git_is_an_environment(tmp_path: Path) -> None:
    with gitmem.open_store(tmp_path / "store", create=True) as store:
        place = Path(store.project("bot").create().folder, "development")
        git(tmp_path, "init", "-qb", "main", str(place))
        (place / "notes").mkdir()
        (place / "notes" / ".resource.json").write_text(
            '{"description": "Notes.", "provider": {"kind": "document", "maxBytes": 100}}'
        )
        (place / "notes" / "a.json").write_text('{"text": "written by hand"}')
        git(place, "add", ".")
        git(place, "commit", "-qm", "by hand")
        environment = opened(store)
        document = environment.documents("notes").read("a")
        assert (document.title, document.text, document.max_bytes) == ("a", "written by hand", 100)
        assert document.revision == git(place, "rev-parse", "main")
        done(environment, "create", "notes", "b", "--title", "B")
        edited(environment, "a", "two")
        assert status(environment) == ""


def test_a_repository_whose_head_is_another_branch_keeps_it(tmp_path: Path) -> None:
    with gitmem.open_store(tmp_path / "store", create=True) as store:
        place = Path(store.project("bot").create().folder, "development")
        git(tmp_path, "init", "-qb", "trunk", str(place))
        environment = opened(store)
        environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="Notes.")])
        environment.documents("notes").create("a", title="A")
    assert git(place, "symbolic-ref", "HEAD") == "refs/heads/trunk"
    assert os.listdir(place) == [".git"]
    assert git(place, "log", "--format=%s", "main").splitlines()[0] == "create notes/a"
    assert not (git_dir(environment) / "refs/heads/trunk").exists()
