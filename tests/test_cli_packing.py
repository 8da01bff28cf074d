"""Many commands leave many loose objects: the last of them has a process of its own pack them."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

import gitmem
from gitmem.git.housekeeping import PACK_AT
from tests.support import git
from tests.support import gitmem as run


@pytest.mark.slow
def test_a_command_has_what_is_due_packed_behind_it(store: gitmem.Store, environment: gitmem.Environment) -> None:
    many = (gitmem.NewDocument(id=f"d{number}", title="T") for number in range(PACK_AT // 4))
    for outcome in environment.documents("notes").create_many(many):
        assert isinstance(outcome, gitmem.Document)
    environment.close()
    before = git(environment.folder, "count-objects", "-v")
    done = run("create", "notes", "one-more", "--title", "T", "--project", "bot", "--store", store.folder)
    assert done.returncode == 0, done.stderr
    lock = Path(environment.folder, ".git", "gitmem", "packing")
    while not lock.exists() or "packs: 0" in git(environment.folder, "count-objects", "-v"):
        os.sched_yield()
    with lock.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # held by whoever packs, until done
    after = git(environment.folder, "count-objects", "-v")
    assert int(after.split()[1]) < int(before.split()[1]) // 10
    assert environment.documents("notes").read("d7").title == "T"
