"""Sessions on a server."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from gitmem.bindings import Binding, bindings_from
from gitmem.client import decoding
from gitmem.client.api import Answer, Api
from gitmem.client.documents import RemoteDocuments
from gitmem.client.render import RemoteRender, RemoteToolbox
from gitmem.control.sessions import missing
from gitmem.errors import InvalidRequestError, NotFoundError
from gitmem.events import SessionEvent
from gitmem.ids import is_id
from gitmem.limits import check_idempotency_key, check_resource_id, check_source, shown
from gitmem.records import Deployment, Memory
from gitmem.sessions import SessionInfo, SessionPage
from gitmem.starting import Starting

_WAIT_SECONDS: Final = 30


class RemoteSession:
    """What `gitmem.Session` is to a store on this machine, but for `toolbox`.

    A host that keeps count itself of what it showed does that next to the store.
    """

    def __init__(self, api: Api, project: str, info: SessionInfo, *, created: bool = False) -> None:
        self._api = api
        self._project = project
        self.id = info.id
        self.agent_id = info.agent_id
        self.alias = info.alias
        self.bindings: tuple[Binding, ...] = tuple(map(decoding.binding, info.memory))
        self.created_at = info.created_at
        self.created = created
        self._deployment_id = info.deployment_id

    def __repr__(self) -> str:
        return f"<RemoteSession {self.id} of {self.agent_id}@{self.alias}>"

    @cached_property
    def deployment(self) -> Deployment:
        """The deployment that the session started on."""
        return read_deployment(self._api, self._project, self._deployment_id)

    @property
    def ended(self) -> bool:
        """Whether it has ended by now."""
        return self.inspect().status == "ended"

    def inspect(self) -> SessionInfo:
        """The session as it is now, with the current `writable` of each binding."""
        return self._ask("GET").into(decoding.session)

    def render(self, select: Iterable[str | Memory] = ()) -> RemoteRender:
        """Recall every binding for one model turn; `select` does what `use_memory` does."""
        made = self._ask("POST", "renders", body={}).into(lambda value: RemoteRender(self._ask, value))
        for memory in select:
            made.use_memory(memory)
        return made

    def render_from(self, token: str) -> RemoteToolbox:
        """The tools of an earlier render of this session, from its `token()`. Raises InvalidRequestError."""
        body = {"render": token if isinstance(token, str) else ""}
        return self._ask("POST", "renders", body=body).into(lambda value: RemoteToolbox(self._ask, value))

    def events(self, after: int = 0) -> list[SessionEvent]:
        """The session's saves behind number `after`, in the order of their commits."""
        return self._events(after, 0)

    def wait(self, after: int = 0, *, timeout: float | None = None) -> list[SessionEvent]:
        """The events behind number `after` as soon as there are any.

        None after `timeout` seconds, in steps of one, or once the session has ended, when no more can come.
        """
        deadline = time.monotonic() + (timeout if timeout is not None else math.inf)
        while True:
            left = max(0.0, deadline - time.monotonic())
            found = self._events(after, math.ceil(min(left, _WAIT_SECONDS)))
            if found or time.monotonic() >= deadline:
                return found
            if self.ended:
                # What was saved between the last look and the end.
                return self._events(after, 0)

    def end(self) -> SessionInfo:
        """End the session. Once this returns no later save of it can commit. Ending it again changes nothing."""
        return self._ask("POST", "end").into(decoding.session)

    def _events(self, after: int, wait: int) -> list[SessionEvent]:
        if isinstance(after, bool) or not isinstance(after, int) or after < 0:
            raise InvalidRequestError("after must be the number of an event: an integer from 0.")
        query = {"after": str(min(after, 10**18 - 1)), "wait": str(wait)}
        answer = self._ask("GET", "events", query=query, wait=wait)
        return answer.into(lambda value: [decoding.event(event) for event in value["events"]])

    def _ask(
        self,
        method: str,
        *below: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        wait: float = 0,
    ) -> Answer:
        asked = {"projectId": self._project, **(query or {})}
        return self._api.ask(method, "sessions", self.id, *below, query=asked, body=body, wait=wait)


