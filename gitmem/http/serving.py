"""What a running server works with: the store, its keys, and threads for Git work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

from gitmem.errors import ErrorCode, GitmemError, ProjectNotFoundError
from gitmem.http.answers import Refusal
from gitmem.keys import Keys
from gitmem.limits import is_resource_id
from gitmem.store import Project, Store

T = TypeVar("T")

# Readers do not queue behind writers. Many writers wait together, which lets them share a flush.
_READERS: Final = 8
_WRITERS: Final = 32
_WAITING: Final = 1_024
_USES_SECONDS: Final = 60.0


class Serving:
    """The parts that every request shares.

    `local` says that only this machine can reach the server; `stopping`, that who waits should not.
    """

    def __init__(self, store: Store, keys: Keys, *, local: bool) -> None:
        self.store = store
        self.keys = keys
        self.local = local
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="gitmem-read")
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="gitmem-write")
        self.stopping = False
        self._waiting = 0
        self._projects: dict[str, Project] = {}

    async def run(self, work: Callable[[], T], *, writes: bool) -> T:
        """Do Git work off the event loop. Raises what it raises; Refusal (503) under too much load."""
        if self._waiting >= _WAITING:
            what = "The server has more to do than it can. Nothing was changed; try again."
            raise Refusal(503, ErrorCode.BUSY, what, ((b"retry-after", b"1"),))
        self._waiting += 1
        try:
            pool = self._writers if writes else self._readers
            return await asyncio.get_running_loop().run_in_executor(pool, work)
        finally:
            self._waiting -= 1

    def project(self, project_id: str) -> Project:
        """A project that exists. Raises ProjectNotFoundError, for an impossible id too."""
        known = self._projects.get(project_id)
        if known is None and is_resource_id(project_id):
            with suppress(ProjectNotFoundError):
                known = self._projects[project_id] = self.store.existing_project(project_id)
        if known is not None and known.exists:
            return known
        raise ProjectNotFoundError(f"There is no project {ascii(project_id)[:140]}. Make it with gitmem init.")

    def projects(self) -> list[Project]:
        """Every project; other folders may lie in the store too."""
        return [self.project(project_id) for project_id in filter(is_resource_id, self.store.projects())]

    async def write_uses(self) -> None:
        """Note now and then when keys were last used, until cancelled."""
        while True:
            await asyncio.sleep(_USES_SECONDS)
            with suppress(GitmemError):
                await asyncio.to_thread(self.keys.write_uses)

    def close(self) -> None:
        """Finish the saves under way and bring the store to rest."""
        self._readers.shutdown()
        self._writers.shutdown()
        with suppress(GitmemError):
            self.keys.write_uses()
        self.store.close()
