"""What the server says on stderr: one line of JSON a request, and a few about itself.

A line holds no query, no header and no body: a key, a cursor or a text cannot get into it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import traceback
from contextlib import suppress
from typing import Any, Final

import msgspec

from gitmem.clock import Clock, system_clock, to_rfc3339

_LONGEST_PATH: Final = 400
_PLACES: Final = 12
_FLUSH_SECONDS: Final = 0.05
_LINES: Final = 100

CONFIGURATION: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "gitmem.http.accesslog.JsonLines"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {"uvicorn.error": {"handlers": ["stderr"], "level": "ERROR", "propagate": False}},
}
"""For uvicorn's own words, in every process that serves."""


class AccessLog:
    """Gathers lines for a moment and writes them at once, so that lines of several processes do not mix."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._encode = msgspec.json.Encoder().encode
        self._lines: list[bytes] = []
        self._second, self._spelled = -1, ""

    def request(self, method: str, path: bytes, status: int, seconds: float, key: str, client: str) -> None:
        """Tell of a request; status 0 where nobody waited for an answer any more."""
        self._add({
            "time": self._now(),
            "event": "request",
            "method": method,
            "path": path[:_LONGEST_PATH].decode("ascii", "backslashreplace"),
            "status": status,
            "ms": round(seconds * 1000, 2),
            "key": key,
            "client": client,
        })  # fmt: skip

    def failure(self, error: BaseException) -> None:
        """Tell where an error that nobody expected came from; not its words, which may hold a text."""
        self._add({"time": self._now(), "event": "failure", "error": type(error).__name__, "at": _places(error)})

    def flush(self) -> None:
        """Write what was gathered."""
        lines, self._lines = self._lines, []
        with suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), b"".join(lines))

    def _add(self, fields: dict[str, Any]) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)
        self._lines.append(self._encode(fields) + b"\n")
        if len(self._lines) >= _LINES:
            self.flush()

    def _now(self) -> str:
        seconds, milliseconds = divmod(self._clock(), 1000)
        if seconds != self._second:
            # Lines of one second share its spelling.
            self._second, self._spelled = seconds, to_rfc3339(seconds * 1000)[:-4]
        return f"{self._spelled}{milliseconds:03d}Z"


class JsonLines(logging.Formatter):
    """Makes a log record one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": to_rfc3339(int(record.created * 1000)),
            "event": "server",
            "level": record.levelname.lower(),
            "message": record.getMessage().strip(),
        }
        if record.exc_info and record.exc_info[1]:
            fields |= {"error": type(record.exc_info[1]).__name__, "at": _places(record.exc_info[1])}
        return msgspec.json.encode(fields).decode()


def _places(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)[-_PLACES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
