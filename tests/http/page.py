"""The Memory page as a browser without script uses it: pages, their forms, and what a form sends."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from tests.http.server import Server, client_of

ENVIRONMENT = "/projects/bot/development"
NOTES = f"{ENVIRONMENT}/memory/notes"


def document_url(document_id: str) -> str:
    return f"{NOTES}/documents/{document_id}"


@dataclass
class FoundForm:
    """A form with what its fields hold; `buttons` are the words on its buttons."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[str] = field(default_factory=list)


class Shown(HTMLParser):
    """What a page holds: its forms, its links, and every start tag with its attributes."""

    def __init__(self, answer: httpx2.Response) -> None:
        super().__init__()
        self.answer = answer
        self.forms: list[FoundForm] = []
        self.links: dict[str, str] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: FoundForm | None = None
        self._area: str | None = None
        self._link: str | None = None
        self._in_button = False
        assert answer.headers["content-type"] == "text/html; charset=utf-8", answer.text
        # What a browser does to line ends before it parses.
        self.feed(answer.text.replace("\r\n", "\n").replace("\r", "\n"))
        self.close()
        self.text = " ".join(self.text.split())

    def form(self, action: str) -> FoundForm:
        """The form that sends to an address which ends in `action`."""
        found = [form for form in self.forms if form.action.endswith(action)]
        assert len(found) == 1, [form.action for form in self.forms]
        return found[0]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append((tag, values))
        name, value = values.get("name"), values.get("value") or ""
        if tag == "form":
            action = urljoin(str(self.answer.request.url), values.get("action") or "")
            self._open = FoundForm(urlsplit(action).path, values.get("method") or "get")
            self.forms.append(self._open)
        elif tag == "input" and self._open and name and (values.get("type") != "checkbox" or "checked" in values):
            self._open.fields[name] = value
        elif tag == "textarea" and self._open and name:
            self._area = name
            self._open.fields[name] = ""
        elif tag == "a":
            self._link = values.get("href")
        elif tag == "button":
            self._in_button = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area and self._open:
            self._open.fields[self._area] = self._open.fields[self._area].removeprefix("\n")
            self._area = None
        elif tag == "form":
            self._open = None
        elif tag == "a":
            self._link = None
        elif tag == "button":
            self._in_button = False

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"
        if self._area and self._open:
            self._open.fields[self._area] += data
        if self._link:
            self.links[" ".join(data.split())] = self._link
        if self._in_button and self._open:
            self._open.buttons.append(data.strip())


class Visitor:
    """Somebody with cookies. Nothing is followed unasked."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client

    def get(self, path: str, status: int = 200, headers: dict[str, str] | None = None) -> Shown:
        """A page, which must come with this status."""
        answer = self.client.get(path, headers=headers)
        assert answer.status_code == status, answer.text
        return Shown(answer)

    def submit(
        self, page: Shown, action: str, headers: dict[str, str] | None = None, **changes: str | None
    ) -> httpx2.Response:
        """Send one of a page's forms, with fields changed, or left out where None, as a browser encodes it."""
        form = page.form(action)
        fields = {name: value for name, value in (form.fields | changes).items() if value is not None}
        return self.post(form.action, fields, headers)

    def post(self, path: str, fields: dict[str, str], headers: dict[str, str] | None = None) -> httpx2.Response:
        """Send a form."""
        data: dict[str, Any] = {name: value.replace("\n", "\r\n") for name, value in fields.items()}
        return self.client.post(path, data=data, headers=headers)

    def follow(self, answer: httpx2.Response) -> Shown:
        """The page that a form leads to when it has been accepted."""
        assert answer.status_code == 303, answer.text
        return self.get(answer.headers["location"])

    def sign_in(self, token: str) -> Shown:
        """Sign in with an API key; the page that follows."""
        return self.follow(self.submit(self.get("/sign-in"), "/sign-in", key=token))


@contextmanager
def visiting(server: Server) -> Generator[Visitor, None, None]:
    """Somebody with a browser of their own."""
    with client_of(server) as client:
        yield Visitor(client)
