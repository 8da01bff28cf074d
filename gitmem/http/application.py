"""The ASGI application, put together."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any

from starlette.routing import Route, Router
from starlette.types import ASGIApp

from gitmem.http.accesslog import AccessLog
from gitmem.http.endpoint import Endpoint
from gitmem.http.front import Front
from gitmem.http.guard import Guard
from gitmem.http.operations import Operation
from gitmem.http.page import mount
from gitmem.http.page.signins import SignIns
from gitmem.http.readings import Readings
from gitmem.http.routes import OPERATIONS
from gitmem.http.routing import Routing
from gitmem.http.serving import Serving


def application(serving: Serving, guard: Guard, signins: SignIns) -> ASGIApp:
    """Everything that the server answers. It closes `serving` at its end."""
    readings = Readings()
    routes = [Route(path, endpoint=Endpoint(serving, readings, found)) for path, found in _by_path(OPERATIONS)]
    routes += mount.routes(serving, signins)
    nowhere = mount.Nowhere(serving, signins)
    log = AccessLog()

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncGenerator[None, None]:
        uses = asyncio.create_task(serving.write_uses())
        _stop_waiting_at_the_end(serving)
        try:
            yield
        finally:
            uses.cancel()
            await asyncio.to_thread(serving.close)
            log.flush()

    return Front(Routing(Router(routes, redirect_slashes=False, default=nowhere, lifespan=lifespan)), guard, log)


def _stop_waiting_at_the_end(serving: Serving) -> None:
    """Let who waits for events go when the process is told to stop; the server stops only behind them."""
    for stopping in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(stopping)

        def stop(number: int, frame: FrameType | None, before: Any = before) -> None:
            serving.stopping = True
            if callable(before):
                before(number, frame)

        signal.signal(stopping, stop)


def _by_path(operations: Iterable[Operation]) -> Iterable[tuple[str, list[Operation]]]:
    found: dict[str, list[Operation]] = {}
    for operation in operations:
        found.setdefault(operation.path, []).append(operation)
    return found.items()
