"""Where the page's addresses lead, in the application."""

from __future__ import annotations

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gitmem.errors import NotFoundError
from gitmem.http import endpoint
from gitmem.http.answers import Answer
from gitmem.http.front import HEADERS
from gitmem.http.page import static
from gitmem.http.page.endpoint import PageEndpoint
from gitmem.http.page.routes import PAGES, Page
from gitmem.http.page.signins import SignIns
from gitmem.http.page.visit import Visit
from gitmem.http.serving import Serving

_PROGRAMS = ("/api/", "/v3/", "/static/")


def routes(serving: Serving, signins: SignIns) -> list[Route]:
    """The routes of every page, and of what pages need."""
    pages = [Route(page.path, endpoint=PageEndpoint(serving, signins, page)) for page in PAGES]
    return [*pages, Route("/static/{name}", endpoint=Static())]


class Static:
    """Answers with the files of the page."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = static.answers().get(scope["path_params"]["name"])
        if found is None or scope["method"] not in {"GET", "HEAD"}:
            await endpoint.unknown(scope, receive, send)
        else:
            await found.send(send)


class Nowhere:
    """Answers where no route leads: a browser gets a page, a program JSON."""

    def __init__(self, serving: Serving, signins: SignIns) -> None:
        self._page: ASGIApp = PageEndpoint(serving, signins, Page(path="", show=_nothing, is_public=True))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accepts = any("text/html" in line for line in scope[HEADERS].get("accept", ()))
        if accepts and scope["method"] == "GET" and not scope["path"].startswith(_PROGRAMS):
            scope.setdefault("path_params", {})
            await self._page(scope, receive, send)
        else:
            await endpoint.unknown(scope, receive, send)


def _nothing(visit: Visit) -> Answer:
    raise NotFoundError("There is nothing at this address.")
