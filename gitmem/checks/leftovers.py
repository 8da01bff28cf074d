"""What killed processes and failed flushes leave behind: locks, temporary files, journal records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from gitmem.checks.findings import Finding
from gitmem.checks.refs import reaches
from gitmem.errors import DamagedError
from gitmem.git.journal import Record, staged_objects
from gitmem.git.objects import Oid, object_id
from gitmem.git.repository import Repository
from gitmem.git.stage import Stage

_LOCKS: Final = ("index.lock", "HEAD.lock", "packed-refs.lock", "refs/heads/main.lock")


def locks(repository: Repository) -> Iterator[Finding]:
    """Git's lock files. Under the writer's lock and after healing, none is gitmem's own."""
    held = Stage(repository.git_dir, repository.scratch).is_held()
    for name in _LOCKS:
        path = os.path.join(repository.git_dir, name)
        if os.path.lexists(path):
            whose = (
                "gitmem's own, and could not be given up." if held and name == "index.lock" else "another process's."
            )
            message = f"It keeps git from writing and is {whose} If no git is running, remove that file."
            yield Finding(check="locks", subject=path, message=message)


def temporaries(paths: list[str]) -> Iterator[Finding]:
    """Temporary files that were not swept away, because a person's text may be in them."""
    for path in paths:
        message = "A killed gitmem left it, and its text is nowhere in Git. Look at it, then delete it."
        yield Finding(check="scratch", subject=path, message=message)


def journal(repository: Repository, records: list[Record], tip: Oid | None) -> Iterator[Finding]:
    """Saves that wait for their last flush: their objects and their move of main must be there."""
    for record in records:
        for oid, kind, data in staged_objects(record):
            if object_id(kind, data) == oid and not repository.objects.intact(oid, kind):
                message = f"The {kind} was saved and is damaged or missing; the journal has it. Run doctor --repair."
                yield Finding(check="journal", subject=oid.hex(), message=message)
    if records and not _reached(repository, records[-1].new, tip):
        message = "It was saved, and main no longer holds it. See git reflog; bring it back with git merge."
        yield Finding(check="journal", subject=records[-1].new.hex(), message=message)


def _reached(repository: Repository, new: Oid, tip: Oid | None) -> bool:
    if tip is None or tip == new or repository.moved_away_from(new):
        return True
    try:
        return reaches(repository, tip, new)
    except DamagedError:
        return True  # the damage is named elsewhere
