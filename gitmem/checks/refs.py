"""The branch main: what it should name where its file is damaged or gone."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from gitmem.database import DatabaseUnusableError
from gitmem.environment.catalog import Catalog
from gitmem.errors import DamagedError
from gitmem.git.journal import Record
from gitmem.git.objects import Oid
from gitmem.git.refs import MAIN
from gitmem.git.repository import Repository


def last_known(repository: Repository, catalog: Catalog | None, records: list[Record]) -> Oid | None:
    """The commit that main named last, from the journal, Git's reflog and the index.

    None where none of them knows an intact one, or where two disagree and neither holds the other.
    """
    known = {oid for oid in _remembered(repository, catalog, records) if repository.objects.intact(oid, "commit")}
    for oid in known:
        with suppress(DamagedError):
            if all(reaches(repository, oid, other) for other in known):
                return oid
    return None


def reaches(repository: Repository, tip: Oid, wanted: Oid) -> bool:
    """Whether a commit is the tip or an ancestor of it, whatever the clocks said. Raises DamagedError."""
    seen, boundary = {tip}, repository.boundary()
    pending = deque(seen)
    while pending:
        oid = pending.popleft()
        if oid == wanted:
            return True
        new = set(repository.commit(oid).parents) - seen if oid not in boundary else set()
        seen |= new
        pending.extend(new)
    return False


def _remembered(repository: Repository, catalog: Catalog | None, records: list[Record]) -> Iterator[Oid]:
    if records:
        yield records[-1].new
    if catalog is not None:
        with suppress(DatabaseUnusableError):
            tip = catalog.tip()
            if tip is not None:
                yield tip
    with suppress(OSError, ValueError, IndexError), open(os.path.join(repository.git_dir, "logs", MAIN), "rb") as file:
        yield bytes.fromhex(file.read().splitlines()[-1].split(b" ")[1].decode())
