"""gitmem and its peers at work, each in a store of its own that holds the same documents."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import gitmem
from gitmem import codec
from tests.benchmarks import corpus, stores
from tests.benchmarks.stores import PROJECT, RESOURCE, STORIED

GITMEM: Final = "gitmem"
GIT: Final = "git CLI"
GITPYTHON: Final = "GitPython"
DULWICH: Final = "dulwich"
SQLITE: Final = "SQLite FULL"
MODULES: Final = {GITMEM: "gitmem", GIT: "subprocess", GITPYTHON: "git", DULWICH: "dulwich", SQLITE: "sqlite3"}
"""What each needs to be importable."""

SHARED_DOCUMENTS: Final = 32
"""How many documents the threads save, whatever their number."""

_QUIET_SECONDS: Final = 0.3
_LONGEST_WAIT: Final = 60.0


def timed(work: Callable[[], object]) -> int:
    """The nanoseconds that `work` takes."""
    started = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - started


class Contestant(ABC):
    """One way to keep documents. Whatever it is asked, it answers with nanoseconds."""

    def __init__(self, store: Path, documents: int) -> None:
        self.store = store
        self.documents = documents

    @abstractmethod
    def save(self, number: int, version: int) -> int:
        """Save a version of a document; what the save itself took."""

    def turn(self, serial: int, seconds: float, most: int) -> list[int]:
        """Saves of documents chosen at random, the same for each contestant, until the time is over."""
        chosen = random.Random(serial)
        took: list[int] = []
        while sum(took) < seconds * 1e9 and len(took) < most:
            took.append(self.save(chosen.randrange(self.documents), 1_000_000 * (serial + 1) + len(took)))
        return took


class Reader(Contestant):
    """A contestant that is asked to read, too."""

    @abstractmethod
    def read(self, document_id: str) -> object:
        """One document."""

    @abstractmethod
    def page(self) -> object:
        """The first fifty documents of the list, newest first."""

    def reads(self, serial: int, count: int) -> list[int]:
        """Reads of documents chosen at random."""
        chosen = random.Random(serial)
        ids = [corpus.document_id(chosen.randrange(self.documents)) for _ in range(count)]
        return [timed(lambda document_id=document_id: self.read(document_id)) for document_id in ids]  # type: ignore[misc]

    def pages(self, count: int) -> list[int]:
        """The first page, again and again."""
        return [timed(self.page) for _ in range(count)]


class Gitmem(Reader):
    """gitmem through its Python interface, durable and with a working tree."""

    def __init__(self, store: Path, documents: int) -> None:
        super().__init__(store, documents)
        self._store = gitmem.open_store(store)
        self._environment = self._store.project(PROJECT).environment("development")
        self._documents = self._environment.documents(RESOURCE)

    def turn(self, serial: int, seconds: float, most: int) -> list[int]:
        took = super().turn(serial, seconds, most)
        self._settle()
        return took

    def save(self, number: int, version: int) -> int:
        document_id, text = corpus.document_id(number), corpus.text(number, version)
        revision = self._documents.read(document_id).revision
        return timed(lambda: self._documents.replace(document_id, text=text, if_match=revision))

    def read(self, document_id: str) -> object:
        return self._documents.read(document_id)

    def page(self) -> object:
        return self._documents.list()

    def history(self, count: int) -> list[int]:
        """The history of the document that has many versions."""
        document_id = corpus.document_id(STORIED)
        return [timed(lambda: self._documents.history(document_id)) for _ in range(count)]

    def threaded(self, serial: int, threads: int, saves: int) -> tuple[int, list[int]]:
        """So many threads that make so many saves each: what they took together, and each save.

        One thread alone goes through as many documents as all of them together have.
        """
        started: list[int] = []
        took: list[int] = []
        start = threading.Barrier(threads, action=lambda: started.append(time.perf_counter_ns()))
        each = SHARED_DOCUMENTS // threads
        workers = [
            threading.Thread(
                target=self._save_all, args=(range(at * each, (at + 1) * each), saves, serial, start, took)
            )
            for at in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        together = time.perf_counter_ns() - started[0]
        self._settle()
        if len(took) != threads * saves:
            raise RuntimeError("a thread's save failed")
        return together, took

    def _save_all(self, numbers: range, saves: int, serial: int, start: threading.Barrier, took: list[int]) -> None:
        ids = [corpus.document_id(number) for number in numbers]
        revisions = [self._documents.read(document_id).revision for document_id in ids]
        texts = [corpus.text(numbers[0], 500_000_000 + serial * 10_000 + at) for at in range(saves)]
        start.wait()
        before = time.perf_counter_ns()
        for count, text in enumerate(texts):
            at = count % len(ids)
            revisions[at] = self._documents.replace(ids[at], text=text, if_match=revisions[at]).revision
            now = time.perf_counter_ns()
            took.append(now - before)
            before = now

    def collect(self) -> int | None:
        """Housekeeping; None where there is none."""
        collect: Any = getattr(self._environment, "collect", None)
        return timed(collect) if collect else None

    def disk_bytes(self) -> int:
        """What the environment takes on the disk, with nothing of it waiting in memory."""
        self._environment.close()
        os.sync()
        return sum(
            os.lstat(os.path.join(folder, name)).st_blocks * 512
            for folder, folders, files in os.walk(self._environment.folder)
            for name in (*folders, *files)
        )

    def _settle(self) -> None:
        """Wait until nothing of it is left running in the background."""
        deadline = time.monotonic() + _LONGEST_WAIT
        lock = Path(self._environment.folder, ".git", "index.lock")
        while time.monotonic() < deadline:
            before = time.process_time()
            time.sleep(_QUIET_SECONDS)
            if time.process_time() - before < _QUIET_SECONDS / 20 and not lock.exists():
                return


class _GitPeer(Contestant):
    """A repository with a working tree that some other program writes."""

    def __init__(self, store: Path, documents: int) -> None:
        super().__init__(store, documents)
        self._layout = stores.Layout(documents)

    def save(self, number: int, version: int) -> int:
        path, data = self._layout.path(number), codec.encode(corpus.content(number, version))
        return timed(lambda: self._save(path, data))

    def _save(self, path: str, data: bytes) -> None:
        (self.store / path).write_bytes(data)
        self._commit(path)

    @abstractmethod
    def _commit(self, path: str) -> None:
        """Stage the file and commit it."""


class GitCommandLine(_GitPeer):
    """`git add` and `git commit`, with Git's own defaults."""

    def _commit(self, path: str) -> None:
        self._run("add", "--", path)
        self._run("commit", "-q", "-m", f"replace {path}")

    def _run(self, *arguments: str) -> None:
        identity = ("-c", "user.name=owner", "-c", "user.email=owner@localhost")
        subprocess.run(["git", *identity, *arguments], cwd=self.store, check=True)

    def history(self, count: int) -> list[int]:
        """`git log` of the document that has many versions."""
        path = self._layout.path(STORIED)
        return [timed(lambda: stores.git(self.store, "log", "--format=%H %ct %s", "--", path)) for _ in range(count)]


