"""The disposable index: what history says of every document, in SQLite.

Git is the only truth. Whatever stands here can be deleted at any time and is made again from
history; a row's blob and metadata may also be missing and are then filled in when first read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from gitmem.database import Database, DatabaseUnusableError
from gitmem.environment.layout import Name
from gitmem.environment.rows import (
    RESOLVE,
    Clashed,
    Event,
    Row,
    Save,
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

_SCHEMA_VERSION: Final = 4
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
CREATE TABLE saves (
    session TEXT NOT NULL, seq INTEGER NOT NULL, resource TEXT NOT NULL, id TEXT NOT NULL, revision BLOB NOT NULL,
    PRIMARY KEY (session, seq), UNIQUE (session, revision)
) WITHOUT ROWID;
CREATE TABLE unprojected (path TEXT PRIMARY KEY, base BLOB, staged INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rejected (
    resource TEXT NOT NULL, id TEXT NOT NULL, revision BLOB NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY (resource, id)
) WITHOUT ROWID;
CREATE TABLE conflicts (
    resource TEXT NOT NULL, id TEXT NOT NULL, merge BLOB NOT NULL, ours BLOB NOT NULL, theirs BLOB NOT NULL,
    PRIMARY KEY (resource, id, merge)
) WITHOUT ROWID;
"""
_TABLES: Final = ("resources", "documents", "versions", "saves", "unprojected", "rejected", "conflicts")
_ROW: Final = "revision, blob, updated, session, dead, merged, title, summary, policy, bytes"
_VERSION: Final = "number, revision, blob, updated, session, operation, message"


