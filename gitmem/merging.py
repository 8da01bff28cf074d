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
    mine, other = merge_sides(base, ours, theirs)
    return mine if mine == other else None


def merge_sides(base: Content | None, ours: Content, theirs: Content) -> tuple[Content, Content]:
    """The document with all that merges merged: with our version of what does not, and with theirs."""
    if base is None:
        return ours, theirs
    lines = list(_changes(base.text.split("\n"), ours.text.split("\n"), theirs.text.split("\n")))
    title = _field(base.title, ours.title, theirs.title)
    summary = _field(base.summary, ours.summary, theirs.summary)
    policy = _field(base.agent_writes, ours.agent_writes, theirs.agent_writes)
    return (
        Content(title[0], summary[0], policy[0], "\n".join(line for change, _ in lines for line in change)),
        Content(title[1], summary[1], policy[1], "\n".join(line for _, change in lines for line in change)),
    )


def _field(base: T, ours: T, theirs: T) -> tuple[T, T]:
    """What a field becomes; its two values where both sides changed it differently."""
    if ours in (base, theirs):
        return theirs, theirs
    return (ours, ours) if theirs == base else (ours, theirs)


def merge_lines(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> list[str] | None:
    """The lines after both changes; None where they touch the same or neighbouring lines in two ways."""
    merged: list[str] = []
    for mine, other in _changes(base, ours, theirs):
        if mine != other:
            return None
        merged += mine
    return merged


def _changes(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """The merged lines piece by piece; a piece that cannot be merged as ours and as theirs."""
    at = our_at = their_at = 0
    for start, our_start, their_start, length in _shared(base, ours, theirs):
        yield _field(base[at:start], ours[our_at:our_start], theirs[their_at:their_start])
        kept = base[start : start + length]
        yield kept, kept
        at, our_at, their_at = start + length, our_start + length, their_start + length


def _shared(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The runs of lines that both sides left: where each begins, and how long it is. An empty one ends."""
    in_ours, in_theirs = kept_lines(base, ours), kept_lines(base, theirs)
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


def kept_lines(base: Sequence[str], other: Sequence[str]) -> dict[int, int]:
    """Where each line of `base` that `other` kept stands there; both in order."""
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
