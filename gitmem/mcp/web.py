"""The protocol over streamable HTTP, for several clients at once, under the store's API keys."""

from __future__ import annotations

import ipaddress
import signal
import socket
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import uvicorn
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gitmem.errors import HTTP_STATUS, ErrorCode, ForbiddenError, GitmemError, StorageError, UnauthorizedError
from gitmem.keys import Keys
from gitmem.mcp.client import Client
from gitmem.mcp.server import Context, handshake_only, server_for
from gitmem.sessions import Session
from gitmem.store import Project

PATH: Final = "/mcp"
_CLIENTS: Final = 10_000
_STOP_SECONDS: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where to listen: port 0 takes any that is free."""

    host: str
    port: int


def serve_http(project: Project, session: Session, keys: Keys, address: Address, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; `ready` gets the URL once the socket listens.

    Raises ForbiddenError without an API key anywhere but on loopback; StorageError where the address cannot be had.
    """
    with _listening(address) as listener:
        host, port = listener.getsockname()[:2]
        local = ipaddress.ip_address(host).is_loopback
        if not local and not keys.exist:
            raise ForbiddenError(
                "Without an API key gitmem mcp serves this machine only. "
                "Make one with gitmem key create --name NAME, or leave --host out."
            )
        server = server_for(Known(project, session))
        server.middleware.append(handshake_only)
        # Loopback names only, where only this machine can come: the SDK refuses the Host and Origin of others.
        app = server.streamable_http_app(streamable_http_path=PATH, host="127.0.0.1" if local else host)
        gate = Gate(app, keys, local=local, project=project.id, writes=any(b.writes for b in session.bindings))
        _run(gate, listener, lambda: ready(f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"))


class Known:
    """The clients by the protocol's session ids. One that was forgotten has been shown nothing: its save conflicts."""

    def __init__(self, project: Project, session: Session) -> None:
        self._project = project
        self._session = session
        self._clients: OrderedDict[str, Client] = OrderedDict()

    def __call__(self, context: Context) -> Client:
        assert context.request is not None
        name = context.request.headers["mcp-session-id"]
        found = self._clients.pop(name, None) or Client(self._project, self._session)
        self._clients[name] = found
        if len(self._clients) > _CLIENTS:
            self._clients.popitem(last=False)
        return found


class Gate:
    """Lets requests in that carry a key for what is served; any, on this machine, while there are no keys."""

    def __init__(self, app: ASGIApp, keys: Keys, *, local: bool, project: str, writes: bool) -> None:
        self._app = app
        self._keys = keys
        self._local = local
        self._project = project
        self._scopes = {"memory:read", "memory:write"} if writes else {"memory:read"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                self._check(Headers(scope=scope))
            except GitmemError as error:
                await _refused(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, headers: Headers) -> None:
        tokens = {*headers.getlist("x-api-key"), *map(_bearer, headers.getlist("authorization"))}
        if not tokens and self._local and not self._keys.exist:
            return
        if len(tokens) != 1:
            raise UnauthorizedError("Send an API key as x-api-key, or as Authorization: Bearer. See gitmem key create.")
        key = self._keys.find(tokens.pop().encode("latin-1"))
        if key.role == "member":
            raise ForbiddenError("This key is a member's. An agent's memory is for owners and admins.")
        if key.project is not None and key.project != self._project:
            raise ForbiddenError("This key is for another project.")
        if key.scopes and (missing := self._scopes - set(key.scopes)):
            raise ForbiddenError(f"This session needs a key with --scope {min(missing)}.")


def _bearer(line: str) -> str:
    scheme, _, token = line.strip().partition(" ")
    if scheme.lower() != "bearer":
        raise UnauthorizedError("Authorization must be: Bearer, a space, and an API key.")
    return token.strip()


def _refused(error: GitmemError) -> JSONResponse:
    asks = {"www-authenticate": "Bearer"} if error.code is ErrorCode.UNAUTHORIZED else None
    body = {"error": {"code": str(error.code), "message": error.message}}
    return JSONResponse(body, HTTP_STATUS[error.code], headers=asks)


def _listening(address: Address) -> socket.socket:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, place = found[0][0], found[0][4]
        return socket.create_server(place[:2], family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"Cannot listen on {address.host} port {address.port}: {reason}.") from None


def _run(app: ASGIApp, listener: socket.socket, announce: Callable[[], None]) -> None:
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    server = uvicorn.Server(config)

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    # Whoever has been told that the server is ready may stop it at once.
    for stopping in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stopping, stop)
    announce()
    server.run(sockets=[listener])
