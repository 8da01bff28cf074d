"""What changed between two versions, line by line, with the changed words of a line marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from itertools import groupby, zip_longest
from typing import Final, Literal

_LONGEST: Final = 400
_ALIKE: Final = 0.35
_WORDS: Final = re.compile(r"\w+|\s+|.")

Part = tuple[str, bool]
"""A piece of a line, and whether it is what changed in it."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a diff; a gap stands for lines that are left out."""

    kind: Literal["same", "added", "removed", "gap"]
    parts: tuple[Part, ...] = ()


def read(unified: str) -> list[Line]:
    """The lines of a unified diff, without its head."""
    return list(_lines(unified.split("\n")[2:-1])) if unified else []


def between(old: str, new: str) -> list[Line]:
    """What changed from one text to another."""
    return list(_lines(list(unified_diff(old.split("\n"), new.split("\n"), lineterm=""))[2:]))


def _lines(diff: Iterable[str]) -> Iterator[Line]:
    removed: list[str] = []
    added: list[str] = []
    seen = False
    for line in diff:
        if line.startswith("-"):
            removed.append(line[1:])
        elif line.startswith("+"):
            added.append(line[1:])
        else:
            yield from _changed(removed, added)
            removed, added = [], []
            if not line.startswith("@@"):
                yield Line("same", ((line[1:], False),))
            elif seen:
                yield Line("gap")
            seen = True
    yield from _changed(removed, added)


def _changed(removed: list[str], added: list[str]) -> Iterator[Line]:
    pairs = [_marked(old, new) for old, new in zip_longest(removed, added)]
    yield from (Line("removed", old) for old, _ in pairs[: len(removed)])
    yield from (Line("added", new) for _, new in pairs[: len(added)])


def _marked(old: str | None, new: str | None) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Both lines in parts; marked only where they are the same line, a little changed."""
    whole = ((old or "", False),), ((new or "", False),)
    if not old or not new or len(old) > _LONGEST or len(new) > _LONGEST:
        return whole
    left, right = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return whole
    before: list[Part] = []
    after: list[Part] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        before += [("".join(left[a:b]), kind != "equal")] if a < b else []
        after += [("".join(right[c:d]), kind != "equal")] if c < d else []
    return tuple(_joined(before)), tuple(_joined(after))


def _joined(parts: list[Part]) -> Iterator[Part]:
    """Parts of which neighbors differ; a space between two changed words is changed with them."""
    bridged = [
        (text, marked or (text.isspace() and 0 < at < len(parts) - 1)) for at, (text, marked) in enumerate(parts)
    ]
    for marked, run in groupby(bridged, key=lambda part: part[1]):
        yield "".join(text for text, _ in run), marked
