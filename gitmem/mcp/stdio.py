"""The protocol over stdin and stdout: one JSON object a line, until stdin ends.

The SDK's own transport does not answer a line that it cannot read, drops the answers that are still
due when stdin ends, and stops at an answer that UTF-8 cannot hold. This one does none of these.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import IO, Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from anyio import CancelScope
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from gitmem.mcp.client import Client
from gitmem.mcp.replies import harmless
from gitmem.mcp.server import server_for
from gitmem.sessions import Session
from gitmem.store import Project

_LINE_BYTES: Final = 4 * 1024 * 1024
Message = SessionMessage | Exception


def serve_stdio(project: Project, session: Session) -> None:
    """Serve a session to the one client on this process's stdin and stdout.

    Returns when stdin ends, or a signal says to stop.

    Meanwhile descriptor 0 is empty and descriptor 1 leads to stderr: nothing but the protocol gets out.
    """
    client = Client(project, session)
    server = server_for(lambda context: client)
    source, sink = _taken(0, os.open(os.devnull, os.O_RDONLY)), _taken(1, os.dup(2))
    with open(sink, "wb", buffering=0) as answers:
        asyncio.run(Wire(source, answers).serve(server))


def _taken(descriptor: int, instead: int) -> int:
    private = os.dup(descriptor)
    os.dup2(instead, descriptor)
    os.close(instead)
    return private


class Wire:
    """Messages that come in from a descriptor and go out to a binary file."""

    def __init__(self, source: int, sink: IO[bytes]) -> None:
        self._source = source
        self._sink = sink
        self._due: set[types.RequestId] = set()
        self._none_due = asyncio.Event()

    async def serve(self, server: Server[Any]) -> None:
        """Run the server. Returns at the end of the source, once what was asked is answered; or on a signal."""
        inbound, read = anyio.create_memory_object_stream[Message](0)
        write, outbound = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
            tasks.start_soon(self._read, inbound, write.clone())
            tasks.start_soon(self._write, outbound, tasks.cancel_scope)
            await server.run(read, write, server.create_initialization_options())
            tasks.cancel_scope.cancel()

    async def _read(
        self, inbound: MemoryObjectSendStream[Message], write: MemoryObjectSendStream[SessionMessage]
    ) -> None:
        async with inbound, write:
            async for line in _lines(self._source):
                try:
                    message = _message(line)
                except ValueError as error:
                    await write.send(SessionMessage(_unreadable(line, error)))
                    continue
                self._expect(message)
                await inbound.send(SessionMessage(message))
            while self._due:
                self._none_due.clear()
                await self._none_due.wait()

    async def _write(self, outbound: MemoryObjectReceiveStream[SessionMessage], scope: CancelScope) -> None:
        async with outbound:
            async for item in outbound:
                line = _line(item.message)
                try:
                    await anyio.to_thread.run_sync(self._put, line)
                except BrokenPipeError:
                    scope.cancel()
                    return
                if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                    self._settle(item.message.id)

    def _put(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[self._sink.write(left) :]

    def _expect(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._due.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle((message.params or {}).get("requestId"))

    def _settle(self, request_id: types.RequestId | None) -> None:
        self._due -= {request_id}
        if not self._due:
            self._none_due.set()


async def _stop_on_signal(scope: CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()
            return


async def _lines(source: int) -> AsyncIterator[bytes]:
    """The lines of a descriptor, each cut off behind the limit.

    They are read in a daemon thread, since nothing can interrupt a read and the process must be able to end.
    """
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes](1)

    def read() -> None:
        # The loop is gone once the process ends; there is nobody left to tell.
        with suppress(RuntimeError, OSError), open(source, "rb") as file:
            while True:
                line = _limited_line(file.readline)
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
                if not line:
                    return

    threading.Thread(target=read, name="gitmem-mcp-stdin", daemon=True).start()
    while line := await lines.get():
        if line.strip():
            yield line


def _limited_line(readline: Callable[[int], bytes]) -> bytes:
    line = rest = readline(_LINE_BYTES + 1)
    while len(rest) > _LINE_BYTES and not rest.endswith(b"\n"):
        rest = readline(_LINE_BYTES + 1)
    return line


def _message(line: bytes) -> types.JSONRPCMessage:
    """Raises ValueError for what is not a message. Lone surrogates pass: the tools refuse them by name."""
    if len(line) > _LINE_BYTES:
        raise ValueError(f"a message has at most {_LINE_BYTES} bytes")
    try:
        value = json.loads(line.decode("utf-8", "surrogateescape"))
        return types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        raise ValueError("it is not a JSON-RPC message") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _unreadable(line: bytes, error: ValueError) -> types.JSONRPCError:
    is_json = not isinstance(error, json.JSONDecodeError)
    code = types.INVALID_REQUEST if is_json else types.PARSE_ERROR
    message = f"The line cannot be read: {error}."
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=message))


def _line(message: types.JSONRPCMessage) -> bytes:
    value = message.model_dump(by_alias=True, exclude_unset=True)
    return harmless(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode() + b"\n"
