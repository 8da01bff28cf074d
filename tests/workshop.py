"""What the tests of documents share: a clock that stands still, and looks at a resource as a whole."""

from __future__ import annotations

from collections.abc import Callable

import gitmem
from gitmem import Document, Documents
from tests.support import git

Calls = list[Callable[[], object]]

NOTES = gitmem.define_memory(id="notes", description="Workshop requirements and decisions.")

START = 1_789_041_600_000
"""2026-09-10T12:00:00.000Z in milliseconds since 1970."""


class ManualClock:
    """Gives `now`, in milliseconds since 1970-01-01 UTC, until a test moves it."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def move(self, milliseconds: int) -> None:
        self.now += milliseconds


def limited(environment: gitmem.Environment, max_bytes: int) -> Documents:
    """The resource "notes" with another limit."""
    provider = gitmem.document_memory(max_bytes=max_bytes)
    environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="n", provider=provider)])
    return environment.documents("notes")


def tip(environment: gitmem.Environment) -> str:
    return git(environment.folder, "rev-parse", "refs/heads/main")


def listed(notes: Documents) -> list[str]:
    """Every id, over all pages."""
    ids, cursor = [], None
    while True:
        page = notes.list(cursor=cursor)
        assert len(page.documents) <= 50
        ids += [document.id for document in page.documents]
        if page.next_cursor is None:
            return ids
        cursor = page.next_cursor


def operations(notes: Documents, document_id: str) -> list[str]:
    return [version.operation for version in notes.history(document_id).versions]


def filled(notes: Documents, count: int) -> list[Document]:
    return [notes.create(f"d{number:03}", title=str(number)) for number in range(count)]
