"""Text from a file or from stdin: bytes, strict UTF-8, nothing changed."""

from __future__ import annotations

import sys
from io import BufferedIOBase
from typing import Final, cast

from gitmem.errors import InvalidRequestError, LimitExceededError, StorageError
from gitmem.git.files import storage
from gitmem.limits import MAX_BYTES_CEILING

_READ_AT_MOST: Final = 1024 * 1024
_PIECE: Final = 64 * 1024


def given_text(path: str | None, *, stdin: bool) -> str | None:
    """The text that the options name; None where they name none.

    Raises InvalidRequestError for both at once and for bytes that are not UTF-8; StorageError;
    LimitExceededError for a source larger than any text could be.
    """
    if path is not None and stdin:
        raise InvalidRequestError("Give --text-file or --text-stdin, not both.")
    if stdin:
        if sys.stdin is None:
            raise StorageError("Cannot read stdin: it is closed.")
        with storage("read stdin"):
            return _as_text(cast(BufferedIOBase, sys.stdin.buffer), "stdin")
    return read_text(path) if path is not None else None


def read_text(path: str) -> str:
    """The text of a file."""
    with storage("read the text"), open(path, "rb") as file:
        return _as_text(file, path)


def _as_text(file: BufferedIOBase, source: str) -> str:
    data = b""
    # Piece by piece, so that an interrupt never waits for the rest.
    while len(data) <= _READ_AT_MOST and (piece := file.read1(_PIECE)):
        data += piece
    if len(data) > _READ_AT_MOST:
        raise LimitExceededError("text", len(data), MAX_BYTES_CEILING)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"{source} is not UTF-8: see byte {error.start}. Convert it first.") from None