class GitPython(_GitPeer):
    """GitPython's index: add and commit."""

    def __init__(self, store: Path, documents: int) -> None:
        super().__init__(store, documents)
        import git

        self._repository = git.Repo(store)
        self._actor = git.Actor("owner", "owner@localhost")

    def _commit(self, path: str) -> None:
        index = self._repository.index
        index.add([path])
        index.commit(f"replace {path}", author=self._actor, committer=self._actor)


class Dulwich(_GitPeer):
    """dulwich's work tree: stage and commit."""

    def __init__(self, store: Path, documents: int) -> None:
        super().__init__(store, documents)
        from dulwich.repo import Repo

        self._repository = Repo(str(store))

    def _commit(self, path: str) -> None:
        tree = self._repository.get_worktree()
        tree.stage([path])
        who = b"owner <owner@localhost>"
        tree.commit(f"replace {path}".encode(), author=who, committer=who)


class Sqlite(Reader):
    """SQLite with a write-ahead log and `synchronous=FULL`: the document's row and one of its history."""

    def __init__(self, store: Path, documents: int) -> None:
        super().__init__(store, documents)
        self._connection = _connected(store)

    @staticmethod
    def fill(store: Path, documents: int) -> None:
        """Make the database."""
        connection = _connected(store)
        connection.executescript(_SCHEMA)
        rows = (
            (corpus.document_id(number), 1, f"Document {number}", "", corpus.text(number, 0), number)
            for number in range(documents)
        )
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO history SELECT id, revision, title, summary, text, updated FROM documents")
        connection.execute("COMMIT")
        connection.close()

    def save(self, number: int, version: int) -> int:
        document_id, text = corpus.document_id(number), corpus.text(number, version)
        (revision,) = self._connection.execute("SELECT revision FROM documents WHERE id = ?", (document_id,)).fetchone()
        return timed(lambda: self._save(document_id, revision, text))

    def _save(self, document_id: str, revision: int, text: str) -> None:
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        saved = run(
            "UPDATE documents SET revision = revision + 1, text = ?, updated = ? WHERE id = ? AND revision = ?",
            (text, time.time_ns(), document_id, revision),
        )
        assert saved.rowcount == 1
        run(
            "INSERT INTO history SELECT id, revision, title, summary, text, updated FROM documents WHERE id = ?",
            (document_id,),
        )
        run("COMMIT")

    def read(self, document_id: str) -> object:
        return self._connection.execute("SELECT * FROM documents WHERE id = ?", (document_id,)).fetchone()

    def page(self) -> object:
        query = "SELECT id, revision, title, summary, updated FROM documents ORDER BY updated DESC, id LIMIT 50"
        return self._connection.execute(query).fetchall()


def _connected(store: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(store, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


_SCHEMA: Final = """
CREATE TABLE documents (
    id TEXT PRIMARY KEY, revision INTEGER NOT NULL, title TEXT NOT NULL, summary TEXT NOT NULL,
    text TEXT NOT NULL, updated INTEGER NOT NULL
);
CREATE INDEX recent ON documents (updated DESC, id);
CREATE TABLE history (
    id TEXT NOT NULL, revision INTEGER NOT NULL, title TEXT NOT NULL, summary TEXT NOT NULL,
    text TEXT NOT NULL, updated INTEGER NOT NULL, PRIMARY KEY (id, revision)
);
"""

CONTESTANTS: Final[dict[str, type[Contestant]]] = {
    GITMEM: Gitmem,
    GIT: GitCommandLine,
    GITPYTHON: GitPython,
    DULWICH: Dulwich,
    SQLITE: Sqlite,
}
