"""Mending what loses nothing. Each repair says what it did, in the form of a finding."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from gitmem.checks.findings import Finding
from gitmem.checks.gitfiles import has_corrupt_index, index_path
from gitmem.checks.refs import last_known
from gitmem.control.index import discard
from gitmem.environment.catalog import Catalog
from gitmem.environment.comparison import compared
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.layout import text_path
from gitmem.errors import DamagedError
from gitmem.git.objects import Oid
from gitmem.git.refs import MAIN
from gitmem.git.repository import Repository

_OID: Final = re.compile(r"[0-9a-f]{40}\Z")


def mend_repository(repository: Repository, catalog: Catalog | None, found: Sequence[Finding]) -> Iterator[Finding]:
    """The branch main from whatever remembers it, and objects that the journal still holds. Needs the lock."""
    if any(finding.check == "refs" and finding.subject == MAIN for finding in found):
        known = last_known(repository, catalog, repository.waiting())
        if known is not None:
            repository.main.hold(known, repository.scratch)
            repository.main.swap()
            yield Finding(check="refs", subject=MAIN, message=f"It names {known.hex()} again, its last known commit.")
    for oid in sorted(_damaged(found)):
        if repository.objects.mend(oid):
            yield Finding(check="objects", subject=oid.hex(), message="It was written again from the journal.")


def mend_control(repository: Repository, found: Sequence[Finding]) -> Iterator[Finding]:
    """Beyond that, the index of sessions. Needs the lock."""
    yield from mend_repository(repository, None, found)
    if any(finding.check == "index" for finding in found):
        discard(repository.derived)
        yield Finding(check="index", subject="sessions.sqlite", message="It is made anew when sessions are listed.")


def mend_environment(environment: EnvironmentRepository, found: Sequence[Finding]) -> Iterator[Finding]:
    """Beyond that: objects from the files of the working tree, the index, and `.git/index`. Needs the lock."""
    parts = environment.parts()
    yield from mend_repository(parts.repository, parts.catalog, found)
    yield from _from_files(environment, found)
    checks = {finding.check for finding in found}
    if "index" in checks:
        parts.catalog.discard()
        parts.bring_up()
        yield Finding(check="index", subject="index.sqlite", message="It was made anew from history.")
    if "staging" in checks and parts.projection.active():
        index = index_path(parts.repository)
        if has_corrupt_index(parts.repository):
            os.replace(index, f"{index}.damaged")
        with parts.catalog.transaction() as connection:
            parts.catalog.set_unchecked(connection, True)
        parts.projection.heal()
        yield Finding(check="staging", subject=".git/index", message="What lagged there was brought to the tip.")


def _damaged(found: Sequence[Finding]) -> set[Oid]:
    return {
        bytes.fromhex(finding.subject)
        for finding in found
        if finding.check in ("objects", "journal") and _OID.match(finding.subject)
    }


def _from_files(environment: EnvironmentRepository, found: Sequence[Finding]) -> Iterator[Finding]:
    """A damaged blob of the tip whose bytes lie in the working tree."""
    parts = environment.parts()
    objects, trees = parts.repository.objects, parts.repository.trees
    wanted = {oid for oid in _damaged(found) if not objects.intact(oid, "blob")}
    if not wanted or parts.worktree is None:
        return
    with suppress(DamagedError):
        tip = parts.repository.tip()
        root = parts.repository.commit(tip).tree if tip else None
        for path, _, file in compared(parts.form, trees, root, parts.worktree) if root else ():
            if file.oid in wanted and file.data is not None:
                objects.write(file.oid, "blob", file.data, parts.repository.scratch)
                wanted.discard(file.oid)
                message = f"It was written again from the file {text_path(path)}."
                yield Finding(check="objects", subject=file.oid.hex(), message=message)
