"""Memory files: a person's view of the team's notes and of their own (seed 003)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from gitmem import cursor as cursors
from gitmem.clock import to_rfc3339
from gitmem.codec import Content, file_content
from gitmem.environment.draft import Draft, is_on
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.form import SWITCH_FILE
from gitmem.environment.layout import Name
from gitmem.environment.rows import VersionRow
from gitmem.environment.stored import Stored
from gitmem.errors import (
    EmptyFileError,
    FileTooLargeError,
    FolderFullError,
    ForbiddenError,
    InvalidRequestError,
    MemoryDisabledError,
    NotFoundError,
    RevisionConflictError,
)
from gitmem.filepaths import INDEX, Scope, check_scope, normalized
from gitmem.git.commits import Person
from gitmem.git.objects import Oid
from gitmem.limits import FOLDER_FILES, PAGE_DOCUMENTS, check_revision, file_limit, utf8_size
from gitmem.records import OWNER, Revision, Writer
from gitmem.views import diff_shown

Role = Literal["owner", "admin", "member"]
_NO_ADDRESS: Final = "@members.localhost"


class Expected(Enum):
    """What `expected_revision_id` may be beside a revision, and None for "there is no such file"."""

    ANYTHING = "whatever the file holds"


ANYTHING: Final = Expected.ANYTHING


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryFile:
    """One memory file, whole. `updated` is false where a write found this text there already, and for reads."""

    scope: Scope
    path: str
    content: str
    revision_id: Revision
    updated_at: str
    updated_by: str
    updated: bool = False

    def to_json(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in self.__slots__}


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryFileInfo:
    """A memory file without its text; `bytes` counts UTF-8."""

    scope: Scope
    path: str
    revision_id: Revision
    bytes: int
    updated_at: str
    updated_by: str

    def to_json(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in self.__slots__}


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryFilePage:
    """A page of files, by path: those at the top first."""

    files: tuple[MemoryFileInfo, ...]
    next_cursor: str | None

    def to_json(self) -> dict[str, Any]:
        return {"files": [file.to_json() for file in self.files], "next_cursor": self.next_cursor}


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRevision:
    """One revision of a file: who made it, and in which session, None for a person's own write."""

    revision_id: Revision
    operation: str
    created_at: str
    created_by: str
    session_id: str | None
    bytes: int

    def to_json(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in self.__slots__}


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRevisions:
    """A page of a file's history, newest first."""

    revisions: tuple[FileRevision, ...]
    next_cursor: str | None

    def to_json(self) -> dict[str, Any]:
        return {"revisions": [revision.to_json() for revision in self.revisions], "next_cursor": self.next_cursor}


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who asks. `member` is None for a key that is nobody's: it has no personal memory.

    `session` is an agent's session that writes for the member, with the time it started, in
    milliseconds; None for the person.
    """

    member: str | None
    role: Role = "member"
    session: str | None = None
    started: int | None = None


class Files:
    """The memory files that a person can see: the team's, and their own, which are nobody else's.

    A write of the team's is for owners and admins. Paths are normalised. `expected_revision_id` is
    the revision as last read, None where no file may exist, or ANYTHING. Methods raise
    InvalidRequestError, ForbiddenError, NotFoundError, InvalidPathError.
    """

    def __init__(
        self,
        team: EnvironmentRepository,
        personal: EnvironmentRepository | None,
        caller: Caller,
        *,
        allowed: frozenset[str] = frozenset(),
    ) -> None:
        self._places: Mapping[Scope, EnvironmentRepository | None] = {"team": team, "personal": personal}
        self._caller = caller
        self._allowed = allowed
        self._author = Person(*_person(caller.member))

    # Reading

    def read(self, scope: Scope, path: str, *, at: str | None = None) -> MemoryFile:
        """A file as it is, or as it was at a revision of its history, shortened to seven digits or more."""
        place, name = self._named(scope, path)
        if at is not None:
            version = self._version(place, name, at)
            content = place.content(name, version.blob) if version.blob else None
            if content is None:
                raise NotFoundError(f"{name} was removed at {at}. Choose an earlier revision.")
            return self._shown(scope, name, Stored(version.revision, content, version.updated, version.writer))
        row = place.find(name)
        if row is None or row.dead:
            raise _missing(scope, name)
        row, content = place.read(name, row)
        return self._shown(scope, name, Stored(row.revision, content, row.updated, row.writer))

    def list(self, scope: Scope, *, cursor: str | None = None) -> MemoryFilePage:
        """A page of at most 50 files without text, by path. Raises InvalidCursorError."""
        place = self._place(scope)
        listing = f"files {scope} {place.folder}"
        path = cursors.decode(listing, cursor)[1] if cursor is not None else ""
        found = place.by_name(file_name(path) if path else Name("", ""), PAGE_DOCUMENTS + 1)
        page = found[:PAGE_DOCUMENTS]
        infos = tuple(
            MemoryFileInfo(
                scope=scope,
                path=str(name),
                revision_id=Revision(row.revision.hex()),
                bytes=row.meta.bytes if row.meta else 0,
                updated_at=to_rfc3339(row.updated),
                updated_by=_by(place, row.revision),
            )
            for name, row in page
        )
        more = len(found) > PAGE_DOCUMENTS
        return MemoryFilePage(files=infos, next_cursor=cursors.encode(listing, 0, infos[-1].path) if more else None)

    def history(self, scope: Scope, path: str, *, cursor: str | None = None) -> FileRevisions:
        """A page of at most 50 revisions, newest first; of a removed file too."""
        place, name = self._named(scope, path)
        listing = f"revisions {scope} {name} {place.folder}"
        before = cursors.decode(listing, cursor)[0] if cursor is not None else None
        if place.find(name) is None:
            raise _missing(scope, name)
        rows = place.versions(name, before, PAGE_DOCUMENTS + 1)
        page = rows[:PAGE_DOCUMENTS]
        revisions = tuple(
            FileRevision(
                revision_id=Revision(row.revision.hex()),
                operation=row.operation,
                created_at=to_rfc3339(row.updated),
                created_by=_by(place, row.revision),
                session_id=row.writer.session_id,
                bytes=_size(place, name, row.blob),
            )
            for row in page
        )
        more = len(rows) > PAGE_DOCUMENTS
        return FileRevisions(
            revisions=revisions, next_cursor=cursors.encode(listing, page[-1].number, "") if more else None
        )

    def diff(self, scope: Scope, path: str, a: str | None = None, b: str | None = None) -> str:
        """What changed from revision `a` to `b`, as a unified diff.

        `b` defaults to the newest revision, `a` to the one before `b`. Empty where nothing differs.
        """
        place, name = self._named(scope, path)
        newer = self._version(place, name, b)
        before = place.versions(name, newer.number, 1)
        older = self._version(place, name, a) if a is not None else before[0] if before else None
        return diff_shown(
            name, (older.revision.hex(), _held(place, name, older)) if older else None,
            (newer.revision.hex(), _held(place, name, newer)), text_only=True,
        )  # fmt: skip

    def context(self) -> tuple[MemoryFile, ...]:
        """What a session starts with: the team's MEMORY.md, then the member's own, those that there are.

        For a session it stays what it was when the session started. Personal memory that is off is left out.
        """
        found = (self._start(scope) for scope in ("team", "personal") if self._is_in_context(scope))
        return tuple(file for file in found if file)

    def is_enabled(self) -> bool:
        """Whether the member's personal memory is on."""
        place = self._place("personal")
        tip = place.parts().repository.tip() if place.exists else None
        if tip is None:
            return True
        repository = place.parts().repository
        return is_on(repository, repository.trees.find(repository.commit(tip).tree, (SWITCH_FILE,)))

    # Writing

    def put(
        self, scope: Scope, path: str, content: str, *, expected_revision_id: str | Expected | None = ANYTHING
    ) -> MemoryFile:
        """Create a file, or replace its whole text. A text that is there already makes no commit.

        Raises FileTooLargeError, EmptyFileError, SecretRefusedError, InstructionsRefusedError;
        RevisionConflictError, FolderFullError, MemoryDisabledError.
        """
        self._writable(scope)
        name = file_name(normalized(scope, path))
        _check_content(name, content)
        self._screen(content)
        expected = check_expected(expected_revision_id)
        new = file_content(content)

        return self._save(scope, name, expected, new, "put")

    def restore(
        self, scope: Scope, path: str, revision_id: str, *, expected_revision_id: str | Expected | None = ANYTHING
    ) -> MemoryFile:
        """Bring back the text of an earlier revision, of a removed file too. Raises as `put` does."""
        place = self._writable(scope)
        name = file_name(normalized(scope, path))
        expected = check_expected(expected_revision_id)
        old = _held(place, name, self._version(place, name, revision_id))
        if old is None:
            raise NotFoundError(f"{name} was removed at {revision_id}. Choose an earlier revision.")
        _check_content(name, old.text)
        self._screen(old.text)

        return self._save(scope, name, expected, old, "restore")

    def remove(self, scope: Scope, path: str, *, expected_revision_id: str | Expected = ANYTHING) -> None:
        """Remove a file. Its history stays, and its path may be written again."""
        place = self._writable(scope)
        name = file_name(normalized(scope, path))
        expected = check_seen(expected_revision_id)

        def change(draft: Draft) -> None:
            stored = draft.get(name)
            if stored is None or not stored.alive:
                raise _missing(scope, name)
            self._current(draft, scope, name, expected)
            draft.put(name, None, "remove", self._writer(), self._author)

        place.save(change)

    def enable(self, enabled: bool) -> None:
        """Turn the member's personal memory on or off. While it is off nothing in it changes."""
        place = self._place("personal")
        if not enabled or place.exists:
            place.save(lambda draft: draft.switch(enabled, self._author))

    # Inside

    def _place(self, scope: Scope) -> EnvironmentRepository:
        place = self._places[check_scope(scope)]
        if place is None:
            raise ForbiddenError("This key is nobody's, and so has no personal memory. Use a member's key.")
        return place

    def _named(self, scope: Scope, path: str) -> tuple[EnvironmentRepository, Name]:
        return self._place(scope), file_name(normalized(scope, path))

    def _writable(self, scope: Scope) -> EnvironmentRepository:
        place = self._place(scope)
        if scope == "team" and self._caller.role == "member":
            raise ForbiddenError("Team memory takes direct writes only from an owner or admin.")
        return place

    def _screen(self, text: str) -> None:
        from gitmem.screening.refusing import refusal

        error = refusal({"content": text}, allowed=self._allowed)
        if error is not None:
            raise error

    def _writer(self) -> Writer:
        session = self._caller.session
        return Writer(kind="agent", session_id=session) if session else OWNER

    def _current(self, draft: Draft, scope: Scope, name: Name, expected: str | Expected | None) -> Stored | None:
        """The file as it stands, None where there is none. Raises RevisionConflictError, MemoryDisabledError."""
        if scope == "personal" and not draft.is_switched_on():
            raise MemoryDisabledError("Your personal memory is turned off. Turn it on: gitmem file enable.")
        stored = draft.get(name)
        found = stored if stored and stored.alive else None
        actual = found.revision.hex() if found else None
        if not isinstance(expected, Expected) and expected != actual:
            at = f"is at {actual}" if actual else "does not exist"
            raise RevisionConflictError(f"{name} {at}. Read it again, then decide.", expected=expected, actual=actual)
        return found

    def _save(
        self, scope: Scope, name: Name, expected: str | Expected | None, new: Content, operation: str
    ) -> MemoryFile:
        def change(draft: Draft) -> tuple[Stored, bool]:
            found = self._current(draft, scope, name, expected)
            if found is None and str(name) != INDEX:
                self._check_room(draft, name)
            if found and found.content == new:
                draft.confirm(name)
                return found, False
            return draft.put(name, new, operation, self._writer(), self._author), True

        stored, updated = self._place(scope).save(change)
        return self._shown(scope, name, stored, updated=updated)

    def _check_room(self, draft: Draft, name: Name) -> None:
        if sum(1 for other in draft.names_in(name.resource) if str(other) != INDEX) >= FOLDER_FILES:
            raise FolderFullError(
                f"{name.resource or 'The top of the scope'} holds {FOLDER_FILES} notes already, and no more may be "
                "added. Use another folder, or remove some."
            )

    def _shown(self, scope: Scope, name: Name, stored: Stored, *, updated: bool = False) -> MemoryFile:
        assert stored.content is not None
        return _file(
            scope, name, stored, stored.content.text, _by(self._place(scope), stored.revision), updated=updated
        )

    def _version(self, place: EnvironmentRepository, name: Name, revision: str | None) -> VersionRow:
        """The revision of a file's history; the newest for None. Raises NotFoundError."""
        if revision is not None:
            check_revision(revision)
        before: int | None = None
        while rows := place.versions(name, before, PAGE_DOCUMENTS):
            for row in rows:
                if revision is None or row.revision.hex().startswith(revision):
                    return row
            before = rows[-1].number
        raise NotFoundError(f"{name} has no revision {revision or 'yet'}. See its history.")

    def _is_in_context(self, scope: Scope) -> bool:
        return scope == "team" or (self._places["personal"] is not None and self.is_enabled())

    def _start(self, scope: Scope) -> MemoryFile | None:
        """MEMORY.md as a session starts with it; None where there is none."""
        place, name = self._place(scope), Name("", INDEX)
        before: int | None = None
        while rows := place.versions(name, before, PAGE_DOCUMENTS):
            for row in rows:
                if self._caller.started is None or row.updated <= self._caller.started:
                    content = _held(place, name, row)
                    stored = Stored(row.revision, content, row.updated, row.writer)
                    return self._shown(scope, name, stored) if content else None
            before = rows[-1].number
        return None


