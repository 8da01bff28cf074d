"""Repositories with N documents, laid out and committed as gitmem would have done it, made in seconds."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import gitmem
from gitmem import codec
from gitmem.environment.draft import ATTRIBUTES
from gitmem.environment.layout import FOLDER_LIMIT, RESOURCE_FILE, shards
from gitmem.git.commits import Person, render
from gitmem.records import OWNER
from tests.benchmarks import corpus

PROJECT: Final = "bench"
RESOURCE: Final = "notes"
STORIED: Final = 0
"""The number of the document that has many versions."""
STORIED_VERSIONS: Final = 20

_RESOURCE_JSON: Final = (
    b'{"description": "Documents to measure.", "provider": {"kind": "document", "maxBytes": 8192}}\n'
)
_COMMIT_EACH: Final = 100_000
_PERSONS_COMMIT: Final = 10_000
_START_SECONDS: Final = 1_700_000_000


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and give its output."""
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


class Layout:
    """Where gitmem puts each of N documents: in folders that were split once they held too many."""

    def __init__(self, documents: int) -> None:
        self.documents = documents
        self._first = Counter(shards(corpus.document_id(number))[0] for number in range(documents))

    def path(self, number: int) -> str:
        """The path of one document's file."""
        document_id = corpus.document_id(number)
        names = shards(document_id)
        if self.documents <= FOLDER_LIMIT:
            names = ()
        elif self._first[names[0]] <= FOLDER_LIMIT:
            names = names[:1]
        return "/".join((RESOURCE, *names, f"{document_id}.json"))


class Seed:
    """A bare repository with N documents in one pack; every contestant's repository starts from it.

    Up to 100,000 documents each has a commit of its own in gitmem's form, and one document has twenty
    versions spread over that history. Beyond, a person has committed them ten thousand at a time.
    """

    def __init__(self, folder: Path, documents: int) -> None:
        self.folder = folder
        self.documents = documents
        self.layout = Layout(documents)
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
        self.commits = self._import()

    def checked_out(self, folder: Path) -> Path:
        """A repository of its own with these documents and a clean working tree; the pack is shared."""
        subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
        packs = folder / ".git" / "objects" / "pack"
        for file in (self.folder / "objects" / "pack").iterdir():
            os.link(file, packs / file.name)
        # Some tidy up within a commit once there are many loose objects; a save is measured without.
        git(folder, "config", "gc.auto", "0")
        git(folder, "update-ref", "refs/heads/main", git(self.folder, "rev-parse", "main"))
        git(folder, "reset", "-q", "--hard")
        return folder

    def store(self, folder: Path) -> Path:
        """A gitmem store whose development environment has these documents."""
        gitmem.open_store(folder, create=True).close()
        self.checked_out(folder / PROJECT / "development")
        return folder

    def _import(self) -> int:
        # One pack however small: loose objects would be the contestants' to share unequally. And each blob whole,
        # as gitmem packs the newest version: fast-import makes each the delta of another document.
        settings = ["-c", "fastimport.unpackLimit=0", "-c", "core.bigFileThreshold=1"]
        command = ["git", "-C", str(self.folder), *settings, "fast-import", "--quiet"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        assert process.stdin is not None
        with process.stdin as stream:
            commits = self._stream(stream)
        if process.wait():
            raise RuntimeError("git fast-import failed")
        return commits

    def _stream(self, stream: IO[bytes]) -> int:
        _commit(stream, 0, "init", {".gitattributes": ATTRIBUTES})
        _commit(stream, 1, f"declare {RESOURCE}", {f"{RESOURCE}/{RESOURCE_FILE}": _RESOURCE_JSON})
        commits = 2
        if self.documents > _COMMIT_EACH:
            for first in range(0, self.documents, _PERSONS_COMMIT):
                _persons_commit(stream, commits, self._files(first))
                commits += 1
            return commits
        for number, version in self._history():
            operation = "replace" if version else "create"
            subject = f"{operation} {RESOURCE}/{corpus.document_id(number)}"
            _commit(stream, commits, subject, {self.layout.path(number): codec.encode(corpus.content(number, version))})
            commits += 1
        return commits

    def _history(self) -> Iterator[tuple[int, int]]:
        """Number and version of each document in the order of their commits."""
        every = self.documents // STORIED_VERSIONS
        for number in range(self.documents):
            yield number, 0
            version = (number + 1) // every
            if (number + 1) % every == 0 and version < STORIED_VERSIONS:
                yield STORIED, version

    def _files(self, first: int) -> Iterator[tuple[str, bytes]]:
        for number in range(first, min(first + _PERSONS_COMMIT, self.documents)):
            yield self.layout.path(number), codec.encode(corpus.content(number, 0))


def _commit(stream: IO[bytes], serial: int, subject: str, files: dict[str, bytes]) -> None:
    """One of gitmem's own commits: its author, committer and message are those that gitmem renders."""
    milliseconds = (_START_SECONDS + serial) * 1000
    author = Person("owner", "owner@localhost")
    data = render(tree=bytes(20), parents=[], author=author, milliseconds=milliseconds, subject=subject, writer=OWNER)
    head, _, message = data.partition(b"\n\n")
    who = b"\n".join(head.split(b"\n")[1:])
    stream.write(b"commit refs/heads/main\n%b\ndata %d\n%b" % (who, len(message), message))
    _write_files(stream, iter(files.items()))


def _persons_commit(stream: IO[bytes], serial: int, files: Iterator[tuple[str, bytes]]) -> None:
    who = b"Ada <ada@example.org> %d +0000" % (_START_SECONDS + serial)
    stream.write(b"commit refs/heads/main\nauthor %b\ncommitter %b\ndata 6\nimport\n" % (who, who))
    _write_files(stream, files)


def _write_files(stream: IO[bytes], files: Iterator[tuple[str, bytes]]) -> None:
    for path, data in files:
        stream.write(b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(data), data))
    stream.write(b"\n")
