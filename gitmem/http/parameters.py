"""The parameters that operations take in their paths and queries."""

from __future__ import annotations

import re
from typing import Final

from gitmem.errors import InvalidRequestError
from gitmem.filepaths import SCOPES, check_scope
from gitmem.http.operations import Parameter
from gitmem.http.schemas import DOCUMENT_ID, RESOURCE_ID
from gitmem.http.schemas import ENVIRONMENT as _ENVIRONMENT
from gitmem.http.schemas import REVISION as _REVISION_SCHEMA
from gitmem.limits import (
    IDEMPOTENCY_KEY_BYTES,
    check_document_id,
    check_idempotency_key,
    check_resource_id,
    check_revision,
    shown,
)
from gitmem.store import ENVIRONMENTS

_NUMBER: Final = re.compile(r"[0-9]{1,18}\Z")
_WAIT_SECONDS: Final = 60
_ANY_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 128}


def _check_environment(value: str) -> None:
    if value not in ENVIRONMENTS:
        raise InvalidRequestError(f"{shown(value)} is no environment: use development or production.")


def _check_text(value: str) -> None:
    """For ids whose grammar is not told: what cannot be decoded is refused, what is unknown is not found."""
    if "\ufffd" in value or len(value) > 128:
        raise InvalidRequestError(f"{shown(value)} is no id.")


def _check_number(value: str) -> None:
    if not _NUMBER.match(value):
        raise InvalidRequestError(f"{shown(value)} is not the number of an event: an integer from 0.")


def _check_wait(value: str) -> None:
    if not _NUMBER.match(value) or int(value) > _WAIT_SECONDS:
        raise InvalidRequestError(f"{shown(value)} is not a number of seconds from 0 to {_WAIT_SECONDS}.")


def _check_scope(value: str) -> None:
    check_scope(value)


def _check_nothing(value: str) -> None:
    """For what only the library can judge, or what has been judged before."""


PROJECT: Final = Parameter(
    name="projectId", about="The project.", schema=RESOURCE_ID, check=_check_nothing, required=True
)
RESOURCE: Final = Parameter(name="resource", about="The resource.", schema=RESOURCE_ID, check=check_resource_id)
DOCUMENT: Final = Parameter(name="documentId", about="The document.", schema=DOCUMENT_ID, check=check_document_id)
ENVIRONMENT: Final = Parameter(
    name="environment",
    about="development or production.",
    schema=_ENVIRONMENT,
    check=_check_environment,
    required=True,
)
CURSOR: Final = Parameter(
    name="cursor", about="nextCursor of the page before.", schema={"type": "string"}, check=_check_nothing
)
MATCHING: Final = Parameter(
    name="matching",
    about="Only documents whose id or title contains this.",
    schema={"type": "string"},
    check=_check_nothing,
)
REVISION: Final = Parameter(
    name="revision", about="As it was at this revision.", schema=_REVISION_SCHEMA, check=check_revision
)
DEPLOYMENT: Final = Parameter(name="deploymentId", about="The deployment.", schema=_ANY_TEXT, check=_check_text)
SESSION: Final = Parameter(name="sessionId", about="The session.", schema=_ANY_TEXT, check=_check_text)
TOOL: Final = Parameter(name="tool", about="The tool, as a render offers it.", schema=_ANY_TEXT, check=_check_text)
AFTER: Final = Parameter(
    name="after", about="Only events behind this number.", schema={"type": "integer", "minimum": 0}, check=_check_number
)
WAIT: Final = Parameter(
    name="wait",
    about=f"For how many seconds to wait where there is no event yet, at most {_WAIT_SECONDS}.",
    schema={"type": "integer", "minimum": 0, "maximum": _WAIT_SECONDS},
    check=_check_wait,
)
IDEMPOTENCY_KEY: Final = Parameter(
    name="Idempotency-Key",
    about="The same key, agent, environment and bindings give the same session again.",
    schema={"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_BYTES},
    check=check_idempotency_key,
)
ANY_PROJECT: Final = Parameter(name="projectId", about="Only this project's.", schema=RESOURCE_ID, check=_check_nothing)
ANY_ENVIRONMENT: Final = Parameter(
    name="environment", about="Only this environment's.", schema=_ENVIRONMENT, check=_check_environment
)
ORGANIZATION: Final = Parameter(
    name="orgId", about="The organisation: a project.", schema=RESOURCE_ID, check=_check_nothing, required=True
)
SCOPE: Final = Parameter(
    name="scope",
    about="personal, which is the caller's own, or team.",
    schema={"type": "string", "enum": list(SCOPES)},
    check=_check_scope,
    required=True,
)
FILE_PATH: Final = Parameter(
    name="path", about="MEMORY.md, or a note.", schema={"type": "string"}, check=_check_nothing, required=True
)
EXPECTED: Final = Parameter(
    name="expected_revision_id",
    about="Only where the file is still at this revision.",
    schema={"type": "string"},
    check=_check_nothing,
)
