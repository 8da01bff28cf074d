"""The commands about sessions: session create, list, show, end, events."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from gitmem.admission import BindingState
from gitmem.cli.anywhere import opened_environment, opened_project
from gitmem.cli.context import Options, agent_of, command, shared_options
from gitmem.cli.output import flush, one_line, say, say_json, table, to_json
from gitmem.cli.reading import short_time
from gitmem.errors import ConflictError, IdempotencyKeyReusedError, InvalidRequestError
from gitmem.events import SessionEvent
from gitmem.sessions import SessionInfo
from gitmem.starting import StartedDocument

if TYPE_CHECKING:
    from gitmem.cli.anywhere import AnySession, AnySessions

Bindings = dict[str, dict[str, object]]


@click.group("session")
@shared_options
def session() -> None:
    """Start, look at and end agents' sessions."""


@command("create")
@click.option(
    "--memory", "memory", metavar="R[=ID[:read|read-write]]", multiple=True,
    help="Bind document ID of resource R, read-write unless given, or all of R, read; may be repeated.",
)  # fmt: skip
@click.option("--create-document", is_flag=True, help="Create each bound document that does not exist yet.")
@click.option("--idempotency-key", metavar="K", help="The same key, agent and bindings give the same session again.")
@click.option("--agent", metavar="A", help="Which agent; agent in gitmem.toml, or the only one, unless given.")
def create(
    options: Options, memory: tuple[str, ...], create_document: bool, idempotency_key: str | None, agent: str | None
) -> None:
    """Start a session."""
    bindings = bindings_named(memory)
    with opened_project(options) as (project, settings):
        environment = project.environment(options.environment or "development")
        chosen = agent_of(settings, environment, agent)
        if create_document:
            made, started = _started(environment.sessions, chosen, bindings, idempotency_key)
        else:
            made, started = {}, _created(environment.sessions, chosen, bindings, idempotency_key)
        _tell(options, started, made)


def bindings_named(memory: Sequence[str]) -> Bindings:
    """The bindings that `R=ID[:access]` and `R` stand for. Raises InvalidRequestError for one named twice."""
    bindings: Bindings = {}
    for text in memory:
        resource, is_document, rest = text.partition("=")
        if resource in bindings:
            raise InvalidRequestError(f"--memory names {resource!a} twice. Bind it once.")
        bindings[resource] = {"scope": "collection"}
        if is_document:
            document_id, _, access = rest.partition(":")
            bindings[resource] = {"scope": "document", "id": document_id, "access": access or "read-write"}
    return bindings


def _created(sessions: AnySessions, agent: str, bindings: Bindings, key: str | None) -> AnySession:
    try:
        return sessions.create(agent=agent, memory=bindings, idempotency_key=key)
    except ConflictError as error:
        raise IdempotencyKeyReusedError(error.message) from error


def _started(
    sessions: AnySessions, agent: str, bindings: Bindings, key: str | None
) -> tuple[dict[str, StartedDocument], AnySession]:
    documents = {name: {"title": str(binding["id"])} for name, binding in bindings.items() if "id" in binding}
    if not documents:
        raise InvalidRequestError("There is no document to create: bind one with --memory R=ID.")
    return sessions.start_on_documents(agent=agent, memory=bindings, documents=documents, idempotency_key=key)


def _tell(options: Options, started: AnySession, made: dict[str, StartedDocument]) -> None:
    if options.json:
        say_json({
            "session": started.inspect().to_json() | {"created": started.created},
            "deployment": started.deployment.to_json(),
            "documents": [
                {"resource": resource, "id": document.id, "created": document.created}
                for resource, document in made.items()
            ],
        })
        return
    lines = [f"{_state(document.created)} {resource}/{document.id}" for resource, document in made.items()]
    say(*lines, f"{_state(started.created)} {started.id} of {started.agent_id}@{started.alias}")


def _state(created: bool) -> str:
    return "created" if created else "existing"


@command("list")
def list_sessions(options: Options) -> None:
    """List an environment's sessions, the newest first."""
    with opened_environment(options) as environment:
        found: list[SessionInfo] = []
        for each in environment.sessions:
            found.append(each.inspect())
            options.progress("listing sessions", len(found), None)
    options.progress.clear()
    if options.json:
        say_json({"sessions": [info.to_json() for info in found]})
    elif found:
        say(*table(map(_row, found)))


def _row(info: SessionInfo) -> tuple[str, ...]:
    bound = " ".join(map(_binding, info.memory))
    return info.id, short_time(info.created_at), info.status, info.agent_id, bound


def _binding(state: BindingState) -> str:
    return f"{state.resource}={state.id}:{state.access}" if state.id is not None else state.resource


@command("show")
@click.argument("session_id", metavar="ID")
def show(options: Options, session_id: str) -> None:
    """Show a session and what its bindings allow now."""
    with _found(options, session_id) as found:
        info = found.inspect()
    if options.json:
        say_json(info.to_json())
    else:
        say(*_header(info), *table((_binding(state), _allowed(state)) for state in info.memory))


def _header(info: SessionInfo) -> list[str]:
    ended = f", ended {short_time(info.ended_at)} UTC" if info.ended_at is not None else ""
    return [
        f"{info.id} of {info.agent_id}@{info.alias}: {info.status}",
        f"started   {short_time(info.created_at)} UTC on {info.deployment_id}{ended}",
        *([f"source    {one_line(info.source)}"] if info.source else []),
    ]


def _allowed(state: BindingState) -> str:
    if state.writable:
        return "can be saved"
    return "cannot be saved now" if state.access == "read-write" else "is only read"


@command("end")
@click.argument("session_id", metavar="ID")
def end(options: Options, session_id: str) -> None:
    """End a session: none of its saves can succeed any more."""
    with _found(options, session_id) as found:
        info = found.end()
    if options.json:
        say_json(info.to_json())
    else:
        say(f"ended {info.id}")


@command("events")
@click.argument("session_id", metavar="ID")
@click.option("--after", metavar="N", type=click.IntRange(min=0), default=0, help="Only events behind number N.")
@click.option("--follow", is_flag=True, help="Wait for further events until the session ends.")
def events(options: Options, session_id: str, after: int, follow: bool) -> None:
    """List what a session has saved.

    With --follow and --json each event is a line of its own.
    """
    with _found(options, session_id) as found:
        if follow:
            _follow(options, found, after)
            return
        seen = found.events(after)
    if options.json:
        say_json({"events": [event.to_json() for event in seen]})
    elif seen:
        say(*table(map(_event_row, seen)))


def _follow(options: Options, found: AnySession, after: int) -> None:
    while seen := found.wait(after):
        for event in seen:
            say(to_json(event.to_json()) if options.json else "  ".join(_event_row(event)))
        flush()
        after = seen[-1].seq


def _event_row(event: SessionEvent) -> tuple[str, ...]:
    return str(event.seq), f"{event.resource}/{event.document_id}", event.revision, f"{event.bytes} bytes"


@contextmanager
def _found(options: Options, session_id: str) -> Generator[AnySession, None, None]:
    """A session of either environment of the project."""
    with opened_project(options) as (project, _):
        yield project.session(session_id)


for each in (create, list_sessions, show, end, events):
    session.add_command(each)
