"""What is fuzzed: each takes any bytes at all, and raises AssertionError, or anything else, for a broken promise."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from gitmem import codec, cursor, limits
from gitmem.environment.catchup import declaration
from gitmem.errors import GitmemError, InvalidCursorError, InvalidDocumentError, InvalidRequestError
from gitmem.git.commits import own_write, parse
from gitmem.git.objects import object_id
from gitmem.git.trees import _parsed
from gitmem.http import conditions
from gitmem.ids import is_id
from gitmem.naming import id_from, title_from

_REVISION: Final = re.compile(r"[0-9a-f]{7,40}")


def check_one_line(error: GitmemError) -> None:
    assert error.message
    assert "\n" not in error.message


def document(data: bytes) -> None:
    """A document's file: refused as one, or read, and then written in one form that reads the same."""
    try:
        content = codec.decode(data, "id")
    except InvalidDocumentError as error:
        check_one_line(error)
        return
    if content is None:
        assert json.loads(data) == {"deleted": True}
        return
    written = codec.encode(content)
    assert codec.decode(written, "another") == content
    assert codec.encode(content) == written
    value = json.loads(written)
    assert list(value) == ["title", "summary", "agentWrites", "text"]
    assert "\n".join(value["text"]) == content.text
    assert written.endswith(b"}\n")


def page_cursor(data: bytes) -> None:
    """A cursor: made for this listing just so, or refused."""
    text = data.decode("utf-8", "surrogateescape")
    with suppress(InvalidCursorError):
        assert cursor.encode("documents notes", *cursor.decode("documents notes", text)) == text


def condition(data: bytes) -> None:
    """Lines of the two condition headers, as a server hears them."""
    lines = data.decode("latin-1").split("\n")
    for match in (lines, []):
        none_match = lines if match == [] else []
        for read in (conditions.to_read, conditions.to_put, conditions.to_change):
            with suppress(GitmemError):
                read(match, none_match)
    with suppress(GitmemError):
        for tag in conditions.to_change(lines, []):
            # The same tag on a line of its own says the same; a weak one is no revision.
            assert '"' not in tag or tag.startswith('W/"')
            assert not _REVISION.fullmatch(tag) or conditions.to_change([f'"{tag}"'], []) == (tag,)


def names(data: bytes) -> None:
    """Ids of every kind, and those that are made from a file's name."""
    text = data.decode("utf-8", "surrogateescape")
    checks: tuple[tuple[Callable[[str], str], str], ...] = (
        (limits.check_document_id, r"[A-Za-z0-9_-]{1,128}"),
        (limits.check_resource_id, r"(?=.{1,128}\Z)[a-z0-9]+(-[a-z0-9]+)*"),
        (limits.check_revision, r"[0-9a-f]{7,40}"),
    )
    for check, grammar in checks:
        legal = re.fullmatch(grammar, text, re.ASCII) is not None
        try:
            assert check(text) == text
            assert legal
        except InvalidRequestError as error:
            assert not legal
            check_one_line(error)
    assert not is_id("ses", text) or len(text) == 30
    if text and "/" not in text and "\0" not in text:
        made = id_from(text)
        assert limits.is_document_id(made)
        assert id_from(text) == made
        limits.check_title(title_from(data.decode("utf-8", "replace"), text))


def declared(data: bytes) -> None:
    """A `.resource.json`: a declaration, or none."""
    memory = declaration("notes", data)
    if memory is not None:
        assert 1 <= memory.provider.max_bytes <= limits.MAX_BYTES_CEILING


def commit(data: bytes) -> None:
    """A commit of anybody's; one of gitmem's own form is read alike by both readers."""
    try:
        found = parse(object_id("commit", data), data)
    except (ValueError, IndexError):  # "damaged" to whoever reads it
        assert own_write(data) is None
        return
    own = own_write(data)
    if own is not None:
        assert found.own
        assert (own.parent, own.updated) == (found.parents[0] if found.parents else None, found.updated)
        assert found.subject == f"{own.operation} {own.resource}/{own.id}"


def tree(data: bytes) -> None:
    """A tree: all of its bytes are entries, or it is damaged."""
    with suppress(GitmemError):
        entries = _parsed(object_id("tree", data), data)
        assert b"".join(entries.values()) == data


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "document": document,
    "page_cursor": page_cursor,
    "condition": condition,
    "names": names,
    "declared": declared,
    "commit": commit,
    "tree": tree,
}

SEEDS: Final[dict[str, list[Any]]] = {
    "document": [
        codec.encode(codec.Content("T", "s", "disabled", "a\nb")), codec.TOMBSTONE, b'{"text": "by hand"}',
        b'{"title": "\\ud83d\\ude00", "text": ["\\u2028", ""]}',
    ],
    "page_cursor": [cursor.encode("documents notes", 1_790_000_000_000, "a-document").encode()],
    "condition": [b'"0123456789abcdef0123456789abcdef01234567"', b'W/"x", "y" ,\t"z"', b"*", b'"a"\n"b"'],
    "names": [b"workshop-2", b"notes", b"0123456789abcdef", "Ünïcode name.md".encode(), b"# Heading\n\ntext"],
    "declared": [b'{"description": "d", "provider": {"kind": "document", "maxBytes": 8192}}'],
    "commit": [
        b"tree " + b"0" * 40 + b"\nparent " + b"1" * 40 + b"\nauthor o <o@x> 1790000000 +0000\n"
        b"committer gitmem <gitmem@localhost> 1790000000 +0000\n\ncreate notes/a\n\n"
        b"Gitmem-Writer: agent\nGitmem-Session: ses_x\nGitmem-Time: 2026-09-21T13:33:20.123Z\n",
        b"tree " + b"0" * 40 + b"\nauthor P <p@x> 1 +0200\ncommitter P <p@x> -1 +0200\n\nby hand\n",
    ],
    "tree": [b"100644 a.json\0" + bytes(20) + b"40000 notes\0" + bytes(range(20))],
}  # fmt: skip
"""For each target, inputs to begin with."""
