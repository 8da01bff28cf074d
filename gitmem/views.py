"""How documents and versions are shown: from what environment holds to the records that callers get."""

from __future__ import annotations

from typing import cast

from gitmem.clock import to_rfc3339
from gitmem.codec import Content
from gitmem.environment.layout import Name
from gitmem.environment.rows import Row, VersionRow
from gitmem.environment.stored import Stored
from gitmem.errors import NotFoundError
from gitmem.records import AgentWrites, Document, DocumentInfo, Memory, Revision, Version


def document_shown(name: Name, memory: Memory, stored: Stored) -> Document:
    """A document, whole. Raises NotFoundError where `stored` is a deletion."""
    content = stored.content
    if content is None:
        raise NotFoundError(f"{name} was deleted at {stored.revision.hex()}.")
    return Document(
        id=name.id,
        title=content.title,
        text=content.text,
        summary=content.summary,
        agent_writes=content.agent_writes,
        revision=Revision(stored.revision.hex()),
        bytes=len(content.text.encode()),
        max_bytes=memory.provider.max_bytes,
        updated_at=to_rfc3339(stored.updated),
        writer=stored.writer,
    )


def info_shown(document_id: str, memory: Memory, row: Row) -> DocumentInfo:
    """A document without its text, from a row that has its metadata."""
    meta = row.meta
    assert meta is not None
    return DocumentInfo(
        id=document_id,
        title=meta.title,
        summary=meta.summary,
        agent_writes=cast(AgentWrites, meta.policy),
        revision=Revision(row.revision.hex()),
        bytes=meta.bytes,
        max_bytes=memory.provider.max_bytes,
        updated_at=to_rfc3339(row.updated),
        writer=row.writer,
    )


def version_shown(name: Name, row: VersionRow, content: Content | None) -> Version:
    """One entry of a history; `content` is None for a deletion."""
    return Version(
        revision=Revision(row.revision.hex()),
        operation=row.operation,
        title=content.title if content else "",
        bytes=len(content.text.encode()) if content else 0,
        updated_at=to_rfc3339(row.updated),
        writer=row.writer,
        message=row.message or f"{row.operation} {name}",
    )


def diff_shown(
    name: Name,
    older: tuple[str, Content | None] | None,
    newer: tuple[str, Content | None],
    *,
    text_only: bool = False,
) -> str:
    """What changed between two versions, each a revision and what it held; `older` is None before the first."""
    import difflib

    lines = difflib.unified_diff(
        _lines(older[1] if older else None, text_only),
        _lines(newer[1], text_only),
        f"{name}@{older[0][:12] if older else 'nothing'}",
        f"{name}@{newer[0][:12]}",
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines)


def _lines(content: Content | None, text_only: bool) -> list[str]:
    """A content line by line, as a diff compares it; nothing for a deletion."""
    if content is None:
        return []
    if text_only:
        return content.text.split("\n")
    head = [f"title: {content.title}", f"summary: {content.summary}", f"agentWrites: {content.agent_writes}", ""]
    return head + content.text.split("\n")
