"""One request for a page: who asks, from where, and for what."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from gitmem.documents import Documents
from gitmem.errors import ForbiddenError, InvalidRequestError, NotFoundError
from gitmem.http.callers import NOBODY_ASKED, Caller, authenticated
from gitmem.http.page.forms import Form
from gitmem.http.page.places import Place
from gitmem.http.page.signins import SignIns, is_token
from gitmem.http.serving import Serving
from gitmem.store import ENVIRONMENTS, Environment, Project

_SAFE_SITES: Final = {"same-origin", "none"}
_LONGEST_TARGET: Final = 1_000

Headers = Mapping[str, list[str]]


@dataclass(kw_only=True, slots=True)
class Visit:
    """What is known of a request. `target` is its path and query; `caller` is None before sign-in.

    `token` is the browser's cookie, new where it had none: a form must prove to come from a page that
    was shown under it. `signed_in` tells that the cookie stands for a sign-in;
    `tip`, where the environment was before anything of it was read.
    """

    serving: Serving
    signins: SignIns
    headers: Headers
    path: Mapping[str, str]
    query: Mapping[str, str]
    target: str
    token: str
    is_new: bool
    caller: Caller | None = None
    signed_in: bool = False
    tip: str = ""
    form: Form = field(default_factory=Form)

    @property
    def csrf(self) -> str:
        """What each form of this browser carries (bound to its cookie)."""
        return hmac.new(self.token.encode(), b"gitmem page form", sha256).hexdigest()

    @property
    def place(self) -> Place:
        """The environment that the path names, or what is in it."""
        names = self.path
        return Place(
            project=names["project"],
            environment=names["environment"],
            resource=names.get("resource"),
            document=names.get("document"),
        )

    @property
    def project(self) -> Project:
        return self.serving.project(self.path["project"])

    @property
    def environment(self) -> Environment:
        """Raises ProjectNotFoundError, NotFoundError."""
        project, name = self.project, self.path["environment"]
        if name not in ENVIRONMENTS:
            raise NotFoundError("An environment is development or production; there is no other.")
        return project.environment(name)

    @property
    def documents(self) -> Documents:
        return self.environment.documents(self.path["resource"])

    @property
    def document_id(self) -> str:
        return self.path["document"]

    def identify(self) -> None:
        """Find out who asks: by the cookie, or as for the API. Raises UnauthorizedError."""
        signin = None if self.is_new else self.signins.find(self.token)
        self.signed_in = signin is not None
        if signin is None:
            self.caller = authenticated(self.serving, self.headers)
        elif signin.key is None:
            self.caller = NOBODY_ASKED
        else:
            self.caller = self.serving.keys.recall(signin.key)

    def check_form(self) -> None:
        """Raises ForbiddenError where the form was not on a page that this browser was shown."""
        if not is_same_site(self.headers):
            raise ForbiddenError("The form comes from a page of another site. Nothing was changed.")
        if self.is_new or not hmac.compare_digest(self.form.get("csrf").encode(), self.csrf.encode()):
            raise ForbiddenError(
                "The form belongs to an earlier sign-in, or the browser keeps no cookies. Nothing was changed: "
                "go back, load the page again, and repeat it."
            )


def is_same_site(headers: Headers) -> bool:
    """Whether a form comes from a page of this server (Fetch Metadata; Origin has been checked before)."""
    return all(site in _SAFE_SITES for site in headers.get("sec-fetch-site", ()))


def comes_from_elsewhere(headers: Headers) -> bool:
    """Whether somebody follows a link on another site: the browser holds its cookie back from the first page then."""
    return not is_same_site(headers) and headers.get("sec-fetch-dest") == ["document"]


def cookie(headers: Headers, name: str) -> str | None:
    """The token in a cookie; None where there is none, or more than one."""
    pairs = (pair.strip().partition("=") for line in headers.get("cookie", ()) for pair in line.split(";"))
    values = {value for found, _, value in pairs if found == name}
    value = values.pop() if len(values) == 1 else ""
    return value if is_token(value) else None


def local_target(target: str) -> str:
    """`target` where it is a path on this server, else the start: nobody is sent elsewhere."""
    plain = target.isascii() and target.isprintable() and "\\" not in target and len(target) <= _LONGEST_TARGET
    return target if plain and target.startswith("/") and not target.startswith("//") else "/"


def parameters(pairs: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The parameters of a query. Raises InvalidRequestError for one that stands twice."""
    for name, values in pairs.items():
        if len(values) > 1:
            raise InvalidRequestError(f"{ascii(name)[:40]} stands {len(values)} times in the address. Give it once.")
    return {name: values[0] for name, values in pairs.items()}
