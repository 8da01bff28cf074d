"""The index against one made anew from history (invariants 2 and 8)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from gitmem.checks.findings import Finding
from gitmem.environment.catalog import Catalog
from gitmem.environment.layout import Name
from gitmem.environment.rows import Row, Save, VersionRow

K = TypeVar("K", Name, str)
T = TypeVar("T")


def disagreements(index: Catalog, fresh: Catalog) -> Iterator[Finding]:
    """Each document, session and resource of which the two say different things. Streams."""
    for name, ours, theirs in _joined(index.documents(), fresh.documents()):
        if ours is None or theirs is None or not _same(ours, theirs):
            yield _finding(name, f"says {_shown(ours)}; history says {_shown(theirs)}")
    for name, old, new in _joined(_histories(index), _histories(fresh)):
        if old != new:
            yield _finding(name, f"has {len(old or ())} versions; history has {len(new or ())}, or others")
    for session, known, real in _joined(_saves(index), _saves(fresh)):
        if known != real:
            yield _finding(session, f"has {len(known or ())} saves; history has {len(real or ())}, or others")
    declared, there = ({memory.id: memory for memory, _ in catalog.resources()} for catalog in (index, fresh))
    for resource in sorted(declared.keys() | there.keys()):
        if declared.get(resource) != there.get(resource):
            yield _finding(resource, "has another declaration than the tip")


def broken(index: Catalog) -> Iterator[Finding]:
    """What SQLite itself finds wrong in the file: an index of a table may not say what the table says."""
    ((found,),) = index.query("PRAGMA integrity_check(1)")
    if found != "ok":
        message = f"Its file is damaged: {' '.join(str(found).split())}. Run gitmem doctor --repair."
        yield Finding(check="index", subject="index.sqlite", message=message)


def _joined(ours: Iterator[tuple[K, T]], theirs: Iterator[tuple[K, T]]) -> Iterator[tuple[K, T | None, T | None]]:
    """Two streams that are sorted by their keys, side by side."""
    left, right = next(ours, None), next(theirs, None)
    while left or right:
        name = min(pair[0] for pair in (left, right) if pair)
        here = left[1] if left and left[0] == name else None
        there = right[1] if right and right[0] == name else None
        yield name, here, there
        left = next(ours, None) if here is not None else left
        right = next(theirs, None) if there is not None else right


def _same(ours: Row, theirs: Row) -> bool:
    if (ours.revision, ours.updated, ours.writer, ours.dead) != (
        theirs.revision, theirs.updated, theirs.writer, theirs.dead
    ):  # fmt: skip
        return False
    # The index may leave these out until they are first read, and damage may hide them.
    return (not ours.blob or ours.blob == theirs.blob) and (
        not ours.meta or not theirs.meta or ours.meta == theirs.meta
    )


def _histories(catalog: Catalog) -> Iterator[tuple[Name, list[tuple[object, ...]]]]:
    for name, rows in groupby(catalog.all_versions(), key=itemgetter(0)):
        yield name, [_key(row) for _, row in rows]


def _saves(catalog: Catalog) -> Iterator[tuple[str, list[Save]]]:
    for session, rows in groupby(catalog.all_saves(), key=itemgetter(0)):
        yield session, [save for _, save in rows]


def _key(row: VersionRow) -> tuple[object, ...]:
    return row.revision, row.updated, row.writer, row.operation, row.message


def _shown(row: Row | None) -> str:
    if row is None:
        return "nothing"
    return f"{'deleted at ' if row.dead else ''}revision {row.revision.hex()[:12]}"


def _finding(subject: object, what: str) -> Finding:
    return Finding(check="index", subject=str(subject), message=f"The index {what}. Run gitmem doctor --repair.")
