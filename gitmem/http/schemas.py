"""What answers look like, as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from gitmem.errors import ErrorCode
from gitmem.limits import BINDINGS_PER_SESSION, MAX_BYTES_CEILING, PAGE_DOCUMENTS
from gitmem.results import Reason

Schema = Mapping[str, Any]

RESOURCE_ID: Final[Schema] = {
    "type": "string",
    "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$",
    "minLength": 1,
    "maxLength": 128,
}
DOCUMENT_ID: Final[Schema] = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"}
ENVIRONMENT: Final[Schema] = {"type": "string", "enum": ["development", "production"]}
REVISION: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{7,40}$"}
_STRING: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_CURSOR: Final[Schema] = {"type": ["string", "null"], "description": "null on the last page"}
_INTERNAL: Final = "internal"


def reference(name: str) -> Schema:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(**properties: Schema) -> Schema:
    return _object_without((), properties)


def _object_without(optional: Sequence[str], properties: Mapping[str, Schema]) -> Schema:
    """An object some of whose properties may be left out."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _nullable(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def _list(item: Schema, at_most: int | None = None) -> Schema:
    return {"type": "array", "items": item} | ({} if at_most is None else {"maxItems": at_most})


_INFO: Final[dict[str, Schema]] = {
    "id": DOCUMENT_ID,
    "title": _STRING,
    "summary": _STRING,
    "agentWrites": {"type": "string", "enum": ["enabled", "disabled"]},
    "revision": {"type": "string", "description": "Opaque; in quotes it is the ETag."},
    "bytes": {**_COUNT, "description": "UTF-8 bytes of the text."},
    "maxBytes": {"type": "integer", "minimum": 1, "maximum": MAX_BYTES_CEILING},
    "updatedAt": _TIME,
    "writer": reference("Writer"),
}

_LISTED: Final[dict[str, Schema]] = {
    "id": DOCUMENT_ID,
    "title": _STRING,
    "summary": _STRING,
    "revision": _STRING,
    "updatedAt": _TIME,
}

_PROVIDER: Final = _object(kind=_STRING, maxBytes=_INFO["maxBytes"])
_DEPLOYMENT: Final[dict[str, Schema]] = {
    "id": _STRING,
    "agentId": RESOURCE_ID,
    "alias": ENVIRONMENT,
    "createdAt": _TIME,
}

_FILE: Final[dict[str, Schema]] = {
    "scope": {"type": "string", "enum": ["personal", "team"]},
    "path": _STRING,
    "revision_id": _STRING,
    "updated_at": _TIME,
    "updated_by": _STRING,
}

