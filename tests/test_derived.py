"""What lies in `.git/gitmem` is derived: it may go at any time, under open handles too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import gitmem
from gitmem import Documents
from tests.workshop import listed, operations


def test_everything_derived_may_go_right_after_a_save(notes: Documents, environment: gitmem.Environment) -> None:
    derived = Path(environment.folder) / ".git/gitmem"
    for number in range(3):
        made = notes.create(f"a{number}", title="Title")
        derived.rename(derived.with_name(f"gone-{number}"))
        environment.close()
        saved = notes.replace(f"a{number}", text="new", if_match=made.revision)
        derived.rename(derived.with_name(f"gone-again-{number}"))
        assert notes.read(f"a{number}") == saved
        assert operations(notes, f"a{number}") == ["replace", "create"]
    for gone in derived.parent.glob("gone-*"):
        shutil.rmtree(gone)
    assert listed(notes) == ["a2", "a1", "a0"]


def test_everything_derived_may_go_between_two_open_handles(store: gitmem.Store, notes: Documents) -> None:
    made = notes.create("a", title="Title")
    with gitmem.open_store(store.folder) as other:
        theirs = other.project("bot").environment().documents("notes")
        for number in range(10):
            made = (theirs if number % 2 else notes).replace("a", text=str(number), if_match=made.revision)
            derived = Path(other.project("bot").environment().folder) / ".git/gitmem"
            derived.rename(derived.with_name("gone"))
            shutil.rmtree(derived.with_name("gone"), ignore_errors=True)
            assert notes.read("a") == theirs.read("a") == made
        assert len(notes.history("a").versions) == 11


def test_a_handle_whose_lock_and_journal_were_deleted_uses_those_of_the_others(
    store: gitmem.Store, environment: gitmem.Environment, notes: Documents
) -> None:
    notes.create("a", title="Title")
    derived = Path(environment.folder) / ".git/gitmem"
    derived.rename(derived.with_name("gone"))
    shutil.rmtree(derived.with_name("gone"), ignore_errors=True)
    with gitmem.open_store(store.folder, settings=gitmem.Settings(lock_seconds=0.1)) as other:
        theirs = other.project("bot").environment()
        theirs.documents("notes").create("b", title="Title")

        def change(draft: object) -> None:
            with pytest.raises(gitmem.BusyError):
                theirs.documents("notes").create("c", title="Title")

        environment.save(change)
    derived.rename(derived.with_name("gone"))
    notes.create("d", title="Title")
    assert (derived / "journal").stat().st_size > 0
    shutil.rmtree(derived.with_name("gone"))
    assert listed(notes) == ["d", "b", "a"]


def test_everything_derived_may_go_under_a_handle_that_only_reads(
    store: gitmem.Store, environment: gitmem.Environment, notes: Documents
) -> None:
    first = notes.create("a", title="Title")
    environment.close()
    other = gitmem.open_store(store.folder)
    theirs = other.project("bot").environment()
    assert theirs.documents("notes").read("a") == first
    second = notes.replace("a", text="new", if_match=first.revision)
    derived = Path(theirs.folder) / ".git/gitmem"
    derived.rename(derived.with_name("gone"))
    other.close()
    shutil.rmtree(derived.with_name("gone"))
    assert notes.read("a") == second
