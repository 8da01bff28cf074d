"""Pages as they go out: templates filled in, with the headers that keep stored markup from acting."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import jinja2

from gitmem.errors import ForbiddenError
from gitmem.http.answers import Answer, Headers
from gitmem.http.callers import authorize
from gitmem.http.page import static
from gitmem.http.page.visit import Visit
from gitmem.limits import SUMMARY_BYTES, TITLE_BYTES

_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# "same-origin", since with "no-referrer" a browser sends its own forms with Origin: null.
SECURITY: Final[Headers] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"private, no-cache"),
)
_HTML: Final[Headers] = ((b"content-type", b"text/html; charset=utf-8"), *SECURITY)

_DONE: Final = {
    "created": "The document is created.",
    "saved": "Saved.",
    "retitled": "The title is changed.",
    "frozen": "Frozen: agents can read it, and no longer save it.",
    "unfrozen": "Agents may save it again.",
    "deleted": "Deleted. Its history stays readable.",
    "ended": "The session has ended: no later save of it can commit.",
    "restored": "The earlier version is restored.",
}
"""What a page says once after a change, by the word in its address."""


def render(visit: Visit, template: str, status: int = 200, headers: Headers = (), **values: Any) -> Answer:
    """A page."""
    text = (
        _environment()
        .get_template(template)
        .render(
            visit=visit,
            caller=visit.caller,
            may_write=_may_write(visit),
            done=_DONE.get(visit.query.get("done", "")),
            static=static.urls(),
            **values,
        )
    )
    body = text.encode("utf-8", "replace")
    length = (b"content-length", b"%d" % len(body))
    return Answer(status, (*_HTML, length, *headers), body)


def see(url: str, headers: Headers = ()) -> Answer:
    """Send the browser to another page, after a form."""
    return Answer(303, (*SECURITY, (b"location", url.encode("ascii")), (b"content-length", b"0"), *headers))


def _may_write(visit: Visit) -> bool:
    try:
        if visit.caller is not None:
            authorize(visit.caller, "write", visit.path.get("project"))
            return True
    except ForbiddenError:
        pass
    return False


@cache
def _environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("gitmem.http.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters |= {"day": _day, "size": _size}
    found.globals |= {"TITLE_BYTES": TITLE_BYTES, "SUMMARY_BYTES": SUMMARY_BYTES}
    found.tests |= {"over": lambda size, limit: size > limit}
    return found


_MONTHS: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def _day(moment: str) -> str:
    """`2026-09-10T12:00:00.000Z` → `10 Sep 2026, 12:00 UTC`."""
    return f"{int(moment[8:10])} {_MONTHS[int(moment[5:7]) - 1]} {moment[:4]}, {moment[11:16]} UTC"


def _size(count: int) -> str:
    """`12345` → `12,345`."""
    return f"{count:,}"
