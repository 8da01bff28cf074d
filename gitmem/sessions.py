"""Sessions: one run of an agent, bound to the memory that it may read or write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, Final, Literal, overload

from gitmem import cursor as cursors
from gitmem import events as session_events
from gitmem.admission import Admission, BindingState, check_bindings
from gitmem.bindings import Access, Binding, bindings_from
from gitmem.control.deployments import Deployments
from gitmem.control.sessions import Request, SessionRecord, SessionRecords, missing
from gitmem.documents import Documents
from gitmem.environment.draft import Draft
from gitmem.environment.engine import EnvironmentRepository
from gitmem.errors import (
    ConflictError,
    IdempotencyKeyReusedError,
    InvalidRequestError,
    NotFoundError,
    PreconditionFailedError,
)
from gitmem.events import SessionEvent
from gitmem.limits import check_idempotency_key, check_resource_id, check_source, shown
from gitmem.records import Deployment, Document, Memory
from gitmem.render import Render, seal, unseal
from gitmem.toolbox import Toolbox

_PAGE: Final = 50
_DOCUMENT_FIELDS: Final = {"title": "title", "text": "text", "summary": "summary", "agentWrites": "agent_writes"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionInfo:
    """A session as inspection shows it, with what its bindings allow now; times are RFC 3339 in UTC."""

    id: str
    agent_id: str
    alias: str
    deployment_id: str
    status: Literal["active", "ended"]
    created_at: str
    ended_at: str | None
    source: str | None
    memory: tuple[BindingState, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "agentId": self.agent_id,
            "alias": self.alias,
            "deploymentId": self.deployment_id,
            "status": self.status,
            "createdAt": self.created_at,
            "endedAt": self.ended_at,
            "source": self.source,
            "memory": [state.to_json() for state in self.memory],
        }


class Session:
    """A handle on a session. Its bindings and its deployment never change.

    `created` says whether the call that gave this handle created the session.
    """

    def __init__(self, admission: Admission, record: SessionRecord, *, created: bool = False) -> None:
        self._admission = admission
        self.id = record.id
        self.agent_id = record.agent_id
        self.alias = record.alias
        self.bindings: tuple[Binding, ...] = record.bindings
        self.created_at = record.created_at
        self.created = created

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self.agent_id}@{self.alias}>"

    @property
    def deployment(self) -> Deployment:
        """The deployment that the session started on."""
        return self._admission.deployment

    @property
    def ended(self) -> bool:
        """Whether it has ended by now."""
        return not self._admission.is_open()

    def inspect(self) -> SessionInfo:
        """The session as it is now, with the current `writable` of each binding."""
        return self._info(self._admission.record())

    def render(self, select: Iterable[str | Memory] = ()) -> Render:
        """Recall every binding for one model turn; `select` does what `use_memory` does.

        Raises, before anything runs: SessionClosedError; NotFoundError where a bound document was
        deleted; DamagedError; InvalidRequestError where `select` names what is not bound.
        """
        return Render.of(self._admission, select)

    def render_from(self, token: str) -> Toolbox:
        """The tools of an earlier render of this session, from its `token()`.

        Raises InvalidRequestError for any other string, another session's token included.
        """
        return unseal(self._admission, token)

    def narrow(self, token: str, select: Iterable[str]) -> tuple[Toolbox, str]:
        """The tools for some of what an earlier render selected, and their own token. Nothing is recalled.

        Raises InvalidRequestError for a token as `render_from` does, and for what it did not select.
        """
        toolbox = self.render_from(token).narrowed(select)
        return toolbox, seal(self._admission, toolbox.shown)

    def toolbox(self, shown: Mapping[str, str | None]) -> Toolbox:
        """Tools on bound resources and the revisions that a model was shown of them (None: of none).

        For hosts that keep count themselves of what was shown. Raises InvalidRequestError.
        """
        for resource in shown:
            if resource not in self._admission.bindings:
                raise InvalidRequestError(f"The session does not bind {resource!a}.")
        return Toolbox(self._admission, shown)

    def events(self, after: int = 0) -> list[SessionEvent]:
        """The session's saves behind number `after`, in the order of their commits."""
        return session_events.events(self._admission, after)

    def wait(self, after: int = 0, *, timeout: float | None = None) -> list[SessionEvent]:
        """The events behind number `after` as soon as there are any.

        None after `timeout` seconds, or once the session has ended, when no more can come.
        """
        return session_events.wait(self._admission, after, timeout)

    def end(self) -> SessionInfo:
        """End the session. Once this returns no later save of it can commit, in any process.

        Ending it again changes nothing. Raises BusyError or StorageError, with an uncertain outcome.
        """
        admission = self._admission

        def change(draft: Draft) -> SessionRecord:
            return admission.sessions.end(admission.session_id)

        return self._info(admission.environment.save(change))

    def _info(self, record: SessionRecord) -> SessionInfo:
        return SessionInfo(
            id=record.id,
            agent_id=record.agent_id,
            alias=record.alias,
            deployment_id=record.deployment_id,
            status="active" if record.ended_at is None else "ended",
            created_at=record.created_at,
            ended_at=record.ended_at,
            source=record.source,
            memory=self._admission.states(),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionPage(Sequence[Session]):
    """At most 50 sessions, newest first; `next_cursor` is None on the last page."""

    sessions: tuple[Session, ...]
    next_cursor: str | None

    @overload
    def __getitem__(self, at: int) -> Session: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Session]: ...
    def __getitem__(self, at: int | slice) -> Session | Sequence[Session]:
        return self.sessions[at]

    def __len__(self) -> int:
        return len(self.sessions)


