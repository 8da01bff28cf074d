"""The memory files of a project on a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from gitmem.client import decoding
from gitmem.client.api import Answer, Api
from gitmem.codec import Content, file_content
from gitmem.errors import NotFoundError
from gitmem.filepaths import Scope, check_scope, normalized
from gitmem.files import (
    ANYTHING,
    Expected,
    FileRevision,
    FileRevisions,
    MemoryFile,
    MemoryFilePage,
    check_expected,
    check_seen,
    file_name,
)
from gitmem.limits import FILE_BODY_BYTES, check_revision, utf8_size
from gitmem.views import diff_shown

_BASE: Final = "/v3/organizations"


class RemoteFiles:
    """What `gitmem.files.Files` is to a store on this machine, for the member whose key the client has.

    Further errors: RemoteUnreachableError where the server does not answer; of a write that was sent
    it is then uncertain whether it was made.
    """

    def __init__(self, api: Api, project: str) -> None:
        self._api = api
        self._base = f"{_BASE}/{quote(project, safe='')}"

    # Reading

    def read(self, scope: Scope, path: str, *, at: str | None = None) -> MemoryFile:
        """A file as it is, or as it was at a revision of its history, shortened to seven digits or more."""
        revision = check_revision(at) if at is not None else None
        return self._ask("GET", "file", query={**_named(scope, path), "revision": revision}).into(decoding.memory_file)

    def list(self, scope: Scope, *, cursor: str | None = None) -> MemoryFilePage:
        """A page of at most 50 files without text, by path. Raises InvalidCursorError."""
        query = {"scope": check_scope(scope), "cursor": cursor}
        return self._ask("GET", "files", query=query).into(decoding.memory_files)

    def history(self, scope: Scope, path: str, *, cursor: str | None = None) -> FileRevisions:
        """A page of at most 50 revisions, newest first; of a removed file too."""
        query = {**_named(scope, path), "cursor": cursor}
        return self._ask("GET", "history", query=query).into(decoding.file_revisions)

    def diff(self, scope: Scope, path: str, a: str | None = None, b: str | None = None) -> str:
        """What changed from revision `a` to `b`, as a unified diff.

        `b` defaults to the newest revision, `a` to the one before `b`. Empty where nothing differs.
        """
        for revision in (a, b):
            if revision is not None:
                check_revision(revision)
        newer, before = self._version(scope, path, b)
        older = self._version(scope, path, a)[0] if a is not None else before
        return diff_shown(
            file_name(normalized(scope, path)),
            (older.revision_id, self._held(scope, path, older)) if older else None,
            (newer.revision_id, self._held(scope, path, newer)),
            text_only=True,
        )

    def context(self) -> tuple[MemoryFile, ...]:
        """What a session starts with: the team's MEMORY.md, then the member's own, those that there are."""
        return self._ask("GET", "context").into(lambda value: tuple(map(decoding.memory_file, value["files"])))

    def is_enabled(self) -> bool:
        """Whether the member's personal memory is on."""
        return self._ask("GET", query={"scope": "personal"}).into(lambda value: bool(value["enabled"]))

    # Writing

    def put(
        self, scope: Scope, path: str, content: str, *, expected_revision_id: str | Expected | None = ANYTHING
    ) -> MemoryFile:
        """Create a file, or replace its whole text. A text that is there already makes no commit."""
        utf8_size("content", content)
        body = {**_named(scope, path), "content": content, **_expectation(expected_revision_id)}
        return self._ask("PUT", "file", body=body).into(decoding.memory_file)

    def restore(
        self, scope: Scope, path: str, revision_id: str, *, expected_revision_id: str | Expected | None = ANYTHING
    ) -> MemoryFile:
        """Bring back the text of an earlier revision, of a removed file too."""
        body = {**_named(scope, path), "revision_id": check_revision(revision_id), **_expectation(expected_revision_id)}
        return self._ask("POST", "restore", body=body).into(decoding.memory_file)

    def remove(self, scope: Scope, path: str, *, expected_revision_id: str | Expected = ANYTHING) -> None:
        """Remove a file. Its history stays, and its path may be written again."""
        query = {**_named(scope, path), **_expectation(check_seen(expected_revision_id))}
        self._ask("DELETE", "file", query=query)

    def enable(self, enabled: bool) -> None:
        """Turn the member's personal memory on or off. While it is off nothing in it changes."""
        self._ask("PATCH", body={"scope": "personal", "enabled": enabled})

    # Inside

    def _ask(
        self,
        method: str,
        *below: str,
        query: dict[str, str | None] | None = None,
        body: dict[str, Any] | None = None,
    ) -> Answer:
        return self._api.ask(method, "memory", *below, query=query, body=body, base=self._base, most=FILE_BODY_BYTES)

    def _version(self, scope: Scope, path: str, revision: str | None) -> tuple[FileRevision, FileRevision | None]:
        """A revision, the newest unless named, and the one before it."""
        found: FileRevision | None = None
        for version in self._versions(scope, path):
            if found is not None:
                return found, version
            if revision is None or version.revision_id.startswith(revision):
                found = version
        if found is None:
            raise NotFoundError(f"{normalized(scope, path)} has no revision {revision}. See its history.")
        return found, None

    def _versions(self, scope: Scope, path: str) -> Iterator[FileRevision]:
        page = self.history(scope, path)
        yield from page.revisions
        while page.next_cursor is not None:
            page = self.history(scope, path, cursor=page.next_cursor)
            yield from page.revisions

    def _held(self, scope: Scope, path: str, version: FileRevision) -> Content | None:
        try:
            return file_content(self.read(scope, path, at=version.revision_id).content)
        except NotFoundError:
            return None  # a removal


def _named(scope: Scope, path: str) -> dict[str, str | None]:
    return {"scope": check_scope(scope), "path": normalized(scope, path)}


def _expectation(value: str | Expected | None) -> dict[str, str | None]:
    expected = check_expected(value)
    return {} if isinstance(expected, Expected) else {"expected_revision_id": expected}
