"""/openapi.json, made from the table of operations."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

import msgspec

from gitmem.http.answers import DETAILS
from gitmem.http.operations import Condition, Operation, Parameter
from gitmem.http.parameters import ORGANIZATION, PROJECT
from gitmem.http.schemas import ANSWERS, Schema, reference

_REFERENCES: Final = "#/components/schemas/{name}"
_TAG: Final[Schema] = {"ETag": {"description": "The revision in quotes, for If-Match.", "schema": {"type": "string"}}}
_DETAILS: Final[Schema] = {
    DETAILS: {
        "description": "JSON: actual revision (412); field, bytes and maxBytes (413); object that is damaged (500); "
        "code invalid_cursor (400).",
        "schema": {"type": "string"},
    }
}
_ERROR_HEADERS: Final[dict[int, Schema]] = {
    400: _DETAILS,
    412: _DETAILS,
    413: _DETAILS,
    500: _DETAILS,
    401: {"WWW-Authenticate": {"schema": {"const": 'Bearer realm="gitmem"'}}},
    503: {"Retry-After": {"description": "In seconds.", "schema": {"type": "integer"}}},
}
_TAGS: Final = r'(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*'
_MEANING: Final = {
    400: "invalid_request: the parameters, condition or body are wrong.",
    401: "unauthorized: no valid API key came along.",
    403: "forbidden: the key is not for this, or the Host or Origin is foreign.",
    404: "project_not_found or not_found: it does not exist, or was deleted.",
    408: "invalid_request: the body did not come in time.",
    409: "idempotency_conflict: the key stands for something else; session_closed: the session has ended; "
    "revision_conflict, folder_full or memory_disabled: the memory file may not be written now.",
    412: "precondition_failed: the revision is stale, or the id was used before.",
    413: "memory_limit_exceeded: a field or the body is too large.",
    415: "invalid_request: the body is not plain JSON.",
    422: "invalid_path, too_large, empty, secret_refused or instructions_refused: it is no text to keep there.",
    428: "precondition_required: the condition header is missing.",
    500: "storage_failed, damaged or internal: the server needs a person.",
    503: "busy: try again after Retry-After seconds.",
}


def describe(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 description of these operations."""
    paths: dict[str, dict[str, Any]] = {}
    kinds: set[type] = set()
    for operation in operations:
        kinds |= {kind for kind in (operation.body, operation.create) if kind is not None}
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    _, bodies = msgspec.json.schema_components(sorted(kinds, key=lambda kind: kind.__name__), ref_template=_REFERENCES)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gitmem",
            "version": version,
            "description": "A document memory for AI agents that lives in Git.",
        },
        "paths": paths,
        "components": {
            "schemas": {**ANSWERS, **bodies},
            "securitySchemes": {
                "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.about,
        "parameters": [
            *map(_in_path, _path_parameters(operation)),
            *map(_in_query, operation.query),
            *map(_in_header, operation.headers),
            *_condition_headers(operation.condition),
        ],
        "responses": {str(status): response for status, response in sorted(_responses(operation).items())},
        "security": [{"apiKey": []}, {"bearer": []}] if operation.access else [],
    }
    if operation.body is not None:
        described["requestBody"] = {"required": not operation.bodiless, "content": _content(_body(operation))}
    return described


def _path_parameters(operation: Operation) -> tuple[Parameter, ...]:
    if "{orgId}" in operation.path:
        return (ORGANIZATION, *operation.ids)
    return (PROJECT, *operation.ids) if "{projectId}" in operation.path else operation.ids


def _in_path(parameter: Parameter) -> Schema:
    return {**_parameter(parameter), "in": "path", "required": True}


def _in_query(parameter: Parameter) -> Schema:
    return {**_parameter(parameter), "in": "query", "required": parameter.required}


def _in_header(parameter: Parameter) -> Schema:
    return {**_parameter(parameter), "in": "header", "required": parameter.required}


def _parameter(parameter: Parameter) -> Schema:
    return {"name": parameter.name, "description": parameter.about, "schema": parameter.schema}


def _condition_headers(condition: Condition) -> list[Schema]:
    required = condition is Condition.CHANGE
    match = _header("If-Match", "The ETags that may be replaced, as they were read.", f"^{_TAGS}$", required)
    match condition:
        case Condition.READ:
            return [_header("If-None-Match", "ETags that are known already, or *.", rf"^(\*|{_TAGS})$")]
        case Condition.CHANGE:
            return [match]
        case Condition.PUT:
            about = "* to create; one of the two headers is required."
            return [match, _header("If-None-Match", about, r"^\*$")]
    return []


def _header(name: str, about: str, pattern: str, required: bool = False) -> Schema:
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "header", "description": about, "required": required, "schema": schema}


def _body(operation: Operation) -> Schema:
    names = [kind.__name__ for kind in (operation.body, operation.create) if kind is not None]
    references = [reference(name) for name in names]
    return references[0] if len(references) == 1 else {"anyOf": references}


def _responses(operation: Operation) -> dict[int, dict[str, Any]]:
    tagged = operation.tags or operation.condition is not Condition.NONE
    found: dict[int, dict[str, Any]] = {}
    for status, name in operation.success.items():
        found[status] = {"description": HTTPStatus(status).phrase}
        if name is not None:
            found[status] |= {"content": _content(reference(name))}
        if tagged and status != 204:
            found[status] |= {"headers": _TAG}
    for status in _errors(operation):
        found[status] = {
            "description": _MEANING[status],
            "content": _content(reference("Error")),
            "headers": _ERROR_HEADERS.get(status, {}),
        }
    return found


def _errors(operation: Operation) -> set[int]:
    errors = {403, 500, 503}
    if operation.access is not None:
        errors |= {400, 401, 404}
    if operation.body is not None:
        errors |= {408, 413, 415}
    if operation.condition in {Condition.CHANGE, Condition.PUT}:
        errors |= {412, 428}
    if "{orgId}" in operation.path:
        errors |= {422} if any(parameter.name == "path" for parameter in operation.query) else set()
        errors |= {409, 422} if operation.access == "write" else set()
    if "/sessions" in operation.path and operation.method == "POST":
        errors |= {409}
    return errors


def _content(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
