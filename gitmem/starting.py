"""Starting a session on documents that may not exist yet: the same for a store here and for a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, Final, Generic, Protocol, TypeVar

from gitmem.bindings import Access, bindings_from
from gitmem.errors import (
    ConflictError,
    IdempotencyKeyReusedError,
    InvalidRequestError,
    NotFoundError,
    PreconditionFailedError,
)
from gitmem.limits import check_idempotency_key, check_resource_id, check_source, shown
from gitmem.records import AgentWrites, Document

S_co = TypeVar("S_co", covariant=True)

_DOCUMENT_FIELDS: Final = {"title": "title", "text": "text", "summary": "summary", "agentWrites": "agent_writes"}


@dataclass(frozen=True, kw_only=True, slots=True)
class StartedDocument(Document):
    """A document that a session was started on; `created` is false where it existed before."""

    created: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Started(Generic[S_co]):
    """What `start_on_document` did; `document.created` and `session.created` tell what is new."""

    document: StartedDocument
    session: S_co


class Creatable(Protocol):
    """The documents of a resource, as far as starting needs them."""

    def read(self, document_id: str) -> Document: ...

    def create(
        self, document_id: str, *, title: str, text: str = "", summary: str = "", agent_writes: AgentWrites = "enabled"
    ) -> Document: ...


class Starting(ABC, Generic[S_co]):
    """What every kind of sessions can do with its `create` and its documents."""

    @abstractmethod
    def create(
        self,
        *,
        agent: str | None = None,
        deployment: str | None = None,
        memory: Mapping[str, Mapping[str, object]] | None = None,
        idempotency_key: str | None = None,
        source: str | None = None,
    ) -> S_co:
        """Start a session."""

    @abstractmethod
    def _documents(self, resource: str) -> Creatable:
        """The documents of a resource."""

    def start_on_document(
        self,
        *,
        agent: str,
        resource: str,
        document_id: str,
        document: Mapping[str, str],
        idempotency_key: str,
        access: Access = "read-write",
        memory: Mapping[str, Mapping[str, object]] | None = None,
        source: str | None = None,
    ) -> Started[S_co]:
        """Create a document unless it exists, then start a session that is bound to it.

        `document` has the fields of a new document: `title`, and `text`, `summary`, `agentWrites`
        if wanted; it is ignored where the document exists. `memory` has further bindings. The
        session's key is derived from `idempotency_key`. These are two steps: the document stays if
        the session cannot be started.

        Raises NotFoundError where the document was deleted, before any session is made;
        IdempotencyKeyReusedError; and what creating each raises.
        """
        if memory and resource in memory:
            raise InvalidRequestError(f"memory binds {resource} too. It is bound to the document already.")
        binding = {"scope": "document", "id": document_id, "access": access}
        made, session = self.start_on_documents(
            agent=agent,
            memory={resource: binding, **(memory or {})},
            documents={resource: document},
            idempotency_key=idempotency_key,
            source=source,
        )
        return Started(document=made[resource], session=session)

    def start_on_documents(
        self,
        *,
        agent: str,
        memory: Mapping[str, Mapping[str, object]],
        documents: Mapping[str, Mapping[str, str]],
        idempotency_key: str | None = None,
        source: str | None = None,
    ) -> tuple[dict[str, StartedDocument], S_co]:
        """Like `start_on_document`, for several: `documents` has what to create, by the resource that binds it."""
        bound = {binding.resource: binding.id for binding in bindings_from(memory) if binding.id is not None}
        check_resource_id(agent, "agent id")
        key = derived_key(check_idempotency_key(idempotency_key)) if idempotency_key is not None else None
        if source is not None:
            check_source(source)
        made = {
            resource: _ensured(self._documents(resource), bound[resource], wanted)
            for resource, wanted in documents.items()
        }
        try:
            return made, self.create(agent=agent, memory=memory, idempotency_key=key, source=source)
        except ConflictError as error:
            raise IdempotencyKeyReusedError(error.message) from error


def derived_key(key: str) -> str:
    """The key of the session that a helper starts: the same key given directly names another session.

    Printable ASCII, so that it can be sent as a header whatever `key` holds.
    """
    return f"start-on-document:{sha256(key.encode()).hexdigest()}"


def _ensured(documents: Creatable, document_id: str, document: Mapping[str, str]) -> StartedDocument:
    """A document as it is, or created where there is none yet."""
    try:
        return _started(documents.read(document_id), created=False)
    except NotFoundError:
        wanted = _document_fields(document)
    try:
        return _started(documents.create(document_id, **wanted), created=True)
    except PreconditionFailedError:
        return _started(documents.read(document_id), created=False)


def _document_fields(document: object) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise InvalidRequestError('document must be an object such as {"title": "Workshop notes"}.')
    if unknown := [field for field in document if field not in _DOCUMENT_FIELDS]:
        raise InvalidRequestError(f"document has an unknown field {shown(unknown[0])}.")
    if "title" not in document:
        raise InvalidRequestError("document needs a title: the document does not exist yet.")
    return {_DOCUMENT_FIELDS[field]: value for field, value in document.items()}


def _started(document: Document, *, created: bool) -> StartedDocument:
    return StartedDocument(**{field.name: getattr(document, field.name) for field in fields(document)}, created=created)