class Catalog(Database):
    """The index of one environment. Written under the writer's lock; read from any thread.

    Its methods raise DatabaseUnusableError.
    """

    def __init__(self, path: str, *, reserving: bool = True) -> None:
        super().__init__(path, _SCHEMA, _SCHEMA_VERSION)
        self.reserving = reserving

    @classmethod
    def temporary(cls, *, reserving: bool) -> Catalog:
        """An index of its own, gone when it is closed; what does not fit into little memory is on the disk."""
        made = cls("", reserving=reserving)
        made.use("")
        return made

    @contextmanager
    def snapshot(self) -> Generator[Catalog, None, None]:
        """The index as it is now, whatever is written to it meanwhile."""
        if self.in_memory:
            yield self
            return
        other = Catalog(self.path, reserving=self.reserving)
        try:
            other.query("BEGIN")
            other.tip()
            yield other
        finally:
            other.close()

    # Reading

    def state(self) -> State:
        """Where the index stands, in one look."""
        found = self.query(
            "SELECT tip, number, unchecked, EXISTS (SELECT 1 FROM unprojected WHERE staged = 0),"
            " EXISTS (SELECT 1 FROM unprojected), EXISTS (SELECT 1 FROM rejected) FROM state"
        )
        tip, number, *flags = found[0]
        return State(tip, number, *map(bool, flags))

    def tip(self) -> Oid | None:
        """The commit that the index stands at; None for an empty index."""
        tip: Oid | None = self.query("SELECT tip FROM state")[0][0]
        return tip

    def find(self, name: Name) -> tuple[Oid | None, Row | None]:
        """The tip and a document's row, both of one moment."""
        tip, revision, *rest = self.query(
            f"SELECT tip, {_ROW} FROM state LEFT JOIN documents ON resource = ? AND id = ?", name.resource, name.id
        )[0]
        return tip, row_of(revision, *rest) if revision is not None else None

    def recent(
        self, resource: str, after: tuple[int, str] | None, limit: int, matching: str = ""
    ) -> tuple[Oid | None, list[tuple[str, Row]]]:
        """Live documents in descending update time, then ascending id, behind `after`; and the tip.

        `matching` leaves out those whose id and known title do not contain it, in whatever case.
        """
        updated, document_id = after or (1 << 62, "")
        where, values = _containing(matching)
        found = self.query(
            f"SELECT (SELECT tip FROM state), id, {_ROW} FROM documents"
            f" WHERE resource = ? AND dead = 0 AND updated <= ? AND (updated < ? OR id > ?){where}"
            " ORDER BY updated DESC, id LIMIT ?",
            resource, updated, updated, document_id, *values, limit,
        )  # fmt: skip
        tip = found[0][0] if found else self.tip()
        return tip, [(row[1], row_of(*row[2:])) for row in found]

    def versions(self, name: Name, before: int | None, limit: int) -> list[VersionRow]:
        """A document's versions, newest first, behind number `before`."""
        return [
            version_of(*row)
            for row in self.query(
                f"SELECT {_VERSION} FROM versions WHERE resource = ? AND id = ? AND number < ?"
                " ORDER BY number DESC LIMIT ?",
                name.resource, name.id, before if before is not None else 1 << 62, limit,
            )
        ]  # fmt: skip

    def all_versions(self) -> Iterator[tuple[Name, VersionRow]]:
        """Every version of every document, by name, oldest first. Streams."""
        for found in self.stream(f"SELECT resource, id, {_VERSION} FROM versions ORDER BY resource, id, number"):
            yield Name(found[0], found[1]), version_of(*found[2:])

    def saves(self, session: str, after: int) -> tuple[Oid | None, list[Save]]:
        """A session's saves behind number `after`, in order; and the tip."""
        found = self.query(
            "SELECT tip, seq, resource, id, revision FROM state LEFT JOIN saves ON session = ? AND seq > ?"
            " ORDER BY seq",
            session, after,
        )  # fmt: skip
        return found[0][0], [Save(row[1], Name(row[2], row[3]), row[4]) for row in found if row[1] is not None]

    def all_saves(self) -> Iterator[tuple[str, Save]]:
        """Every save of every session, in order. Streams."""
        for found in self.connection().execute(
            "SELECT session, seq, resource, id, revision FROM saves ORDER BY session, seq"
        ):
            yield found[0], Save(found[1], Name(found[2], found[3]), found[4])

    def resource(self, name: str) -> Memory | None:
        """A resource's declaration."""
        found = self.query("SELECT description, kind, max_bytes FROM resources WHERE name = ?", name)
        return memory_of(name, *found[0]) if found else None

    def resources(self) -> list[tuple[Memory, int]]:
        """Every resource with its number of live documents, by name."""
        return [
            (memory_of(*row[:4]), row[4])
            for row in self.query(
                "SELECT name, description, kind, max_bytes, (SELECT COUNT(*) FROM documents"
                " WHERE resource = name AND dead = 0) FROM resources ORDER BY name"
            )
        ]

    def count(self, resource: str) -> int:
        """How many documents of a resource have a file: live ones and tombstones."""
        count: int = self.query(
            "SELECT COUNT(*) FROM documents WHERE resource = ? AND (? OR dead = 0)", resource, self.reserving
        )[0][0]
        return count

    def live_count(self) -> int:
        """How many documents there are, of every resource."""
        count: int = self.query("SELECT COUNT(*) FROM documents WHERE dead = 0")[0][0]
        return count

    def by_name(self, after: Name, limit: int) -> tuple[Oid | None, list[tuple[Name, Row]]]:
        """Live documents by name, behind `after`; and the tip."""
        found = self.query(
            f"SELECT (SELECT tip FROM state), resource, id, {_ROW} FROM documents"
            " WHERE dead = 0 AND (resource, id) > (?, ?) ORDER BY resource, id LIMIT ?",
            *after, limit,
        )  # fmt: skip
        tip = found[0][0] if found else self.tip()
        return tip, [(Name(row[1], row[2]), row_of(*row[3:])) for row in found]

    def documents(self, resource: str | None = None) -> Iterator[tuple[Name, Row]]:
        """Every row, dead ones too, by name. Streams."""
        where, values = ("WHERE resource = ?", (resource,)) if resource else ("", ())
        for found in self.stream(f"SELECT resource, id, {_ROW} FROM documents {where} ORDER BY resource, id", *values):
            yield Name(found[0], found[1]), row_of(*found[2:])

    def is_unchecked(self) -> bool:
        """Whether files may lag that `unprojected` does not name: the table was lost, or a save cut short."""
        return self.state().unchecked

    def live_names(self) -> Iterator[tuple[str, str]]:
        """The resource and id of every live document, in no set order. Streams."""
        yield from self.connection().execute("SELECT resource, id FROM documents WHERE dead = 0")

    def unprojected(self, path: str | None = None) -> dict[str, Unprojected]:
        """The paths that lag, or the one asked for."""
        where, values = ("WHERE path = ?", (path,)) if path else ("", ())
        return {
            found: Unprojected(base, bool(staged))
            for found, base, staged in self.query(f"SELECT path, base, staged FROM unprojected {where}", *values)
        }

    def rejected(self) -> list[tuple[Name, Oid, str]]:
        """Committed files that do not count: the document that each would be, the commit, the reason."""
        return [
            (Name(resource, document_id), commit, reason)
            for resource, document_id, commit, reason in self.query(
                "SELECT resource, id, revision, reason FROM rejected ORDER BY resource, id"
            )
        ]

    def conflicts(self, name: Name | None = None) -> tuple[Oid | None, list[Clashed]]:
        """The conflicts of live documents that nobody has settled, by name, or those of one; and the tip."""
        found = self.query(
            "SELECT resource, id, merge, ours, theirs FROM conflicts JOIN documents USING (resource, id)"
            " WHERE dead = 0 AND (? IS NULL OR (resource = ? AND id = ?)) ORDER BY resource, id, merge",
            name and name.id, name and name.resource, name and name.id,
        )  # fmt: skip
        return self.tip(), [Clashed(Name(*row[:2]), *row[2:]) for row in found]

    # Writing, each within a transaction

    @staticmethod
    def clear(connection: sqlite3.Connection) -> None:
        """Forget everything, before a rebuild."""
        for table in _TABLES:
            connection.execute(f"DELETE FROM {table}")
        connection.execute("UPDATE state SET tip = NULL, number = 1, unchecked = 0")

    @staticmethod
    def check_still(connection: sqlite3.Connection, state: State) -> None:
        """Raise DatabaseUnusableError where the file was deleted, or written, since `state` was read from it."""
        found = connection.execute("SELECT tip, number FROM state").fetchone()
        if found != (state.tip, state.number):
            raise DatabaseUnusableError(f"the index stands at {found}, not where it stood")

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

    def apply(
        self, connection: sqlite3.Connection, events: Iterable[Event], number: int, *, rejected: bool = True
    ) -> int:
        """Take up what commits did, oldest first, counting from `number`; the next number.

        An id once deleted stays dead (invariant 5) where ids are reserved. `rejected` says that some
        files were rejected before.
        """
        for event in events:
            _apply(connection, event, number, rejected, reserving=self.reserving)
            number += 1
        return number

    @staticmethod
    def add_save(connection: sqlite3.Connection, session: str, name: Name, commit: Oid) -> None:
        """Take up a session's next save; one that is known already stays where it is."""
        connection.execute(
            "INSERT INTO saves SELECT ?1, coalesce((SELECT MAX(seq) FROM saves WHERE session = ?1), 0) + 1, ?2, ?3, ?4"
            " WHERE NOT EXISTS (SELECT 1 FROM saves WHERE session = ?1 AND revision = ?4)",
            (session, *name, commit),
        )

    @staticmethod
    def set_merged(connection: sqlite3.Connection, names: Iterable[Name]) -> None:
        """Note that the history of some documents goes through merges."""
        connection.executemany("UPDATE documents SET merged = 1 WHERE resource = ? AND id = ?", names)

    @staticmethod
    def add_conflict(connection: sqlite3.Connection, clash: Clashed) -> None:
        """Take up a conflict that a merge left."""
        connection.execute("INSERT OR REPLACE INTO conflicts VALUES (?, ?, ?, ?, ?)", (*clash.name, *clash[1:]))

    @staticmethod
    def settle(connection: sqlite3.Connection, name: Name) -> None:
        """Forget the conflicts of a document."""
        connection.execute("DELETE FROM conflicts WHERE resource = ? AND id = ?", name)

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
        with suppress(DatabaseUnusableError), self.transaction() as connection:
            connection.execute(
                "UPDATE documents SET blob = ?, title = ?, summary = ?, policy = ?, bytes = ?"
                " WHERE resource = ? AND id = ? AND revision = ?",
                (row.blob, *(columns(meta)), name.resource, name.id, row.revision),
            )


