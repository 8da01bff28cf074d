"""The one tree of errors, with the tables that turn a code into a status.

GitmemError
├── InvalidRequestError          the caller must change the request
│   ├── InvalidCursorError
│   ├── ToolArgumentError        a model called a tool with arguments that are not the tool's
│   └── InvalidDocumentError     a file that is not a document
├── FileRefusedError             a memory file may not have this path, or hold this text
│   ├── InvalidPathError
│   ├── FileTooLargeError
│   └── EmptyFileError
├── LimitExceededError           a field is too large
├── NotFoundError                look elsewhere
│   └── ProjectNotFoundError
│       └── OrganizationNotFoundError
├── PreconditionError            read again, then decide
│   ├── PreconditionFailedError
│   ├── RevisionConflictError
│   └── PreconditionRequiredError
├── ConflictError                the key or the name is taken by something else
│   ├── IdempotencyKeyReusedError
│   ├── FolderFullError
│   └── MemoryDisabledError
├── SessionClosedError           the session has ended; start another
├── RefusedTextError             the text holds what must not be kept
│   ├── SecretRefusedError
│   └── InstructionsRefusedError
├── AccessError                  who asks may not
│   ├── UnauthorizedError
│   └── ForbiddenError
├── BusyError                    wait, then ask again
├── RemoteError                  a Git remote: nothing was changed here
│   ├── RemoteUnreachableError   wait, then ask again
│   ├── RemoteRefusedError       it does not exist, lets nobody in, or refuses the push
│   └── RemoteHistoryError       it was rewritten, emptied, or is another history: a person decides
└── StorageError                 the disk or the repository needs a person
    └── DamagedError
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple


class ErrorCode(StrEnum):
    """Every stable code. Append only: other programs compare these strings."""

    INVALID_REQUEST = "invalid_request"
    INVALID_CURSOR = "invalid_cursor"
    INVALID_DOCUMENT = "invalid_document"
    NOT_FOUND = "not_found"
    PROJECT_NOT_FOUND = "project_not_found"
    PRECONDITION_FAILED = "precondition_failed"
    PRECONDITION_REQUIRED = "precondition_required"
    MEMORY_LIMIT_EXCEEDED = "memory_limit_exceeded"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    SESSION_CLOSED = "session_closed"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    BUSY = "busy"
    STORAGE_FAILED = "storage_failed"
    DAMAGED = "damaged"
    REMOTE_UNREACHABLE = "remote_unreachable"
    REMOTE_REFUSED = "remote_refused"
    REMOTE_HISTORY = "remote_history"
    ORGANIZATION_NOT_FOUND = "organization_not_found"
    REVISION_CONFLICT = "revision_conflict"
    FOLDER_FULL = "folder_full"
    MEMORY_DISABLED = "memory_disabled"
    INVALID_PATH = "invalid_path"
    TOO_LARGE = "too_large"
    EMPTY = "empty"
    SECRET_REFUSED = "secret_refused"
    INSTRUCTIONS_REFUSED = "instructions_refused"


HTTP_STATUS: dict[ErrorCode, int] = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.INVALID_CURSOR: 400,
    ErrorCode.INVALID_DOCUMENT: 400,
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.PROJECT_NOT_FOUND: 404,
    ErrorCode.IDEMPOTENCY_CONFLICT: 409,
    ErrorCode.IDEMPOTENCY_KEY_REUSED: 409,
    ErrorCode.SESSION_CLOSED: 409,
    ErrorCode.PRECONDITION_FAILED: 412,
    ErrorCode.MEMORY_LIMIT_EXCEEDED: 413,
    ErrorCode.SECRET_REFUSED: 422,
    ErrorCode.INSTRUCTIONS_REFUSED: 422,
    ErrorCode.PRECONDITION_REQUIRED: 428,
    ErrorCode.STORAGE_FAILED: 500,
    ErrorCode.DAMAGED: 500,
    ErrorCode.REMOTE_HISTORY: 409,
    ErrorCode.REMOTE_REFUSED: 502,
    ErrorCode.REMOTE_UNREACHABLE: 503,
    ErrorCode.BUSY: 503,
    ErrorCode.ORGANIZATION_NOT_FOUND: 404,
    ErrorCode.REVISION_CONFLICT: 409,
    ErrorCode.FOLDER_FULL: 409,
    ErrorCode.MEMORY_DISABLED: 409,
    ErrorCode.INVALID_PATH: 422,
    ErrorCode.TOO_LARGE: 422,
    ErrorCode.EMPTY: 422,
}

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_CONFLICTS_LEFT = 3

EXIT_STATUS: dict[ErrorCode, int] = {
    code: EXIT_USAGE if code is ErrorCode.INVALID_REQUEST else EXIT_FAILED for code in ErrorCode
}


class GitmemError(Exception):
    """Base of every error that gitmem raises on purpose.

    `code` is stable; the message is one line for a person and says what to do.
    """

    code: ErrorCode

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def data(self) -> dict[str, Any]:
        """What a program needs beside code and message, as JSON; most errors have nothing."""
        return {}


class InvalidRequestError(GitmemError):
    """The request itself is wrong: an id outside the grammar, an unknown field."""

    code = ErrorCode.INVALID_REQUEST


class InvalidCursorError(InvalidRequestError):
    """The cursor was not made by this listing."""

    code = ErrorCode.INVALID_CURSOR


class ToolArgumentError(InvalidRequestError):
    """A tool does not exist, or its arguments are not what its schema says: a tool error for the model."""


class InvalidDocumentError(InvalidRequestError):
    """The bytes of a file are not a document of the format."""

    code = ErrorCode.INVALID_DOCUMENT


class LimitExceededError(GitmemError):
    """A field is larger than its limit; sizes are UTF-8 bytes."""

    code = ErrorCode.MEMORY_LIMIT_EXCEEDED

    def __init__(self, field: str, size: int, limit: int) -> None:
        super().__init__(f"{field} has {size} bytes; the limit is {limit}. Shorten it.")
        self.field = field
        self.bytes = size
        self.max_bytes = limit

    @property
    def data(self) -> dict[str, Any]:
        return {"field": self.field, "bytes": self.bytes, "maxBytes": self.max_bytes}


class FileRefusedError(GitmemError):
    """A memory file may not have this path, or hold this text (seed 003)."""


class InvalidPathError(FileRefusedError):
    """The path breaks a rule, which the message names."""

    code = ErrorCode.INVALID_PATH


class FileTooLargeError(FileRefusedError):
    """The text is over the limit of a note, or of MEMORY.md."""

    code = ErrorCode.TOO_LARGE

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"The text has {size} bytes; the limit is {limit}. Shorten it, or use several notes.")
        self.bytes = size
        self.max_bytes = limit

    @property
    def data(self) -> dict[str, Any]:
        return {"bytes": self.bytes, "maxBytes": self.max_bytes}


class EmptyFileError(FileRefusedError):
    """A note without any text."""

    code = ErrorCode.EMPTY


class NotFoundError(GitmemError):
    """The thing named does not exist, or was deleted."""

    code = ErrorCode.NOT_FOUND


class ProjectNotFoundError(NotFoundError):
    """The store has no such project."""

    code = ErrorCode.PROJECT_NOT_FOUND


class OrganizationNotFoundError(ProjectNotFoundError):
    """The store has no such organisation, which is a project."""

    code = ErrorCode.ORGANIZATION_NOT_FOUND


class PreconditionError(GitmemError):
    """The condition that a write depends on is missing or does not hold."""


class PreconditionFailedError(PreconditionError):
    """The revision is stale, or the id was already used.

    `expected` is what the caller named; `actual` is the current revision, None for a deleted id.
    """

    code = ErrorCode.PRECONDITION_FAILED

    def __init__(self, message: str, *, expected: str | None = None, actual: str | None = None) -> None:
        super().__init__(message)
        self.expected = expected
        self.actual = actual

    @property
    def data(self) -> dict[str, Any]:
        return {"expected": self.expected, "actual": self.actual}


class RevisionConflictError(PreconditionError):
    """A memory file is not at the revision that the caller expects; None stands for no file."""

    code = ErrorCode.REVISION_CONFLICT

    def __init__(self, message: str, *, expected: str | None = None, actual: str | None = None) -> None:
        super().__init__(message)
        self.expected = expected
        self.actual = actual

    @property
    def data(self) -> dict[str, Any]:
        return {"expected": self.expected, "actual": self.actual}


class PreconditionRequiredError(PreconditionError):
    """A mutation came without the revision that it replaces."""

    code = ErrorCode.PRECONDITION_REQUIRED


class ConflictError(GitmemError):
    """The idempotency key already stands for something else."""

    code = ErrorCode.IDEMPOTENCY_CONFLICT


class IdempotencyKeyReusedError(ConflictError):
    """The same, as the helpers and the command line say it."""

    code = ErrorCode.IDEMPOTENCY_KEY_REUSED


class FolderFullError(ConflictError):
    """The folder holds as many notes as one may."""

    code = ErrorCode.FOLDER_FULL


class MemoryDisabledError(ConflictError):
    """The member has turned personal memory off."""

    code = ErrorCode.MEMORY_DISABLED


class SessionClosedError(GitmemError):
    """The session has ended, and with it its access to memory."""

    code = ErrorCode.SESSION_CLOSED


class Refused(NamedTuple):
    """One reason for a refusal: a kind such as "github-token", the field that holds it, and its line there from 1."""

    kind: str
    field: str
    line: int


class RefusedTextError(GitmemError):
    """Screening found what must not be kept; nothing of the text was stored, nor is it in any message."""

    def __init__(self, message: str, found: Sequence[Refused] = ()) -> None:
        super().__init__(message)
        self.found = tuple(found)

    @property
    def data(self) -> dict[str, Any]:
        return {"findings": [found._asdict() for found in self.found]}


class SecretRefusedError(RefusedTextError):
    """The text holds a secret, such as a key or a password."""

    code = ErrorCode.SECRET_REFUSED


class InstructionsRefusedError(RefusedTextError):
    """The text holds instructions aimed at a later session."""

    code = ErrorCode.INSTRUCTIONS_REFUSED


class AccessError(GitmemError):
    """Who asks may not do this."""


class UnauthorizedError(AccessError):
    """No valid key came with the request."""

    code = ErrorCode.UNAUTHORIZED


class ForbiddenError(AccessError):
    """The key is valid, but not for this."""

    code = ErrorCode.FORBIDDEN


class BusyError(GitmemError):
    """Somebody else holds the repository; the same call may succeed later."""

    code = ErrorCode.BUSY


class RemoteError(GitmemError):
    """Another repository stands in the way; nothing was changed here."""


class RemoteUnreachableError(RemoteError):
    """The remote does not answer, or not in time; the same call may succeed later."""

    code = ErrorCode.REMOTE_UNREACHABLE


class RemoteRefusedError(RemoteError):
    """The remote does not exist, lets nobody in, or refuses what was pushed."""

    code = ErrorCode.REMOTE_REFUSED


class RemoteHistoryError(RemoteError):
    """The remote's history was rewritten or emptied, or has nothing to do with ours."""

    code = ErrorCode.REMOTE_HISTORY


