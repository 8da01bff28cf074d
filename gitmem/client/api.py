"""Requests to a server's API, and what its answers mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

from gitmem.client.connections import Connections, Reply
from gitmem.errors import GitmemError, InvalidRequestError, LimitExceededError, RemoteRefusedError, error_from
from gitmem.limits import BODY_BYTES

T = TypeVar("T")

_MANAGEMENT: Final = "/api/managed-agents"


class Api:
    """A server's API, for whoever has `api_key`; None where the server needs none."""

    def __init__(self, connections: Connections, api_key: str | None) -> None:
        """Raises InvalidRequestError for what cannot be a key."""
        self._connections = connections
        self._headers = {"accept": "application/json"}
        if api_key is not None:
            if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
                raise InvalidRequestError("That is not an API key: it must be one line of printable ASCII.")
            self._headers["x-api-key"] = api_key

    def ask(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str | None] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        wait: float = 0,
        base: str = _MANAGEMENT,
        most: int = BODY_BYTES,
    ) -> Answer:
        """Send a request to `path` below `base`, a segment each, with a body of `most` bytes.

        Raises what the server answers, as the library would.
        """
        target = "/".join((base, *(quote(segment, safe="") for segment in path)))
        given = {name: value for name, value in (query or {}).items() if value is not None}
        sent = self._headers | dict(headers or {})
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False).encode()
            if len(data) > most:
                raise LimitExceededError("The request", len(data), most)
            sent["content-type"] = "application/json"
        if given:
            target += "?" + urlencode(given, errors="surrogatepass")
        reply = self._connections.exchange(method, target, sent, data, wait)
        if not 200 <= reply.status < 300:
            raise self._error(reply)
        return Answer(self._connections.origin, reply)

    def close(self) -> None:
        """Give back every connection."""
        self._connections.close()

    def _error(self, reply: Reply) -> GitmemError:
        try:
            error = json.loads(reply.body)["error"]
            details = json.loads(reply.headers.get("gitmem-error", "{}"))
            return error_from(details.get("code", error["code"]), str(error["message"]), details)
        except (ValueError, LookupError, TypeError, AttributeError):
            return _foreign(self._connections.origin, reply.status)


class Answer:
    """What a request that succeeded was answered."""

    def __init__(self, origin: str, reply: Reply) -> None:
        self._origin = origin
        self._reply = reply

    @property
    def status(self) -> int:
        return self._reply.status

    @property
    def tag(self) -> str:
        """The revision that the answer's ETag names; empty where there is none."""
        return self._reply.headers.get("etag", "").strip('"')

    def into(self, make: Callable[[Any], T]) -> T:
        """What `make` makes of the body. Raises RemoteRefusedError where it cannot: no gitmem has answered."""
        try:
            return make(json.loads(self._reply.body))
        except (ValueError, LookupError, TypeError, AttributeError):
            raise _foreign(self._origin, self._reply.status) from None


def _foreign(origin: str, status: int) -> RemoteRefusedError:
    return RemoteRefusedError(f"{origin} answers {status}, and not as this gitmem's server would. Check the URL.")