class RemoteSessions(Starting[RemoteSession]):
    """What `gitmem.Sessions` is to a store on this machine."""

    def __init__(self, api: Api, project: str, alias: str) -> None:
        self._api = api
        self._project = project
        self._alias = alias

    def create(
        self,
        *,
        agent: str | None = None,
        deployment: str | None = None,
        memory: Mapping[str, Mapping[str, object]] | None = None,
        idempotency_key: str | None = None,
        source: str | None = None,
    ) -> RemoteSession:
        """Start a session of an agent on its active deployment, or on the one that `deployment` names."""
        bindings = bindings_from(memory or {})
        if (agent is None) == (deployment is None):
            raise InvalidRequestError("Name the agent, or else one deployment of it.")
        body: dict[str, Any] = {
            "projectId": self._project,
            "memory": {binding.resource: binding.to_json() for binding in bindings},
        }
        if agent is not None:
            body["agentId"] = f"{check_resource_id(agent, 'agent id')}@{self._alias}"
        if source is not None:
            body["source"] = check_source(source)
        headers = {}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = _header_of(check_idempotency_key(idempotency_key))
        if deployment is not None:
            body["deploymentId"] = self._checked_deployment(deployment)
        answer = self._api.ask("POST", "sessions", body=body, headers=headers)
        created = answer.status == 201
        return answer.into(
            lambda value: RemoteSession(self._api, self._project, decoding.session(value["session"]), created=created)
        )

    def get(self, session_id: str) -> RemoteSession:
        """A session by its id. Raises NotFoundError, for a session of another environment too."""
        found = read_session(self._api, self._project, session_id)
        if found.alias != self._alias:
            raise missing(session_id)
        return found

    def list(self, *, cursor: str | None = None) -> SessionPage[RemoteSession]:
        """A page of at most 50 sessions, newest first. Raises InvalidCursorError."""
        query = {"projectId": self._project, "environment": self._alias, "cursor": cursor}
        return self._api.ask("GET", "sessions", query=query).into(self._page)

    def __iter__(self) -> Iterator[RemoteSession]:
        page = self.list()
        yield from page
        while page.next_cursor is not None:
            page = self.list(cursor=page.next_cursor)
            yield from page

    def _page(self, value: Any) -> SessionPage[RemoteSession]:
        infos: Sequence[SessionInfo] = [decoding.session(found) for found in value["sessions"]]
        return SessionPage(
            sessions=tuple(RemoteSession(self._api, self._project, info) for info in infos),
            next_cursor=value["nextCursor"],
        )

    def _checked_deployment(self, deployment_id: str) -> str:
        found = read_deployment(self._api, self._project, deployment_id)
        if found.alias != self._alias:
            raise InvalidRequestError(f"The deployment {found.id} is one of {found.alias}, not of {self._alias}.")
        return found.id

    def _documents(self, resource: str) -> RemoteDocuments:
        return RemoteDocuments(self._api, self._project, self._alias, resource)


def read_session(api: Api, project: str, session_id: str) -> RemoteSession:
    """A session of either environment of a project. Raises NotFoundError."""
    if not is_id("ses", session_id):
        raise missing(session_id)
    answer = api.ask("GET", "sessions", session_id, query={"projectId": project})
    return answer.into(lambda value: RemoteSession(api, project, decoding.session(value)))


def read_deployment(api: Api, project: str, deployment_id: str) -> Deployment:
    """A deployment, active or not. Raises NotFoundError."""
    if not is_id("dep", deployment_id):
        raise NotFoundError(f"There is no deployment {shown(deployment_id)}.")
    return api.ask("GET", "deployments", deployment_id, query={"projectId": project}).into(decoding.deployment)


def _header_of(key: str) -> str:
    """A key as a header line; http.client writes its characters as latin-1. Raises InvalidRequestError."""
    if key != key.strip(" "):
        raise InvalidRequestError("Over HTTP an idempotency key cannot begin or end with a blank.")
    return key.encode().decode("latin-1")
