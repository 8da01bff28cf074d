"""The disposable index of sessions: what lists them, newest first, without reading every record."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gitmem.control.ledger import Ledger, Snapshot, parsed
from gitmem.database import Database, DatabaseBusyError, DatabaseUnusableError
from gitmem.errors import BusyError, DamagedError
from gitmem.git.objects import Oid, object_id
from gitmem.git.trees import EMPTY_TREE
from gitmem.strictjson import loads

if TYPE_CHECKING:
    from gitmem.git.courier import Progress

_SCHEMA: Final = """
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), tree BLOB NOT NULL);
CREATE TABLE sessions (id TEXT PRIMARY KEY, alias TEXT NOT NULL, record BLOB NOT NULL, blob BLOB NOT NULL)
WITHOUT ROWID;
CREATE INDEX sessions_recent ON sessions (alias, id DESC);
"""
_SCHEMA_VERSION: Final = 2
_FOLDER: Final = ("sessions",)
_FILE: Final = "sessions.sqlite"
_BEHIND_EVERY_ID: Final = "~"
_REPORT_EVERY: Final = 500
# Records come in the order of hashes. Sorted by id they fill the tables from one end to the other, which is
# several times as fast.
_READ: Final = "CREATE TEMP TABLE read (id, alias, record, blob)"
_FILL: Final = "INSERT OR REPLACE INTO sessions SELECT * FROM read ORDER BY id"


class Listed(NamedTuple):
    """Records as a commit has them, each with its blob and its JSON."""

    tip: Oid | None
    records: list[tuple[Oid, Any]]


class SessionIndex:
    """Which sessions there are. It follows the tree of records by what differs from its last look."""

    def __init__(self, ledger: Ledger, progress: Progress = lambda what, done, total: None) -> None:
        self._ledger = ledger
        self._progress = progress
        self._database = _database(ledger.derived)
        self._lock = threading.Lock()

    def close(self) -> None:
        self._database.close()

    def recent(self, alias: str, before: str | None, limit: int) -> Listed:
        """The records of an environment's sessions, newest first, behind the id `before`.

        Raises DamagedError; BusyError while another process makes the index.
        """
        snapshot = self._ledger.newest()
        if snapshot is None:
            return Listed(None, [])
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

    def _recent(self, snapshot: Snapshot, alias: str, before: str | None, limit: int) -> Listed:
        with self._database.transaction() as connection:
            self._follow(connection, snapshot)
            # An id begins with the time when it was made.
            rows = connection.execute(
                "SELECT id, record, blob FROM sessions WHERE alias = ? AND id < ? ORDER BY id DESC LIMIT ?",
                (alias, before if before is not None else _BEHIND_EVERY_ID, limit),
            ).fetchall()
        return Listed(snapshot.tip, [_checked(alias, *row) for row in rows])

    def _follow(self, connection: sqlite3.Connection, snapshot: Snapshot) -> None:
        found = connection.execute("SELECT tree FROM state").fetchone()
        old: Oid = found[0] if found else EMPTY_TREE
        if not isinstance(old, bytes) or len(old) != len(EMPTY_TREE):
            raise DatabaseUnusableError("the index of sessions names no tree")
        new = snapshot.folder(_FOLDER)
        if old == new:
            return
        try:
            self._take(connection, snapshot, old, new)
        except DamagedError:
            if old == EMPTY_TREE:
                raise
            connection.execute("DELETE FROM sessions")
            self._take(connection, snapshot, EMPTY_TREE, new)
        connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?)", (new,))

    def _take(self, connection: sqlite3.Connection, snapshot: Snapshot, old: Oid, new: Oid) -> None:
        gone: list[str] = []
        connection.execute("DROP TABLE IF EXISTS read")
        connection.execute(_READ)
        connection.executemany("INSERT INTO read VALUES (?, ?, ?, ?)", self._rows(snapshot, old, new, gone))
        connection.execute(_FILL)
        connection.execute("DROP TABLE read")
        connection.executemany("DELETE FROM sessions WHERE id = ?", ((session_id,) for session_id in gone))

    def _rows(self, snapshot: Snapshot, old: Oid, new: Oid, gone: list[str]) -> Iterator[tuple[str, str, bytes, Oid]]:
        for done, (name, blob) in enumerate(snapshot.changes(old, new)):
            if blob is None:
                gone.append(name.removesuffix(".json"))
            else:
                data = snapshot.data(blob)
                session_id = name.removesuffix(".json")
                yield session_id, _alias(session_id, blob, data), data, blob
            if done % _REPORT_EVERY == 0:
                self._progress("reading sessions", done, None)


def _database(derived: str) -> Database:
    return Database(os.path.join(derived, _FILE), _SCHEMA, _SCHEMA_VERSION)


def is_wrong(derived: str, tree: Oid, blobs: Mapping[str, Oid]) -> bool:
    """Whether the index in a folder stands at the tree of records and says anything else than its `blobs` by id."""
    if not os.path.isfile(os.path.join(derived, _FILE)):
        return False
    database = _database(derived)
    try:
        if database.query("SELECT tree FROM state") != [(tree,)]:
            return False
        if database.query("PRAGMA integrity_check(1)") != [("ok",)]:
            return True
        rows = database.query("SELECT id, blob FROM sessions")
        return dict(rows) != blobs or any(
            object_id("blob", record) != blob for record, blob in database.stream("SELECT record, blob FROM sessions")
        )
    except (DatabaseUnusableError, TypeError, ValueError):
        return True
    finally:
        database.close()


def discard(derived: str) -> None:
    """Delete the index in a folder: it is made anew when sessions are listed next. Raises OSError."""
    _database(derived).discard()


def _alias(session_id: str, blob: Oid, data: bytes) -> str:
    """The environment that a record names; quick where it is what gitmem writes. Raises DamagedError."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = parsed(blob, data)
    found = value.get("alias") if isinstance(value, dict) and value.get("id") == session_id else None
    if not isinstance(found, str):
        raise DamagedError(blob.hex(), f"The record {blob.hex()} in control.git is not a session.")
    return found


def _checked(alias: str, session_id: object, record: object, blob: object) -> tuple[Oid, Any]:
    """The record of a row. SQLite does not notice bytes that have changed on the disk: we do."""
    if isinstance(record, bytes) and isinstance(blob, bytes) and object_id("blob", record) == blob:
        value = loads(record)
        if (value["id"], value["alias"]) == (session_id, alias):
            return blob, value
    raise DatabaseUnusableError("a row of the index of sessions is damaged")
