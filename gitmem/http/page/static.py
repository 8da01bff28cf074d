"""The page's own script, style sheet and icon."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from gitmem.http.answers import Answer

_TYPES: Final = {
    "page.css": b"text/css; charset=utf-8",
    "page.js": b"text/javascript; charset=utf-8",
    "icon.svg": b"image/svg+xml",
}


@cache
def answers() -> Mapping[str, Answer]:
    """The answer for each file, by its name."""
    return {name: _answer(_read(name), kind) for name, kind in _TYPES.items()}


@cache
def urls() -> Mapping[str, str]:
    """The address of each file, by its name; another one where its bytes are others."""
    return {name: f"/static/{name}?v={sha256(_read(name)).hexdigest()[:12]}" for name in _TYPES}


def _read(name: str) -> bytes:
    return (files("gitmem.http.page") / "static" / name).read_bytes()


def _answer(body: bytes, kind: bytes) -> Answer:
    headers = (
        (b"content-type", kind),
        (b"content-length", b"%d" % len(body)),
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", b"default-src 'none'"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"cache-control", b"public, max-age=31536000, immutable"),
    )
    return Answer(200, headers, body)
