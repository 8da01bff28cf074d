"""The operations on documents and resources (seed 000, "Management API")."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import UNSET

from gitmem.errors import PreconditionFailedError
from gitmem.http.answers import Answer, as_json
from gitmem.http.operations import Call
from gitmem.records import Document

T = TypeVar("T")


def inventory(call: Call) -> Answer:
    return as_json({"resources": [resource.to_json() for resource in call.environment.inventory()]})


def list_documents(call: Call) -> Answer:
    return as_json(
        call.documents.list(cursor=call.parameter("cursor"), matching=call.parameter("matching") or "").to_json()
    )


def read(call: Call) -> Answer:
    return _shown(call.documents.read(call.path["documentId"], at=call.parameter("revision")))


def put(call: Call) -> Answer:
    documents, document_id, body = call.documents, call.path["documentId"], call.body
    if call.revisions is None:
        created = documents.create(
            document_id, title=body.title, text=body.text, summary=body.summary, agent_writes=body.agent_writes
        )
        return _shown(created, 201)
    summary = None if body.summary is UNSET else body.summary
    return _shown(
        _at_any(
            call, lambda revision: documents.replace(document_id, text=body.text, summary=summary, if_match=revision)
        )
    )


def patch(call: Call) -> Answer:
    documents, document_id, body = call.documents, call.path["documentId"], call.body
    title = None if body.title is UNSET else body.title
    policy = None if body.agent_writes is UNSET else body.agent_writes
    return _shown(
        _at_any(
            call, lambda revision: documents.patch(document_id, title=title, agent_writes=policy, if_match=revision)
        )
    )


def delete(call: Call) -> Answer:
    documents, document_id = call.documents, call.path["documentId"]
    _at_any(call, lambda revision: documents.delete(document_id, if_match=revision))
    return Answer(204)


def history(call: Call) -> Answer:
    return as_json(call.documents.history(call.path["documentId"], cursor=call.parameter("cursor")).to_json())


def restore(call: Call) -> Answer:
    documents, document_id, old = call.documents, call.path["documentId"], call.body.revision
    return _shown(_at_any(call, lambda revision: documents.restore(document_id, old, if_match=revision)))


def _shown(document: Document, status: int = 200) -> Answer:
    return as_json(document.to_json(), status, tag=document.revision)


def _at_any(call: Call, change: Callable[[str], T]) -> T:
    """Make a change where the document is at one of the revisions that the request names."""
    revisions = call.revisions or ()
    revision = revisions[0]
    while True:
        try:
            return change(revision)
        except PreconditionFailedError as error:
            # Each refusal tells the current revision, seen under the lock; it may be another one of the list.
            if error.actual is None or error.actual == revision or error.actual not in revisions:
                raise
            revision = error.actual
