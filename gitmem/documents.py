"""The documents of one resource: seed 000's operations, each with its checks in one save."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

from gitmem import cursor as cursors
from gitmem.codec import Content
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.layout import Name
from gitmem.environment.rows import Row, VersionRow
from gitmem.environment.stored import Stored
from gitmem.errors import (
    GitmemError,
    InvalidRequestError,
    LimitExceededError,
    NotFoundError,
    PreconditionFailedError,
    PreconditionRequiredError,
)
from gitmem.limits import (
    PAGE_DOCUMENTS,
    check_agent_writes,
    check_document_id,
    check_resource_id,
    check_revision,
    check_summary,
    check_text,
    check_title,
    utf8_size,
)
from gitmem.records import (
    OWNER,
    AgentWrites,
    Document,
    DocumentInfo,
    History,
    Memory,
    NewDocument,
    Page,
    Writer,
)
from gitmem.views import diff_shown, document_shown, info_shown, version_shown

if TYPE_CHECKING:
    from gitmem.environment.draft import Draft

_CHUNK: Final = 200


class Documents:
    """The documents of one resource in one environment, for its owner.

    Every method raises InvalidRequestError for an id outside the grammar and NotFoundError for a
    resource that was never declared. `if_match` is the revision that the caller has seen; a stale
    one raises PreconditionFailedError and nothing is changed.
    """

    def __init__(self, environment: EnvironmentRepository, resource: str) -> None:
        self._environment = environment
        self.resource = check_resource_id(resource)

    # Reading

    def read(self, document_id: str, *, at: str | None = None, fresh: bool = False) -> Document:
        """A document as it is, or as it was at a revision of its history.

        `fresh` asks the environment's upstream first, here as in `list` and `history`; where there
        is none, every read is fresh.
        `at` may be shortened to seven digits or more. Raises NotFoundError for a missing or deleted
        document, or an unknown revision; DamagedError where Git cannot read it.
        """
        name = self._name(document_id)
        self._refresh(fresh)
        memory = self._memory()
        if at is not None:
            version = self._version(name, at)
            return document_shown(name, memory, _stored(version, self._version_content(name, version)))
        row, content = self._environment.read(name, self._live(name))
        return document_shown(name, memory, Stored(row.revision, content, row.updated, row.writer))

    def info(self, document_id: str) -> DocumentInfo:
        """A document without its text; also where its text is damaged."""
        name = self._name(document_id)
        memory = self._memory()
        row = self._live(name)
        return info_shown(document_id, memory, row if row.meta else self._environment.read(name, row)[0])

    def list(self, *, cursor: str | None = None, matching: str = "", fresh: bool = False) -> Page:
        """A page of at most 50 documents without text: newest update first, then by id.

        `matching` keeps those whose id or title contains it, in whatever case. Paging is live: what
        changes meanwhile moves. Raises InvalidCursorError.
        """
        self._refresh(fresh)
        listing = self._listing(f"list {matching}" if matching else "list")
        after = cursors.decode(listing, cursor) if cursor is not None else None
        memory = self._memory()
        rows = self._matching(after, matching)
        page = rows[:PAGE_DOCUMENTS]
        more = len(rows) > PAGE_DOCUMENTS
        return Page(
            documents=tuple(info_shown(document_id, memory, row) for document_id, row in page),
            next_cursor=cursors.encode(listing, page[-1][1].updated, page[-1][0]) if more else None,
        )

    def ids(self) -> Sequence[str]:
        """The id of every document there is.

        Taken at once: in a listing page by page, a document saved meanwhile moves to where nobody looks again.
        """
        self._memory()
        return [name.id for name, row in self._environment.parts().catalog.documents(self.resource) if not row.dead]

    def _matching(self, after: tuple[int, str] | None, matching: str) -> Sequence[tuple[str, Row]]:
        """One more document than a page has, if there are so many."""
        wanted, limit = matching.casefold(), PAGE_DOCUMENTS + 1
        found: list[tuple[str, Row]] = []
        while True:
            rows = self._environment.recent(self.resource, after, limit, matching)
            found += [row for row in rows if not wanted or _contains(row, wanted)]
            if len(rows) < limit or len(found) >= limit:
                return found[:limit]
            after = rows[-1][1].updated, rows[-1][0]

    def history(self, document_id: str, *, cursor: str | None = None, fresh: bool = False) -> History:
        """A page of at most 50 versions, newest first; of a deleted document too."""
        name = self._name(document_id)
        self._refresh(fresh)
        listing = self._listing(f"history {document_id}")
        before = cursors.decode(listing, cursor)[0] if cursor is not None else None
        self._memory()
        if self._environment.find(name) is None:
            raise self._missing(name)
        rows = self._environment.versions(name, before, PAGE_DOCUMENTS + 1)
        page = rows[:PAGE_DOCUMENTS]
        more = len(rows) > PAGE_DOCUMENTS
        return History(
            versions=tuple(version_shown(name, row, self._version_content(name, row)) for row in page),
            next_cursor=cursors.encode(listing, page[-1].number, "") if more else None,
        )

    def diff(self, document_id: str, a: str | None = None, b: str | None = None) -> str:
        """What changed from revision `a` to `b`, as a unified diff of title, summary, policy and text.

        `b` defaults to the newest version, `a` to the one before `b`. Empty where nothing differs.
        """
        name = self._name(document_id)
        self._memory()
        newer = self._version(name, b)
        older = self._version(name, a) if a is not None else self._before(name, newer)
        return diff_shown(
            name,
            (older.revision.hex(), self._version_content(name, older)) if older else None,
            (newer.revision.hex(), self._version_content(name, newer)),
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
        """Create a document under an id never used before.

        Raises PreconditionFailedError where the id exists or was deleted; LimitExceededError.
        """
        new = NewDocument(id=document_id, title=title, text=text, summary=summary, agent_writes=agent_writes)
        name, content = self._new(new)
        return self._environment.save(lambda draft: self._create(draft, name, content))

    def create_many(self, documents: Iterable[NewDocument]) -> Iterator[Document | GitmemError]:
        """Create documents, one commit each, some hundred sharing a flush; the outcome of each, in order.

        What `create` would raise for a document is its outcome, and the others go on. An outcome
        that was yielded is durable, so a run that was killed can be repeated: what it had created
        answers with PreconditionFailedError.
        """
        waiting = iter(documents)
        while chunk := list(islice(waiting, _CHUNK)):
            yield from self._environment.save(partial(self._create_chunk, chunk))

    def _create_chunk(self, chunk: Sequence[NewDocument], draft: Draft) -> Sequence[Document | GitmemError]:
        outcomes: list[Document | GitmemError] = []
        for new in chunk:
            try:
                outcomes.append(self._create(draft, *self._new(new)))
            except (InvalidRequestError, LimitExceededError, NotFoundError, PreconditionFailedError) as error:
                outcomes.append(error)
        return outcomes

    def _new(self, new: NewDocument) -> tuple[Name, Content]:
        policy = cast(AgentWrites, check_agent_writes(new.agent_writes))
        utf8_size("text", new.text)
        return self._name(new.id), Content(check_title(new.title), check_summary(new.summary), policy, new.text)

    def _create(self, draft: Draft, name: Name, content: Content) -> Document:
        memory = draft.resource(self.resource)
        check_text(content.text, memory.provider.max_bytes)
        found = draft.get(name)
        if found is not None:
            raise _used(name, found)
        return document_shown(name, memory, draft.put(name, content, "create"))

    def replace(
        self, document_id: str, *, text: str, summary: str | None = None, if_match: str, writer: Writer = OWNER
    ) -> Document:
        """Replace the text, and the summary unless it is None. A replace that changes nothing makes no commit."""
        name = self._name(document_id)
        expected = condition(if_match)
        if summary is not None:
            check_summary(summary)

        def change(draft: Draft) -> Document:
            memory = draft.resource(self.resource)
            check_text(text, memory.provider.max_bytes)
            found, content = self._current_content(draft, name, expected)
            new = replace(content, text=text, summary=content.summary if summary is None else summary)
            return document_shown(name, memory, put_changed(draft, name, found, new, "replace", writer))

        return self._environment.save(change)

    def patch(
        self,
        document_id: str,
        *,
        title: str | None = None,
        agent_writes: AgentWrites | None = None,
        if_match: str,
    ) -> Document:
        """Change the title, the write policy, or both; also of a document over its resource's limit."""
        name = self._name(document_id)
        expected = condition(if_match)
        if title is None and agent_writes is None:
            raise InvalidRequestError("Nothing to change: give a title, agentWrites, or both.")
        if title is not None:
            check_title(title)
        if agent_writes is not None:
            check_agent_writes(agent_writes)

        def change(draft: Draft) -> Document:
            memory = draft.resource(self.resource)
            found, content = self._current_content(draft, name, expected)
            new = replace(content, title=title or content.title, agent_writes=agent_writes or content.agent_writes)
            operation = _patch_operation(content, new)
            return document_shown(name, memory, put_changed(draft, name, found, new, operation, OWNER))

        return self._environment.save(change)

    def delete(self, document_id: str, *, if_match: str) -> None:
        """Delete a document. Its id stays reserved for ever; its history stays readable."""
        name = self._name(document_id)
        expected = condition(if_match)

        def change(draft: Draft) -> None:
            draft.resource(self.resource)
            self._current(draft, name, expected)
            draft.put(name, None, "delete")

        self._environment.save(change)

    def restore(self, document_id: str, revision: str, *, if_match: str) -> Document:
        """Bring back title, text and summary of an earlier version, not its policy.

        Works on live documents only; the text must fit today's limit.
        """
        name = self._name(document_id)
        expected = condition(if_match)
        self._memory()
        self._live(name)
        check_revision(revision)
        old = self._version_content(name, self._version(name, revision))
        if old is None:
            raise NotFoundError(f"{name} was deleted at {revision}. Choose an earlier revision.")

        def change(draft: Draft) -> Document:
            memory = draft.resource(self.resource)
            found, content = self._current_content(draft, name, expected)
            check_text(old.text, memory.provider.max_bytes)
            new = replace(content, title=old.title, text=old.text, summary=old.summary)
            return document_shown(name, memory, put_changed(draft, name, found, new, "restore", OWNER))

        return self._environment.save(change)

    # Inside

    def _refresh(self, fresh: bool) -> None:
        if fresh:
            self._environment.refresh()

    def _name(self, document_id: str) -> Name:
        return Name(self.resource, check_document_id(document_id))

    def _listing(self, what: str) -> str:
        # The environment's place keeps a cursor from being used in another one.
        return f"{what} {self.resource} {self._environment.folder}"

    def _memory(self) -> Memory:
        memory = self._environment.resource(self.resource)
        if memory is None:
            raise NotFoundError(
                f"There is no resource {self.resource} here. Declare it and deploy, or see gitmem resources."
            )
        return memory

    def _missing(self, name: Name) -> NotFoundError:
        return NotFoundError(f"There is no document {name}. See gitmem list {name.resource}.")

    def _live(self, name: Name) -> Row:
        row = self._environment.find(name)
        if row is None:
            raise self._missing(name)
        if row.dead:
            raise NotFoundError(f"{name} was deleted. Its id stays reserved; its history stays readable.")
        return row

    def _current(self, draft: Draft, name: Name, expected: str) -> Stored:
        found = draft.get(name)
        if found is None:
            raise self._missing(name)
        if not found.alive:
            raise NotFoundError(f"{name} was deleted. Its id stays reserved; its history stays readable.")
        if found.revision.hex() != expected:
            raise PreconditionFailedError(
                f"{name} has changed: it is at {found.revision.hex()}, not at {expected[:40]}. Read it again.",
                expected=expected,
                actual=found.revision.hex(),
            )
        return found

    def _current_content(self, draft: Draft, name: Name, expected: str) -> tuple[Stored, Content]:
        found = self._current(draft, name, expected)
        assert found.content is not None
        return found, found.content

    def _version(self, name: Name, revision: str | None) -> VersionRow:
        if revision is not None:
            check_revision(revision)
        before: int | None = None
        while rows := self._environment.versions(name, before, PAGE_DOCUMENTS):
            for row in rows:
                if revision is None or row.revision.hex().startswith(revision):
                    return row
            before = rows[-1].number
        if revision is None:
            raise self._missing(name)
        raise NotFoundError(f"{name} has no revision {revision}. See gitmem log {name.resource} {name.id}.")

    def _before(self, name: Name, version: VersionRow) -> VersionRow | None:
        rows = self._environment.versions(name, version.number, 1)
        return rows[0] if rows else None

    def _version_content(self, name: Name, version: VersionRow) -> Content | None:
        return self._environment.content(name, version.blob) if version.blob else None


