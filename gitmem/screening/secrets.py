"""Secrets in a text: what redact-secret finds, and the formats that it misses."""

from __future__ import annotations

from typing import Final

from gitmem.errors import StorageError
from gitmem.screening.findings import Span
from gitmem.screening.formats import known_formats

_REFUSED: Final = ("redact", "block")
_TAIL: Final = 8


def secrets(text: str) -> list[Span]:
    """Every secret found, in the order of the text. Raises StorageError where the detector cannot be loaded."""
    found = [*_detected(text), *known_formats(text)]
    found.sort(key=lambda span: (span.start, -span.end))
    return _outermost(found)


def _detected(text: str) -> list[Span]:
    # Nothing is kept unlooked at: without its detector a text is refused, not let through.
    try:
        from redact_secret import scan
    except ImportError:
        raise StorageError(
            "Cannot screen the text: the package redact-secret is missing or damaged. Install gitmem-store again."
        ) from None
    return [
        Span(finding.type.replace("_", "-"), finding.start, finding.end)
        for finding in scan(text)
        if finding.action in _REFUSED and not _is_placeholder(text[finding.start : finding.end])
    ]


def _is_placeholder(value: str) -> bool:
    """Whether it ends as "xxxxxxxx" or "********" does."""
    return len(value) >= _TAIL and len(set(value[-_TAIL:])) == 1


def _outermost(found: list[Span]) -> list[Span]:
    """Without those that lie inside another, or begin in it."""
    kept: list[Span] = []
    for span in found:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept
