"""A disposable SQLite file: opened by each thread, made anew where it does not fit."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

_DELETIONS: Final = 20


class DatabaseUnusableError(Exception):
    """The file cannot be used: damaged, or on a disk that refuses."""


class DatabaseBusyError(DatabaseUnusableError):
    """Somebody else has been writing it for longer than one waits."""


class Database:
    """One file of tables that can be deleted at any time. Read and written from any thread.

    A file with another `version` than the one given is emptied and gets the tables of `schema`.
    """

    def __init__(self, path: str, schema: str, version: int) -> None:
        self.path = path
        self._schema = schema
        self._version = version
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._memory: sqlite3.Connection | None = None

    def connection(self) -> sqlite3.Connection:
        """This thread's connection to the file that lies there now. Raises DatabaseUnusableError."""
        if self._memory:
            return self._memory
        held: tuple[int, int, sqlite3.Connection] | None = getattr(self._local, "held", None)
        for _ in range(_DELETIONS):
            inode, log = self._inodes()
            if held and inode and held[0] == inode:
                if held[1] != log:
                    raise DatabaseUnusableError(f"{self.path}-wal was deleted while it was in use")
                return held[2]
            connection = self._connected()
            self._all.append(connection)
            # What was opened may have been deleted before, or just now: then nobody else sees what goes into it.
            self._local.held = held = (*self._inodes(), connection)
        raise DatabaseUnusableError(f"{self.path} is deleted again and again")

    def _inodes(self) -> tuple[int, int]:
        """What tells the file, and its write-ahead log, from others that may lie there later."""
        return _inode(self.path), _inode(f"{self.path}-wal")

    def _connected(self) -> sqlite3.Connection:
        try:
            with suppress(OSError):
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
            connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=10, cached_statements=64
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise _unusable(error) from error
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("PRAGMA synchronous=NORMAL")
        # SQLite itself knows the case of ASCII letters only.
        connection.create_function("casefold", 1, str.casefold, deterministic=True)
        if version == self._version:
            return
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] != self._version:
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                connection.execute(f'DROP TABLE "{name}"')
            for statement in self._schema.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={self._version}")
        connection.execute("COMMIT")

    @property
    def in_memory(self) -> bool:
        """Whether all threads share one connection, to tables that are gone when it is closed."""
        return self._memory is not None

    def move_to_memory(self) -> None:
        """Use tables in memory, empty at first: the disk takes none."""
        self.use(":memory:")

    def use(self, place: str) -> None:
        """Use tables in SQLite's `place`, empty at first, in every thread."""
        connection = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
        self._all.append(connection)
        self._prepare(connection)
        self._memory = connection

    def discard(self) -> None:
        """Delete the file, damaged or not; the next use makes an empty one."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(self.path + suffix)

    def close(self) -> None:
        for connection in self._all:
            with suppress(sqlite3.Error):
                connection.close()
        self._all.clear()
        self._memory = None
        self._local = threading.local()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection, None, None]:
        """Write together, or not at all. Raises DatabaseUnusableError."""
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
            raise _unusable(error) from error

    def query(self, sql: str, *values: Any) -> list[Any]:
        """The rows that a statement finds. Raises DatabaseUnusableError."""
        try:
            return self.connection().execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise _unusable(error) from error

    def stream(self, sql: str, *values: Any) -> Iterator[Any]:
        """The same, row by row. Raises DatabaseUnusableError."""
        try:
            yield from self.connection().execute(sql, values)
        except sqlite3.Error as error:
            raise _unusable(error) from error


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _unusable(error: sqlite3.Error) -> DatabaseUnusableError:
    busy = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
    return (DatabaseBusyError if busy else DatabaseUnusableError)(str(error))
