"""The parameters that operations take in their paths and queries."""

from __future__ import annotations

import re
from typing import Final

from gitmem.errors import InvalidRequestError
from gitmem.http.operations import Parameter
from gitmem.http.schemas import DOCUMENT_ID, RESOURCE_ID
from gitmem.http.schemas import ENVIRONMENT as _ENVIRONMENT
from gitmem.http.schemas import REVISION as _REVISION_SCHEMA
from gitmem.limits import check_document_id, check_resource_id
from gitmem.store import ENVIRONMENTS

_REVISION: Final = re.compile(r"[0-9a-f]{7,40}\Z")


def _check_environment(value: str) -> None:
    if value not in ENVIRONMENTS:
        raise InvalidRequestError(f"{ascii(value)[:40]} is no environment: use development or production.")


def _check_revision(value: str) -> None:
    if not _REVISION.match(value):
        raise InvalidRequestError(f"{ascii(value)[:60]} is no revision: use 7 to 40 lowercase hex digits.")


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
REVISION: Final = Parameter(
    name="revision", about="As it was at this revision.", schema=_REVISION_SCHEMA, check=_check_revision
)
ANY_PROJECT: Final = Parameter(name="projectId", about="Only this project's.", schema=RESOURCE_ID, check=_check_nothing)
ANY_ENVIRONMENT: Final = Parameter(
    name="environment", about="Only this environment's.", schema=_ENVIRONMENT, check=_check_environment
)