@dataclass(frozen=True, kw_only=True, slots=True)
class StartedDocument(Document):
    """A document that a session was started on; `created` is false where it existed before."""

    created: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """What `start_on_document` did; `document.created` and `session.created` tell what is new."""

    document: StartedDocument
    session: Session


class Sessions:
    """The sessions of one environment."""

    def __init__(
        self, environment: EnvironmentRepository, alias: str, deployments: Deployments, records: SessionRecords
    ) -> None:
        self._environment = environment
        self._alias = alias
        self._deployments = deployments
        self._records = records

    def create(
        self,
        *,
        agent: str | None = None,
        deployment: str | None = None,
        memory: Mapping[str, Mapping[str, object]] | None = None,
        idempotency_key: str | None = None,
        source: str | None = None,
    ) -> Session:
        """Start a session of an agent on its active deployment, or on the one that `deployment` names.

        `memory` maps resource ids to bindings as in seed 000, "Session bindings". Repeated with the
        same key, agent (or deployment), environment and bindings, it returns the same session.

        Raises InvalidRequestError, naming the binding that is refused; NotFoundError for an agent
        that is not deployed here; ConflictError where the key stands for something else.
        """
        request = self._request(agent, deployment, bindings_from(memory or {}))
        if source is not None:
            check_source(source)
        if idempotency_key is not None:
            check_idempotency_key(idempotency_key)
        return self._create(request, idempotency_key, source)

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
    ) -> Started:
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
    ) -> tuple[dict[str, StartedDocument], Session]:
        """Like `start_on_document`, for several: `documents` has what to create, by the resource that binds it."""
        request = self._request(agent, None, bindings_from(memory))
        key = derived_key(check_idempotency_key(idempotency_key)) if idempotency_key is not None else None
        if source is not None:
            check_source(source)
        bound = {binding.resource: binding.id for binding in request.bindings if binding.id is not None}
        made = {resource: self._ensure(resource, bound[resource], wanted) for resource, wanted in documents.items()}
        try:
            return made, self._create(request, key, source)
        except ConflictError as error:
            raise IdempotencyKeyReusedError(error.message) from error

    def _ensure(self, resource: str, document_id: str, document: Mapping[str, str]) -> StartedDocument:
        """A document as it is, or created where there is none yet."""
        documents = Documents(self._environment, resource)
        try:
            return _started(documents.read(document_id), created=False)
        except NotFoundError:
            wanted = _document_fields(document)
        try:
            return _started(documents.create(document_id, **wanted), created=True)
        except PreconditionFailedError:
            return _started(documents.read(document_id), created=False)

    def get(self, session_id: str) -> Session:
        """A session by its id. Raises NotFoundError, for a session of another environment too."""
        record = self._records.get(session_id)
        if record.alias != self._alias:
            raise missing(session_id)
        return self._session(record)

    def list(self, *, cursor: str | None = None) -> SessionPage:
        """A page of at most 50 sessions, newest first. Raises InvalidCursorError."""
        listing = f"sessions {self._environment.folder}"
        before = cursors.decode(listing, cursor)[1] if cursor is not None else None
        found = self._records.recent(self._alias, before, _PAGE + 1)
        page = found[:_PAGE]
        return SessionPage(
            sessions=tuple(map(self._session, page)),
            next_cursor=cursors.encode(listing, 0, page[-1].id) if len(found) > _PAGE else None,
        )

    def __iter__(self) -> Iterator[Session]:
        page = self.list()
        yield from page
        while page.next_cursor is not None:
            page = self.list(cursor=page.next_cursor)
            yield from page

    def _request(self, agent: str | None, deployment: str | None, bindings: tuple[Binding, ...]) -> Request:
        if (agent is None) == (deployment is None):
            raise InvalidRequestError("Name the agent, or else one deployment of it.")
        if agent is not None:
            check_resource_id(agent, "agent id")
        return Request(alias=self._alias, agent_id=agent, pinned=deployment, bindings=bindings)

    def _create(self, request: Request, key: str | None, source: str | None) -> Session:
        known = self._records.by_key(key, request) if key is not None else None
        if known is not None:
            return self._session(known)
        deployment = self._deployment(request)
        check_bindings(self._environment, deployment, request.bindings)
        record, created = self._records.create(
            request, agent_id=deployment.agent_id, deployment_id=deployment.id, key=key, source=source
        )
        return self._session(record, created=created)

    def _deployment(self, request: Request) -> Deployment:
        if request.pinned is None:
            assert request.agent_id is not None
            return self._deployments.active_of(request.agent_id, self._alias)
        found = self._deployments.get(request.pinned)
        if found.alias != self._alias:
            raise InvalidRequestError(f"The deployment {found.id} is one of {found.alias}, not of {self._alias}.")
        return found

    def _session(self, record: SessionRecord, *, created: bool = False) -> Session:
        admission = Admission(self._environment, self._deployments, self._records, record)
        return Session(admission, record, created=created)


def derived_key(key: str) -> str:
    """The key of the session that a helper starts: the same key given directly names another session.

    Printable ASCII, so that it can be sent as a header whatever `key` holds.
    """
    return f"start-on-document:{sha256(key.encode()).hexdigest()}"


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
