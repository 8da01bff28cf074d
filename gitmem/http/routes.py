"""The table of every operation of the API: what is served, and what /openapi.json says."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Final

from gitmem.http import deployments, documents
from gitmem.http.answers import Answer, as_json
from gitmem.http.bodies import CreateDocument, Deploy, PatchDocument, ReplaceDocument, RestoreDocument
from gitmem.http.openapi import describe
from gitmem.http.operations import Call, Condition, Operation
from gitmem.http.parameters import (
    ANY_ENVIRONMENT,
    ANY_PROJECT,
    CURSOR,
    DOCUMENT,
    ENVIRONMENT,
    PROJECT,
    RESOURCE,
    REVISION,
)

API: Final = "/api/managed-agents"
_MEMORY: Final = f"{API}/projects/{{projectId}}/memory"
_DOCUMENTS: Final = f"{_MEMORY}/{{resource}}/documents"
_DOCUMENT: Final = f"{_DOCUMENTS}/{{documentId}}"


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
        query=(ENVIRONMENT, CURSOR),
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
        path=f"{API}/agents",
        name="listAgents",
        about="List the agents that are deployed, with their active deployments.",
        handler=deployments.agents,
        success={200: "AgentList"},
        query=(ANY_PROJECT, ANY_ENVIRONMENT),
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
