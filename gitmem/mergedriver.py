"""Merging three files of a document for `git merge`, as gitmem itself would, with markers where it cannot."""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import Final

from gitmem.codec import TOMBSTONE, Content, decode, encode
from gitmem.errors import InvalidDocumentError
from gitmem.limits import MAX_BYTES_CEILING, is_document_id
from gitmem.merging import kept_lines, merge_sides

MARKER_SIZE: Final = 7


class Outcome(Enum):
    """What became of a merge."""

    MERGED = "merged"
    DELETED = "deleted"
    """One side deleted what the other edited: the deletion stands, the edit is in that side's history."""
    CONFLICT = "conflict"
    NO_DOCUMENT = "no document"
    """Nothing was written: one of the files is no document, and merges as any text file."""


_EXIT_STATUS: Final = {Outcome.MERGED: 0, Outcome.DELETED: 0, Outcome.CONFLICT: 1, Outcome.NO_DOCUMENT: 2}
"""Git takes 0 for merged and 1 for a conflict; at 2 it merges as text, see gitmem.git.drivers."""


def drive(base: str, ours: str, theirs: str, marker_size: str, path: str) -> int:
    """Do it with Git's arguments; the exit status, and on stderr what a person should know. Raises OSError."""
    outcome = merge_files(base, ours, theirs, document_at(path), int(marker_size))
    if outcome is Outcome.DELETED:
        print(f"{path} was deleted on one side: it stays deleted, and the edit stays in history", file=sys.stderr)
    return _EXIT_STATUS[outcome]


def document_at(path: str) -> str:
    """The id of the document whose file is called so; the name of any other file is no id."""
    return os.path.basename(path).removesuffix(".json")


def merge_files(base: str, ours: str, theirs: str, document_id: str, marker_size: int = MARKER_SIZE) -> Outcome:
    """Merge the files at three paths into the one at `ours`; `base` is empty where both sides made the document.

    A deletion on either side wins. In a conflict the file gets markers around each field and line
    that both changed; whichever side is kept of each leaves a valid document. Raises OSError.
    """
    if not is_document_id(document_id):
        return Outcome.NO_DOCUMENT
    files = [_read(path) for path in (base, ours, theirs)]
    try:
        mine, other = decode(files[1], document_id), decode(files[2], document_id)
    except InvalidDocumentError:
        return Outcome.NO_DOCUMENT
    merged = _merged(_base(files[0], document_id), mine, other)
    if isinstance(merged, tuple):
        _write(ours, _marked(encode(merged[0]), encode(merged[1]), marker_size))
        return Outcome.CONFLICT
    if merged != mine:
        _write(ours, TOMBSTONE if merged is None else files[2] if merged == other else encode(merged))
    return Outcome.MERGED if mine and other else Outcome.DELETED


def _base(data: bytes, document_id: str) -> Content | None:
    """What both sides began with; None where that was no live document."""
    try:
        return decode(data, document_id)
    except InvalidDocumentError:
        return None


def _merged(
    base: Content | None, mine: Content | None, other: Content | None
) -> Content | tuple[Content, Content] | None:
    """The merged content, None for a deletion; in a conflict what it would be by either side."""
    if mine is None or other is None:
        return None
    ours, theirs = merge_sides(base, mine, other)
    if ours != theirs:
        return ours, theirs
    return ours if len(ours.text.encode()) <= MAX_BYTES_CEILING else (mine, other)


def _marked(ours: bytes, theirs: bytes, size: int) -> bytes:
    """Two files as one, with markers around the lines in which they differ."""
    mine, other = _lines(ours), _lines(theirs)
    marked: list[str] = []
    at = other_at = 0
    for shared, stands_at in (*sorted(kept_lines(mine, other).items()), (len(mine), len(other))):
        if at < shared or other_at < stands_at:
            marked += ("<" * size, " ours\n", *mine[at:shared], "=" * size, "\n")
            marked += (*other[other_at:stands_at], ">" * size, " theirs\n")
        marked += mine[shared : shared + 1]
        at, other_at = shared + 1, stands_at + 1
    return "".join(marked).encode()


def _lines(data: bytes) -> list[str]:
    return [f"{line}\n" for line in data.decode().split("\n")[:-1]]


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, data: bytes) -> None:
    """Put `data` at `path` in one step: a driver that is killed leaves the file as it was, or merged."""
    temporary = f"{path}.merged"
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, path)
