"""What commands print: text or JSON on stdout, errors and progress on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import IO, Any, Final

from gitmem.errors import ErrorCode, StorageError

# A terminal obeys these: escape sequences, cursor movements, and marks that reorder what is read.
_CONTROLS: Final = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)  # fmt: skip
_LINE_BREAKS: Final = r"[\t\n\u2028\u2029]"
_NOT_PLAIN_JSON: Final = r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
_FIRST_PROGRESS_SECONDS: Final = 0.5
_PROGRESS_SECONDS: Final = 0.1


class OutputClosedError(Exception):
    """Whoever read the output has gone away; there is nobody left to tell."""


def say(*lines: str) -> None:
    """Print lines of the result. Stored text in them cannot command a terminal."""
    text = "".join(f"{line}\n" for line in lines)
    if is_terminal(sys.stdout):
        _write(visible(text).encode(sys.stdout.encoding, "backslashreplace"))
    else:
        _write(text.encode("utf-8", "surrogateescape"))


def say_json(value: Mapping[str, Any]) -> None:
    """Print the result as JSON."""
    _write(to_json(value, indent=2).encode() + b"\n")


def note(line: str) -> None:
    """Say something on stderr that is not part of the result."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{one_line(line)}\n")
            sys.stderr.flush()


def complain(code: ErrorCode | str, message: str, *, as_json: bool) -> None:
    """Say what went wrong, on stderr, in one line."""
    note(to_json({"error": {"code": code, "message": message}}) if as_json else message)


def visible(text: str) -> str:
    """`text` with everything but line breaks and tabs that a terminal would obey spelled out."""
    return re.sub(_CONTROLS, _spelled, text)


def one_line(text: str) -> str:
    """`text` on one line, with everything that a terminal would obey spelled out."""
    return re.sub(_LINE_BREAKS, _spelled, visible(text))


def to_json(value: Mapping[str, Any], indent: int | None = None) -> str:
    """JSON in UTF-8 that is harmless on a terminal."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return re.sub(_NOT_PLAIN_JSON, lambda found: f"\\u{ord(found[0]):04x}", text)


def table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Rows as lines with aligned columns; the last column is not padded."""
    cells = [tuple(map(one_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row[:-1], widths)) + f"  {row[-1]}".rstrip() for row in cells]


def flush() -> None:
    """Make sure that all of the result has been taken. Raises StorageError, OutputClosedError."""
    if sys.stdout is not None:
        with _checked():
            sys.stdout.flush()


class ProgressLine:
    """Shows long work on one line of stderr, where that is a terminal. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = clock() + _FIRST_PROGRESS_SECONDS
        self._shown = False

    def __call__(self, what: str, done: int, total: int | None) -> None:
        now = self._clock()
        if now >= self._next and is_terminal(sys.stderr):
            self._next = now + _PROGRESS_SECONDS
            self._shown = True
            self._put(f"{what} {done:,}" + (f" of {total:,}" if total is not None else ""))

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._put("")
            self._shown = False

    @staticmethod
    def _put(line: str) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()


def is_terminal(stream: IO[str] | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def _spelled(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _write(data: bytes) -> None:
    if sys.stdout is None:
        raise StorageError("Cannot write the output: stdout is closed.")
    with _checked():
        sys.stdout.flush()
        left = memoryview(data)
        while left:
            # An unbuffered stdout may take only a part.
            left = left[sys.stdout.buffer.write(left) :]


class _checked:
    """Turns a stdout that fails into one error, and keeps the interpreter from trying again at its end."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                raise OutputClosedError from error
            raise StorageError(f"Cannot write the output: {error.strerror}.") from error
