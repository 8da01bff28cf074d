"""What goes out to a client: results as structured content and as text, errors that a model can act on."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from gitmem.errors import ErrorCode, GitmemError


def answered(result: dict[str, Any]) -> types.CallToolResult:
    """The outcome of a tool."""
    return _reply(result, is_error=False)


def failed(error: Exception) -> types.CallToolResult:
    """A tool error: what was wrong, and what the model can do about it."""
    if isinstance(error, GitmemError):
        code, message = str(error.code), error.message
    else:
        code, message = "internal", f"gitmem failed unexpectedly: {type(error).__name__}: {error}"[:300]
    return _reply({"error": {"code": code, "message": message}}, is_error=True)


def refusal(error: GitmemError, uri: str) -> MCPError:
    """The protocol's error for a resource that cannot be read."""
    wrong = error.code in {ErrorCode.INVALID_REQUEST, ErrorCode.NOT_FOUND, ErrorCode.SESSION_CLOSED}
    code = types.INVALID_PARAMS if wrong else types.INTERNAL_ERROR
    return MCPError(code=code, message=harmless(error.message), data={"code": str(error.code), "uri": harmless(uri)})


def harmless(text: str) -> str:
    """`text` with U+FFFD for lone surrogates: UTF-8 has no form for one, and sending it would end the server."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _reply(value: dict[str, Any], *, is_error: bool) -> types.CallToolResult:
    text = harmless(json.dumps(value, ensure_ascii=False))
    said = value["error"]["message"] if is_error else text
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=harmless(said))],
        structured_content=json.loads(text),
        is_error=is_error,
    )
