"""Answers as they go out: JSON, and the error of seed 000's shape."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.types import Send

from gitmem.errors import HTTP_STATUS, ErrorCode, GitmemError, InvalidCursorError

Headers = tuple[tuple[bytes, bytes], ...]

DETAILS: Final = "Gitmem-Error"
"""The header of an error that has more to tell than code and message: a JSON object."""

_LONGEST_DETAILS: Final = 1_000
_encoder: Final = msgspec.json.Encoder()
# Whoever holds a key may keep an answer, but asks again before each use.
_ALWAYS: Final[Headers] = ((b"cache-control", b"private, no-cache"), (b"x-content-type-options", b"nosniff"))
_JSON: Final[Headers] = ((b"content-type", b"application/json"), *_ALWAYS)
_ALONG: Final[dict[ErrorCode, Headers]] = {
    ErrorCode.UNAUTHORIZED: ((b"www-authenticate", b'Bearer realm="gitmem"'),),
    ErrorCode.BUSY: ((b"retry-after", b"1"),),
}


class Refusal(Exception):
    """A request that HTTP itself refuses, before any rule about documents."""

    def __init__(self, status: int, code: str, message: str, headers: Headers = ()) -> None:
        super().__init__(message)
        self.along = headers
        self.answer = refused(status, code, message, headers)


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, headers and a whole body; `tag` is the revision that it shows."""

    status: int
    headers: Headers = _ALWAYS
    body: bytes = b""
    tag: str | None = None

    async def send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


def as_json(value: Any, status: int = 200, *, tag: str | None = None) -> Answer:
    """A JSON answer; `tag` is the revision that its ETag names."""
    return _json(value, status, () if tag is None else (_etag(tag),), tag)


def not_modified(tag: str) -> Answer:
    """The answer to a reader who has this revision."""
    return Answer(304, (*_ALWAYS, _etag(tag)))


def _json(value: Any, status: int, headers: Sequence[tuple[bytes, bytes]], tag: str | None = None) -> Answer:
    body = _encoder.encode(value)
    return Answer(status, (*_JSON, *headers, (b"content-length", b"%d" % len(body))), body, tag)


def _etag(revision: str) -> tuple[bytes, bytes]:
    return b"etag", f'"{revision}"'.encode()


def refused(status: int, code: str, message: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> Answer:
    """An error of the seed's shape."""
    # A path in an error of the disk may have bytes that are no text.
    text = message.encode("utf-8", "replace").decode()
    return _json({"error": {"code": code, "message": text}}, status, headers)


def of_error(error: GitmemError) -> Answer:
    """What an error of gitmem becomes."""
    # Over HTTP a foreign cursor is one more invalid parameter; only tools tell it apart.
    code = ErrorCode.INVALID_REQUEST if isinstance(error, InvalidCursorError) else error.code
    details = error.data if code is error.code else error.data | {"code": error.code}
    return refused(HTTP_STATUS[code], code, error.message, (*_ALONG.get(code, ()), *_details(details)))


def _details(details: Mapping[str, Any]) -> Headers:
    """The header with what the body's shape has no place for."""
    value = json.dumps(details).encode()
    return ((DETAILS.lower().encode(), value),) if details and len(value) <= _LONGEST_DETAILS else ()