def _containing(matching: str) -> tuple[str, tuple[str, ...]]:
    if not matching:
        return "", ()
    wanted = matching.casefold()
    return " AND (title IS NULL OR instr(casefold(ifnull(title, '')), ?) OR instr(casefold(id), ?))", (wanted, wanted)


def _apply(connection: sqlite3.Connection, event: Event, number: int, rejected: bool, *, reserving: bool) -> None:
    key = event.name
    session = session_of(event.writer)
    if session is not None and not event.dead and not event.merged:
        Catalog.add_save(connection, session, key, event.commit)
    if event.operation == RESOLVE:
        Catalog.settle(connection, key)
    if not event.dead:
        changed = connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?) ON CONFLICT (resource, id) DO UPDATE SET"
            " revision = excluded.revision, blob = excluded.blob, updated = excluded.updated,"
            " session = excluded.session, merged = max(merged, excluded.merged), title = excluded.title,"
            " summary = excluded.summary, policy = excluded.policy, bytes = excluded.bytes, dead = 0"
            + (" WHERE dead = 0" if reserving else ""),
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
    elif not event.dead:
        Catalog.set_rejected(connection, key, event.commit, "its id is reserved by a deletion")
        return
    if rejected:
        connection.execute("DELETE FROM rejected WHERE resource = ? AND id = ?", key)
