"""gitmem: a document memory for AI agents that lives in Git.

store = gitmem.open_store("memory", create=True)
env = store.project("workshop-bot").environment("development")
"""

from gitmem.documents import Documents
from gitmem.environment.settings import Settings
from gitmem.environment.status import FileStatus, Status
from gitmem.errors import (
    BusyError,
    ConflictError,
    DamagedError,
    ErrorCode,
    ForbiddenError,
    GitmemError,
    InvalidCursorError,
    InvalidDocumentError,
    InvalidRequestError,
    LimitExceededError,
    NotFoundError,
    PreconditionFailedError,
    PreconditionRequiredError,
    ProjectNotFoundError,
    StorageError,
    UnauthorizedError,
)
from gitmem.memory import define_memory, document_memory
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
from gitmem.store import Environment, Project, Store, open_store

__all__ = [
    "BusyError",
    "ConflictError",
    "DamagedError",
    "Deployment",
    "Document",
    "DocumentInfo",
    "Documents",
    "Environment",
    "ErrorCode",
    "FileStatus",
    "ForbiddenError",
    "GitmemError",
    "History",
    "InvalidCursorError",
    "InvalidDocumentError",
    "InvalidRequestError",
    "LimitExceededError",
    "Memory",
    "NewDocument",
    "NotFoundError",
    "Page",
    "PreconditionFailedError",
    "PreconditionRequiredError",
    "Project",
    "ProjectNotFoundError",
    "Provider",
    "Resource",
    "Revision",
    "Settings",
    "Status",
    "StorageError",
    "Store",
    "UnauthorizedError",
    "Version",
    "Writer",
    "define_memory",
    "document_memory",
    "open_store",
]
