"""A line of text as a reader may see it: without what is invisible, decoded once."""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

_FORMAT: Final = re.compile(r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e01ef]")
_SPACED: Final = re.compile(r"(?:\b\w {1,2}){8,200}\w\b")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{24,8192}={0,2}")
_LOOKALIKE: Final = str.maketrans(
    "\u0391\u0392\u0395\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03b9\u0430\u0435"
    "\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0410\u0415\u041e\u0420\u0421\u0423\u0425\u0406",
    "ABEIKMNOPTYXoiaeopcyxijAEOPCYXI",
)


def views(line: str) -> Iterator[str]:
    """The line, and each other reading of it that differs."""
    yield line
    if not line.isascii():
        plain = _FORMAT.sub("", unicodedata.normalize("NFKC", line)).translate(_LOOKALIKE)
        if plain != line:
            yield plain
    if "&#" in line or "&lt;" in line:
        yield html.unescape(line)
    if "%20" in line:
        yield unquote(line)
    if spaced := _SPACED.search(line):
        yield " ".join(word.replace(" ", "") for word in spaced[0].split("  "))
    for found in _BASE64.findall(line):
        try:
            yield base64.b64decode(found + "=" * (-len(found) % 4), validate=True).decode()
        except (binascii.Error, ValueError):
            continue