ANSWERS: Final[Mapping[str, Schema]] = {
    "Writer": {
        "oneOf": [
            _object(kind={"const": "owner"}),
            _object(kind={"const": "agent"}, sessionId={"type": ["string", "null"]}),
        ]
    },
    "Document": _object(**_INFO, text=_STRING),
    "DocumentInfo": _object(**_INFO),
    "DocumentList": _object(documents=_list(reference("DocumentInfo"), PAGE_DOCUMENTS), nextCursor=_CURSOR),
    "Version": _object(
        revision=_STRING,
        operation={"type": "string", "description": "create, replace, retitle, freeze, delete, ..."},
        title=_STRING,
        bytes=_COUNT,
        updatedAt=_TIME,
        writer=reference("Writer"),
        message=_STRING,
    ),
    "History": _object(versions=_list(reference("Version"), PAGE_DOCUMENTS), nextCursor=_CURSOR),
    "Resource": _object(
        id=RESOURCE_ID,
        provider=_PROVIDER,
        declared={"type": "boolean", "description": "Whether an active deployment declares it."},
        documents={**_COUNT, "description": "Documents that are not deleted."},
    ),
    "ResourceList": _object(resources=_list(reference("Resource"))),
    "Deployment": _object(**_DEPLOYMENT),
    "Memory": _object(id=RESOURCE_ID, description=_STRING, provider=_PROVIDER),
    "WholeDeployment": _object(**_DEPLOYMENT, memory=_list(reference("Memory"))),
    "AgentList": _object(
        agents=_list(_object(id=RESOURCE_ID, projectId=RESOURCE_ID, deployments=_list(reference("WholeDeployment"))))
    ),
    "BindingState": _object_without(
        ("id",),
        {
            "resource": RESOURCE_ID,
            "scope": {"enum": ["document", "collection"]},
            "id": DOCUMENT_ID,
            "access": {"enum": ["read", "read-write"]},
            "writable": {"type": "boolean", "description": "Whether a save could succeed now."},
        },
    ),
    "Session": _object(
        id=_STRING,
        agentId=RESOURCE_ID,
        alias=ENVIRONMENT,
        deploymentId=_STRING,
        status={"enum": ["active", "ended"]},
        createdAt=_TIME,
        endedAt=_nullable(_TIME),
        source=_nullable(_STRING),
        memory=_list(reference("BindingState"), BINDINGS_PER_SESSION),
    ),
    "StartedSession": _object(session=reference("Session"), deployment=reference("Deployment")),
    "SessionList": _object(sessions=_list(reference("Session"), PAGE_DOCUMENTS), nextCursor=_CURSOR),
    "Event": _object(
        id=_STRING,
        seq={"type": "integer", "minimum": 1},
        type={"const": "memory.saved"},
        data=_object(resource=RESOURCE_ID, documentId=DOCUMENT_ID, revision=_STRING, bytes=_COUNT),
    ),
    "EventList": _object(events=_list(reference("Event"))),
    "MemoryView": _object(
        text={"type": "string", "description": "A document's text, or a collection's overview."},
        sources=_list(_object(id=DOCUMENT_ID, title=_STRING, revision=_STRING, updatedAt=_TIME)),
        writable={"type": "boolean", "description": "The permission at recall."},
    ),
    "Render": _object(
        render={"type": "string", "description": "Opaque; what a tool call names."},
        memory={"type": "object", "additionalProperties": reference("MemoryView")},
        tools=_list(_object(name=_STRING, description=_STRING, inputSchema={"type": "object"})),
    ),
    "ToolResult": {
        "oneOf": [
            _object(status={"const": "saved"}, revision=_STRING, bytes=_COUNT),
            _object(status={"const": "conflict"}, text=_STRING, summary=_STRING),
            _object_without(
                ("field", "bytes", "maxBytes", "bound"),
                {
                    "status": {"const": "rejected"},
                    "reason": {"enum": list(get_args(Reason))},
                    "field": {"enum": ["text", "summary"]},
                    "bytes": _COUNT,
                    "maxBytes": _COUNT,
                    "bound": _list(RESOURCE_ID),
                },
            ),
            _object(documents=_list(_object(**_LISTED), PAGE_DOCUMENTS), nextCursor=_CURSOR),
            _object(**_LISTED, text=_STRING),
        ]
    },
    "MemoryFile": _object(
        **_FILE, content=_STRING, updated={"type": "boolean", "description": "Whether this write changed something."}
    ),
    "MemoryFileList": _object(files=_list(_object(**_FILE, bytes=_COUNT), PAGE_DOCUMENTS), next_cursor=_CURSOR),
    "FileRevisionList": _object(
        revisions=_list(
            _object(
                revision_id=_STRING,
                operation=_STRING,
                created_at=_TIME,
                created_by=_STRING,
                session_id=_nullable(_STRING),
                bytes=_COUNT,
            ),
            PAGE_DOCUMENTS,
        ),
        next_cursor=_CURSOR,
    ),
    "MemoryContext": _object(files=_list(reference("MemoryFile"), 2)),
    "MemorySwitch": _object(scope={"const": "personal"}, enabled={"type": "boolean"}),
    "Health": _object(status={"const": "ok"}),
    "Description": {"type": "object", "description": "This description: OpenAPI 3.1."},
    "Error": _object(
        error=_object(code={"type": "string", "enum": [*map(str, ErrorCode), _INTERNAL]}, message=_STRING)
    ),
}
