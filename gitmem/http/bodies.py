"""The JSON bodies that requests bring: how they are read, and what fields they have."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.types import Receive

from gitmem.errors import ErrorCode, InvalidRequestError
from gitmem.http.answers import Refusal
from gitmem.limits import BINDINGS_PER_SESSION, BODY_BYTES, MAX_BYTES_CEILING, MAX_BYTES_DEFAULT
from gitmem.strictjson import loads

BODY_SECONDS: Final = 30.0

AgentWrites = Literal["enabled", "disabled"]
Title = Annotated[str, Meta(min_length=1, description="1 to 240 UTF-8 bytes.")]
Summary = Annotated[str, Meta(description="At most 240 UTF-8 bytes.")]
Text = Annotated[str, Meta(description="At most the resource's maxBytes, in UTF-8.")]
RevisionText = Annotated[str, Meta(pattern="^[0-9a-f]{7,40}$", description="A revision of the document's history.")]
Name = Annotated[str, Meta(pattern="^[a-z0-9]+(-[a-z0-9]+)*$", min_length=1, max_length=128)]


_BINDINGS: Final = {
    "additionalProperties": {
        "type": "object",
        "properties": {
            "scope": {"enum": ["document", "collection"]},
            "id": {"type": "string", "description": "The document; a collection has none."},
            "access": {"enum": ["read", "read-write"], "default": "read"},
        },
        "required": ["scope"],
        "additionalProperties": False,
    },
    "maxProperties": BINDINGS_PER_SESSION,
}


class Body(Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The base of every body: unknown fields are refused."""


class CreateDocument(Body):
    title: Title
    text: Text = ""
    summary: Summary = ""
    agent_writes: AgentWrites = "enabled"


class ReplaceDocument(Body):
    text: Text
    summary: Summary | UnsetType = UNSET


class PatchDocument(Body):
    title: Title | UnsetType = UNSET
    agent_writes: AgentWrites | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.title is UNSET and self.agent_writes is UNSET:
            raise ValueError("Nothing to change: give title, agentWrites, or both")


class RestoreDocument(Body):
    revision: RevisionText


class ProviderBody(Body):
    kind: Literal["document"] = "document"
    max_bytes: Annotated[int, Meta(ge=1, le=MAX_BYTES_CEILING)] = MAX_BYTES_DEFAULT


class DeclareMemory(Body):
    id: Name
    description: Annotated[str, Meta(min_length=1, pattern=r"\S", description="What the memory is for.")]
    provider: ProviderBody = msgspec.field(default_factory=ProviderBody)


class Deploy(Body):
    agent_id: Name
    alias: Literal["development", "production"]
    memory: list[DeclareMemory]


class CreateSession(Body):
    agent_id: Annotated[str, Meta(description="<agent-id>@development or <agent-id>@production.")] | UnsetType = UNSET
    deployment_id: (
        Annotated[str, Meta(description="One deployment, instead of the agent's active one.")] | UnsetType
    ) = UNSET
    memory: Annotated[dict[str, Any], Meta(extra_json_schema=_BINDINGS)] = msgspec.field(default_factory=dict)
    project_id: Name | UnsetType = UNSET
    source: Annotated[str, Meta(description="Where the session comes from.")] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.agent_id is UNSET) == (self.deployment_id is UNSET):
            raise ValueError("Give agentId, or else deploymentId")


class RenderMemory(Body):
    render: (
        Annotated[str, Meta(description="An earlier render, to be narrowed to select; nothing is recalled.")]
        | UnsetType
    ) = UNSET
    select: (
        Annotated[list[str], Meta(description="The resources to expose; all that are bound unless given.")] | UnsetType
    ) = UNSET


class CallTool(Body):
    render: Annotated[str, Meta(description="The render that offered the tool.")]
    arguments: dict[str, Any]


class FileBody(Struct, forbid_unknown_fields=True, kw_only=True):
    """The base of the bodies of seed 003, whose names are snake_case."""


FileScope = Literal["personal", "team"]
FilePath = Annotated[str, Meta(description="MEMORY.md, or a note such as web-app.md.")]
ExpectedRevision = Annotated[
    str | UnsetType | None,
    Meta(description="The revision as last read; null: there is no such file; left out: whatever it holds."),
]


class PutFile(FileBody):
    scope: FileScope
    path: FilePath
    content: Annotated[str, Meta(description="The whole new text.")]
    expected_revision_id: ExpectedRevision = UNSET


class RestoreFile(FileBody):
    scope: FileScope
    path: FilePath
    revision_id: RevisionText
    expected_revision_id: ExpectedRevision = UNSET


class SwitchMemory(FileBody):
    scope: Literal["personal"]
    enabled: bool


def is_absent(headers: Mapping[str, list[str]]) -> bool:
    """Whether a request has no body at all."""
    return "transfer-encoding" not in headers and headers.get("content-length", ["0"]) == ["0"]


def check_media_type(headers: Mapping[str, list[str]]) -> None:
    """Raises Refusal (415) unless the body is plain JSON in UTF-8."""
    kind, _, parameters = ",".join(headers.get("content-type", ())).partition(";")
    charset = parameters.replace(" ", "").replace('"', "").lower().partition("charset=")[2].partition(";")[0]
    if kind.strip(" \t").lower() != "application/json" or charset not in {"", "utf-8", "utf8"}:
        raise _unsupported("The body must be JSON in UTF-8: send Content-Type: application/json.")
    for encoding in headers.get("content-encoding", ()):
        if encoding.strip(" \t").lower() not in {"", "identity"}:
            raise _unsupported("The body must not be compressed: leave Content-Encoding out.")


async def read(
    receive: Receive, headers: Mapping[str, list[str]], seconds: float = BODY_SECONDS, limit: int = BODY_BYTES
) -> bytes:
    """The whole body. Raises Refusal: 413 above `limit` bytes, 408 where it does not come; ConnectionError."""
    announced = headers.get("content-length", ["0"])[0]
    if not announced.isdecimal() or len(announced) > 9 or int(announced) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionError
                body += message.get("body", b"")
                if len(body) > limit:
                    raise _too_large(limit)
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        what = f"The body did not come within {seconds:g} s. Nothing was changed; send it again."
        raise Refusal(408, ErrorCode.INVALID_REQUEST, what, ((b"connection", b"close"),)) from None


def parse(body: bytes) -> Any:
    """What the body says. Raises InvalidRequestError unless it is strict JSON."""
    try:
        return loads(body)
    except UnicodeDecodeError:
        raise InvalidRequestError("The body is not UTF-8.") from None
    except ValueError as error:
        raise InvalidRequestError(f"The body is not JSON: {' '.join(str(error).split())[:120]}.") from None


def decode(value: Any, kind: type[Struct]) -> Struct:
    """The body's fields. Raises InvalidRequestError, naming the field."""
    try:
        body = msgspec.convert(value, kind)
        # JSON can spell half of a character, which no UTF-8 holds: encoding it finds that.
        msgspec.json.encode(body)
    except msgspec.ValidationError as error:
        raise InvalidRequestError(f"The body does not fit: {' '.join(str(error).split())[:200]}.") from None
    except UnicodeEncodeError:
        raise InvalidRequestError("The body holds a lone surrogate, which is not text. Remove it.") from None
    return body


def _unsupported(message: str) -> Refusal:
    return Refusal(415, ErrorCode.INVALID_REQUEST, message)


def _too_large(limit: int) -> Refusal:
    return Refusal(413, ErrorCode.MEMORY_LIMIT_EXCEEDED, f"The body has more than {limit} bytes. Shorten it.")
