"""Health: every invariant as a check that names what it found."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gitmem.environment.catalog import Catalog
from gitmem.environment.catchup import CatchUp, Progress, silent
from gitmem.environment.engine import EnvironmentRepository
from gitmem.store import ENVIRONMENTS, Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What a check found: the check's name, what it concerns, and one line for a person."""

    check: str
    subject: str
    message: str

    def to_json(self) -> dict[str, Any]:
        return {"check": self.check, "subject": self.subject, "message": self.message}


def examine_store(store: Store, progress: Progress = silent) -> list[Finding]:
    """Examine every environment of every project."""
    found = []
    for project in store.projects():
        for name in ENVIRONMENTS:
            environment = store.project(project).environment(name)
            if environment.exists:
                found += examine(environment, progress)
    return found


def examine(environment: EnvironmentRepository, progress: Progress = silent) -> list[Finding]:
    """Examine one environment."""
    return list(_index(environment, progress))


def _index(environment: EnvironmentRepository, progress: Progress) -> Iterator[Finding]:
    """The index agrees with a rebuild from history (invariant 8)."""
    environment.resources()
    parts = environment.parts()
    tip = parts.repository.tip()
    if tip is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        fresh = Catalog(os.path.join(folder, "index"))
        CatchUp(parts.repository, fresh, parts.reader, progress).rebuild(tip)
        ours, theirs = dict(parts.catalog.documents()), dict(fresh.documents())
        fresh.close()
    for name in ours.keys() | theirs.keys():
        a, b = ours.get(name), theirs.get(name)
        if not a or not b or (a.revision, a.updated, a.dead) != (b.revision, b.updated, b.dead):
            yield Finding(check="index", subject=str(name), message="The index disagrees with history.")
