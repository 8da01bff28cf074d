"""A document's file as a person reads it: what `git diff`, `git log -p` and `git blame` show of it.

Git starts a process for every version that it shows, so this imports next to nothing.
"""

from __future__ import annotations

import sys

from gitmem.strictjson import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST = 1024 * 1024
"""More bytes than any document's file has."""

_HEAD = ("title", "summary", "agentWrites")

# A terminal obeys these: escape sequences, cursor movements, and marks that reorder what is read.
_UNSEEN = (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F),
           *range(0x2066, 0x206A))  # fmt: skip
_VISIBLE = {code: f"\\u{code:04x}" for code in _UNSEEN}


def show(path: str) -> None:
    """Print the file at `path` for Git. Raises OSError."""
    with open(path, "rb") as file:
        data = file.read(_LARGEST + 1)
        sys.stdout.buffer.write(shown(data))
        while data := file.read(_LARGEST):
            sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def shown(data: bytes) -> bytes:
    """A document's fields and lines, a word for a tombstone, and whatever is neither as it is.

    A document in conflict is shown with its markers around the lines that they are about.
    """
    return _document(data) or (_conflict(data) if b"\n=======\n" in data else None) or data


def _document(data: bytes) -> bytes | None:
    try:
        value = loads(data) if len(data) <= _LARGEST else None
        lines = list(_lines(value)) if isinstance(value, dict) else []
        return "".join(f"{line}\n" for line in lines).encode()
    except ValueError:  # not JSON, not UTF-8, not a document, a lone surrogate
        return None


def _conflict(data: bytes) -> bytes | None:
    """The two documents that markers make of one, with markers."""
    sides: list[list[bytes]] = [[], []]
    chosen = sides
    opening = middle = closing = b""
    for line in data.splitlines(keepends=True):
        if line.startswith(b"<<<<<<< "):
            chosen, opening = sides[:1], line
        elif line == b"=======\n":
            chosen, middle = sides[1:], line
        elif line.startswith(b">>>>>>> "):
            chosen, closing = sides, line
        else:
            for side in chosen:
                side.append(line)
    ours, theirs = _document(b"".join(sides[0])), _document(b"".join(sides[1]))
    if ours is None or theirs is None:
        return None
    from difflib import SequenceMatcher

    mine, other = ours.splitlines(keepends=True), theirs.splitlines(keepends=True)
    marked: list[bytes] = []
    for kind, at, end, other_at, other_end in SequenceMatcher(None, mine, other, autojunk=False).get_opcodes():
        if kind == "equal":
            marked += mine[at:end]
        else:
            marked += [opening, *mine[at:end], middle, *other[other_at:other_end], closing]
    return b"".join(marked)


def _lines(fields: dict[str, object]) -> Iterator[str]:
    if fields == {"deleted": True}:
        yield "deleted"
        return
    if fields.keys() - {*_HEAD, "text"}:
        raise ValueError
    for name in _HEAD:
        if name in fields:
            yield f"{name}: {_one_line(fields[name])}"
    if "text" in fields:
        if len(fields) > 1:
            yield ""
        text = fields["text"]
        for line in text if isinstance(text, list) else _text(text).split("\n"):
            yield _one_line(line)


def _one_line(value: object) -> str:
    return _text(value).translate(_VISIBLE).replace("\n", "\\n")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value
