"""The bytes of a document's file: reading what people and gitmem write, writing one form."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from json.encoder import encode_basestring as _quote
from typing import Any, Final

from gitmem.errors import InvalidDocumentError
from gitmem.records import AgentWrites
from gitmem.strictjson import loads

TOMBSTONE: Final = b'{"deleted": true}\n'
MAX_FILE_BYTES: Final = 512 * 1024
_KEYS: Final = frozenset(("title", "summary", "agentWrites", "text"))


@dataclass(frozen=True, slots=True)
class Content:
    """What a live document's file says."""

    title: str
    summary: str
    agent_writes: AgentWrites
    text: str


def encode(content: Content) -> bytes:
    """The one form: fixed key order, two-space indent, text as an array of lines, a final newline."""
    lines = ",\n    ".join(map(_quote, content.text.split("\n")))
    return (
        f'{{\n  "title": {_quote(content.title)},\n  "summary": {_quote(content.summary)},\n'
        f'  "agentWrites": "{content.agent_writes}",\n  "text": [\n    {lines}\n  ]\n}}\n'
    ).encode()


def decode(data: bytes, document_id: str) -> Content | None:
    """What a file holds; None for a tombstone.

    Missing keys get their defaults (the title: the id). Raises InvalidDocumentError for anything
    that is not UTF-8 JSON of the format: a BOM, a duplicate or unknown key, NaN, a lone surrogate.
    Field limits are not checked here: an oversized document stays readable.
    """
    value = _parse(data)
    if value == {"deleted": True} and value["deleted"] is True:  # in Python, 1 equals True
        return None
    if not isinstance(value, dict):
        raise InvalidDocumentError("the file is not a JSON object")
    if unknown := value.keys() - _KEYS:
        raise InvalidDocumentError(f"the file has an unknown key {min(unknown)!a}")
    content = Content(
        title=_text(value.get("title", document_id), "title"),
        summary=_text(value.get("summary", ""), "summary"),
        agent_writes=_policy(value.get("agentWrites", "enabled")),
        text=_text(_joined(value.get("text", "")), "text"),
    )
    if not content.title:
        raise InvalidDocumentError("title is empty")
    return content


def encode_file(content: Content) -> bytes:
    """The one form of a memory file: its text as an array of lines."""
    lines = ",\n    ".join(map(_quote, content.text.split("\n")))
    return f'{{\n  "text": [\n    {lines}\n  ]\n}}\n'.encode()


def decode_file(data: bytes) -> Content:
    """What a memory file holds: its text. Raises InvalidDocumentError as `decode` does."""
    value = _parse(data)
    if not isinstance(value, dict):
        raise InvalidDocumentError("the file is not a JSON object")
    if unknown := value.keys() - {"text"}:
        raise InvalidDocumentError(f"the file has an unknown key {min(unknown)!a}")
    return file_content(_text(_joined(value.get("text", "")), "text"))


def file_content(text: str) -> Content:
    """The content of a memory file, which is nothing but text."""
    return Content("", "", "enabled", text)


def _parse(data: bytes) -> Any:
    if len(data) > MAX_FILE_BYTES:
        raise InvalidDocumentError(f"the file has {len(data)} bytes, more than any document")
    try:
        return loads(data)
    except UnicodeDecodeError:
        raise InvalidDocumentError("the file is not UTF-8") from None
    except ValueError as error:
        raise InvalidDocumentError(f"the file is not JSON: {_one_line(error)}") from None


def _one_line(error: ValueError) -> str:
    return str(error).replace("\n", " ")[:120]


def _joined(value: object) -> object:
    if isinstance(value, list) and value:
        with suppress(TypeError):  # not all of them are strings
            return "\n".join(value)
    return value


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        kind = "a string or a non-empty array of strings" if field == "text" else "a string"
        raise InvalidDocumentError(f"{field} is not {kind}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidDocumentError(f"{field} holds a lone surrogate") from None
    return value


def _policy(value: object) -> AgentWrites:
    if value == "enabled":
        return "enabled"
    if value == "disabled":
        return "disabled"
    raise InvalidDocumentError('agentWrites is neither "enabled" nor "disabled"')