class StorageError(GitmemError):
    """The disk refused, or the folder is not what it should be; nothing was changed."""

    code = ErrorCode.STORAGE_FAILED


class DamagedError(StorageError):
    """A stored object cannot be read. `object` is its name; the rest stays readable."""

    code = ErrorCode.DAMAGED

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.object = name

    @property
    def data(self) -> dict[str, Any]:
        return {"object": self.object}


_PLAIN: dict[str, type[GitmemError]] = {
    found.code: found
    for found in (
        InvalidRequestError, InvalidCursorError, InvalidDocumentError, NotFoundError, ProjectNotFoundError,
        PreconditionRequiredError, ConflictError, IdempotencyKeyReusedError, SessionClosedError, UnauthorizedError,
        ForbiddenError, BusyError, FolderFullError, MemoryDisabledError, OrganizationNotFoundError, InvalidPathError,
        EmptyFileError, RemoteUnreachableError, RemoteRefusedError, RemoteHistoryError, StorageError,
    )
}  # fmt: skip


def error_from(code: str, message: str, data: Mapping[str, Any]) -> GitmemError:
    """The error that another process raised, from its code, message and `data`.

    A code that this version does not know is a StorageError: somebody must look.
    """
    match code:
        case ErrorCode.MEMORY_LIMIT_EXCEEDED:
            return LimitExceededError(data.get("field", "body"), data.get("bytes", 0), data.get("maxBytes", 0))
        case ErrorCode.PRECONDITION_FAILED:
            return PreconditionFailedError(message, expected=data.get("expected"), actual=data.get("actual"))
        case ErrorCode.REVISION_CONFLICT:
            return RevisionConflictError(message, expected=data.get("expected"), actual=data.get("actual"))
        case ErrorCode.TOO_LARGE:
            return FileTooLargeError(data.get("bytes", 0), data.get("maxBytes", 0))
        case ErrorCode.DAMAGED:
            return DamagedError(data.get("object", ""), message)
        case ErrorCode.SECRET_REFUSED | ErrorCode.INSTRUCTIONS_REFUSED:
            kind = SecretRefusedError if code == ErrorCode.SECRET_REFUSED else InstructionsRefusedError
            return kind(message, [Refused(**found) for found in data.get("findings", ())])
    return _PLAIN.get(code, StorageError)(message)
