"""What screening finds: where and of which kind, never the text itself."""

from __future__ import annotations

from typing import Literal, NamedTuple

Category = Literal["secret", "instructions"]


class Finding(NamedTuple):
    """Something that should not be kept. `kind` is such as "github-token" or "hidden-text"; `line` counts from 1."""

    category: Category
    kind: str
    line: int


class Span(NamedTuple):
    """A part of a text, from character `start` to before `end`, and what it looks like."""

    kind: str
    start: int
    end: int
