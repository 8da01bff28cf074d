"""Calling a model's tools: each call on the resources and the revisions that one render showed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from gitmem.admission import Admission
from gitmem.bindings import Binding
from gitmem.documents import Documents, put_changed
from gitmem.environment.draft import Draft
from gitmem.environment.layout import Name
from gitmem.errors import InvalidCursorError, InvalidRequestError, NotFoundError, ToolArgumentError
from gitmem.limits import SUMMARY_BYTES, is_document_id, shown
from gitmem.records import Revision, Writer
from gitmem.results import (
    Conflict,
    ListedDocument,
    ListedDocuments,
    ReadDocument,
    Rejected,
    Saved,
    SaveResult,
    ToolResult,
)
from gitmem.tools import LIST, READ, SAVE, Tools, checked, chosen, spec

_ORDER: Final = (SAVE, LIST, READ)


class Toolbox:
    """The tools for some of a session's resources.

    `shown` maps each selected resource to the revision of its document that the model has seen:
    None where it has seen none, which any document's save then conflicts with, and for collections.
    """

    def __init__(self, admission: Admission, shown: Mapping[str, str | None]) -> None:
        self._admission = admission
        self.shown = dict(shown)

    @property
    def tools(self) -> Tools:
        """The tools that the selected bindings allow (seed 000, "Session bindings")."""
        offered = [(name, self._eligible(name)) for name in _ORDER]
        return Tools(spec(name, self._guidance(name, resources)) for name, resources in offered if resources)

    def narrowed(self, select: Iterable[str]) -> Toolbox:
        """The tools for some of these resources only. Raises InvalidRequestError for any other."""
        chosen = list(dict.fromkeys(select))
        for resource in chosen:
            if resource not in self.shown:
                known = ", ".join(self.shown) or "nothing"
                raise InvalidRequestError(f"The render does not show {shown(resource)}. It shows {known}.")
        return Toolbox(self._admission, {resource: self.shown[resource] for resource in chosen})

    def call(self, name: str, arguments: object) -> ToolResult:
        """Do what the model asks for; `arguments` is the JSON object that it gave.

        Outcomes that let the model go on are results. Raises ToolArgumentError for a tool that is
        not offered and for malformed arguments; other GitmemErrors for failures of operation.
        """
        given = checked(name, arguments)
        eligible = self._eligible(name)
        memory = chosen(name, given, eligible)
        if name == SAVE:
            return self._save(memory, given["text"], given.get("summary"), tuple(eligible))
        if memory is None or memory not in eligible:
            raise ToolArgumentError(f"{name} is not offered for {shown(memory)}. It needs a collection binding.")
        self._admission.check_open()
        documents = Documents(self._admission.environment, memory)
        if name == LIST:
            return _list(documents, given.get("cursor"))
        return _read(documents, given["id"])

    def _eligible(self, name: str) -> list[str]:
        return [
            resource
            for resource in self.shown
            if (self._binding(resource).writes if name == SAVE else self._binding(resource).scope == "collection")
        ]

    def _binding(self, resource: str) -> Binding:
        return self._admission.bindings[resource]

    def _guidance(self, name: str, resources: list[str]) -> dict[str, str]:
        return {resource: self._admission.guidance(resource) + self._limit(name, resource) for resource in resources}

    def _limit(self, name: str, resource: str) -> str:
        memory = self._admission.environment.resource(resource) if name == SAVE else None
        return f" (A text has at most {memory.provider.max_bytes} bytes.)" if memory else ""

    def _save(self, memory: str | None, text: str, summary: str | None, bound: tuple[str, ...]) -> SaveResult:
        if memory is None:
            return Rejected(reason="read_only" if self.shown else "not_bound", bound=bound)
        if memory not in self.shown:
            return Rejected(reason="not_bound", bound=bound)
        binding = self._binding(memory)
        if binding.id is None or not binding.writes:
            return Rejected(reason="read_only", bound=bound)
        name, seen = Name(binding.resource, binding.id), self.shown[binding.resource]
        return self._admission.environment.save(lambda draft: self._replace(draft, name, seen, text, summary))

    def _replace(self, draft: Draft, name: Name, seen: str | None, text: str, summary: str | None) -> SaveResult:
        """The checks in their order (each is on what the lock keeps still), then the write."""
        if not self._admission.is_open():
            return Rejected(reason="session_closed")
        memory = draft.resource(name.resource)
        found = draft.get(name)
        if found is None or found.content is None:
            return Rejected(reason="not_found")
        content, revision = found.content, Revision(found.revision.hex())
        if content.agent_writes == "disabled":
            return Rejected(reason="agent_writes_disabled")
        size = len(text.encode())
        if size > memory.provider.max_bytes:
            return Rejected(reason="too_large", field="text", bytes=size, max_bytes=memory.provider.max_bytes)
        if summary is not None and (length := len(summary.encode())) > SUMMARY_BYTES:
            return Rejected(reason="too_large", field="summary", bytes=length, max_bytes=SUMMARY_BYTES)
        if revision != seen:
            return Conflict(text=content.text, summary=content.summary, revision=revision)
        new = replace(content, text=text, summary=content.summary if summary is None else summary)
        writer = Writer(kind="agent", session_id=self._admission.session_id)
        stored = put_changed(draft, name, found, new, "replace", writer)
        return Saved(revision=Revision(stored.revision.hex()), bytes=size)


def _list(documents: Documents, cursor: str | None) -> ListedDocuments | Rejected:
    try:
        page = documents.list(cursor=cursor)
    except InvalidCursorError:
        return Rejected(reason="invalid_cursor")
    return ListedDocuments(
        documents=tuple(
            ListedDocument(
                id=info.id, title=info.title, summary=info.summary, revision=info.revision, updated_at=info.updated_at
            )
            for info in page.documents
        ),
        next_cursor=page.next_cursor,
    )


def _read(documents: Documents, document_id: str) -> ReadDocument | Rejected:
    if not is_document_id(document_id):
        raise ToolArgumentError(f"{shown(document_id)} is no document id. Take one from the overview or {LIST}.")
    try:
        found = documents.read(document_id)
    except NotFoundError:
        return Rejected(reason="not_found")
    return ReadDocument(
        id=found.id,
        title=found.title,
        text=found.text,
        summary=found.summary,
        revision=found.revision,
        updated_at=found.updated_at,
    )
