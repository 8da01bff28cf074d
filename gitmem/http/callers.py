"""Who asks, and whether they may: an API key, or anybody on this machine while there are no keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from gitmem.errors import ForbiddenError, UnauthorizedError
from gitmem.http.serving import Serving
from gitmem.keys import Key

Access = Literal["read", "write"]
Caller = Key

NOBODY_ASKED: Final = Key(id="", name="local", hash="", created=0)
"""The owner at this machine, who has made no key."""


def authenticated(serving: Serving, headers: Mapping[str, list[str]]) -> Caller:
    """Who asks. Raises UnauthorizedError."""
    try:
        return serving.keys.find(_token(headers))
    except UnauthorizedError:
        if serving.local and not serving.keys.exist:
            return NOBODY_ASKED
        raise


def authorize(caller: Caller, access: Access, project_id: str | None, *, for_members: bool = False) -> None:
    """Raises ForbiddenError where the caller may not do this on the management API."""
    if caller.role == "member" and not for_members:
        raise ForbiddenError("This key is a member's. The management API is for owners and admins.")
    if caller.scopes and f"memory:{access}" not in caller.scopes:
        raise ForbiddenError(f"This key may not {access}. Make one with --scope memory:{access}.")
    if project_id is not None and caller.project is not None and caller.project != project_id:
        raise ForbiddenError("This key is for another project.")


def _token(headers: Mapping[str, list[str]]) -> bytes:
    if "authorization" not in headers and len(headers.get("x-api-key", ())) == 1:
        return headers["x-api-key"][0].encode("latin-1").strip()
    tokens = {line.encode("latin-1").strip() for line in headers.get("x-api-key", ())}
    tokens |= {_bearer(line) for line in headers.get("authorization", ())}
    if not tokens:
        raise UnauthorizedError("Send an API key as x-api-key, or as Authorization: Bearer. See gitmem key create.")
    if len(tokens) > 1:
        raise UnauthorizedError("The request carries different API keys. Send one.")
    return tokens.pop()


def _bearer(line: str) -> bytes:
    scheme, _, token = line.strip().partition(" ")
    if scheme.lower() != "bearer":
        raise UnauthorizedError("Authorization must be: Bearer, a space, and an API key.")
    return token.strip().encode("latin-1")
