"""`save(change)`: the one way into an environment; and reading it at whatever tip it has."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar, cast

from gitmem.codec import Content
from gitmem.environment.catalog import Catalog
from gitmem.environment.layout import Name
from gitmem.environment.opened import Change, Opened, Ticket
from gitmem.environment.rows import Clashed, Row, Save, VersionRow
from gitmem.environment.settings import DEFAULTS, Settings
from gitmem.errors import GitmemError
from gitmem.git.creation import create, is_made, refuse_foreign_folder
from gitmem.git.objects import Oid
from gitmem.records import Memory

if TYPE_CHECKING:
    from gitmem.git.housekeeping import Size

T = TypeVar("T")

_BATCH: Final = 64


class EnvironmentRepository:
    """One environment's repository, index and working tree. Safe to share between threads."""

    def __init__(self, folder: str, settings: Settings = DEFAULTS) -> None:
        self.folder = folder
        self.settings = settings
        self._opening = threading.Lock()
        self._parts: Opened | None = None
        self._waiting: deque[Ticket] = deque()
        self._leading = threading.Lock()
        self._pid = os.getpid()
        self._saved = False
        _open_environments.add(self)

    # Opening and closing

    @property
    def exists(self) -> bool:
        """Whether the repository has been made."""
        return is_made(os.path.join(self.folder, ".git"))

    def make(self) -> None:
        """Make the repository, without a commit, where there is none. Raises StorageError."""
        if not self.exists:
            create(self.folder, without_tree=not self.settings.worktree, durable=self.settings.durable)

    def parts(self) -> Opened:
        """The opened repository with its helpers. Raises StorageError where there is none."""
        if self._parts is None or self._pid != os.getpid():
            with self._opening:
                if self._parts is None or self._pid != os.getpid():
                    self._parts = Opened(self.folder, self.settings)
                    self._pid = os.getpid()
        return self._parts

    def close(self) -> None:
        """Bring `.git/index` up to date, flush, and give back every handle. May be opened again."""
        parts, self._parts = self._parts, None
        if parts is not None and self._pid == os.getpid():
            parts.close()

    # Writing

    def save(self, change: Change[T], *, alone: bool = False) -> T:
        """Run `change` on the newest tip and publish what it adds, whole or not at all.

        `change` gets a Draft; its checks and writes happen under the writer's lock, on the state
        left by whoever saved before. It may run more than once and must not keep state between runs.
        Writers that wait share one flush and one move of the ref, unless `alone`; each gets its own answer.
        Raises what `change` raises; BusyError; StorageError. A landed save is never reported as
        failed because the working tree or the index could not follow.
        """
        self.make()
        parts = self.parts()
        self._saved = True
        ticket = Ticket(change, alone=alone)
        self._waiting.append(ticket)
        with self._leading:
            while not ticket.done:
                parts.run(_taken(self._waiting))
        if ticket.error is not None:
            raise ticket.error
        return cast(T, ticket.result)

    def obstacle(self) -> str | None:
        """The lock file of another Git process that keeps `.git/index` behind the saves."""
        return self.parts().projection.obstacle() if self.exists else None

    def lagging_behind(self) -> str | None:
        """The same, only where `.git/index` does lag."""
        lock = self.obstacle()
        return lock if lock and self.parts().projection.needs_healing() else None

    def collect(self) -> int:
        """Pack everything that main reaches; the number of objects packed. Nothing is pruned.

        Safe beside writers and readers, and needs no git binary. Raises BusyError where another
        process packs; StorageError, DamagedError.
        """
        from gitmem.git.housekeeping import Housekeeping

        return Housekeeping(self.parts().repository).run(everything=True) if self.exists else 0

    def is_packing_due(self) -> bool:
        """Whether this handle has saved, and what lies in the repository is worth packing."""
        return self._saved and self.size().due

    def size(self) -> Size:
        """What the repository takes on the disk. Raises StorageError where there is none."""
        from gitmem.git.housekeeping import measure

        return measure(self.parts().repository)

    # Reading

    def refresh(self, *, needed: bool = True) -> None:
        """Before a read that must see whatever any machine has saved: bring main to where the upstream is.

        Nothing where there is no upstream; nor, unless it is `needed`, where saves may be made
        without it and it is away. Raises RemoteUnreachableError, RemoteRefusedError, RemoteHistoryError.
        """
        if self.exists:
            self.parts().refresh(needed=needed)

    def find(self, name: Name) -> Row | None:
        """The newest row of a document, dead or alive; None for an id never used."""
        return self.parts().find(name) if self._is_there() else None

    def recent(
        self, resource: str, after: tuple[int, str] | None, limit: int, matching: str = ""
    ) -> list[tuple[str, Row]]:
        """Live documents with metadata, descending update time, then ascending id.

        `matching` leaves out those whose id and title do not contain it; only where the index did not
        know a title yet, some of them may come along.
        """
        found = self._fresh(lambda catalog: catalog.recent(resource, after, limit, matching))
        return [(i, row if row.meta else self.read(Name(resource, i), row)[0]) for i, row in found or ()]

    def by_name(self, after: Name, limit: int) -> list[tuple[Name, Row]]:
        """Documents with metadata by name, behind `after`."""
        found = self._fresh(lambda catalog: catalog.by_name(after, limit))
        return [(name, row if row.meta else self.read(name, row)[0]) for name, row in found or ()]

    def count(self) -> int:
        """How many documents there are."""
        return self._fresh(lambda catalog: (catalog.tip(), catalog.live_count())) or 0

    def versions(self, name: Name, before: int | None, limit: int) -> list[VersionRow]:
        """The versions of a document, newest first, behind number `before`, with their blobs."""
        row = self.find(name)
        if row is None:
            return []
        return self.parts().versions(name, row, before, limit)

    def saves(self, session: str, after: int) -> list[Save]:
        """A session's saves behind number `after`, in the order of their commits."""
        return self._fresh(lambda catalog: catalog.saves(session, after)) or []

    def clashes(self) -> list[Clashed]:
        """The conflicts that nobody has settled, by document."""
        return self._fresh(lambda catalog: catalog.conflicts()) or []

    def resource(self, name: str) -> Memory | None:
        """A resource's declaration at the tip."""
        return self._fresh(lambda catalog: (catalog.tip(), catalog.resource(name)))

    def resources(self) -> list[tuple[Memory, int]]:
        """Every resource with its number of live documents."""
        return self._fresh(lambda catalog: (catalog.tip(), catalog.resources())) or []

    def read(self, name: Name, row: Row) -> tuple[Row, Content]:
        """A live row with blob and metadata filled in, and the content. Raises DamagedError."""
        return self.parts().read(name, row)

    def content(self, name: Name, blob: Oid) -> Content | None:
        """What a version's blob holds; None for a tombstone. Raises DamagedError."""
        parts = self.parts()
        return parts.form.decode(parts.repository.objects.read(blob, "blob"), name.id)

    def _fresh(self, look: Callable[[Catalog], tuple[Oid | None, T]]) -> T | None:
        """Look into the index at a moment when it stands at the tip of main."""
        return self.parts().fresh(look) if self._is_there() else None

    def _is_there(self) -> bool:
        if not self.exists:
            refuse_foreign_folder(self.folder)
            return False
        return True


def _taken(waiting: deque[Ticket]) -> list[Ticket]:
    batch: list[Ticket] = []
    with suppress(IndexError):
        while len(batch) < _BATCH and not (batch and (batch[0].alone or waiting[0].alone)):
            batch.append(waiting.popleft())
    return batch


_open_environments: weakref.WeakSet[EnvironmentRepository] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for environment in list(_open_environments):
        with suppress(GitmemError, OSError):
            environment.close()
