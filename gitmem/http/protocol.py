"""What is no HTTP: refused in JSON too, and without end it is cut off."""

from __future__ import annotations

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gitmem.errors import ErrorCode
from gitmem.http.answers import refused

_HEAD_BYTES: Final = 64 * 1024


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, with JSON refusals and a bound on the size of a request's head."""

    _head_bytes = 0
    _in_head = True

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        # A body that came along in the same piece has ended the head meanwhile.
        if self._in_head and self._head_bytes > _HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response(f"The head of the request has more than {_HEAD_BYTES} bytes.")

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes = True, 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        answer = refused(400, ErrorCode.INVALID_REQUEST, msg, ((b"connection", b"close"),))
        lines = [b"HTTP/1.1 400 Bad Request"]
        lines += [name + b": " + value for name, value in answer.headers]
        lines += [b"", answer.body]
        self.transport.write(b"\r\n".join(lines))
        self.transport.close()
