"""From a call to its answer: the checks in their order, then the operation."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from starlette.types import Receive, Scope, Send

from gitmem.errors import ErrorCode, GitmemError
from gitmem.http.answers import Answer, Refusal, not_modified, of_error, refused
from gitmem.http.checks import Check, Checks, checks_of
from gitmem.http.front import CALLER, HEADERS
from gitmem.http.operations import Call, Operation, Waiter
from gitmem.http.readings import Readings, read
from gitmem.http.serving import Serving

_UNKNOWN: Final = refused(404, ErrorCode.NOT_FOUND, "There is nothing at this path. See /openapi.json.")
_UNREADABLE: Final = refused(400, ErrorCode.INVALID_REQUEST, "The path is not percent-encoded UTF-8.")


class Endpoint:
    """The operations at one path."""

    def __init__(self, serving: Serving, readings: Readings, operations: Iterable[Operation]) -> None:
        self._serving = serving
        self._readings = readings
        self._operations = {operation.method: (operation, checks_of(operation)) for operation in operations}
        if "GET" in self._operations:
            self._operations["HEAD"] = self._operations["GET"]
        allowed = ", ".join(self._operations)
        self._wrong_method = refused(
            405, ErrorCode.INVALID_REQUEST, f"This path takes {allowed}.", ((b"allow", allowed.encode()),)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._operations.get(scope["method"])
        if found is None:
            await self._wrong_method.send(send)
            return
        operation, checks = found
        call = Call(self._serving, operation, scope[HEADERS], scope["path_params"], scope["query_string"], receive)
        try:
            answer = await self._answer(call, checks)
            scope[CALLER] = call.caller.id
            await answer.send(send)
        except ConnectionError:
            # Whoever goes away before the body is whole gets no answer.
            return

    async def _answer(self, call: Call, checks: Checks) -> Answer:
        try:
            await _check(call, checks.who)
            answer = self._readings.find(call) if call.operation.pure else None
            if answer is not None:
                await _check(call, checks.again)
            else:
                await _check(call, checks.rest)
                answer = await (self._read(call) if call.operation.pure else self._do(call))
        except GitmemError as error:
            return of_error(error)
        except Refusal as refusal:
            return refusal.answer
        return not_modified(answer.tag) if answer.tag is not None and answer.tag in call.seen else answer

    async def _do(self, call: Call) -> Answer:
        handler = call.operation.handler
        if isinstance(handler, Waiter):
            return await handler.answer(call)
        return await self._serving.run(partial(handler, call), writes=call.operation.access == "write")

    async def _read(self, call: Call) -> Answer:
        reading = await self._serving.run(partial(read, call), writes=False)
        self._readings.keep(call, reading)
        return reading.answer


async def _check(call: Call, checks: Iterable[Check]) -> None:
    for check in checks:
        step = check(call)
        if step is not None:
            await step


async def unknown(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer where no route leads."""
    await (_UNREADABLE if "\ufffd" in scope["path"] else _UNKNOWN).send(send)
