"""The command mcp: a session's memory for a host that speaks the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

import click

from gitmem.cli.context import Options, agent_of, command
from gitmem.cli.output import flush, say, say_json
from gitmem.cli.sessions import bindings_named
from gitmem.errors import InvalidRequestError, SessionClosedError
from gitmem.keys import Keys
from gitmem.sessions import Session
from gitmem.store import Project, Store


@command("mcp")
@click.option(
    "--memory", "memory", metavar="R[=ID[:read|read-write]]", multiple=True,
    help="Bind document ID of resource R, read-write unless given, or all of R, read; may be repeated.",
)  # fmt: skip
@click.option("--session", "session_id", metavar="ID", help="Serve this session, and do not end it.")
@click.option("--agent", metavar="A", help="Which agent; agent in gitmem.toml, or the only one, unless given.")
@click.option("--http", is_flag=True, help="Serve streamable HTTP, under the keys of gitmem serve, until stopped.")
@click.option("--host", metavar="HOST", help="With --http: the address to listen on; 127.0.0.1 unless given.")
@click.option("--port", type=click.IntRange(0, 65_535), help="With --http: the port; 8421 unless given, 0: any.")
def mcp(
    options: Options,
    memory: tuple[str, ...],
    session_id: str | None,
    agent: str | None,
    http: bool,
    host: str | None,
    port: int | None,
) -> None:
    """Serve memory to an MCP client on stdin and stdout, until stdin ends.

    Starts a session for that time, unless --session names one.
    """
    if not http and (host is not None or port is not None):
        raise InvalidRequestError("--host and --port go with --http.")
    if (session_id is None) == (not memory):
        raise InvalidRequestError("Bind memory with --memory R=ID, or name a session with --session ID.")
    if session_id is not None and agent is not None:
        raise InvalidRequestError("A session has its agent already. Leave --agent out.")
    try:
        if http:
            from gitmem.mcp import web
        else:
            from gitmem.mcp import stdio
    except ModuleNotFoundError as error:
        raise InvalidRequestError(
            f"gitmem mcp needs the package {error.name}: pip install 'gitmem-store[mcp]'."
        ) from error
    with options.opened_store() as store, _session(options, store, memory, session_id, agent) as (project, session):
        if http:
            address = web.Address(host=host or "127.0.0.1", port=8421 if port is None else port)
            web.serve_http(project, session, Keys(store.folder), address, partial(_ready, options))
        else:
            stdio.serve_stdio(project, session)


def _ready(options: Options, url: str) -> None:
    if options.json:
        say_json({"url": url})
    else:
        say(f"Serving MCP at {url}")
    flush()


@contextmanager
def _session(
    options: Options, store: Store, memory: tuple[str, ...], session_id: str | None, agent: str | None
) -> Generator[tuple[Project, Session], None, None]:
    """The session to serve. One that is made here ends with the command."""
    project = options.project_of(store)
    if session_id is not None:
        found = project.session(session_id)
        if found.ended:
            raise SessionClosedError(f"The session {session_id} has ended. Start another one.")
        yield project, found
        return
    environment = options.environment_of(store)
    chosen = agent_of(store.config, environment, agent)
    made = environment.sessions.create(agent=chosen, memory=bindings_named(memory), source="mcp")
    try:
        yield project, made
    finally:
        made.end()
