"""gitmem: a document memory for AI agents that lives in Git.

store = gitmem.open_store("memory", create=True)
env = store.project("workshop-bot").environment("development")
"""

from __future__ import annotations

# Not from typing: that would cost `gitmem textconv` a third of its time.
TYPE_CHECKING = False  # ruff: ignore[non-empty-init-module]
if TYPE_CHECKING:
    from typing import Any

    from gitmem.admission import BindingState
    from gitmem.bindings import Binding
    from gitmem.client.client import Client
    from gitmem.conflicts import DocumentConflict
    from gitmem.documents import Documents
    from gitmem.environment.adopting import Adopted, Adoption, Discarded
    from gitmem.environment.settings import Settings
    from gitmem.environment.status import FileStatus, Status
    from gitmem.errors import (
        BusyError,
        ConflictError,
        DamagedError,
        ErrorCode,
        ForbiddenError,
        GitmemError,
        IdempotencyKeyReusedError,
        InstructionsRefusedError,
        InvalidCursorError,
        InvalidDocumentError,
        InvalidRequestError,
        LimitExceededError,
        NotFoundError,
        PreconditionFailedError,
        PreconditionRequiredError,
        ProjectNotFoundError,
        Refused,
        RefusedTextError,
        RemoteHistoryError,
        RemoteRefusedError,
        RemoteUnreachableError,
        SecretRefusedError,
        SessionClosedError,
        StorageError,
        ToolArgumentError,
        UnauthorizedError,
    )
    from gitmem.events import SessionEvent
    from gitmem.git.remotes import Remote
    from gitmem.memory import define_memory, document_memory
    from gitmem.recall import MemorySource, MemoryView
    from gitmem.records import (
        Deployment,
        Document,
        DocumentInfo,
        History,
        Memory,
        NewDocument,
        Page,
        Provider,
        Resource,
        Revision,
        Version,
        Writer,
    )
    from gitmem.render import Render
    from gitmem.results import Conflict, ListedDocument, ListedDocuments, ReadDocument, Rejected, Saved
    from gitmem.sessions import Session, SessionInfo, SessionPage, Sessions
    from gitmem.starting import Started, StartedDocument
    from gitmem.store import Environment, Project, Store, open_store
    from gitmem.syncing import Synced
    from gitmem.toolbox import Toolbox
    from gitmem.tools import Tools, ToolSpec

__all__ = [
    "Adopted",
    "Adoption",
    "Binding",
    "BindingState",
    "BusyError",
    "Client",
    "Conflict",
    "ConflictError",
    "DamagedError",
    "Deployment",
    "Discarded",
    "Document",
    "DocumentConflict",
    "DocumentInfo",
    "Documents",
    "Environment",
    "ErrorCode",
    "FileStatus",
    "ForbiddenError",
    "GitmemError",
    "History",
    "IdempotencyKeyReusedError",
    "InstructionsRefusedError",
    "InvalidCursorError",
    "InvalidDocumentError",
    "InvalidRequestError",
    "LimitExceededError",
    "ListedDocument",
    "ListedDocuments",
    "Memory",
    "MemorySource",
    "MemoryView",
    "NewDocument",
    "NotFoundError",
    "Page",
    "PreconditionFailedError",
    "PreconditionRequiredError",
    "Project",
    "ProjectNotFoundError",
    "Provider",
    "ReadDocument",
    "Refused",
    "RefusedTextError",
    "Rejected",
    "Remote",
    "RemoteHistoryError",
    "RemoteRefusedError",
    "RemoteUnreachableError",
    "Render",
    "Resource",
    "Revision",
    "Saved",
    "SecretRefusedError",
    "Session",
    "SessionClosedError",
    "SessionEvent",
    "SessionInfo",
    "SessionPage",
    "Sessions",
    "Settings",
    "Started",
    "StartedDocument",
    "Status",
    "StorageError",
    "Store",
    "Synced",
    "ToolArgumentError",
    "ToolSpec",
    "Toolbox",
    "Tools",
    "UnauthorizedError",
    "Version",
    "Writer",
    "define_memory",
    "document_memory",
    "open_store",
]

_MODULES = (  # ruff: ignore[non-empty-init-module]
    "errors", "records", "memory", "store", "documents", "environment.settings", "environment.status",
    "environment.adopting", "bindings", "admission", "recall", "render", "results", "sessions", "starting", "events",
    "toolbox", "tools", "git.remotes", "conflicts", "syncing", "client.client",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: a command that needs few of them starts faster."""
    if name in __all__:
        from importlib import import_module

        for module in _MODULES:
            found = import_module(f"gitmem.{module}")
            if name in vars(found):
                return globals().setdefault(name, vars(found)[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
