"""The disposable index: what history says of every document, in SQLite.

Git is the only truth. Whatever stands here can be deleted at any time and is made again from
history; a row's blob and metadata may also be missing and are then filled in when first read.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from gitmem.environment.layout import Name
from gitmem.environment.rows import (
    Event,
    Row,
    State,
    Unprojected,
    VersionRow,
    columns,
    memory_of,
    row_of,
    session_of,
    version_of,
)
from gitmem.git.objects import Oid
from gitmem.records import Memory

_SCHEMA_VERSION: Final = 2
_SCHEMA: Final = """
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1), tip BLOB, number INTEGER NOT NULL, unchecked INTEGER NOT NULL
);
INSERT INTO state VALUES (1, NULL, 1, 0);
CREATE TABLE resources (
    name TEXT PRIMARY KEY, description TEXT NOT NULL, kind TEXT NOT NULL, max_bytes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE documents (
    resource TEXT NOT NULL, id TEXT NOT NULL, revision BLOB NOT NULL, blob BLOB,
    updated INTEGER NOT NULL, session TEXT, dead INTEGER NOT NULL, merged INTEGER NOT NULL,
    title TEXT, summary TEXT, policy TEXT, bytes INTEGER,
    PRIMARY KEY (resource, id)
) WITHOUT ROWID;
CREATE INDEX documents_recent ON documents (resource, updated DESC, id) WHERE dead = 0;
CREATE TABLE versions (
    resource TEXT NOT NULL, id TEXT NOT NULL, number INTEGER NOT NULL, revision BLOB NOT NULL, blob BLOB,
    updated INTEGER NOT NULL, session TEXT, operation TEXT NOT NULL, message TEXT,
    PRIMARY KEY (resource, id, number)
) WITHOUT ROWID;
CREATE TABLE unprojected (path TEXT PRIMARY KEY, base BLOB, staged INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rejected (
    resource TEXT NOT NULL, id TEXT NOT NULL, revision BLOB NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY (resource, id)
) WITHOUT ROWID;
"""
_TABLES: Final = ("resources", "documents", "versions", "unprojected", "rejected")
_ROW: Final = "revision, blob, updated, session, dead, merged, title, summary, policy, bytes"
_VERSION: Final = "number, revision, blob, updated, session, operation, message"


class CatalogUnusableError(Exception):
    """The index file cannot be used: damaged, of another schema, or on a disk that refuses."""


class Catalog:
    """The index of one environment. Written under the writer's lock; read from any thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._local = threading.local()
        self._inode = 0
        self._all: list[sqlite3.Connection] = []
        self._memory: sqlite3.Connection | None = None
        self._memory_lock = threading.RLock()

    # Opening

    def connection(self) -> sqlite3.Connection:
        """This thread's connection to the file that lies there now. Raises CatalogUnusableError."""
        if self._memory:
            return self._memory
        try:
            inode = os.stat(self._path).st_ino
        except FileNotFoundError:
            inode = 0
        held: tuple[int, sqlite3.Connection] | None = getattr(self._local, "held", None)
        if held and held[0] == inode:
            return held[1]
        connection = self._connected()
        self._all.append(connection)
        self._local.held = (os.stat(self._path).st_ino, connection)
        return connection

    def _connected(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, timeout=10, cached_statements=64
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise CatalogUnusableError(str(error)) from error
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("PRAGMA synchronous=NORMAL")
        if version == _SCHEMA_VERSION:
            return
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] != _SCHEMA_VERSION:
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                connection.execute(f'DROP TABLE "{name}"')
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")
        connection.execute("COMMIT")

    @classmethod
    def temporary(cls) -> Catalog:
        """An index of its own, gone when it is closed; what does not fit into little memory is on the disk."""
        made = cls("")
        made._use("")
        return made

    @contextmanager
    def snapshot(self) -> Generator[Catalog, None, None]:
        """The index as it is now, whatever is written to it meanwhile. Raises CatalogUnusableError."""
        if self._memory:
            yield self
            return
        other = Catalog(self._path)
        try:
            other._query("BEGIN")
            other.tip()
            yield other
        finally:
            other.close()

    def move_to_memory(self) -> None:
        """Use an index in memory: the disk takes none. It is made from history like any other."""
        self._use(":memory:")

    def _use(self, place: str) -> None:
        connection = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
        self._all.append(connection)
        self._prepare(connection)
        self._memory = connection

    def discard(self) -> None:
        """Delete the file, damaged or not; the next use makes an empty one."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(self._path + suffix)

    def close(self) -> None:
        for connection in self._all:
            with suppress(sqlite3.Error):
                connection.close()
        self._all.clear()
        self._memory = None
        self._local = threading.local()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection, None, None]:
        """Write together, or not at all. Raises CatalogUnusableError."""
        try:
            connection = self.connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise CatalogUnusableError(str(error)) from error

    def _query(self, sql: str, *values: Any) -> list[Any]:
        try:
            return self.connection().execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise CatalogUnusableError(str(error)) from error

    # Reading

    def state(self) -> State:
        """Where the index stands, in one look."""
        found = self._query(
            "SELECT tip, number, unchecked, EXISTS (SELECT 1 FROM unprojected WHERE staged = 0),"
            " EXISTS (SELECT 1 FROM unprojected), EXISTS (SELECT 1 FROM rejected) FROM state"
        )
        tip, number, *flags = found[0]
        return State(tip, number, *map(bool, flags))

    def tip(self) -> Oid | None:
        """The commit that the index stands at; None for an empty index."""
        tip: Oid | None = self._query("SELECT tip FROM state")[0][0]
        return tip

    def find(self, name: Name) -> tuple[Oid | None, Row | None]:
        """The tip and a document's row, both of one moment."""
        tip, revision, *rest = self._query(
            f"SELECT tip, {_ROW} FROM state LEFT JOIN documents ON resource = ? AND id = ?", name.resource, name.id
        )[0]
        return tip, row_of(revision, *rest) if revision is not None else None

    def recent(
        self, resource: str, after: tuple[int, str] | None, limit: int
    ) -> tuple[Oid | None, list[tuple[str, Row]]]:
        """Live documents in descending update time, then ascending id, behind `after`; and the tip."""
        updated, document_id = after or (1 << 62, "")
        found = self._query(
            f"SELECT (SELECT tip FROM state), id, {_ROW} FROM documents"
            " WHERE resource = ? AND dead = 0 AND updated <= ? AND (updated < ? OR id > ?)"
            " ORDER BY updated DESC, id LIMIT ?",
            resource, updated, updated, document_id, limit,
        )  # fmt: skip
        tip = found[0][0] if found else self.tip()
        return tip, [(row[1], row_of(*row[2:])) for row in found]

    def versions(self, name: Name, before: int | None, limit: int) -> list[VersionRow]:
        """A document's versions, newest first, behind number `before`."""
        return [
            version_of(*row)
            for row in self._query(
                f"SELECT {_VERSION} FROM versions WHERE resource = ? AND id = ? AND number < ?"
                " ORDER BY number DESC LIMIT ?",
                name.resource, name.id, before if before is not None else 1 << 62, limit,
            )
        ]  # fmt: skip

    def all_versions(self) -> Iterator[tuple[Name, VersionRow]]:
        """Every version of every document, by name, oldest first. Streams."""
        for found in self.connection().execute(
            f"SELECT resource, id, {_VERSION} FROM versions ORDER BY resource, id, number"
        ):
            yield Name(found[0], found[1]), version_of(*found[2:])

    def resource(self, name: str) -> Memory | None:
        """A resource's declaration."""
        found = self._query("SELECT description, kind, max_bytes FROM resources WHERE name = ?", name)
        return memory_of(name, *found[0]) if found else None

    def resources(self) -> list[tuple[Memory, int]]:
        """Every resource with its number of live documents, by name."""
        return [
            (memory_of(*row[:4]), row[4])
            for row in self._query(
                "SELECT name, description, kind, max_bytes, (SELECT COUNT(*) FROM documents"
                " WHERE resource = name AND dead = 0) FROM resources ORDER BY name"
            )
        ]

    def count(self, resource: str) -> int:
        """How many documents of a resource have a file: live ones and tombstones."""
        count: int = self._query("SELECT COUNT(*) FROM documents WHERE resource = ?", resource)[0][0]
        return count

    def documents(self, resource: str | None = None) -> Iterator[tuple[Name, Row]]:
        """Every row, dead ones too, by name. Streams."""
        where, values = ("WHERE resource = ?", (resource,)) if resource else ("", ())
        for found in self.connection().execute(
            f"SELECT resource, id, {_ROW} FROM documents {where} ORDER BY resource, id", values
        ):
            yield Name(found[0], found[1]), row_of(*found[2:])

    def is_unchecked(self) -> bool:
        """Whether files may lag that `unprojected` does not name: the table was lost, or a save cut short."""
        return self.state().unchecked

    def unprojected(self, path: str | None = None) -> dict[str, Unprojected]:
        """The paths that lag, or the one asked for."""
        where, values = ("WHERE path = ?", (path,)) if path else ("", ())
        return {
            found: Unprojected(base, bool(staged))
            for found, base, staged in self._query(f"SELECT path, base, staged FROM unprojected {where}", *values)
        }

    def rejected(self) -> list[tuple[Name, Oid, str]]:
        """Committed files that do not count: the document that each would be, the commit, the reason."""
        return [
            (Name(resource, document_id), commit, reason)
            for resource, document_id, commit, reason in self._query(
                "SELECT resource, id, revision, reason FROM rejected ORDER BY resource, id"
            )
        ]

    # Writing, each within a transaction

    @staticmethod
    def clear(connection: sqlite3.Connection) -> None:
        """Forget everything, before a rebuild."""
        for table in _TABLES:
            connection.execute(f"DELETE FROM {table}")
        connection.execute("UPDATE state SET tip = NULL, number = 1, unchecked = 0")

    @staticmethod
    def set_tip(connection: sqlite3.Connection, tip: Oid, number: int) -> None:
        """Let the index stand at `tip`; the next version gets `number`."""
        connection.execute("UPDATE state SET tip = ?, number = ?", (tip, number))

    @staticmethod
    def set_unchecked(connection: sqlite3.Connection, unchecked: bool) -> None:
        """Note that only a comparison can tell what lags, or that it has been made."""
        connection.execute("UPDATE state SET unchecked = ?", (unchecked,))

    @staticmethod
    def set_resources(connection: sqlite3.Connection, declared: Iterable[Memory]) -> None:
        connection.execute("DELETE FROM resources")
        connection.executemany(
            "INSERT INTO resources VALUES (?, ?, ?, ?)",
            ((m.id, m.description, m.provider.kind, m.provider.max_bytes) for m in declared),
        )

    @staticmethod
    def apply(connection: sqlite3.Connection, events: Iterable[Event], number: int, *, rejected: bool = True) -> int:
        """Take up what commits did, oldest first, counting from `number`; the next number.

        An id once deleted stays dead (invariant 5). `rejected` says that some files were rejected before.
        """
        for event in events:
            _apply(connection, event, number, rejected)
            number += 1
        return number

    @staticmethod
    def set_unprojected(connection: sqlite3.Connection, path: str, base: Oid | None) -> None:
        """Note that a path lags, and the blob that gitmem last put there."""
        connection.execute("INSERT OR REPLACE INTO unprojected VALUES (?, ?, 0)", (path, base))

    @staticmethod
    def set_staged(connection: sqlite3.Connection, path: str) -> None:
        connection.execute("UPDATE unprojected SET staged = 1 WHERE path = ?", (path,))

    @staticmethod
    def clear_unprojected(connection: sqlite3.Connection, paths: Iterable[str]) -> None:
        connection.executemany("DELETE FROM unprojected WHERE path = ?", ((path,) for path in paths))

    @staticmethod
    def set_rejected(connection: sqlite3.Connection, name: Name, commit: Oid, reason: str) -> None:
        connection.execute("INSERT OR REPLACE INTO rejected VALUES (?, ?, ?, ?)", (*name, commit, reason))

    def fill(self, name: Name, row: Row) -> None:
        """Keep a blob and metadata that were read for the first time; losing this costs nothing."""
        meta = row.meta
        with suppress(CatalogUnusableError), self.transaction() as connection:
            connection.execute(
                "UPDATE documents SET blob = ?, title = ?, summary = ?, policy = ?, bytes = ?"
                " WHERE resource = ? AND id = ? AND revision = ?",
                (row.blob, *(columns(meta)), name.resource, name.id, row.revision),
            )


def _apply(connection: sqlite3.Connection, event: Event, number: int, rejected: bool) -> None:
    key = event.name
    session = session_of(event.writer)
    if not event.dead:
        changed = connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?) ON CONFLICT (resource, id) DO UPDATE SET"
            " revision = excluded.revision, blob = excluded.blob, updated = excluded.updated,"
            " session = excluded.session, merged = max(merged, excluded.merged), title = excluded.title,"
            " summary = excluded.summary, policy = excluded.policy, bytes = excluded.bytes WHERE dead = 0",
            (*key, event.commit, event.blob, event.updated, session, event.merged, *columns(event.meta)),
        )
    else:
        changed = connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, NULL, ?, ?, 1, ?, NULL, NULL, NULL, NULL)"
            " ON CONFLICT (resource, id) DO UPDATE SET revision = excluded.revision, blob = NULL,"
            " updated = excluded.updated, session = excluded.session, dead = 1,"
            " merged = max(merged, excluded.merged), title = NULL, summary = NULL, policy = NULL, bytes = NULL"
            " WHERE dead = 0",
            (*key, event.commit, event.updated, session, event.merged),
        )
    if changed.rowcount:
        connection.execute(
            "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*key, number, event.commit, event.blob, event.updated, session, event.operation, event.message),
        )
        if rejected:
            connection.execute("DELETE FROM rejected WHERE resource = ? AND id = ?", key)
    elif not event.dead:
        Catalog.set_rejected(connection, key, event.commit, "its id is reserved by a deletion")
