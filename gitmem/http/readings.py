"""Answers to reads, kept for as long as main stays where it is.

What a document, a listing or a history says follows from the commit that main names, so an answer
that was made at that commit is still right: reading the ref again is all there is to check.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from gitmem.git.objects import Oid
from gitmem.http.answers import Answer
from gitmem.http.operations import Call, Waiter
from gitmem.store import Environment

_KEPT_BYTES: Final = 32 * 1024 * 1024
_ENTRY_BYTES: Final = 1_000

Key = tuple[str | bytes, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer, and the tip of main at which it was made: None where main moved meanwhile."""

    answer: Answer
    environment: Environment
    tip: Oid | None


class Readings:
    """The newest answers, up to a number of bytes. Used by the event loop alone."""

    def __init__(self, limit: int = _KEPT_BYTES) -> None:
        self._limit = limit
        self._kept: OrderedDict[Key, Reading] = OrderedDict()
        self._bytes = 0

    def find(self, call: Call) -> Answer | None:
        """The answer to this call, if it was answered before and main has not moved."""
        key = _key(call)
        kept = self._kept.get(key)
        if kept is None:
            return None
        # The ref is a file of one line: cheaper to read here than to hand to a thread.
        if kept.environment.parts().repository.tip() != kept.tip:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return kept.answer

    def keep(self, call: Call, reading: Reading) -> None:
        """Keep an answer, and give up the oldest where there are too many."""
        if reading.tip is None or reading.answer.status != 200:
            return
        key = _key(call)
        self._drop(key)
        self._kept[key] = reading
        self._bytes += _size(key, reading)
        while self._bytes > self._limit:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= _size(key, kept)


def read(call: Call) -> Reading:
    """Answer a call to an operation that only reads one environment."""
    environment = call.environment
    before = _tip(environment)
    handler = call.operation.handler
    assert not isinstance(handler, Waiter), "a pure operation has nothing to wait for"
    answer = handler(call)
    return Reading(answer, environment, before if _tip(environment) == before else None)


def _tip(environment: Environment) -> Oid | None:
    return environment.parts().repository.tip() if environment.exists else None


def _key(call: Call) -> Key:
    return (call.operation.name, call.query_string, *call.path.values())


def _size(key: Key, reading: Reading) -> int:
    return len(key[1]) + len(reading.answer.body) + _ENTRY_BYTES
