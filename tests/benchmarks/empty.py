"""The empty handler: what the server's framework answers with nothing to do. `python -m tests.benchmarks.empty`"""

from __future__ import annotations

import json
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_BODY = b"{}"


async def nothing(request: Request) -> Response:  # ruff: ignore[unused-async]
    return Response(_BODY, media_type="application/json")


def main() -> None:
    """Serve on a free port, and print its URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=1_024) as listener:
        print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"}), flush=True)
        app = Starlette(routes=[Route("/{document}", nothing, methods=["GET"])])
        config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="error", access_log=False)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
