"""An id and a title for a text that comes from a file."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from gitmem.limits import TITLE_BYTES, is_document_id

_ID_LENGTH: Final = 128
_HASH_DIGITS: Final = 8
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_]+")
_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*\Z")
_UNDERLINE: Final = re.compile(r" {0,3}(?:=+|-+)[ \t]*\Z")
_FENCE: Final = re.compile(r" {0,3}(```|~~~)")


def id_from(file_name: str) -> str:
    """A legal document id for a file, the same each time: its name, where that is legal.

    Where letters of the name are lost, the end of a hash tells it from other names.
    """
    stem = os.path.splitext(file_name)[0]
    if is_document_id(stem):
        return stem
    plain = "".join(c for c in unicodedata.normalize("NFKD", stem) if not unicodedata.combining(c))
    found = _ILLEGAL.sub("-", plain).strip("-")
    lost = any(c.isalnum() and not c.isascii() for c in plain)
    if found and not lost and len(found) <= _ID_LENGTH:
        return found
    digits = sha256(os.fsencode(file_name)).hexdigest()[:_HASH_DIGITS]
    return f"{found[: _ID_LENGTH - _HASH_DIGITS - 1]}-{digits}".lstrip("-")


def title_from(text: str, file_name: str) -> str:
    """The first heading of a Markdown text, else the file's name, within the limit of a title."""
    stem = os.path.splitext(file_name)[0]
    return _shortened(_first_heading(text) or os.fsencode(stem).decode("utf-8", "replace"))


def _first_heading(text: str) -> str | None:
    before = ""
    for line in _prose(text.removeprefix("\ufeff").splitlines()):
        if heading := _HEADING.match(line):
            if heading[1]:
                return heading[1]
        elif before.strip() and _UNDERLINE.match(line):
            return before.strip()
        before = line
    return None


def _prose(lines: list[str]) -> Iterator[str]:
    """The lines outside of front matter and fenced code."""
    at = 0
    if lines and lines[0].rstrip() == "---" and "---" in (line.rstrip() for line in lines[1:]):
        at = 1 + next(n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---")
    fence = ""
    for line in lines[at:]:
        found = _FENCE.match(line)
        if found and (not fence or found[1] == fence):
            fence = "" if fence else found[1]
        elif not fence:
            yield line


def _shortened(title: str) -> str:
    return " ".join(title.split()).encode()[:TITLE_BYTES].decode("utf-8", "ignore") or "untitled"
