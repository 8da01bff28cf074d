"""The operations on sessions: what an agent's host needs (seed 000, "Session bindings" to "Saving")."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import islice
from typing import Any, Final

from msgspec import UNSET

from gitmem import cursor as cursors
from gitmem.errors import ForbiddenError, InvalidRequestError, NotFoundError
from gitmem.git.objects import Oid
from gitmem.http.answers import Answer, as_json
from gitmem.http.deployments import deployment_named
from gitmem.http.operations import Call
from gitmem.limits import check_resource_id, shown
from gitmem.results import Conflict
from gitmem.sessions import Session
from gitmem.store import ENVIRONMENTS, Environment, Project

_PAGE: Final = 50
_LOOK_SECONDS: Final = 0.1
_LOOK_AGAIN_SECONDS: Final = 1.0


def create(call: Call) -> Answer:
    body = call.body
    agent = deployment = None
    if body.deployment_id is UNSET:
        agent, alias = _agent_and_alias(body.agent_id)
        project = _deployed_in(_candidates(call), agent, alias)
    else:
        project, found = deployment_named(_candidates(call), body.deployment_id)
        deployment, alias = found.id, found.alias
    session = project.environment(alias).sessions.create(
        agent=agent,
        deployment=deployment,
        memory=body.memory,
        idempotency_key=call.header("idempotency-key"),
        source=None if body.source is UNSET else body.source,
    )
    answer = {"session": session.inspect().to_json(), "deployment": session.deployment.to_json()}
    return as_json(answer, 201 if session.created else 200)


def list_sessions(call: Call) -> Answer:
    """The newest sessions of every environment that is asked for: their ids sort by time."""
    alias = call.parameter("environment")
    listing = f"sessions {call.parameter('projectId')} {alias}"
    cursor = call.parameter("cursor")
    before = cursors.decode(listing, cursor)[1] if cursor is not None else None
    aliases = ENVIRONMENTS if alias is None else (alias,)
    newest = (_newest(project, name, before) for project in call.projects() for name in aliases)
    found = list(islice(merge(*newest, key=lambda session: session.id, reverse=True), _PAGE + 1))
    page = found[:_PAGE]
    following = cursors.encode(listing, 0, page[-1].id) if len(found) > _PAGE else None
    return as_json({"sessions": [session.inspect().to_json() for session in page], "nextCursor": following})


def inspect(call: Call) -> Answer:
    return as_json(_session(call).inspect().to_json())


def end(call: Call) -> Answer:
    return as_json(_session(call).end().to_json())


def render(call: Call) -> Answer:
    session, select = _session(call), call.body.select
    if call.body.render is not UNSET:
        toolbox, token = session.narrow(call.body.render, None if select is UNSET else select)
        return as_json({"render": token, "memory": {}, "tools": toolbox.tools.mcp()})
    made = session.render([binding.resource for binding in session.bindings] if select is UNSET else select)
    memory = {resource: view.to_json() for resource, view in made.selected.items()}
    return as_json({"render": made.token(), "memory": memory, "tools": made.tools.mcp()})


def call_tool(call: Call) -> Answer:
    toolbox = _session(call).render_from(call.body.render)
    result = toolbox.call(call.path["tool"], call.body.arguments)
    # Where a conflict's content stands is for the host; the model need not know.
    return as_json(result.to_json(), tag=result.revision if isinstance(result, Conflict) else None)


async def events(call: Call) -> Answer:
    """The session's saves behind `after`. With `wait`, an answer without any is put off for that long."""
    serving = call.serving
    deadline = time.monotonic() + int(call.parameter("wait") or 0)
    while True:
        look = await serving.run(partial(_look, call), writes=False)
        if look.events or look.ended or serving.stopping or time.monotonic() >= deadline:
            return as_json({"events": look.events})
        # A save moves the tip, which costs little to see; an end does not.
        until = min(deadline, time.monotonic() + _LOOK_AGAIN_SECONDS)
        while not (serving.stopping or look.moved()) and time.monotonic() < until:
            await asyncio.sleep(_LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class _Look:
    events: list[dict[str, Any]]
    ended: bool
    environment: Environment
    tip: Oid | None

    def moved(self) -> bool:
        return self.environment.parts().repository.tip() != self.tip


def _look(call: Call) -> _Look:
    project, session = _found(call)
    environment = project.environment(session.alias)
    # In this order: a save that came before the end is seen, and one after the look moves the tip.
    ended, tip = session.ended, environment.parts().repository.tip()
    events = session.events(int(call.parameter("after") or 0))
    return _Look([event.to_json() for event in events], ended, environment, tip)


def _session(call: Call) -> Session:
    return _found(call)[1]


def _found(call: Call) -> tuple[Project, Session]:
    """The session that the call names, and in which project of the caller's it is."""
    for project in call.projects():
        try:
            return project, project.session(call.path["sessionId"])
        except NotFoundError:
            continue
    raise NotFoundError(f"There is no session {shown(call.path['sessionId'])}.")


def _newest(project: Project, alias: str, before: str | None) -> Iterator[Session]:
    sessions = project.environment(alias).sessions
    return (sessions.get(record.id) for record in project.session_records.recent(alias, before, _PAGE + 1))


def _agent_and_alias(agent_id: str) -> tuple[str, str]:
    agent, at, alias = agent_id.partition("@")
    if not at or alias not in ENVIRONMENTS:
        raise InvalidRequestError("agentId must be <agent-id>@development or <agent-id>@production.")
    return check_resource_id(agent, "agent id"), alias


def _candidates(call: Call) -> Sequence[Project]:
    """The projects that a new session may be in. Raises ForbiddenError, ProjectNotFoundError."""
    named = call.body.project_id
    if named is UNSET:
        return call.projects()
    if call.caller.project not in {None, named}:
        raise ForbiddenError("This key is for another project.")
    return [call.serving.project(named)]


def _deployed_in(projects: Sequence[Project], agent: str, alias: str) -> Project:
    """The project whose agent is meant. Raises NotFoundError; InvalidRequestError where several have it."""
    if len(projects) == 1:
        return projects[0]
    having = [project for project in projects if agent in project.environment(alias).deployments()]
    if len(having) > 1:
        ids = ", ".join(project.id for project in having)
        raise InvalidRequestError(f"Several projects have the agent {agent}: {ids}. Say which with projectId.")
    if having:
        return having[0]
    raise NotFoundError(f"The agent {agent} is not deployed in {alias}. Deploy it first.")
