"""Every limit of seed 000's table, and a few of our own, in UTF-8 bytes, and the checks that hold them."""

from __future__ import annotations

import re

from gitmem.errors import InvalidRequestError, LimitExceededError

MAX_BYTES_DEFAULT = 8_192
MAX_BYTES_CEILING = 16_384
TITLE_BYTES = 240
SUMMARY_BYTES = 240
BODY_BYTES = 64 * 1024
BINDINGS_PER_SESSION = 8
IDEMPOTENCY_KEY_BYTES = 1_024
SOURCE_BYTES = 240
OVERVIEW_ENTRIES = 50
OVERVIEW_BYTES = 16 * 1024
PAGE_DOCUMENTS = 50
FILE_BYTES = 32 * 1024
INDEX_FILE_BYTES = 12 * 1024
FOLDER_FILES = 200
FILE_BODY_BYTES = 256 * 1024

_RESOURCE_ID = re.compile(r"(?=.{1,128}\Z)[a-z0-9]+(?:-[a-z0-9]+)*\Z", re.ASCII)
_CONTROL = r"[\x00-\x1f\x7f-\x9f]"
_REVISION = r"[0-9a-f]{7,40}\Z"
_DOCUMENT_ID = re.compile(r"[A-Za-z0-9_-]{1,128}\Z", re.ASCII)


def is_resource_id(value: object) -> bool:
    """Whether `value` is 1–128 lowercase letters or digits with single hyphens between."""
    return isinstance(value, str) and _RESOURCE_ID.match(value) is not None


def is_document_id(value: object) -> bool:
    """Whether `value` is 1–128 ASCII letters, digits, `-` or `_`."""
    return isinstance(value, str) and _DOCUMENT_ID.match(value) is not None


def check_resource_id(value: str, what: str = "resource id") -> str:
    """Return `value`, or raise InvalidRequestError. Projects and agents follow the same grammar."""
    if not is_resource_id(value):
        raise InvalidRequestError(
            f"{shown(value)} is not a {what}: use 1 to 128 lowercase letters or digits, "
            "with single hyphens between them."
        )
    return value


def check_document_id(value: str) -> str:
    """Return `value`, or raise InvalidRequestError."""
    if not is_document_id(value):
        raise InvalidRequestError(
            f"{shown(value)} is not a document id: use 1 to 128 ASCII letters, digits, '-' or '_'."
        )
    return value


def check_revision(value: str) -> str:
    """Return a revision, whole or shortened to seven digits or more, or raise InvalidRequestError."""
    if not isinstance(value, str) or not re.match(_REVISION, value):
        raise InvalidRequestError(f"{shown(value)} is not a revision: use 7 to 40 lowercase hex digits.")
    return value


def check_max_bytes(value: object) -> int:
    """Return `value`, or raise InvalidRequestError unless it is an integer from 1 to 16,384."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_BYTES_CEILING:
        raise InvalidRequestError(f"maxBytes must be an integer from 1 to {MAX_BYTES_CEILING}, not {shown(value)}.")
    return value


def utf8_size(field: str, value: object) -> int:
    """The UTF-8 length of a text field; raises InvalidRequestError where it has none."""
    if not isinstance(value, str):
        raise InvalidRequestError(f"{field} must be a string.")
    try:
        return len(value.encode())
    except UnicodeEncodeError:
        raise InvalidRequestError(f"{field} holds a lone surrogate, which is not text. Remove it.") from None


def check_title(value: str) -> str:
    """Return a title of 1 to 240 bytes, or raise."""
    size = utf8_size("title", value)
    if size == 0:
        raise InvalidRequestError("title is empty. Give one of 1 to 240 bytes.")
    if size > TITLE_BYTES:
        raise LimitExceededError("title", size, TITLE_BYTES)
    return value


def check_summary(value: str) -> str:
    """Return a summary of at most 240 bytes, or raise."""
    size = utf8_size("summary", value)
    if size > SUMMARY_BYTES:
        raise LimitExceededError("summary", size, SUMMARY_BYTES)
    return value


def check_text(value: str, max_bytes: int) -> str:
    """Return a text of at most `max_bytes`, or raise."""
    size = utf8_size("text", value)
    if size > max_bytes:
        raise LimitExceededError("text", size, max_bytes)
    return value


def file_limit(path: str) -> int:
    """The most bytes that a memory file may have (seed 003)."""
    return INDEX_FILE_BYTES if path == "MEMORY.md" else FILE_BYTES


def check_agent_writes(value: str) -> str:
    """Return "enabled" or "disabled", or raise."""
    if value not in ("enabled", "disabled"):
        raise InvalidRequestError(f'agentWrites must be "enabled" or "disabled", not {shown(value)}.')
    return value


def check_idempotency_key(value: str) -> str:
    """Return a key of 1 to 1,024 bytes without control characters, or raise InvalidRequestError."""
    size = utf8_size("The idempotency key", value)
    if not 0 < size <= IDEMPOTENCY_KEY_BYTES or re.search(_CONTROL, value):
        raise InvalidRequestError(
            f"The idempotency key must have 1 to {IDEMPOTENCY_KEY_BYTES} bytes and no control characters."
        )
    return value


def check_source(value: str) -> str:
    """Return a word on where a session comes from, of at most 240 bytes, or raise."""
    size = utf8_size("source", value)
    if size > SOURCE_BYTES:
        raise LimitExceededError("source", size, SOURCE_BYTES)
    return value


def shown(value: object) -> str:
    """A value as an error may quote it: ASCII and short."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
