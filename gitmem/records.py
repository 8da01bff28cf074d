"""The records that callers receive: frozen, with the seeds' camelCase in `to_json()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NewType

Revision = NewType("Revision", str)
"""40 lowercase hex digits: the hash of the commit that last changed a document. Opaque to callers."""

AgentWrites = Literal["enabled", "disabled"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Writer:
    """Who wrote: an owner, or an agent in a session."""

    kind: Literal["owner", "agent"] = "owner"
    session_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        if self.kind == "agent":
            return {"kind": "agent", "sessionId": self.session_id}
        return {"kind": "owner"}


OWNER = Writer()


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentInfo:
    """A document without its text, as a listing shows it.

    `bytes` counts UTF-8 text bytes; `max_bytes` is the resource's current limit;
    `updated_at` is RFC 3339 in UTC with milliseconds.
    """

    id: str
    title: str
    summary: str
    agent_writes: AgentWrites
    revision: Revision
    bytes: int
    max_bytes: int
    updated_at: str
    writer: Writer

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "summary": self.summary,
            "agentWrites": self.agent_writes,
            "revision": self.revision,
            "bytes": self.bytes,
            "maxBytes": self.max_bytes,
            "updatedAt": self.updated_at,
            "writer": self.writer.to_json(),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One document, whole (seed 000, "Documents")."""

    id: str
    title: str
    text: str
    summary: str
    agent_writes: AgentWrites
    revision: Revision
    bytes: int
    max_bytes: int
    updated_at: str
    writer: Writer

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "text": self.text,
            "summary": self.summary,
            "agentWrites": self.agent_writes,
            "revision": self.revision,
            "bytes": self.bytes,
            "maxBytes": self.max_bytes,
            "updatedAt": self.updated_at,
            "writer": self.writer.to_json(),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class NewDocument:
    """A document to create, with the seed's defaults."""

    id: str
    title: str
    text: str = ""
    summary: str = ""
    agent_writes: AgentWrites = "enabled"


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """At most 50 documents, newest update first; `next_cursor` is None on the last page."""

    documents: tuple[DocumentInfo, ...]
    next_cursor: str | None

    def to_json(self) -> dict[str, Any]:
        return {"documents": [d.to_json() for d in self.documents], "nextCursor": self.next_cursor}


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """One entry of a document's history; a deletion has an empty title and 0 bytes."""

    revision: Revision
    operation: str
    title: str
    bytes: int
    updated_at: str
    writer: Writer
    message: str

    def to_json(self) -> dict[str, Any]:
        return {
            "revision": self.revision,
            "operation": self.operation,
            "title": self.title,
            "bytes": self.bytes,
            "updatedAt": self.updated_at,
            "writer": self.writer.to_json(),
            "message": self.message,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """At most 50 versions of one document, newest first."""

    versions: tuple[Version, ...]
    next_cursor: str | None

    def to_json(self) -> dict[str, Any]:
        return {"versions": [v.to_json() for v in self.versions], "nextCursor": self.next_cursor}


@dataclass(frozen=True, kw_only=True, slots=True)
class Provider:
    """Where a resource's documents live: always documents in Git, with a text limit in bytes."""

    kind: str
    max_bytes: int

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "maxBytes": self.max_bytes}


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """A declaration: the resource's id, guidance for the model's tools, and provider."""

    id: str
    description: str
    provider: Provider

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "description": self.description, "provider": self.provider.to_json()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """One line of the inventory (seed 000, "Resource inventory")."""

    id: str
    provider: Provider
    declared: bool
    documents: int

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "provider": self.provider.to_json(),
            "declared": self.declared,
            "documents": self.documents,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployment:
    """A set of declarations that was activated for an agent in an environment (its alias)."""

    id: str
    agent_id: str
    alias: str
    created_at: str
    memory: tuple[Memory, ...]

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "agentId": self.agent_id, "alias": self.alias, "createdAt": self.created_at}
