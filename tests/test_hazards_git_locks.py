"""Hazard "stale locks": what a crash or another Git process leaves is recovered or named, never broken."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import gitmem
from tests.hazards import command, done, edited, git_dir, refused, shown, status
from tests.support import clean_environment, git, killed_at

REPLACE = """
import sys, gitmem
store = gitmem.open_store(sys.argv[1])
notes = store.project("bot").environment("development").documents("notes")
notes.replace("a", text="from the killed one", if_match=notes.read("a").revision)
"""


@pytest.fixture
def a(environment: gitmem.Environment, notes: gitmem.Documents) -> gitmem.Document:
    """A document, saved by a command that has ended."""
    document = notes.create("a", title="A", text="one")
    environment.close()
    return document


def held(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def store_of(environment: gitmem.Environment) -> str:
    return str(Path(environment.folder).parents[1])


@pytest.mark.parametrize("content", [b"", b"a" * 40 + b"\n"], ids=["empty", "a value"])
def test_a_held_ref_lock_is_named_and_left_alone(
    environment: gitmem.Environment, a: gitmem.Document, content: bytes
) -> None:
    lock = held(git_dir(environment) / "refs/heads/main.lock", content)
    line = refused(environment, "edit", "notes", "a", "--text-stdin", stdin="two")
    assert str(lock) in line
    assert "remove" in line
    assert lock.read_bytes() == content
    assert shown(environment, "a") == "one"
    lock.unlink()
    edited(environment, "a", "two")
    assert shown(environment, "a") == "two"


def test_a_ref_lock_held_for_a_moment_is_waited_for(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    lock = held(git_dir(environment) / "refs/heads/main.lock")
    with subprocess.Popen(["sh", "-c", 'git --version; exec rm "$0"', str(lock)], stdout=subprocess.DEVNULL):
        assert notes.replace("a", text="two", if_match=a.revision).text == "two"


@pytest.mark.parametrize("name", ["refs/heads/main.lock", "index.lock"])
def test_a_lock_from_before_the_machine_started_is_cleared(
    environment: gitmem.Environment, a: gitmem.Document, name: str
) -> None:
    lock = held(git_dir(environment) / name)
    os.utime(lock, (1_000_000_000, 1_000_000_000))
    edited(environment, "a", "two")
    assert not lock.exists()
    assert status(environment) == ""


@pytest.mark.parametrize("failpoint", ["before-objects", "after-objects", "after-barrier", "before-swap"])
def test_a_killed_save_leaves_no_lock_in_the_way(
    environment: gitmem.Environment, a: gitmem.Document, failpoint: str
) -> None:
    killed_at(failpoint, REPLACE, store_of(environment))
    assert (git_dir(environment) / "refs/heads/main.lock").exists()
    assert shown(environment, "a") in ("one", "from the killed one")
    edited(environment, "a", "two")
    assert shown(environment, "a") == "two"
    assert status(environment) == ""


@pytest.mark.parametrize(
    "failpoint", ["after-swap", "before-projection", "before-stage", "after-stage", "before-index"]
)
def test_a_save_that_landed_before_the_kill_is_there_and_the_tree_catches_up(
    environment: gitmem.Environment, a: gitmem.Document, failpoint: str
) -> None:
    killed_at(failpoint, REPLACE, store_of(environment))
    assert shown(environment, "a") == "from the killed one"
    assert status(environment) == ""
    git(environment.folder, "commit", "--allow-empty", "-qm", "by hand")
    assert shown(environment, "a") == "from the killed one"


@pytest.mark.parametrize("name", ["HEAD.lock", "config.lock", "packed-refs.lock", "gc.pid"])
def test_other_locks_of_git_are_in_nobodys_way(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, name: str
) -> None:
    lock = held(git_dir(environment) / name)
    notes.replace("a", text="two", if_match=a.revision)
    environment.close()
    assert lock.exists()
    assert status(environment) == ""
    lock.unlink()


@contextmanager
def index_held_by_git(environment: gitmem.Environment) -> Generator[None, None, None]:
    """A real git that holds `.git/index.lock`: `git commit` of a path, waiting for its editor."""
    person = {f"GIT_{who}_{what}": "p@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    editor = {"GIT_EDITOR": "sh -c 'echo open; read answer; echo done > \"$1\"' sh"}
    process = subprocess.Popen(
        ["git", "-C", environment.folder, "commit", "-q", "readme.txt"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(person | editor),
    )
    assert process.stdout
    assert process.stdout.readline() == b"open\n"
    assert (git_dir(environment) / "index.lock").exists()
    try:
        yield
    finally:
        process.communicate(b"go on\n")


def test_while_git_holds_the_index_nothing_saved_is_lost_or_undone(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    readme = Path(environment.folder, "readme.txt")
    readme.write_text("one\n")
    git(environment.folder, "add", "readme.txt")
    git(environment.folder, "commit", "-qm", "readme")
    readme.write_text("two\n")
    with index_held_by_git(environment):
        saved = notes.replace("a", text="two", if_match=a.revision)
    # That commit was made for the old tip: git refuses it, and the person commits again.
    environment.close()
    assert notes.read("a") == saved
    assert git(environment.folder, "status", "--porcelain") == " M readme.txt"
    git(environment.folder, "commit", "-qam", "mine")
    assert notes.read("a") == saved


def test_a_stale_index_lock_stays_and_the_next_plain_commit_undoes_nothing(
    environment: gitmem.Environment, a: gitmem.Document
) -> None:
    lock = held(git_dir(environment) / "index.lock")
    ran = command(environment, "edit", "notes", "a", "--text-stdin", stdin="two")
    assert ran.returncode == 0
    assert str(lock) in ran.stderr
    assert lock.read_bytes() == b""
    lock.unlink()  # as git itself advises
    assert status(environment) == ""
    git(environment.folder, "commit", "--allow-empty", "-qm", "by hand")
    assert shown(environment, "a") == "two"


def test_two_commands_at_once_wait_for_each_other(environment: gitmem.Environment, a: gitmem.Document) -> None:
    with environment.parts().repository.locked():
        line = refused(environment, "edit", "notes", "a", "--text-stdin", stdin="two")
    assert "Try again" in line
    assert done(environment, "list", "notes")