def _contains(listed: tuple[str, Row], wanted: str) -> bool:
    document_id, row = listed
    return wanted in document_id.casefold() or (row.meta is not None and wanted in row.meta.title.casefold())


def put_changed(draft: Draft, name: Name, found: Stored, new: Content, operation: str, writer: Writer) -> Stored:
    """Put `new` over `found`, unless that is what is there."""
    if new == found.content:
        draft.confirm(name)
        return found
    return draft.put(name, new, operation, writer)


def condition(if_match: str) -> str:
    """The revision that a caller has seen. Raises PreconditionRequiredError, InvalidRequestError."""
    if if_match is None:
        raise PreconditionRequiredError("Say which revision you have seen (if_match). Read the document first.")
    if not isinstance(if_match, str):
        raise InvalidRequestError("if_match must be a revision: a string, as read.")
    return if_match


def _used(name: Name, found: Stored) -> PreconditionFailedError:
    if not found.alive:
        return PreconditionFailedError(f"{name} was deleted and its id stays reserved. Choose a new id.")
    return PreconditionFailedError(
        f"{name} exists already, at {found.revision.hex()}. Choose a new id.", actual=found.revision.hex()
    )


def _patch_operation(old: Content, new: Content) -> str:
    if old.agent_writes == new.agent_writes:
        return "retitle"
    if old.title != new.title:
        return "patch"
    return "freeze" if new.agent_writes == "disabled" else "unfreeze"


def _stored(version: VersionRow, content: Content | None) -> Stored:
    return Stored(version.revision, content, version.updated, version.writer)
