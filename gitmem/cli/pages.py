"""Listings without their pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitmem.filepaths import Scope
from gitmem.records import DocumentInfo, Version

if TYPE_CHECKING:
    from gitmem.cli.anywhere import AnyDocuments, AnyFiles
    from gitmem.files import FileRevision, MemoryFileInfo


def every_document(documents: AnyDocuments) -> Iterator[DocumentInfo]:
    """All documents of a resource, in the order of its pages."""
    page = documents.list()
    yield from page.documents
    while page.next_cursor is not None:
        page = documents.list(cursor=page.next_cursor)
        yield from page.documents


def every_version(documents: AnyDocuments, document_id: str) -> Iterator[Version]:
    """All versions of a document, newest first."""
    page = documents.history(document_id)
    yield from page.versions
    while page.next_cursor is not None:
        page = documents.history(document_id, cursor=page.next_cursor)
        yield from page.versions


def every_file(files: AnyFiles, scope: Scope) -> Iterator[MemoryFileInfo]:
    """All memory files of a scope, by path."""
    page = files.list(scope)
    yield from page.files
    while page.next_cursor is not None:
        page = files.list(scope, cursor=page.next_cursor)
        yield from page.files


def every_revision(files: AnyFiles, scope: Scope, path: str) -> Iterator[FileRevision]:
    """All revisions of a memory file, newest first."""
    page = files.history(scope, path)
    yield from page.revisions
    while page.next_cursor is not None:
        page = files.history(scope, path, cursor=page.next_cursor)
        yield from page.revisions
