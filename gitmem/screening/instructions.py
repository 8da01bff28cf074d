"""Instructions aimed at a later session: hidden text, and words that take over whoever reads them."""

from __future__ import annotations

import re
from typing import Final

from gitmem.screening.findings import Span

_INVISIBLE: Final = re.compile(
    r"[\U000e0000-\U000e007f\U000e0100-\U000e01ef]{4,}|[\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\u180e]{3,}"
)
_MARKUP: Final = re.compile(r"<\|(?:im_start|im_end|system|endoftext|start_header_id)\|>|\[/?INST\]|<</?SYS>>")
_OVERRIDE: Final = re.compile(
    r"\b(?:ignore|disregard|forget)\s{1,4}(?:all\s{1,4})?(?:of\s{1,4})?(?:the\s{1,4}|your\s{1,4}|any\s{1,4})?"
    r"(?:previous|prior|earlier|above|preceding)\s{1,4}(?:instructions|prompts|rules|directions)\b",
    re.IGNORECASE,
)
_RULES: Final = (("hidden-text", _INVISIBLE), ("chat-markup", _MARKUP), ("override", _OVERRIDE))


def instructions(text: str) -> list[Span]:
    """Every place that reads as such an instruction, in the order of the text."""
    return [
        Span(kind, match.start(), match.end()) for kind, expression in _RULES for match in expression.finditer(text)
    ]
