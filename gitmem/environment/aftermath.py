"""What a power loss may have taken from the working tree, told from the journal.

A checkpoint flushes the files of the saves that it covers before it empties the journal. So only
the files of saves that still stand there can be lost, torn, or an older version, whatever the
index of the environment, which may have reached the disk although they have not, says of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from gitmem.environment.worktree import File
from gitmem.errors import DamagedError
from gitmem.git.journal import Record, staged_objects
from gitmem.git.repository import Repository
from gitmem.git.torn import is_part
from gitmem.git.trees import EMPTY_TREE, Path


class Aftermath(NamedTuple):
    """The paths of the saves that were not flushed yet, and the blobs that they may hold in part."""

    paths: frozenset[Path]
    blobs: tuple[bytes, ...]

    def took(self, path: Path, file: File) -> bool:
        """Whether what lies at a path can be what is left of gitmem's own file: nothing, or a part."""
        if path not in self.paths or file.odd:
            return False
        return file.data is None or any(is_part(file.data, blob) for blob in self.blobs)


def aftermath(repository: Repository) -> Aftermath | None:
    """What a power loss may have taken; None where nothing was lost."""
    records = repository.waiting() if repository.lost_writes else []
    if not records:
        return None
    blobs = {data for record in records for _, kind, data in staged_objects(record) if kind == "blob"}
    return Aftermath(frozenset(changed(repository, records)), tuple(blobs))


def changed(repository: Repository, records: Iterable[Record]) -> Iterator[Path]:
    """The path of every file that the saves wrote, moved or removed. What is damaged is left out."""
    for record in records:
        with suppress(DamagedError):
            old = repository.commit(record.old).tree if record.old else EMPTY_TREE
            for path, _, _ in repository.trees.changes(old, repository.commit(record.new).tree):
                yield path
