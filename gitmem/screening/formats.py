"""Formats of secrets that the detector does not know; every expression is bounded."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from gitmem.screening.findings import Span


class _Format(NamedTuple):
    """`marker` is a literal that every match holds: without it in the text the expression is not tried."""

    kind: str
    marker: str
    expression: re.Pattern[str]


_FORMATS: Final = (
    _Format("age-secret-key", "AGE-SECRET-KEY-1", re.compile(r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b")),
    _Format(
        "slack-webhook", "hooks.slack.com/", re.compile(r"hooks\.slack\.com/services/T\w{6,12}/B\w{6,12}/\w{20,32}")
    ),
)


def known_formats(text: str) -> list[Span]:
    """Every match of the table."""
    return [
        Span(kind, match.start(), match.end())
        for kind, marker, expression in _FORMATS
        if marker in text
        for match in expression.finditer(text)
    ]
