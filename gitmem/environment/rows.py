"""What the index holds of documents and versions, and how that lies in SQLite's columns."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from gitmem.environment.layout import Name
from gitmem.git.objects import Oid
from gitmem.records import OWNER, Memory, Provider, Writer

REMOVALS: Final = frozenset(("delete", "remove"))
"""The operations after which a document, or a memory file, is gone."""

RESOLVE: Final = "resolve"
"""The operation that settles a document's conflicts by changing it."""


class Meta(NamedTuple):
    """What a listing shows of a document's content."""

    title: str
    summary: str
    policy: str
    bytes: int


class Row(NamedTuple):
    """What the index holds of one document; `blob` and `meta` are None until first read."""

    revision: Oid
    blob: Oid | None
    updated: int
    writer: Writer
    dead: bool
    merged: bool = False
    meta: Meta | None = None


class VersionRow(NamedTuple):
    """One version in a document's history; `number` grows with time within the document."""

    number: int
    revision: Oid
    blob: Oid | None
    updated: int
    writer: Writer
    operation: str
    message: str | None


class Event(NamedTuple):
    """What one commit did to one document."""

    name: Name
    operation: str
    commit: Oid
    updated: int
    writer: Writer
    blob: Oid | None = None
    meta: Meta | None = None
    dead: bool = False
    merged: bool = False
    message: str | None = None


class Clashed(NamedTuple):
    """A conflict that a merge of gitmem's own left: a document, and its revision on each side."""

    name: Name
    merge: Oid
    ours: Oid
    theirs: Oid


class State(NamedTuple):
    """Where the index stands: its tip, and the number that the next version gets.

    `unchecked`: files may lag that `unprojected` does not name (the table was lost, or a save cut
    short). `lagging`: paths lag. `noted`: paths are noted, lagging or edited. `rejected`: committed
    files do not count.
    """

    tip: Oid | None
    number: int
    unchecked: bool
    lagging: bool
    noted: bool
    rejected: bool


class Save(NamedTuple):
    """One save by a session; `seq` counts a session's saves from 1, in the order of their commits."""

    seq: int
    name: Name
    revision: Oid


class Unprojected(NamedTuple):
    """A path whose file or `.git/index` entry lags: the blob that gitmem last put there."""

    base: Oid | None
    staged: bool


def session_of(writer: Writer) -> str | None:
    """The session column: NULL for an owner."""
    return (writer.session_id or "") if writer.kind == "agent" else None


def _writer(session: str | None) -> Writer:
    return OWNER if session is None else Writer(kind="agent", session_id=session or None)


def columns(meta: Meta | None) -> tuple[Any, ...]:
    """The columns of a document's metadata."""
    return (meta.title, meta.summary, meta.policy, meta.bytes) if meta else (None, None, None, None)


def row_of(revision: Oid, blob: Oid | None, updated: int, session: str | None, dead: int, merged: int,
         title: str | None, summary: str | None, policy: str | None, size: int | None) -> Row:  # fmt: skip
    meta = None
    if title is not None and summary is not None and policy is not None and size is not None:
        meta = Meta(title, summary, policy, size)
    return Row(revision, blob, updated, _writer(session), bool(dead), bool(merged), meta)


def version_of(number: int, revision: Oid, blob: Oid | None, updated: int, session: str | None, operation: str,
             message: str | None) -> VersionRow:  # fmt: skip
    return VersionRow(number, revision, blob, updated, _writer(session), operation, message)


def memory_of(name: str, description: str, kind: str, max_bytes: int) -> Memory:
    return Memory(id=name, description=description, provider=Provider(kind=kind, max_bytes=max_bytes))
