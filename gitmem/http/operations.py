"""What an operation of the API is, and what is known of one call to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from msgspec import Struct
from starlette.types import Receive

from gitmem.documents import Documents
from gitmem.errors import InvalidRequestError
from gitmem.http.answers import Answer
from gitmem.http.callers import NOBODY_ASKED, Access, Caller
from gitmem.http.conditions import NOTHING_SEEN, Seen
from gitmem.http.serving import Serving
from gitmem.limits import BODY_BYTES
from gitmem.store import Environment, Project

Headers = Mapping[str, list[str]]


class Condition(Enum):
    """Which condition headers an operation takes."""

    NONE = "none"
    READ = "If-None-Match spares an answer that is known"
    CHANGE = "If-Match is required"
    PUT = "If-None-Match: * creates, If-Match replaces"


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A parameter in the path, the query or a header. `check` raises InvalidRequestError."""

    name: str
    about: str
    schema: Mapping[str, Any]
    check: Callable[[str], object]
    required: bool = False


@dataclass(frozen=True, slots=True)
class Waiter:
    """A handler that waits on the event loop, where others do Git work in a thread."""

    answer: Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One line of the API: what it takes, what it does, what it answers.

    `success` gives the name of each status's schema, None for an empty body. `access` is None where
    no key is needed. `create` is the body of a PUT that creates; `bodiless` says that the body may be
    left out; `tags`, that an answer may have an ETag although no condition is taken; `pure`, that the
    answer follows from the tip of the environment's main; `for_members`, that a member's key will do.
    """

    method: str
    path: str
    name: str
    about: str
    handler: Callable[[Call], Answer] | Waiter
    success: Mapping[int, str | None]
    access: Access | None = "read"
    ids: tuple[Parameter, ...] = ()
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    body: type[Struct] | None = None
    create: type[Struct] | None = None
    bodiless: bool = False
    condition: Condition = Condition.NONE
    tags: bool = False
    pure: bool = False
    body_bytes: int = BODY_BYTES
    for_members: bool = False


@dataclass(slots=True)
class Call:
    """One request, of which each check finds out more."""

    serving: Serving
    operation: Operation
    headers: Headers
    path: Mapping[str, str]
    query_string: bytes
    receive: Receive
    caller: Caller = NOBODY_ASKED
    body: Any = None
    seen: Seen = NOTHING_SEEN
    revisions: tuple[str, ...] | None = ()
    _project: Project | None = None
    _query: Mapping[str, tuple[str, ...]] | None = None

    def parameter(self, name: str) -> str | None:
        """A parameter of the query. Raises InvalidRequestError where it stands twice or is not UTF-8."""
        if self._query is None:
            self._query = parsed_query(self.query_string)
        values = self._query.get(name, ())
        if len(values) > 1:
            raise InvalidRequestError(f"{name} stands {len(values)} times in the query. Give it once.")
        return values[0] if values else None

    def header(self, name: str) -> str | None:
        """A header's value. Raises InvalidRequestError where it stands twice or is not UTF-8."""
        lines = self.headers.get(name.lower(), ())
        if len(lines) > 1:
            raise InvalidRequestError(f"{name} stands {len(lines)} times. Send it once.")
        try:
            return lines[0].encode("latin-1").decode() if lines else None
        except UnicodeDecodeError:
            raise InvalidRequestError(f"{name} is not UTF-8.") from None

    def projects(self) -> Sequence[Project]:
        """The projects that the call is about: the one that it names, or all that its caller may see."""
        if self._project is not None:
            return [self._project]
        if self.caller.project is not None:
            return [self.serving.project(self.caller.project)]
        return self.serving.projects()

    @property
    def project_id(self) -> str | None:
        """The project that the call names, in its path or its query."""
        if "orgId" in self.path:
            return self.path["orgId"]
        return self.path["projectId"] if "projectId" in self.path else self.parameter("projectId")

    @property
    def project(self) -> Project:
        """The project; it has been found before a handler runs."""
        assert self._project is not None
        return self._project

    def found(self, project: Project) -> None:
        """The project has been found."""
        self._project = project

    @property
    def environment(self) -> Environment:
        return self.project.environment(self.parameter("environment") or "")

    @property
    def documents(self) -> Documents:
        return self.environment.documents(self.path["resource"])


@lru_cache(maxsize=128)
def parsed_query(query: bytes) -> Mapping[str, tuple[str, ...]]:
    """The parameters of a query, each with all its values. Raises InvalidRequestError."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError:
        raise InvalidRequestError("The query is not percent-encoded UTF-8.") from None
    return {name: tuple(value for other, value in pairs if other == name) for name, _ in pairs}
