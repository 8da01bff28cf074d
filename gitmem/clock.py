"""Times as milliseconds since the epoch, and as RFC 3339 text in UTC."""

from __future__ import annotations

import calendar
import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Gives the present in milliseconds since 1970-01-01 UTC."""


def system_clock() -> int:
    """The machine's clock."""
    return time.time_ns() // 1_000_000


def to_rfc3339(milliseconds: int) -> str:
    """`1789041600000` → `2026-09-10T12:00:00.000Z`."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:03d}Z"


def from_rfc3339(text: str) -> int:
    """`2026-09-10T12:00:00.000Z` → `1789041600000`."""
    seconds = calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
    return seconds * 1000 + int(text[20:23])
