"""A checker: whether what processes saw of one document can have happened one after the other.

A document is a register that is written by compare-and-set: it was never there, has a revision, or
is deleted for good. A history is linearizable where each call can be given one moment between its
invocation and its response such that every answer is right at that moment. The search is that of
Wing and Gong with the memory of Lowe: which calls have happened, and what the register holds then,
is looked into once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Operation = Literal["create", "write", "delete", "read"]
Answer = Literal["done", "stale", "missing", "none"]

NEVER: Final = "never"
DEAD: Final = "dead"
_OPEN_END: Final = 1 << 62


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One call with its times on a clock that all processes share.

    `expected` is the revision that a write or deletion names; `revision` the one that the answer
    names. `ended` is None for a call whose process died: it may have happened at any later moment,
    or not at all.
    """

    operation: Operation
    began: int
    ended: int | None
    answer: Answer
    expected: str | None = None
    revision: str | None = None

    @property
    def last_moment(self) -> int:
        return self.ended if self.ended is not None else _OPEN_END


def after(held: str, call: Call) -> str | None:
    """What the register holds once `call` has happened; None where it cannot happen with that answer."""
    alive = held not in (NEVER, DEAD)
    match call.operation, call.answer:
        case "create", "done":
            return call.revision if held == NEVER else None
        case "create", "stale":
            return held if held != NEVER else None
        case "read", "done":
            return held if held == call.revision else None
        case _, "missing":
            return held if not alive else None
        case "write", "done":
            return call.revision if held == call.expected else None
        case "delete", "done":
            return DEAD if held == call.expected else None
        case _, "stale":
            return held if alive and held != call.expected else None
    return None


def stuck(calls: Sequence[Call]) -> list[Call]:
    """Empty for a linearizable history; else the calls that stood next at the furthest point of any order."""
    history = sorted(calls, key=lambda call: call.began)
    answered = sum(call.ended is not None for call in history)
    seen: set[tuple[int, int, str]] = set()
    # What has happened: everything before `first`, and behind it what the bits of `more` say.
    pending = [(0, 0, NEVER, 0)]
    furthest, there = -1, (0, 0)
    while pending:
        first, more, held, done = pending.pop()
        if done == answered:
            return []
        if done > furthest:
            furthest, there = done, (first, more)
        possible = [(at, now) for at in _next(history, first, more) if (now := after(held, history[at])) is not None]
        # What changes nothing and fits now may happen now in any order that works: no other need be tried.
        idle = [(at, now) for at, now in possible if now == held][:1]
        for at, now in idle or possible:
            place = _with(first, more, at)
            if (*place, now) not in seen:
                seen.add((*place, now))
                pending.append((*place, now, done + (history[at].ended is not None)))
    return [history[at] for at in _next(history, *there)]


def _next(history: Sequence[Call], first: int, more: int) -> Iterator[int]:
    """The calls that may happen next: none of those left had ended before they began."""
    earliest_end = _OPEN_END
    for at in range(first, len(history)):
        if history[at].began > earliest_end:
            return
        if not more >> (at - first) & 1:
            earliest_end = min(earliest_end, history[at].last_moment)
            yield at


def _with(first: int, more: int, at: int) -> tuple[int, int]:
    more |= 1 << (at - first)
    while more & 1:
        first, more = first + 1, more >> 1
    return first, more
