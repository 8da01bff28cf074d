"""The store as a plain dictionary: what every answer of the library must be, whatever lies below it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gitmem import DocumentInfo, ErrorCode, Revision, Writer
from gitmem.clock import to_rfc3339
from gitmem.codec import Content

DAY = 24 * 3600 * 1000
OWNER = Writer()


class Refused(Exception):
    """The operation changes nothing and raises this code."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Written:
    """One version of a document; `content` is None for a deletion, `revision` empty until the library named it."""

    content: Content | None
    updated: int
    operation: str
    writer: Writer = OWNER
    revision: str = ""
    message: str = ""


@dataclass
class Model:
    """The documents of one resource with all their versions, oldest first, and hand edits not yet adopted."""

    limit: int
    tip_time: int
    versions: dict[str, list[Written]] = field(default_factory=dict)
    pending: dict[str, Content | None] = field(default_factory=dict)

    def live(self, name: str) -> Written | None:
        versions = self.versions.get(name)
        return versions[-1] if versions and versions[-1].content else None

    def dead(self, name: str) -> bool:
        return name in self.versions and self.live(name) is None

    def listing(self) -> list[DocumentInfo]:
        """What all pages of the list hold."""
        found = [(name, version) for name in self.versions if (version := self.live(name))]
        found.sort(key=lambda pair: (-pair[1].updated, pair[0]))
        return [self._info(name, version) for name, version in found]

    def _info(self, name: str, version: Written) -> DocumentInfo:
        content = version.content
        assert content
        return DocumentInfo(
            id=name,
            title=content.title,
            summary=content.summary,
            agent_writes=content.agent_writes,
            revision=Revision(version.revision),
            bytes=len(content.text.encode()),
            max_bytes=self.limit,
            updated_at=to_rfc3339(version.updated),
            writer=version.writer,
        )

    # Saves through the library

    def save(
        self, now: int, name: str, new: Content | None, operation: str, *, expected: str | None, writer: Writer = OWNER
    ) -> Written:
        """Write `new` (None: delete) over the version `expected` (None: over nothing)."""
        if operation in ("create", "replace"):
            self.fits(new)
        self.adopt(now, name)
        current = self.live(name)
        if expected is None:
            if name in self.versions:
                raise Refused(ErrorCode.PRECONDITION_FAILED)
            return self._add(now, name, new, operation, writer)
        if current is None:
            raise Refused(ErrorCode.NOT_FOUND)
        if current.revision != expected:
            raise Refused(ErrorCode.PRECONDITION_FAILED)
        if operation == "restore":
            self.fits(new)
        return current if new == current.content else self._add(now, name, new, operation, writer)

    def fits(self, content: Content | None) -> None:
        if content and len(content.text.encode()) > self.limit:
            raise Refused(ErrorCode.MEMORY_LIMIT_EXCEEDED)

    def adopt(self, now: int, name: str) -> None:
        """Take up the hand edit that lies at a document's path."""
        if name not in self.pending:
            return
        new, current = self.pending.pop(name), self.live(name)
        if new != (current and current.content):
            self._add(now, name, new, "delete" if new is None else "edit" if current else "create", OWNER)

    def set_limit(self, now: int, limit: int) -> None:
        if limit != self.limit:
            self.limit, self.tip_time = limit, self._time(now)

    def _add(self, now: int, name: str, new: Content | None, operation: str, writer: Writer) -> Written:
        self.tip_time = self._time(now)
        version = Written(new, self.tip_time, operation, writer, message=f"{operation} notes/{name}")
        self.versions.setdefault(name, []).append(version)
        return version

    def _time(self, now: int) -> int:
        """A clock that went back by less than a day stands still instead."""
        return self.tip_time if now < self.tip_time <= now + DAY else now

    # Commits by a person

    def commit(self, seconds: int, name: str, new: Content | None, revision: str, message: str) -> None:
        """A plain commit on main that changed one document among others."""
        self.side(seconds, name, new, revision, message)
        self.tip_time = seconds * 1000

    def side(self, seconds: int, name: str, new: Content | None, revision: str, message: str) -> None:
        """A plain commit on a branch that is merged later; versions are kept in order of time."""
        self.pending.pop(name, None)
        operation = "delete" if new is None else "edit" if self.live(name) else "create"
        version = Written(new, seconds * 1000, operation, OWNER, revision, message)
        self.versions.setdefault(name, []).append(version)


def changed(content: Content, **fields: str) -> Content:
    """The content with some fields replaced."""
    return replace(content, **fields)  # type: ignore[arg-type]
