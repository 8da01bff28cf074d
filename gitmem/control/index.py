"""The disposable index of sessions: what lists them, newest first, without reading every record."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from gitmem.codec import loads
from gitmem.control.ledger import Ledger, Snapshot, parsed
from gitmem.database import Database, DatabaseBusyError, DatabaseUnusableError
from gitmem.errors import BusyError, DamagedError
from gitmem.git.objects import Oid
from gitmem.git.trees import EMPTY_TREE

_SCHEMA: Final = """
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), tree BLOB NOT NULL);
CREATE TABLE sessions (id TEXT PRIMARY KEY, alias TEXT NOT NULL, record BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX sessions_recent ON sessions (alias, id DESC);
"""
_SCHEMA_VERSION: Final = 1
_FOLDER: Final = ("sessions",)
_BEHIND_EVERY_ID: Final = "~"


class SessionIndex:
    """Which sessions there are. It follows the tree of records by what differs from its last look."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._database = Database(os.path.join(ledger.derived, "sessions.sqlite"), _SCHEMA, _SCHEMA_VERSION)
        self._lock = threading.Lock()

    def close(self) -> None:
        self._database.close()

    def recent(self, alias: str, before: str | None, limit: int) -> list[Any]:
        """The JSON records of an environment's sessions, newest first, behind the id `before`.

        Raises DamagedError; BusyError while another process makes the index.
        """
        snapshot = self._ledger.newest()
        if snapshot is None:
            return []
        with self._lock:
            for make_usable in (self._discard, self._database.move_to_memory):
                try:
                    return self._recent(snapshot, alias, before, limit)
                except DatabaseBusyError:
                    raise BusyError("Another process is making the index of sessions. Try again.") from None
                except DatabaseUnusableError:
                    make_usable()
            return self._recent(snapshot, alias, before, limit)

    def _discard(self) -> None:
        with suppress(OSError):
            self._database.discard()

    def _recent(self, snapshot: Snapshot, alias: str, before: str | None, limit: int) -> list[Any]:
        with self._database.transaction() as connection:
            self._follow(connection, snapshot)
            # An id begins with the time when it was made.
            rows = connection.execute(
                "SELECT record FROM sessions WHERE alias = ? AND id < ? ORDER BY id DESC LIMIT ?",
                (alias, before if before is not None else _BEHIND_EVERY_ID, limit),
            ).fetchall()
        return [loads(record) for (record,) in rows]

    def _follow(self, connection: sqlite3.Connection, snapshot: Snapshot) -> None:
        found = connection.execute("SELECT tree FROM state").fetchone()
        old: Oid = found[0] if found else EMPTY_TREE
        new = snapshot.folder(_FOLDER)
        if old == new:
            return
        try:
            _take(connection, snapshot, old, new)
        except DamagedError:
            if old == EMPTY_TREE:
                raise
            connection.execute("DELETE FROM sessions")
            _take(connection, snapshot, EMPTY_TREE, new)
        connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?)", (new,))


def _take(connection: sqlite3.Connection, snapshot: Snapshot, old: Oid, new: Oid) -> None:
    gone: list[str] = []
    connection.executemany("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", _rows(snapshot, old, new, gone))
    connection.executemany("DELETE FROM sessions WHERE id = ?", ((session_id,) for session_id in gone))


def _rows(snapshot: Snapshot, old: Oid, new: Oid, gone: list[str]) -> Iterator[tuple[str, str, bytes]]:
    for name, blob in snapshot.changes(old, new):
        if blob is None:
            gone.append(name.removesuffix(".json"))
        else:
            data = snapshot.data(blob)
            value = parsed(blob, data)
            yield value["id"], value["alias"], data
