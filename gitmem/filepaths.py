"""The paths of memory files: one spelling for each, and where notes may stand (seed 003)."""

from __future__ import annotations

import re
from typing import Final, Literal

from gitmem.errors import InvalidPathError, InvalidRequestError
from gitmem.limits import shown

Scope = Literal["personal", "team"]

SCOPES: Final[tuple[Scope, ...]] = ("personal", "team")
INDEX: Final = "MEMORY.md"
DEPTHS: Final[dict[Scope, frozenset[int]]] = {"personal": frozenset(range(4)), "team": frozenset((0, 2))}
"""How many folders may stand above a note."""

SEGMENT_NAMES: Final = 128
_SEGMENT: Final = re.compile(r"[a-z0-9][a-z0-9._-]*\Z", re.ASCII)
_PREFIX: Final = re.compile(r"(?:memory|team):/", re.IGNORECASE | re.ASCII)


def check_scope(value: object) -> Scope:
    """Return a scope, or raise InvalidRequestError."""
    for scope in SCOPES:
        if value == scope:
            return scope
    raise InvalidRequestError(f'scope must be "personal" or "team", not {shown(value)}.')


def normalized(scope: Scope, path: object) -> str:
    """The one spelling of a path: lower case, `.md` added, no prefix. Raises InvalidPathError, naming the rule."""
    if not isinstance(path, str):
        raise InvalidRequestError("path must be a string.")
    text = path[found.end() :] if (found := _PREFIX.match(path)) else path
    if not text.isascii():
        raise InvalidPathError(f"{shown(path)} holds other than ASCII characters. Use a-z, 0-9, '.', '_' and '-'.")
    *folders, name = text.lower().split("/")
    name = _named(name, path)
    for segment in (*folders, name):
        _check_segment(segment, path)
    for folder in folders:
        if folder.endswith(".json"):
            raise InvalidPathError(f"The folder {folder} in {shown(path)} must not end in .json. Rename it.")
    if name == INDEX.lower():
        if folders:
            raise InvalidPathError(f"{INDEX} stands at the top of a scope only, not at {shown(path)}.")
        return INDEX
    if len(folders) not in DEPTHS[scope]:
        raise InvalidPathError(f"{shown(path)} is no place for a {scope} note: {_PLACES[scope]}.")
    return "/".join((*folders, name))


_PLACES: Final[dict[Scope, str]] = {
    "personal": "personal notes sit at the top or in up to three folders",
    "team": "team notes sit at the top or in a place folder such as reasons/<key>/",
}


def _named(name: str, path: str) -> str:
    _, dot, extension = name.rpartition(".")
    if not dot and name:
        return f"{name}.md"
    if name and extension != "md":
        raise InvalidPathError(f"{shown(path)} has another extension than .md. Leave it out, or use .md.")
    return name


def _check_segment(segment: str, path: str) -> None:
    if len(segment) > SEGMENT_NAMES:
        raise InvalidPathError(f"A name in {shown(path)} has more than {SEGMENT_NAMES} characters. Shorten it.")
    if not _SEGMENT.match(segment):
        raise InvalidPathError(
            f"{shown(path)} is no path of a memory file: each name in it begins with a letter or digit "
            "and goes on with letters, digits, '.', '_' or '-'."
        )


def is_normal(depths: frozenset[int], folder: str, name: str) -> bool:
    """Whether a folder and a name in it are a path in its one spelling, in a scope of those depths."""
    folders = folder.split("/") if folder else []
    if name == INDEX:
        return not folders
    if len(folders) not in depths or not name.endswith(".md") or name == INDEX.lower():
        return False
    return all(
        len(segment) <= SEGMENT_NAMES and _SEGMENT.match(segment) and not segment.endswith(".json")
        for segment in (*folders, name)
    )
