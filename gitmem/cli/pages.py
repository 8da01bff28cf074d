"""Listings without their pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitmem.records import DocumentInfo, Version

if TYPE_CHECKING:
    from gitmem.cli.anywhere import AnyDocuments


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
