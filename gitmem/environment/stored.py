"""The tip and a document as a draft finds them, and as a reader is shown them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gitmem.codec import Content
from gitmem.git.objects import Oid
from gitmem.git.repository import Repository
from gitmem.git.trees import EMPTY_TREE
from gitmem.records import Writer


class Head(NamedTuple):
    """The commit that a draft starts from: its tree, and its time in milliseconds."""

    tip: Oid | None
    root: Oid
    updated: int


class Stored:
    """A document as it stands in a draft. `alive` is false once it is deleted."""

    __slots__ = ("_content", "alive", "revision", "updated", "writer")

    def __init__(
        self,
        revision: Oid,
        content: Content | Callable[[], Content] | None,
        updated: int,
        writer: Writer,
    ) -> None:
        self.revision = revision
        self.alive = content is not None
        self.updated = updated
        self.writer = writer
        self._content = content

    @property
    def content(self) -> Content | None:
        """What it holds, read when first asked for; None where it is deleted. Raises DamagedError."""
        if callable(self._content):
            self._content = self._content()
        return self._content


def root_of(repository: Repository, tip: Oid | None) -> Head:
    """The head at a tip."""
    if tip is None:
        return Head(None, EMPTY_TREE, 0)
    commit = repository.commit(tip)
    return Head(tip, commit.tree, commit.updated)