def file_name(path: str) -> Name:
    """A normalised path as a folder and a name in it."""
    folder, _, name = path.rpartition("/")
    return Name(folder, name)


def _file(scope: Scope, name: Name, stored: Stored, content: str, by: str, *, updated: bool) -> MemoryFile:
    return MemoryFile(
        scope=scope,
        path=str(name),
        content=content,
        revision_id=Revision(stored.revision.hex()),
        updated_at=to_rfc3339(stored.updated),
        updated_by=by,
        updated=updated,
    )


def _missing(scope: Scope, name: Name) -> NotFoundError:
    return NotFoundError(f"There is no {scope} memory file {name}.")


def _check_content(name: Name, content: object) -> None:
    size, limit = utf8_size("content", content), file_limit(str(name))
    assert isinstance(content, str)
    if size > limit:
        raise FileTooLargeError(size, limit)
    if str(name) != INDEX and not content.strip():
        raise EmptyFileError("A note needs some text. To take it away, remove it.")


def check_expected(value: object) -> str | Expected | None:
    """Return what `expected_revision_id` may be, or raise InvalidRequestError."""
    if value is None or isinstance(value, Expected):
        return value
    if not isinstance(value, str):
        raise InvalidRequestError("expected_revision_id must be a revision, null, or left out.")
    return value


