"""What a model's tools answer (seed 000, "Saving" and "Collections")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from gitmem.records import Revision

Reason = Literal[
    "agent_writes_disabled", "not_found", "session_closed", "too_large", "not_bound", "read_only", "invalid_cursor"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Saved:
    """The save is committed; `bytes` counts the text's UTF-8 bytes."""

    status: ClassVar[Literal["saved"]] = "saved"
    revision: Revision
    bytes: int

    def to_json(self) -> dict[str, Any]:
        return {"status": self.status, "revision": self.revision, "bytes": self.bytes}


@dataclass(frozen=True, kw_only=True, slots=True)
class Conflict:
    """Another save came first: the current content, to reconcile with.

    `revision` is where that content stands. The host may know; the model need not, and its JSON
    leaves it out.
    """

    status: ClassVar[Literal["conflict"]] = "conflict"
    text: str
    summary: str
    revision: Revision

    def to_json(self) -> dict[str, Any]:
        return {"status": self.status, "text": self.text, "summary": self.summary}


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """An outcome that lets the model go on.

    `field`, `bytes` and `max_bytes` come with too_large; `bound` with not_bound and read_only: the
    resources that the save could have targeted.
    """

    status: ClassVar[Literal["rejected"]] = "rejected"
    reason: Reason
    field: Literal["text", "summary"] | None = None
    bytes: int | None = None
    max_bytes: int | None = None
    bound: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"status": self.status, "reason": self.reason}
        if self.field is not None:
            found |= {"field": self.field, "bytes": self.bytes, "maxBytes": self.max_bytes}
        if self.bound is not None:
            found["bound"] = list(self.bound)
        return found


SaveResult = Saved | Conflict | Rejected


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedDocument:
    """A document in what `memory_list` answers."""

    id: str
    title: str
    summary: str
    revision: Revision
    updated_at: str

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "summary": self.summary,
            "revision": self.revision,
            "updatedAt": self.updated_at,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedDocuments:
    """A page of a collection; `next_cursor` is None on the last one."""

    documents: tuple[ListedDocument, ...]
    next_cursor: str | None

    def to_json(self) -> dict[str, Any]:
        return {"documents": [document.to_json() for document in self.documents], "nextCursor": self.next_cursor}


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadDocument:
    """One document of a collection, whole."""

    id: str
    title: str
    text: str
    summary: str
    revision: Revision
    updated_at: str

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "text": self.text,
            "summary": self.summary,
            "revision": self.revision,
            "updatedAt": self.updated_at,
        }


ToolResult = SaveResult | ListedDocuments | ReadDocument
