"""Filling an empty index from all of history: one pass that streams, then a few statements of SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gitmem.environment.catalog import Catalog
from gitmem.environment.history import Aside, Outcome, Rejection, Settled, SideSave
from gitmem.environment.layout import Name
from gitmem.environment.rows import RESOLVE, Clashed, Event, columns, session_of

_LINE: Final = """
CREATE TEMP TABLE IF NOT EXISTS line (
    resource, id, operation, oid, updated, session, blob, dead, merged, message, title, summary, policy, bytes, reason
)
"""
_DEATHS: Final = """
CREATE TEMP TABLE deaths AS
SELECT resource, id, MAX(rowid) AS at FROM line WHERE dead GROUP BY resource, id
"""
# The line is newest first: a smaller rowid is newer. What comes after the first deletion does not count.
_COUNTING: Final = """
FROM line LEFT JOIN deaths USING (resource, id) WHERE reason IS NULL AND (at IS NULL OR line.rowid >= at)
"""
# Where a removed name may be used again, only a second removal in a row does not count.
_COUNTING_FREELY: Final = """
FROM line WHERE line.rowid IN (
    SELECT at FROM (
        SELECT rowid AS at, dead, LAG(dead) OVER (PARTITION BY resource, id ORDER BY rowid DESC) AS was
        FROM line WHERE reason IS NULL
    ) WHERE NOT (dead AND was IS 1)
)
"""
_VERSIONS: Final = """
INSERT INTO versions (resource, id, number, revision, blob, updated, session, operation, message)
SELECT resource, id, ? - line.rowid, oid, blob, updated, session, operation, message {counting}
ORDER BY resource, id, line.rowid DESC
"""
_DOCUMENTS: Final = """
INSERT INTO documents
SELECT resource, id, oid, iif(dead, NULL, blob), updated, session, dead, 0, title, summary, policy, bytes
FROM (SELECT line.*, MIN(line.rowid) {counting} GROUP BY resource, id)
"""
# A side save belongs where its merge stands in the line, and before it: `place` orders those of one merge.
_SIDE: Final = "CREATE TEMP TABLE side (at, place, session, resource, id, oid)"
_SAVES: Final = """
INSERT INTO saves (session, seq, resource, id, revision)
SELECT session, ROW_NUMBER() OVER (PARTITION BY session ORDER BY at DESC, place DESC), resource, id, oid
FROM (
    SELECT session, resource, id, oid, place, MAX(at) AS at
    FROM (
        SELECT session, resource, id, oid, 0 AS place, rowid AS at FROM line
        WHERE session IS NOT NULL AND reason IS NULL AND NOT dead AND NOT merged
        UNION ALL SELECT session, resource, id, oid, place, at FROM side
    )
    GROUP BY oid
)
"""
_MERGED: Final = """
UPDATE documents SET merged = 1 WHERE (resource, id) IN (SELECT resource, id FROM line WHERE merged)
"""
_REJECTED: Final = """
INSERT INTO rejected
SELECT resource, id, oid, coalesce(reason, 'its id is reserved by a deletion')
FROM (SELECT line.*, MIN(line.rowid) AS newest FROM line GROUP BY resource, id) LEFT JOIN deaths USING (resource, id)
WHERE reason IS NOT NULL OR ({reserving} AND NOT dead AND newest < at)
"""


def rebuild(connection: sqlite3.Connection, found: Iterable[Outcome], *, reserving: bool) -> int:
    """Fill the empty tables from what commits did, newest first; how much that was. Within a transaction."""
    for statement in (_LINE, "DELETE FROM line", "DROP TABLE IF EXISTS deaths", "DROP TABLE IF EXISTS side", _SIDE):
        connection.execute(statement)
    apart = _Apart()
    connection.executemany(f"INSERT INTO line VALUES ({', '.join('?' * 15)})", _rows(found, apart))
    connection.executemany("INSERT INTO side VALUES (?, ?, ?, ?, ?, ?)", apart.saves)
    total: int = connection.execute("SELECT COUNT(*) FROM line").fetchone()[0]
    connection.execute(_DEATHS)
    counting = _COUNTING if reserving else _COUNTING_FREELY
    connection.execute(_VERSIONS.format(counting=counting), (total + 1,))
    connection.execute(_DOCUMENTS.format(counting=counting))
    connection.execute(_SAVES)
    connection.execute(_MERGED)
    connection.execute(_REJECTED.format(reserving=int(reserving)))
    for statement in ("DELETE FROM line", "DROP TABLE deaths", "DROP TABLE side"):
        connection.execute(statement)
    Catalog.set_merged(connection, apart.merged)
    for clashed in apart.open:
        Catalog.add_conflict(connection, clashed)
    return total


class _Apart:
    """What is not a line of its own: agents' saves on merged branches, documents with such, conflicts."""

    def __init__(self) -> None:
        self.saves: list[tuple[Any, ...]] = []
        self.merged: set[Name] = set()
        self.open: list[Clashed] = []
        self._settled: set[Name] = set()

    def take(self, event: Outcome, at: int) -> bool:
        """Take up what comes before `at` lines; False for what is a line."""
        match event:
            case SideSave():
                self.saves.append((at, len(self.saves) + 1, event.session, *event.name, event.commit))
            case Aside():
                self.merged.add(event.name)
            case Settled():
                self._settled.add(event.name)
            case Clashed():
                if event.name not in self._settled:
                    self.open.append(event)
            case _:
                if isinstance(event, Event) and event.operation == RESOLVE:
                    self._settled.add(event.name)
                return False
        return True


def _rows(found: Iterable[Outcome], apart: _Apart) -> Iterator[tuple[Any, ...]]:
    done = 0
    for event in found:
        if apart.take(event, done):
            continue
        done += 1
        if isinstance(event, Rejection):
            yield (*event.name, None, event.commit, *(None,) * 10, event.reason)
        elif isinstance(event, Event):
            yield (
                *event.name, event.operation, event.commit, event.updated, session_of(event.writer), event.blob,
                event.dead, event.merged, event.message, *columns(event.meta), None,
            )  # fmt: skip
