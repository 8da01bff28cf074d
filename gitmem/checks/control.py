"""A project's `control.git`: readable objects, and records that fit together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

from gitmem.checks.findings import Finding
from gitmem.checks.history import History
from gitmem.control.index import is_wrong
from gitmem.environment.catchup import Progress
from gitmem.environment.form import DOCUMENTS
from gitmem.environment.layout import text_path
from gitmem.git.objects import Oid
from gitmem.git.refs import MAIN
from gitmem.git.repository import Repository
from gitmem.git.trees import Path
from gitmem.strictjson import loads

_NAMED: Final = ("deployments", "sessions")
_REFERENCES: Final = {
    "active": ("deployment", "deployments"),
    "sessions": ("deploymentId", "deployments"),
    "keys": ("session", "sessions"),
}
"""For each folder of records: the field that names another record, and the folder where that must be."""


def records(repository: Repository, progress: Progress) -> Iterator[Finding]:
    """Everything that is wrong in a control repository. Raises DamagedError where main cannot be read."""
    tip = repository.tip()
    if tip is None:
        if any(len(name) == 2 for name in os.listdir(repository.objects.folder)):
            message = "The branch is gone, though there are objects. Find its last commit with git fsck --lost-found."
            yield Finding(check="refs", subject=MAIN, message=message)
        return
    history = History(repository, DOCUMENTS, progress)
    history.verify(tip)
    yield from history.findings
    if history.findings:
        return
    known: dict[str, dict[str, Oid]] = {folder: {} for folder in _NAMED}
    references: list[tuple[Path, str, Any]] = []
    root = repository.commit(tip).tree
    for path, entry in repository.trees.walk(root):
        try:
            value = loads(repository.objects.read(entry.oid, "blob"))
        except ValueError:
            yield Finding(check="control", subject=text_path(path), message="It is not JSON. See git log of this file.")
            continue
        if path[0] in known:
            known[path[0]][path[-1].removesuffix(".json")] = entry.oid
        if path[0] in _REFERENCES:
            field, folder = _REFERENCES[path[0]]
            references.append((path, folder, value.get(field) if isinstance(value, dict) else None))
    for path, folder, named in references:
        if not isinstance(named, str) or named not in known[folder]:
            message = f"It names {named!a}, which is not among the {folder}. See git log of this file."
            yield Finding(check="control", subject=text_path(path), message=message)
    sessions = repository.trees.get(root).folder("sessions")
    if sessions is not None and is_wrong(repository.derived, sessions, known["sessions"]):
        message = "The index of sessions says something else than Git. Run doctor --repair."
        yield Finding(check="index", subject="sessions.sqlite", message=message)
