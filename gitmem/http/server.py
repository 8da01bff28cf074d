"""Server processes: the socket, the workers, and their end."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from gitmem.errors import InvalidRequestError, StorageError
from gitmem.http.accesslog import CONFIGURATION
from gitmem.http.application import application
from gitmem.http.guard import Guard, is_loopback_name
from gitmem.http.page.signins import SignIns
from gitmem.http.protocol import Protocol
from gitmem.http.serving import Serving
from gitmem.keys import Keys
from gitmem.store import open_store

_STOP_SECONDS: Final = 60
# Longer than clients keep a connection that rests, so that it is they who close it.
_KEEP_ALIVE_SECONDS: Final = 75
_BACKLOG: Final = 1_024
_SIGNAL_AT_PARENTS_DEATH: Final = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where to listen: port 0 takes any that is free; `names` are further Host names to answer to."""

    host: str
    port: int
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Application:
    """Makes the application in whichever process runs it. `parent` is the process that must outlive it;
    `run` names what all of them serve together."""

    folder: str
    guard: Guard
    run: str
    parent: int | None

    def __call__(self) -> ASGIApp:
        if self.parent is not None:
            _end_with(self.parent)
        serving = Serving(open_store(self.folder), Keys(self.folder), local=self.guard.local)
        return application(serving, self.guard, SignIns(self.folder, self.run))


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """A server that listens: its URL, and whether a key is needed."""

    url: str
    locked: bool
    signins: SignIns

    def link(self) -> str:
        """A URL that signs the owner in to the page, once, within ten minutes. Raises StorageError."""
        return f"{self.url}/open?token={self.signins.link()}"


def serve(folder: str, address: Address, workers: int, ready: Callable[[Ready], None]) -> None:
    """Serve the store in `folder` until SIGINT or SIGTERM, then finish what is under way.

    `ready` is called once the socket listens. Raises InvalidRequestError without a key anywhere but on
    loopback; StorageError where the address cannot be had.
    """
    locked = Keys(folder).exist
    with _listening(address) as listener:
        host, port = listener.getsockname()[:2]
        local = is_loopback_name(host)
        if not locked and not local:
            raise InvalidRequestError(
                "Without an API key gitmem serves this machine only. "
                "Make one with gitmem key create --name NAME, or leave --host out."
            )
        run = os.urandom(16).hex()
        guard = Guard(local=local, names=address.names)
        config = uvicorn.Config(
            Application(folder=folder, guard=guard, run=run, parent=os.getpid() if workers > 1 else None),
            factory=True,
            workers=workers,
            loop="uvloop",
            http=Protocol,
            ws="none",
            lifespan="on",
            log_config=CONFIGURATION,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        _run(config, listener, lambda: ready(Ready(url=url, locked=locked, signins=SignIns(folder, run))))


def _run(config: uvicorn.Config, listener: socket.socket, announce: Callable[[], None]) -> None:
    # Whoever has been told that the server is ready may stop it at once.
    if config.workers > 1:
        supervisor = Multiprocess(config, sockets=[listener])
        announce()
        supervisor.run()
        return
    server = uvicorn.Server(config)

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    for stopping in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stopping, stop)
    announce()
    server.run(sockets=[listener])


def _listening(address: Address) -> socket.socket:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, place = found[0][0], found[0][4]
        return socket.create_server(place[:2], family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"Cannot listen on {address.host} port {address.port}: {reason}.") from None


def _end_with(parent: int) -> None:
    """Stop when the parent process dies, or this one would keep the port."""
    ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
