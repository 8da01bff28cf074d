"""Recall: reading every bound resource before the model runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from gitmem.admission import Admission
from gitmem.bindings import Binding
from gitmem.documents import Documents
from gitmem.limits import OVERVIEW_BYTES, OVERVIEW_ENTRIES
from gitmem.records import Document, DocumentInfo, Revision

_SEPARATOR: Final = " | "
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemorySource:
    """A document that a recall included."""

    id: str
    title: str
    revision: Revision
    updated_at: str

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "title": self.title, "revision": self.revision, "updatedAt": self.updated_at}


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryView:
    """What a render shows of one bound resource (seed 000, "Reading").

    `text` is a document's text, or a collection's overview; `writable` is the permission at recall.
    """

    text: str
    sources: tuple[MemorySource, ...]
    writable: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "sources": [source.to_json() for source in self.sources],
            "writable": self.writable,
        }


def recall(admission: Admission) -> dict[str, MemoryView]:
    """Every bound resource as it is now, by resource.

    Raises SessionClosedError; NotFoundError where a bound document was deleted; DamagedError.
    """
    admission.check_open()
    return {binding.resource: _view(admission, binding) for binding in admission.bindings.values()}


def _view(admission: Admission, binding: Binding) -> MemoryView:
    documents = Documents(admission.environment, binding.resource)
    if binding.id is not None:
        document = documents.read(binding.id)
        writable = binding.writes and document.agent_writes == "enabled"
        return MemoryView(text=document.text, sources=(_source(document),), writable=writable)
    shown = list(overview(documents.list().documents))
    return MemoryView(
        text="\n".join(line for _, line in shown),
        sources=tuple(_source(info) for info, _ in shown),
        writable=False,
    )


def overview(documents: Iterable[DocumentInfo]) -> Iterator[tuple[DocumentInfo, str]]:
    """The newest documents with their lines, as many whole lines as an overview holds."""
    left = OVERVIEW_BYTES
    for number, info in enumerate(documents):
        line = overview_line(info)
        left -= len(line.encode()) + (1 if number else 0)
        if number == OVERVIEW_ENTRIES or left < 0:
            return
        yield info, line


def overview_line(info: DocumentInfo) -> str:
    """A document in a collection's overview: id, title, summary and date (seed 000, "Collections")."""
    return _SEPARATOR.join((info.id, _harmless(info.title), _harmless(info.summary), info.updated_at[:10]))


def _harmless(field: str) -> str:
    return _BLANK.sub(" ", field).replace("|", "¦")


def _source(document: Document | DocumentInfo) -> MemorySource:
    return MemorySource(
        id=document.id, title=document.title, revision=document.revision, updated_at=document.updated_at
    )
