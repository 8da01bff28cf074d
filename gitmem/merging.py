"""Merging a document that two sides changed: fields separately, text by lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Final, TypeVar

from gitmem.codec import Content

T = TypeVar("T")

_MOST_PAIRS: Final = 1_000_000
"""How many pairs of equal lines are looked at; beyond, what differs counts as one change (a repetitive text)."""


def merge_documents(base: Content | None, ours: Content, theirs: Content) -> Content | None:
    """What a document is after both sides' changes to `base`; None where they cannot both hold.

    They can where no field but the text was changed to two things, and the changes to the text
    touch neither the same lines nor neighbouring ones. Without a `base`, an id was taken twice.
    """
    if ours == theirs:
        return ours
    if base is None:
        return None
    lines = merge_lines(base.text.split("\n"), ours.text.split("\n"), theirs.text.split("\n"))
    title = _field(base.title, ours.title, theirs.title)
    summary = _field(base.summary, ours.summary, theirs.summary)
    policy = _field(base.agent_writes, ours.agent_writes, theirs.agent_writes)
    if lines is None or title is None or summary is None or policy is None:
        return None
    return Content(title=title, summary=summary, agent_writes=policy, text="\n".join(lines))


def _field(base: T, ours: T, theirs: T) -> T | None:
    if ours in (base, theirs):
        return theirs
    return ours if theirs == base else None


def merge_lines(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> list[str] | None:
    """The lines after both changes; None where they touch the same or neighbouring lines in two ways."""
    merged: list[str] = []
    at = our_at = their_at = 0
    for start, our_start, their_start, length in _shared(base, ours, theirs):
        change = _field(base[at:start], ours[our_at:our_start], theirs[their_at:their_start])
        if change is None:
            return None
        merged += change
        merged += base[start : start + length]
        at, our_at, their_at = start + length, our_start + length, their_start + length
    return merged


def _shared(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The runs of lines that both sides left: where each begins, and how long it is. An empty one ends."""
    in_ours, in_theirs = _kept(base, ours), _kept(base, theirs)
    at = 0
    while at < len(base):
        if at not in in_ours or at not in in_theirs:
            at += 1
            continue
        length = 1
        while in_ours.get(at + length) == in_ours[at] + length and in_theirs.get(at + length) == in_theirs[at] + length:
            length += 1
        yield at, in_ours[at], in_theirs[at], length
        at += length
    yield len(base), len(ours), len(theirs), 0


def _kept(base: Sequence[str], other: Sequence[str]) -> dict[int, int]:
    """Where each line of `base` that `other` kept stands there."""
    head = _common(base, other)
    tail = min(_common(base[::-1], other[::-1]), len(base) - head, len(other) - head)
    kept = {at: at for at in range(head)}
    kept |= {len(base) - at: len(other) - at for at in range(1, tail + 1)}
    before, after = base[head : len(base) - tail], other[head : len(other) - tail]
    counts = Counter(before)
    if sum(counts[line] for line in after) <= _MOST_PAIRS:
        for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
            kept |= {head + block.a + at: head + block.b + at for at in range(block.size)}
    return kept


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
