"""From a path to its endpoint: as Starlette's router finds it, and sooner where it has been asked for before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from gitmem.http.endpoint import Endpoint

_KEPT: Final = 4_096
_LONGEST: Final = 500


class Routing:
    """Remembers which endpoint each of the last paths led to: trying every route costs as much as an answer."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._known: dict[str, tuple[ASGIApp, Mapping[str, Any]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._known.get(scope["path"]) if scope["type"] == "http" else None
        if found is not None:
            endpoint, scope["path_params"] = found
            await endpoint(scope, receive, send)
            return
        await self._router(scope, receive, send)
        if isinstance(scope.get("endpoint"), Endpoint) and len(scope["path"]) <= _LONGEST:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[scope["path"]] = scope["endpoint"], scope["path_params"]
