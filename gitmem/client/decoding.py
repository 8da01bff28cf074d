"""From the API's JSON to the records of the library."""

from __future__ import annotations

from typing import Any

from gitmem.admission import BindingState
from gitmem.bindings import Binding
from gitmem.events import SessionEvent
from gitmem.files import FileRevision, FileRevisions, MemoryFile, MemoryFileInfo, MemoryFilePage
from gitmem.recall import MemorySource, MemoryView
from gitmem.records import (
    Deployment,
    Document,
    DocumentInfo,
    History,
    Memory,
    Page,
    Provider,
    Resource,
    Revision,
    Version,
    Writer,
)
from gitmem.results import Conflict, ListedDocument, ListedDocuments, ReadDocument, Rejected, Saved, SaveResult
from gitmem.sessions import SessionInfo
from gitmem.tools import Tools, ToolSpec


def document(value: Any) -> Document:
    return Document(text=value["text"], **_info(value))


def info(value: Any) -> DocumentInfo:
    return DocumentInfo(**_info(value))


def page(value: Any) -> Page:
    return Page(documents=tuple(map(info, value["documents"])), next_cursor=value["nextCursor"])


def history(value: Any) -> History:
    return History(versions=tuple(map(_version, value["versions"])), next_cursor=value["nextCursor"])


def resource(value: Any) -> Resource:
    return Resource(
        id=value["id"],
        provider=_provider(value["provider"]),
        declared=value["declared"],
        documents=value["documents"],
    )


def deployment(value: Any) -> Deployment:
    return Deployment(
        id=value["id"],
        agent_id=value["agentId"],
        alias=value["alias"],
        created_at=value["createdAt"],
        memory=tuple(map(_memory, value["memory"])),
    )


def session(value: Any) -> SessionInfo:
    return SessionInfo(
        id=value["id"],
        agent_id=value["agentId"],
        alias=value["alias"],
        deployment_id=value["deploymentId"],
        status=value["status"],
        created_at=value["createdAt"],
        ended_at=value["endedAt"],
        source=value["source"],
        memory=tuple(map(_state, value["memory"])),
    )


def binding(state: BindingState) -> Binding:
    return Binding(resource=state.resource, scope=state.scope, id=state.id, access=state.access)


def event(value: Any) -> SessionEvent:
    data = value["data"]
    return SessionEvent(
        id=value["id"],
        seq=value["seq"],
        resource=data["resource"],
        document_id=data["documentId"],
        revision=data["revision"],
        bytes=data["bytes"],
    )


def view(value: Any) -> MemoryView:
    return MemoryView(
        text=value["text"],
        sources=tuple(
            MemorySource(
                id=source["id"], title=source["title"], revision=source["revision"], updated_at=source["updatedAt"]
            )
            for source in value["sources"]
        ),
        writable=value["writable"],
    )


def tools(value: Any) -> Tools:
    return Tools(
        ToolSpec(name=tool["name"], description=tool["description"], input_schema=tool["inputSchema"]) for tool in value
    )


def saved(value: Any, tag: str) -> SaveResult:
    """What a save answers; a conflict's revision comes as the answer's tag."""
    match value["status"]:
        case "saved":
            return Saved(revision=value["revision"], bytes=value["bytes"])
        case "conflict":
            return Conflict(text=value["text"], summary=value["summary"], revision=Revision(tag))
    return rejected(value)


def listed(value: Any) -> ListedDocuments | Rejected:
    if "status" in value:
        return rejected(value)
    documents = tuple(ListedDocument(**_listed(entry)) for entry in value["documents"])
    return ListedDocuments(documents=documents, next_cursor=value["nextCursor"])


def read(value: Any) -> ReadDocument | Rejected:
    if "status" in value:
        return rejected(value)
    return ReadDocument(text=value["text"], **_listed(value))


def rejected(value: Any) -> Rejected:
    return Rejected(
        reason=value["reason"],
        field=value.get("field"),
        bytes=value.get("bytes"),
        max_bytes=value.get("maxBytes"),
        bound=tuple(value["bound"]) if "bound" in value else None,
    )


def memory_file(value: Any) -> MemoryFile:
    return MemoryFile(**_fields(MemoryFile, value))


def memory_files(value: Any) -> MemoryFilePage:
    infos = (MemoryFileInfo(**_fields(MemoryFileInfo, info)) for info in value["files"])
    return MemoryFilePage(files=tuple(infos), next_cursor=value["next_cursor"])


def file_revisions(value: Any) -> FileRevisions:
    revisions = (FileRevision(**_fields(FileRevision, revision)) for revision in value["revisions"])
    return FileRevisions(revisions=tuple(revisions), next_cursor=value["next_cursor"])


def _fields(record: type[MemoryFile | MemoryFileInfo | FileRevision], value: Any) -> dict[str, Any]:
    return {field: value[field] for field in record.__slots__}


def _info(value: Any) -> dict[str, Any]:
    return {
        "id": value["id"],
        "title": value["title"],
        "summary": value["summary"],
        "agent_writes": value["agentWrites"],
        "revision": value["revision"],
        "bytes": value["bytes"],
        "max_bytes": value["maxBytes"],
        "updated_at": value["updatedAt"],
        "writer": _writer(value["writer"]),
    }


def _listed(value: Any) -> dict[str, Any]:
    return {
        "id": value["id"],
        "title": value["title"],
        "summary": value["summary"],
        "revision": value["revision"],
        "updated_at": value["updatedAt"],
    }


def _version(value: Any) -> Version:
    return Version(
        revision=value["revision"],
        operation=value["operation"],
        title=value["title"],
        bytes=value["bytes"],
        updated_at=value["updatedAt"],
        writer=_writer(value["writer"]),
        message=value["message"],
    )


def _writer(value: Any) -> Writer:
    return Writer(kind=value["kind"], session_id=value.get("sessionId"))


def _provider(value: Any) -> Provider:
    return Provider(kind=value["kind"], max_bytes=value["maxBytes"])


def _memory(value: Any) -> Memory:
    return Memory(id=value["id"], description=value["description"], provider=_provider(value["provider"]))


def _state(value: Any) -> BindingState:
    return BindingState(
        resource=value["resource"],
        scope=value["scope"],
        id=value.get("id"),
        access=value["access"],
        writable=value["writable"],
    )
