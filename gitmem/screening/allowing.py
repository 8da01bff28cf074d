"""Exact secret values that an owner lets pass, known by their hash alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

from gitmem.screening.findings import Span

_AROUND: Final = 512
_TOKEN_END: Final = re.compile(r"[\s\"'`]")


def value_hash(value: str) -> str:
    """The name under which an owner allows a value: "sha256:" and the SHA-256 of its UTF-8, in hex."""
    return "sha256:" + sha256(value.encode()).hexdigest()


def masked(text: str, found: Iterable[Span], allowed: frozenset[str]) -> str:
    """The text with asterisks for each secret of `found` that is allowed; lines and lengths stay.

    What an owner calls the value may be what was found, or the whole word that it stands in.
    """
    for span in found:
        for start, end in _readings(text, span):
            if value_hash(text[start:end]) in allowed:
                text = text[:start] + re.sub(r"[^\n]", "*", text[start:end]) + text[end:]
                break
    return text


def _readings(text: str, span: Span) -> Iterator[tuple[int, int]]:
    yield span.start, span.end
    before = text[max(0, span.start - _AROUND) : span.start]
    ends = [found.end() for found in _TOKEN_END.finditer(before)]
    after = _TOKEN_END.search(text, span.end, span.end + _AROUND)
    yield span.start - len(before) + (ends[-1] if ends else 0), after.start() if after else len(text)
