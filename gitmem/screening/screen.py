"""The one way in: what a text holds that should not be kept."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from gitmem.screening.allowing import masked
from gitmem.screening.findings import Category, Finding, Span
from gitmem.screening.instructions import instructions
from gitmem.screening.secrets import secrets


def screen(text: str, *, allowed: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
    """Every secret, then all instructions aimed at a later session, each in the order of the text.

    `allowed` holds the hashes (`value_hash`) of exact secret values that an owner lets pass. Needs
    nothing but the text, keeps nothing of it, and takes time linear in its length. An empty answer
    says that nothing known was found, not that there is nothing. Raises StorageError where the
    detector cannot be loaded.
    """
    found = secrets(text)
    if found and allowed:
        found = secrets(masked(text, found, allowed))
    return (*_findings("secret", text, found), *_findings("instructions", text, instructions(text)))


def _findings(category: Category, text: str, spans: list[Span]) -> Iterable[Finding]:
    if not spans:
        return ()
    ends = [place for place, character in enumerate(text) if character == "\n"]
    places = {(bisect_left(ends, span.start) + 1, span.kind) for span in spans}
    return [Finding(category, kind, line) for line, kind in sorted(places)]
