"""The documents that are measured: about 2.7 kB as a file, each of them and each version different."""

from __future__ import annotations

import functools
import random
from typing import Final

from gitmem.codec import Content

_LINES: Final = 37
_LINE: Final = 63
_PROSE_BYTES: Final = 2_000_000
_SYLLABLES: Final = (
    *("a", "be", "cor", "den", "est", "fin", "ga", "ho", "ing", "ja", "kel", "lo", "mar"),
    *("nu", "or", "per", "qua", "ri", "sto", "ter", "un", "vel", "wi", "xa", "yn", "zo"),
)


def document_id(number: int) -> str:
    """The id of one document."""
    return f"doc-{number:07d}"


def text(number: int, version: int) -> str:
    """The text of one version of a document: nothing that another one repeats."""
    chosen = random.Random(number * 1_000_003 + version)
    prose = _prose()
    starts = (int(chosen.random() * (_PROSE_BYTES - _LINE)) for _ in range(_LINES))
    return "\n".join(prose[start : start + _LINE] for start in starts)


def content(number: int, version: int) -> Content:
    """The content of one version of a document."""
    return Content(f"Document {number}", f"What is known about {number}", "enabled", text(number, version))


@functools.cache
def _prose() -> str:
    """Words with the frequencies of a language, so that Git's compression finds about as much as in one."""
    made = random.Random(1)
    words = ["".join(made.choices(_SYLLABLES, k=made.randint(1, 4))) for _ in range(12_000)]
    weights = [1 / (rank + 100) for rank in range(len(words))]
    return " ".join(made.choices(words, weights, k=_PROSE_BYTES // 4))[:_PROSE_BYTES]
