"""The one table of pages: where each is, what shows it, what its forms do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gitmem.http.answers import Answer
from gitmem.http.page import browsing, editing, history, live, sessions, signing
from gitmem.http.page.visit import Visit

Handler = Callable[[Visit], Answer]

_ENVIRONMENT: Final = "/projects/{project}/{environment}"
_SESSION: Final = f"{_ENVIRONMENT}/sessions/{{session}}"
_RESOURCE: Final = f"{_ENVIRONMENT}/memory/{{resource}}"
_DOCUMENT: Final = f"{_RESOURCE}/documents/{{document}}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page: `show` answers GET, `act` a form. `is_public` says that nobody has to be signed in;
    `is_once`, that looking at it changes something."""

    path: str
    show: Handler | None = None
    act: Handler | None = None
    is_public: bool = False
    is_once: bool = False


PAGES: Final = (
    Page(path="/", show=browsing.home),
    Page(path="/sign-in", show=signing.show, act=signing.enter, is_public=True),
    Page(path="/sign-out", act=signing.leave, is_public=True),
    Page(path="/open", show=signing.open_link, is_public=True, is_once=True),
    Page(path=_ENVIRONMENT, show=browsing.environment),
    Page(path=f"{_ENVIRONMENT}/live", show=live.tip),
    Page(path=f"{_ENVIRONMENT}/sessions", show=sessions.sessions),
    Page(path=_SESSION, show=sessions.session),
    Page(path=f"{_SESSION}/end", act=sessions.end),
    Page(path=_RESOURCE, show=browsing.resource),
    Page(path=f"{_RESOURCE}/new", show=editing.new, act=editing.create),
    Page(path=_DOCUMENT, show=browsing.document),
    Page(path=f"{_DOCUMENT}/edit", show=editing.edit, act=editing.save),
    Page(path=f"{_DOCUMENT}/title", show=editing.title, act=editing.retitle),
    Page(path=f"{_DOCUMENT}/freeze", act=editing.freeze),
    Page(path=f"{_DOCUMENT}/unfreeze", act=editing.unfreeze),
    Page(path=f"{_DOCUMENT}/delete", show=editing.confirm_delete, act=editing.delete),
    Page(path=f"{_DOCUMENT}/history", show=history.history),
    Page(path=f"{_DOCUMENT}/history/{{revision}}", show=history.version),
    Page(path=f"{_DOCUMENT}/history/{{revision}}/restore", show=history.confirm, act=history.restore),
)
