"""Edits on top of an older version: joined with what came since, or both versions named."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from gitmem.codec import Content
from gitmem.environment.catalog import Catalog
from gitmem.environment.history import Reader
from gitmem.environment.layout import Name
from gitmem.environment.stored import Stored
from gitmem.errors import DamagedError, InvalidDocumentError
from gitmem.git.objects import Oid
from gitmem.git.repository import Repository
from gitmem.merging import merge_documents

_PAGE: Final = 50


class Older:
    """The versions of documents behind one tip. Changes nothing."""

    def __init__(self, repository: Repository, catalog: Catalog, reader: Reader, tip: Oid | None) -> None:
        self._repository = repository
        self._catalog = catalog
        self._reader = reader
        self._tip = tip

    def join(self, name: Name, base: Oid | None, newest: Stored, edit: Content, limit: int) -> Content | str:
        """An edit of the version whose blob is `base`, joined with the newest one; or why they do not join."""
        ours, older = newest.content, self._content(name, base)
        assert ours is not None
        joined = merge_documents(older, ours, edit)
        if joined and len(joined.text.encode()) <= limit:
            return joined
        since = self._named(name, base)
        why = "together they are too long" if joined else "they changed the same lines"
        return f"{since} and {newest.revision.hex()[:12]} do not merge, as {why}"

    def revision(self, name: Name, blob: Oid) -> Oid | None:
        """The version of a document that has a blob; None where it never had it."""
        found = self._catalog.find(name)[1]
        if found and found.merged and self._tip is not None:
            events = self._reader.versions(self._tip, name)
            return next(
                (e.commit for e in events if not e.dead and (e.blob or self.blob(e.commit, name)) == blob), None
            )
        before: int | None = None
        while rows := self._catalog.versions(name, before, _PAGE):
            for row in rows:
                if (row.blob or self.blob(row.revision, name)) == blob:
                    return row.revision
            before = rows[-1].number
        return None

    def blob(self, commit: Oid, name: Name) -> Oid:
        """The blob of a document's file in a commit. Raises DamagedError."""
        return self._reader.blob_at(commit, name)

    def _content(self, name: Name, blob: Oid | None) -> Content | None:
        with suppress(DamagedError, InvalidDocumentError):
            return self._reader.form.decode(self._repository.objects.read(blob, "blob"), name.id) if blob else None
        return None

    def _named(self, name: Name, blob: Oid | None) -> str:
        with suppress(DamagedError):
            revision = self.revision(name, blob) if blob else None
            if revision:
                return f"the edit of {revision.hex()[:12]}"
        return "an edit of a version that is not known"
