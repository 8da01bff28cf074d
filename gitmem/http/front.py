"""What every request passes first: the guard, a path without tricks, and the access log."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gitmem.errors import ForbiddenError
from gitmem.http.accesslog import AccessLog
from gitmem.http.answers import of_error, refused
from gitmem.http.guard import Guard

HEADERS: Final = "gitmem.headers"
"""Where the scope has the request's headers: each name with all its lines, as text."""

CALLER: Final = "gitmem.caller"
"""Where an endpoint leaves the id of the key that asked, for the log."""

_FAILED: Final = refused(500, "internal", "The server failed unexpectedly. Its log says where.")


class Front:
    """Lets requests through to the application, and tells the log what became of them."""

    def __init__(self, app: ASGIApp, guard: Guard, log: AccessLog) -> None:
        self._app = app
        self._guard = guard
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        started, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            headers = scope[HEADERS] = _headers(scope)
            self._guard.check(headers.get("host", ()), headers.get("origin", ()))
            scope["path"] = _plain_path(scope["raw_path"])
            await self._app(scope, receive, noted)
        except ForbiddenError as error:
            await of_error(error).send(noted)
        except Exception as error:
            self._log.failure(error)
            if not status:
                await _FAILED.send(noted)
        finally:
            client = scope["client"][0] if scope.get("client") else ""
            seconds = time.perf_counter() - started
            self._log.request(scope["method"], scope["raw_path"], status, seconds, scope.get(CALLER, ""), client)


def _headers(scope: Scope) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return found


def _plain_path(raw: bytes) -> str:
    """The path, decoded segment by segment.

    What does not decode, or hides a slash or a control character, becomes U+FFFD, which no id
    contains: two paths are never taken for one.
    """
    if b"%" not in raw:
        return raw.decode("ascii", "replace")
    return "/".join(map(_segment, raw.split(b"/")))


def _segment(raw: bytes) -> str:
    text = unquote_to_bytes(raw).decode("utf-8", "replace")
    return "".join("\ufffd" if character == "/" or not character.isprintable() else character for character in text)