def check_seen(value: object) -> str | Expected:
    """The same for a file that must be there."""
    expected = check_expected(value)
    if expected is None:
        raise InvalidRequestError("expected_revision_id must be a revision, or left out: what is removed is there.")
    return expected


def _held(place: EnvironmentRepository, name: Name, version: VersionRow) -> Content | None:
    return place.content(name, version.blob) if version.blob else None


def _size(place: EnvironmentRepository, name: Name, blob: Oid | None) -> int:
    content = place.content(name, blob) if blob else None
    return len(content.text.encode()) if content else 0


# Git's author field holds the member: an address as itself, any other name with a host that no address has.


def _person(member: str | None) -> Sequence[str]:
    if member is None:
        return "owner", "owner" + _NO_ADDRESS
    name, at, host = member.rpartition("@")
    plain = bool(name and at and host) and member.isascii() and not set(member) & set(" <>")
    return (name, member) if plain else (member, _escaped(member) + _NO_ADDRESS)


def _escaped(member: str) -> str:
    from urllib.parse import quote

    return quote(member, safe="")


def _member(address: str) -> str:
    from urllib.parse import unquote

    return unquote(address.removesuffix(_NO_ADDRESS)) if address.endswith(_NO_ADDRESS) else address


def _by(place: EnvironmentRepository, revision: Oid) -> str:
    return _member(place.parts().repository.commit(revision).address)


def personal_folder(member: str) -> str:
    """The name of the folder of a member's repository: the member where that is safe on any disk, else escaped."""
    from hashlib import sha256

    safe = "abcdefghijklmnopqrstuvwxyz0123456789_-@+."
    name = "".join(
        letter
        if letter in safe and not (letter == "." and at == 0)
        else "".join(f"%{byte:02x}" for byte in letter.encode())
        for at, letter in enumerate(member)
    )
    return name if len(name) <= 200 else "%h" + sha256(member.encode()).hexdigest()


def checked_member(member: str) -> str:
    """Return a member, or raise InvalidRequestError: 1 to 120 bytes of printable text."""
    if not 0 < utf8_size("member", member) <= 120 or not member.isprintable():
        raise InvalidRequestError("The member must be 1 to 120 bytes of printable text.")
    return member
