"""The table of every operation of the API: what is served, and what /openapi.json says."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Final

from gitmem.http import deployments, documents, sessions
from gitmem.http.answers import Answer, as_json
from gitmem.http.bodies import (
    CallTool,
    CreateDocument,
    CreateSession,
    Deploy,
    PatchDocument,
    RenderMemory,
    ReplaceDocument,
    RestoreDocument,
)
from gitmem.http.openapi import describe
from gitmem.http.operations import Call, Condition, Operation, Waiter
from gitmem.http.parameters import (
    AFTER,
    ANY_ENVIRONMENT,
    ANY_PROJECT,
    CURSOR,
    DEPLOYMENT,
    DOCUMENT,
    ENVIRONMENT,
    IDEMPOTENCY_KEY,
    MATCHING,
    PROJECT,
    RESOURCE,
    REVISION,
    SESSION,
    TOOL,
    WAIT,
)

API: Final = "/api/managed-agents"
_MEMORY: Final = f"{API}/projects/{{projectId}}/memory"
_DOCUMENTS: Final = f"{_MEMORY}/{{resource}}/documents"
_DOCUMENT: Final = f"{_DOCUMENTS}/{{documentId}}"
_SESSIONS: Final = f"{API}/sessions"
_SESSION: Final = f"{_SESSIONS}/{{sessionId}}"


def _describe(call: Call) -> Answer:
    return _description()


@cache
def _description() -> Answer:
    return as_json(describe(OPERATIONS, version("gitmem-store")))


OPERATIONS: Final = (
    Operation(
        method="GET",
        path=_DOCUMENT,
        name="readDocument",
        about="Read a document, or one of its earlier versions.",
        handler=documents.read,
        success={200: "Document", 304: None},
        ids=(RESOURCE, DOCUMENT),
        query=(ENVIRONMENT, REVISION),
        condition=Condition.READ,
        pure=True,
    ),
    Operation(
        method="PUT",
        path=_DOCUMENT,
        name="putDocument",
        about="Create a document (If-None-Match: *), or replace its text and summary (If-Match).",
        handler=documents.put,
        success={200: "Document", 201: "Document"},
        access="write",
        ids=(RESOURCE, DOCUMENT),
        query=(ENVIRONMENT,),
        body=ReplaceDocument,
        create=CreateDocument,
        condition=Condition.PUT,
    ),
    Operation(
        method="PATCH",
        path=_DOCUMENT,
        name="patchDocument",
        about="Change a document's title, whether agents may write it, or both.",
        handler=documents.patch,
        success={200: "Document"},
        access="write",
        ids=(RESOURCE, DOCUMENT),
        query=(ENVIRONMENT,),
        body=PatchDocument,
        condition=Condition.CHANGE,
    ),
    Operation(
        method="DELETE",
        path=_DOCUMENT,
        name="deleteDocument",
        about="Delete a document. Its id stays reserved, its history stays readable.",
        handler=documents.delete,
        success={204: None},
        access="write",
        ids=(RESOURCE, DOCUMENT),
        query=(ENVIRONMENT,),
        condition=Condition.CHANGE,
    ),
    Operation(
        method="GET",
        path=_DOCUMENTS,
        name="listDocuments",
        about="List a resource's documents without text, newest update first.",
        handler=documents.list_documents,
        pure=True,
        success={200: "DocumentList"},
        ids=(RESOURCE,),
        query=(ENVIRONMENT, CURSOR, MATCHING),
    ),
    Operation(
        method="GET",
        path=f"{_DOCUMENT}/history",
        name="readHistory",
        about="List a document's versions, newest first; of a deleted document too.",
        handler=documents.history,
        pure=True,
        success={200: "History"},
        ids=(RESOURCE, DOCUMENT),
        query=(ENVIRONMENT, CURSOR),
    ),
    Operation(
        method="POST",
        path=f"{_DOCUMENT}/restore",
        name="restoreDocument",
        about="Bring back title, text and summary of an earlier version.",
        handler=documents.restore,
        success={200: "Document"},
        access="write",
        ids=(RESOURCE, DOCUMENT),
        query=(ENVIRONMENT,),
        body=RestoreDocument,
        condition=Condition.CHANGE,
    ),
    Operation(
        method="GET",
        path=_MEMORY,
        name="listResources",
        about="List every resource, retired ones too.",
        handler=documents.inventory,
        success={200: "ResourceList"},
        query=(ENVIRONMENT,),
    ),
    Operation(
        method="POST",
        path=f"{API}/deployments",
        name="deploy",
        about="Apply declarations of memory, then make them an agent's active ones.",
        handler=deployments.deploy,
        success={201: "Deployment"},
        access="write",
        query=(PROJECT,),
        body=Deploy,
    ),
    Operation(
        method="GET",
        path=f"{API}/deployments/{{deploymentId}}",
        name="readDeployment",
        about="Read a deployment, active or not, with what it declares.",
        handler=deployments.read,
        success={200: "WholeDeployment"},
        ids=(DEPLOYMENT,),
        query=(ANY_PROJECT,),
    ),
    Operation(
        method="GET",
        path=f"{API}/agents",
        name="listAgents",
        about="List the agents that are deployed, with their active deployments.",
        handler=deployments.agents,
        success={200: "AgentList"},
        query=(ANY_PROJECT, ANY_ENVIRONMENT),
    ),
    Operation(
        method="POST",
        path=_SESSIONS,
        name="createSession",
        about="Start a session of an agent, bound to memory.",
        handler=sessions.create,
        success={200: "StartedSession", 201: "StartedSession"},
        access="write",
        headers=(IDEMPOTENCY_KEY,),
        body=CreateSession,
    ),
    Operation(
        method="GET",
        path=_SESSIONS,
        name="listSessions",
        about="List sessions, newest first.",
        handler=sessions.list_sessions,
        success={200: "SessionList"},
        query=(ANY_PROJECT, ANY_ENVIRONMENT, CURSOR),
    ),
    Operation(
        method="GET",
        path=_SESSION,
        name="readSession",
        about="Inspect a session: what its bindings allow now.",
        handler=sessions.inspect,
        success={200: "Session"},
        ids=(SESSION,),
        query=(ANY_PROJECT,),
    ),
    Operation(
        method="POST",
        path=f"{_SESSION}/end",
        name="endSession",
        about="End a session. Once this has answered no later save of it can commit.",
        handler=sessions.end,
        success={200: "Session"},
        access="write",
        ids=(SESSION,),
        query=(ANY_PROJECT,),
    ),
    Operation(
        method="GET",
        path=f"{_SESSION}/events",
        name="readEvents",
        about="Read what a session has saved, in order.",
        handler=Waiter(sessions.events),
        success={200: "EventList"},
        ids=(SESSION,),
        query=(ANY_PROJECT, AFTER, WAIT),
    ),
    Operation(
        method="POST",
        path=f"{_SESSION}/renders",
        name="renderMemory",
        about="Recall every binding for one model turn, and learn which tools it offers.",
        handler=sessions.render,
        success={200: "Render"},
        ids=(SESSION,),
        query=(ANY_PROJECT,),
        body=RenderMemory,
        bodiless=True,
    ),
    Operation(
        method="POST",
        path=f"{_SESSION}/tools/{{tool}}",
        name="callTool",
        about="Do what the model asks for, on the revisions that a render showed.",
        handler=sessions.call_tool,
        success={200: "ToolResult"},
        tags=True,
        access="write",
        ids=(SESSION, TOOL),
        query=(ANY_PROJECT,),
        body=CallTool,
    ),
    Operation(
        method="GET",
        path="/healthz",
        name="checkHealth",
        about="Whether the server serves.",
        handler=deployments.health,
        success={200: "Health"},
        access=None,
    ),
    Operation(
        method="GET",
        path="/openapi.json",
        name="describeApi",
        about="This description.",
        handler=_describe,
        success={200: "Description"},
        access=None,
    ),
)
