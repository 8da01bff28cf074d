"""Sessions: one run of an agent, bound to the memory that it may read or write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, overload

from gitmem import cursor as cursors
from gitmem import events as session_events
from gitmem.admission import Admission, BindingState, check_bindings
from gitmem.bindings import Binding, bindings_from
from gitmem.control.deployments import Deployments
from gitmem.control.sessions import Request, SessionRecord, SessionRecords, missing
from gitmem.documents import Documents
from gitmem.environment.draft import Draft
from gitmem.environment.engine import EnvironmentRepository
from gitmem.errors import InvalidRequestError
from gitmem.events import SessionEvent
from gitmem.limits import check_idempotency_key, check_resource_id, check_source
from gitmem.records import Deployment, Memory
from gitmem.render import Render, seal, unseal
from gitmem.starting import S_co, Starting
from gitmem.toolbox import Toolbox

_PAGE: Final = 50


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

    def narrow(self, token: str, select: Iterable[str] | None) -> tuple[Toolbox, str]:
        """The tools for some of what an earlier render selected, or all, and their own token. Nothing is recalled.

        Raises InvalidRequestError for a token as `render_from` does, and for what it did not select.
        """
        whole = self.render_from(token)
        toolbox = whole if select is None else whole.narrowed(select)
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
class SessionPage(Sequence[S_co], Generic[S_co]):
    """At most 50 sessions, newest first; `next_cursor` is None on the last page."""

    sessions: tuple[S_co, ...]
    next_cursor: str | None

    @overload
    def __getitem__(self, at: int) -> S_co: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[S_co]: ...
    def __getitem__(self, at: int | slice) -> S_co | Sequence[S_co]:
        return self.sessions[at]

    def __len__(self) -> int:
        return len(self.sessions)


class Sessions(Starting[Session]):
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
        key = check_idempotency_key(idempotency_key) if idempotency_key is not None else None
        known = self._records.by_key(key, request) if key is not None else None
        if known is not None:
            return self._session(known)
        activated = self._deployment(request)
        check_bindings(self._environment, activated, request.bindings)
        record, created = self._records.create(
            request, agent_id=activated.agent_id, deployment_id=activated.id, key=key, source=source
        )
        return self._session(record, created=created)

    def _documents(self, resource: str) -> Documents:
        return Documents(self._environment, resource)

    def get(self, session_id: str) -> Session:
        """A session by its id. Raises NotFoundError, for a session of another environment too."""
        record = self._records.get(session_id)
        if record.alias != self._alias:
            raise missing(session_id)
        return self._session(record)

    def list(self, *, cursor: str | None = None) -> SessionPage[Session]:
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
