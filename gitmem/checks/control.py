"""A project's `control.git`: readable objects, and records that fit together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gitmem.checks.findings import Finding
from gitmem.checks.history import History
from gitmem.codec import loads
from gitmem.environment.catchup import Progress
from gitmem.environment.layout import text_path
from gitmem.git.repository import Repository
from gitmem.git.trees import Path

_POINTERS: Final = "active"
_DEPLOYMENTS: Final = "deployments"


def records(repository: Repository, progress: Progress) -> Iterator[Finding]:
    """Everything that is wrong in a control repository. Raises DamagedError where main cannot be read."""
    tip = repository.tip()
    if tip is None:
        return
    history = History(repository, progress)
    history.verify(tip)
    yield from history.findings
    if history.findings:
        return
    deployments: set[str] = set()
    pointers: list[tuple[Path, Any]] = []
    for path, entry in repository.trees.walk(repository.commit(tip).tree):
        try:
            value = loads(repository.objects.read(entry.oid, "blob"))
        except ValueError:
            yield Finding(check="control", subject=text_path(path), message="It is not JSON. See git log of this file.")
            continue
        if path[0] == _DEPLOYMENTS:
            deployments.add(path[-1].removesuffix(".json"))
        elif path[0] == _POINTERS:
            pointers.append((path, value))
    for path, value in pointers:
        named = value.get("deployment") if isinstance(value, dict) else None
        if named not in deployments:
            message = f"It names the deployment {named!a}, which does not exist. Deploy the agent again."
            yield Finding(check="control", subject=text_path(path), message=message)
