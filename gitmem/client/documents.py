"""The documents of one resource on a server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from gitmem.client import decoding
from gitmem.client.api import Answer, Api
from gitmem.codec import Content
from gitmem.documents import condition
from gitmem.environment.layout import Name
from gitmem.errors import (
    GitmemError,
    InvalidRequestError,
    LimitExceededError,
    NotFoundError,
    PreconditionFailedError,
)
from gitmem.limits import (
    check_agent_writes,
    check_document_id,
    check_resource_id,
    check_revision,
    check_summary,
    check_title,
    utf8_size,
)
from gitmem.records import AgentWrites, Document, DocumentInfo, History, NewDocument, Page, Version
from gitmem.views import diff_shown

_TAG: Final = r"[!#-~]*\Z"


class RemoteDocuments:
    """What `gitmem.Documents` is to a store on this machine: the same methods, records and errors.

    Further errors: RemoteUnreachableError where the server does not answer; of a write that was sent
    it is then uncertain whether it was made, and its revision keeps a second one from doing harm.
    """

    def __init__(self, api: Api, project: str, environment: str, resource: str) -> None:
        self.resource = check_resource_id(resource)
        self._api = api
        self._path = ("projects", project, "memory", resource, "documents")
        self._environment = environment

    # Reading

    def read(self, document_id: str, *, at: str | None = None) -> Document:
        """A document as it is, or as it was at a revision of its history."""
        revision = check_revision(at) if at is not None else None
        return self._ask("GET", document_id, query={"revision": revision}).into(decoding.document)

    def info(self, document_id: str) -> DocumentInfo:
        """A document without its text."""
        return self._ask("GET", document_id).into(decoding.info)

    def list(self, *, cursor: str | None = None, matching: str = "") -> Page:
        """A page of at most 50 documents without text: newest update first, then by id."""
        return self._ask("GET", query={"cursor": cursor, "matching": matching or None}).into(decoding.page)

    def ids(self) -> Sequence[str]:
        """The id of every document there is. What is saved meanwhile is in it once, too."""
        first = self.list()
        known = dict.fromkeys(_ids(first))
        page = first
        while page.next_cursor is not None:
            page = self.list(cursor=page.next_cursor)
            known |= dict.fromkeys(_ids(page))
        # What changed since the first page has moved in front of it, from where nobody had looked yet.
        since = first.documents[0].updated_at if first.documents else ""
        page = self.list()
        while True:
            known |= dict.fromkeys(_ids(page))
            if page.next_cursor is None or page.documents[-1].updated_at < since:
                return list(known)
            page = self.list(cursor=page.next_cursor)

    def history(self, document_id: str, *, cursor: str | None = None) -> History:
        """A page of at most 50 versions, newest first; of a deleted document too."""
        return self._ask("GET", document_id, "history", query={"cursor": cursor}).into(decoding.history)

    def diff(self, document_id: str, a: str | None = None, b: str | None = None) -> str:
        """What changed from revision `a` to `b`, as a unified diff of title, summary, policy and text."""
        name = Name(self.resource, check_document_id(document_id))
        for revision in (a, b):
            if revision is not None:
                check_revision(revision)
        newer, before = self._version(name, b)
        older = self._version(name, a)[0] if a is not None else before
        return diff_shown(
            name,
            (older.revision, self._content(document_id, older)) if older else None,
            (newer.revision, self._content(document_id, newer)),
        )

    # Writing

    def create(
        self,
        document_id: str,
        *,
        title: str,
        text: str = "",
        summary: str = "",
        agent_writes: AgentWrites = "enabled",
    ) -> Document:
        """Create a document under an id never used before."""
        check_agent_writes(agent_writes)
        utf8_size("text", text)
        body = {
            "title": check_title(title),
            "text": text,
            "summary": check_summary(summary),
            "agentWrites": agent_writes,
        }
        return self._ask("PUT", document_id, body=body, headers={"If-None-Match": "*"}).into(decoding.document)

    def create_many(self, documents: Iterable[NewDocument]) -> Iterator[Document | GitmemError]:
        """Create documents one after the other; the outcome of each, in order."""
        for new in documents:
            try:
                yield self.create(
                    new.id, title=new.title, text=new.text, summary=new.summary, agent_writes=new.agent_writes
                )
            except (InvalidRequestError, LimitExceededError, NotFoundError, PreconditionFailedError) as error:
                yield error

    def replace(self, document_id: str, *, text: str, summary: str | None = None, if_match: str) -> Document:
        """Replace the text, and the summary unless it is None."""
        body = {"text": text}
        if summary is not None:
            body["summary"] = check_summary(summary)
        utf8_size("text", text)
        return self._change("PUT", document_id, if_match, body).into(decoding.document)

    def patch(
        self, document_id: str, *, title: str | None = None, agent_writes: AgentWrites | None = None, if_match: str
    ) -> Document:
        """Change the title, the write policy, or both."""
        body = {}
        if title is not None:
            body["title"] = check_title(title)
        if agent_writes is not None:
            body["agentWrites"] = check_agent_writes(agent_writes)
        if not body:
            raise InvalidRequestError("Nothing to change: give a title, agentWrites, or both.")
        return self._change("PATCH", document_id, if_match, body).into(decoding.document)

    def delete(self, document_id: str, *, if_match: str) -> None:
        """Delete a document. Its id stays reserved for ever; its history stays readable."""
        self._change("DELETE", document_id, if_match)

    def restore(self, document_id: str, revision: str, *, if_match: str) -> Document:
        """Bring back title, text and summary of an earlier version, not its policy."""
        body = {"revision": check_revision(revision)}
        return self._change("POST", document_id, if_match, body, "restore").into(decoding.document)

    # Inside

    def _change(
        self, method: str, document_id: str, if_match: str, body: dict[str, Any] | None = None, *below: str
    ) -> Answer:
        seen = condition(if_match)
        # What no tag can hold is no revision either: the empty tag stands for it.
        tag = seen if re.match(_TAG, seen) else ""
        try:
            return self._ask(method, document_id, *below, body=body, headers={"If-Match": f'"{tag}"'})
        except PreconditionFailedError as error:
            error.expected = seen
            raise

    def _ask(
        self,
        method: str,
        *below: str,
        query: dict[str, str | None] | None = None,
        body: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        for document_id in below[:1]:
            check_document_id(document_id)
        asked = {"environment": self._environment} | (query or {})
        return self._api.ask(method, *self._path, *below, query=asked, body=body, headers=headers)

    def _version(self, name: Name, revision: str | None) -> tuple[Version, Version | None]:
        """A version, the newest unless named, and the one before it."""
        found: Version | None = None
        for version in self._versions(name.id):
            if found is not None:
                return found, version
            if revision is None or version.revision.startswith(revision):
                found = version
        if found is None:
            raise NotFoundError(f"{name} has no revision {revision}. See gitmem log {name.resource} {name.id}.")
        return found, None

    def _versions(self, document_id: str) -> Iterator[Version]:
        page = self.history(document_id)
        yield from page.versions
        while page.next_cursor is not None:
            page = self.history(document_id, cursor=page.next_cursor)
            yield from page.versions

    def _content(self, document_id: str, version: Version) -> Content | None:
        if not version.title:  # a deletion
            return None
        found = self.read(document_id, at=version.revision)
        return Content(found.title, found.summary, found.agent_writes, found.text)


def _ids(page: Page) -> list[str]:
    return [found.id for found in page.documents]
