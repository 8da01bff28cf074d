"""Connections to one server: kept open between requests, shared by threads.

The standard library's client, because it imports in a third of the time of the others and its few
gaps are mended here: which connections are still good, and which requests may be sent twice.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from gitmem.errors import InvalidRequestError, RemoteUnreachableError

_UNCERTAIN: Final = "The change may have been made or not: read before you try again."
_NOTHING_SENT: Final = "Nothing was sent."


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A whole answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """The connections to the server at `url`; each waits `timeout` seconds at most for the next bytes."""

    def __init__(self, url: str, timeout: float) -> None:
        """Raises InvalidRequestError for a URL that cannot be a server's."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except (ValueError, AttributeError):
            host, port = None, None
        # The URL is not quoted: it may hold a password.
        if not host or parts.scheme not in {"http", "https"} or not url.isascii():
            raise InvalidRequestError(
                "The server's URL must be as http://127.0.0.1:8420 or https://memory.example.org."
            )
        if parts.username is not None or parts.query or parts.fragment:
            raise InvalidRequestError("The server's URL holds more than an address. Give the API key apart from it.")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._prefix = parts.path.rstrip("/")
        self._host, self._port, self._timeout = host, port, timeout
        self._secure = parts.scheme == "https"
        self._lock = threading.Lock()
        self._idle: list[HTTPConnection] = []
        self._pid = os.getpid()

    def exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, wait: float) -> Reply:
        """Send a request and read its answer, which may take `wait` seconds longer than others.

        A GET that an old connection loses is sent again; no other request is ever sent twice. Raises
        RemoteUnreachableError.
        """
        while True:
            connection, reused = self._taken()
            try:
                if connection.sock is None:
                    connection.connect()
            except (OSError, HTTPException) as error:
                raise RemoteUnreachableError(
                    f"{self.origin} does not answer: {_reason(error)}. {_NOTHING_SENT}"
                ) from None
            try:
                connection.sock.settimeout(self._timeout + wait)
                connection.request(method, self._prefix + target, body=body, headers=dict(headers))
                response = connection.getresponse()
                reply = Reply(
                    status=response.status,
                    headers={name.lower(): value for name, value in response.getheaders()},
                    body=response.read(),
                )
            except (OSError, HTTPException) as error:
                connection.close()
                if method == "GET" and reused and not isinstance(error, TimeoutError):
                    continue
                what = "Try again later." if method == "GET" else _UNCERTAIN
                raise RemoteUnreachableError(f"{self.origin} gave no answer: {_reason(error)}. {what}") from None
            except BaseException:
                connection.close()
                raise
            if not response.will_close:
                with self._lock:
                    self._idle.append(connection)
            return reply

    def close(self) -> None:
        """Give back every connection that rests."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _taken(self) -> tuple[HTTPConnection, bool]:
        """A connection for one request, and whether it was used before."""
        with self._lock:
            if self._pid != os.getpid():
                # A forked process must not talk on its parent's connections.
                self._idle, self._pid = [], os.getpid()
            while self._idle:
                connection = self._idle.pop()
                if _is_open(connection):
                    return connection, True
                connection.close()
        if not self._secure:
            return HTTPConnection(self._host, self._port, timeout=self._timeout), False
        return HTTPSConnection(self._host, self._port, timeout=self._timeout), False


def _is_open(connection: HTTPConnection) -> bool:
    """Whether nothing has come on a connection that rests: what could come is its end."""
    looking = select.poll()
    looking.register(connection.sock, select.POLLIN)
    return not looking.poll(0)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    return " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())
