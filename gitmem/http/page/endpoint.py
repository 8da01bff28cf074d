"""From a request for a page to its answer: who asks, whether the form is ours, then the page; errors as pages."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from starlette.types import Receive, Scope, Send

from gitmem.errors import HTTP_STATUS, ErrorCode, GitmemError, UnauthorizedError
from gitmem.http import bodies
from gitmem.http.answers import Answer, Headers, Refusal
from gitmem.http.callers import Access, authorize
from gitmem.http.front import CALLER, HEADERS
from gitmem.http.operations import parsed_query
from gitmem.http.page import forms, signing
from gitmem.http.page.live import tip_of
from gitmem.http.page.rendering import render
from gitmem.http.page.routes import Page
from gitmem.http.page.signins import SignIns
from gitmem.http.page.visit import Visit, comes_from_elsewhere, cookie, is_same_site, local_target, parameters
from gitmem.http.serving import Serving


class PageEndpoint:
    """One page of the table."""

    def __init__(self, serving: Serving, signins: SignIns, page: Page) -> None:
        self._serving = serving
        self._signins = signins
        self._page = page
        self._methods = ["GET"] * (page.show is not None) + ["POST"] * (page.act is not None)
        if page.show is not None and not page.is_once:
            self._methods.append("HEAD")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit = self._visit(scope)
        method = scope["method"]
        # Whoever goes away before the form is whole gets no answer.
        with suppress(ConnectionError):
            if method not in self._methods:
                answer = self._wrong_method(visit)
            elif method == "GET" and visit.is_new and comes_from_elsewhere(visit.headers):
                answer = render(
                    visit, "arriving.html", headers=((b"refresh", b"0"),), target=local_target(visit.target)
                )
            else:
                answer = await self._answer(visit, scope["query_string"], receive if method == "POST" else None)
            if visit.caller is not None:
                scope[CALLER] = visit.caller.id
            await _with_cookie(visit, answer).send(send)

    def _visit(self, scope: Scope) -> Visit:
        headers = scope[HEADERS]
        token = cookie(headers, signing.cookie_name(self._serving.store.folder))
        path = scope["raw_path"].decode("ascii", "replace")
        query = f"?{scope['query_string'].decode('ascii', 'replace')}" if scope["query_string"] else ""
        return Visit(
            serving=self._serving,
            signins=self._signins,
            headers=headers,
            path=scope["path_params"],
            query={},
            # What only takes forms is no place to come back to.
            target=path + query if self._page.show is not None else path.rpartition("/")[0] or "/",
            token=token or self._signins.new_token(),
            is_new=token is None,
        )

    async def _answer(self, visit: Visit, query: bytes, receive: Receive | None) -> Answer:
        try:
            visit.query = parameters(parsed_query(query))
            if receive is not None:
                body = await bodies.read(receive, visit.headers, limit=forms.FORM_BYTES)
                visit.form = forms.parse(visit.headers, body)
            work = partial(self._show if receive is None else self._act, visit)
            return await self._serving.run(work, writes=receive is not None)
        except GitmemError as error:
            return await self._serving.run(partial(failed, visit, error), writes=False)
        except Refusal as refusal:
            return render(visit, "error.html", refusal.answer.status, refusal.along, message=str(refusal))

    def _show(self, visit: Visit) -> Answer:
        assert self._page.show is not None
        self._let_in(visit, "read")
        return self._page.show(visit)

    def _act(self, visit: Visit) -> Answer:
        assert self._page.act is not None
        self._let_in(visit, "write")
        visit.check_form()
        return self._page.act(visit)

    def _let_in(self, visit: Visit, access: Access) -> None:
        """Raises UnauthorizedError, ForbiddenError, ProjectNotFoundError, NotFoundError."""
        try:
            visit.identify()
        except UnauthorizedError:
            if not self._page.is_public:
                raise
        if not self._page.is_public:
            assert visit.caller is not None
            authorize(visit.caller, access, visit.path.get("project"))
        if "environment" in visit.path:
            visit.tip = tip_of(visit)

    def _wrong_method(self, visit: Visit) -> Answer:
        headers = ((b"allow", ", ".join(self._methods).encode()),)
        return render(visit, "error.html", 405, headers, message=f"This address takes {' and '.join(self._methods)}.")


def failed(visit: Visit, error: GitmemError) -> Answer:
    """The page for an error; where nobody is signed in, the form to do so."""
    if isinstance(error, UnauthorizedError):
        visit.caller = None
        return signing.form(visit, 401, visit.target, error.message if visit.signed_in else "")
    along: Headers = ((b"retry-after", b"1"),) if error.code is ErrorCode.BUSY else ()
    return render(visit, "error.html", HTTP_STATUS[error.code], along, message=error.message)


def _with_cookie(visit: Visit, answer: Answer) -> Answer:
    """The answer, with the browser's token where it is new.

    Not where the browser only held its cookie back, since a new one would sign it out.
    """
    if not visit.is_new or not is_same_site(visit.headers) or any(name == b"set-cookie" for name, _ in answer.headers):
        return answer
    return Answer(answer.status, (*answer.headers, *signing.set_cookie(visit, visit.token)), answer.body)
