"""Keeping the working tree and `.git/index` at the tip, without losing what a person has put there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from gitmem.environment.catalog import Catalog
from gitmem.environment.draft import FileChange
from gitmem.environment.layout import text_path
from gitmem.environment.worktree import WorkTree
from gitmem.errors import DamagedError, StorageError
from gitmem.failpoints import reach
from gitmem.git.objects import Oid
from gitmem.git.repository import Repository
from gitmem.git.stage import Stage, Staged
from gitmem.git.trees import Path

_WRITTEN_AT_ONCE: Final = 256 * 1024
"""An index file of up to this many bytes is written with each save; a larger one a little later."""


class Projection:
    """The working tree and `.git/index` of one environment; neither, where it has no working tree."""

    def __init__(self, repository: Repository, catalog: Catalog, worktree: WorkTree | None) -> None:
        self._repository = repository
        self._catalog = catalog
        self._worktree = worktree
        self._stage = Stage(repository.git_dir, repository.scratch)

    def active(self) -> bool:
        """Whether the working tree stands for main."""
        return self._worktree is not None and self._repository.head_is_main()

    def stage_size(self) -> int:
        """Bytes of `.git/index`."""
        return self._stage.size()

    def hold(self) -> bool:
        """Keep plain git from committing from an index that is about to lag."""
        try:
            return self._stage.hold()
        except OSError:
            return False

    def let_go(self) -> None:
        """After a save that failed: nothing lags because of it."""
        if self._worktree and self._stage.is_held() and not self._lagging():
            self._stage.release()

    def put(self, files: Sequence[FileChange], root: Oid, held: bool) -> dict[str, Oid | None]:
        """Write the files of a landed save; the paths that lag, with what gitmem last put there."""
        if not files or self._worktree is None:
            return {}
        lagging: dict[str, Oid | None] = {}
        touched: dict[Path, None] = {}
        for change in _merged(files):
            touched[change.path] = None
            if change.source is not None:
                touched[change.source] = None
                with suppress(OSError):
                    self._worktree.move(change.source, change.path)
                if text_path(change.source) in lagging:
                    lagging[text_path(change.path)] = lagging.pop(text_path(change.source))
                continue
            try:
                done = self._worktree.put(change.path, change.data, change.expected)
            except OSError:
                done = False
            if not done:
                lagging[text_path(change.path)] = change.base
        if held and self._stage.size() <= _WRITTEN_AT_ONCE and not self._lagging():
            with suppress(OSError, StorageError):
                self._update(list(touched), root)
                self._stage.release()
                return lagging
        for path in touched:
            entry = self._repository.trees.find(root, path)
            lagging.setdefault(text_path(path), entry.oid if entry else None)
        return lagging

    def needs_healing(self) -> bool:
        """Whether something lags, or a lock of gitmem's own was left on the index."""
        return self._worktree is not None and (self._stage.is_held() or self._lagging())

    def _lagging(self) -> bool:
        return any(not lag.staged for lag in self._catalog.unprojected().values())

    def _update(self, paths: Sequence[Path], root: Oid) -> None:
        assert self._worktree is not None
        changes: dict[bytes, Staged | None] = {}
        for path in paths:
            entry = self._repository.trees.find(root, path)
            file = self._worktree.read(path)
            stat = file.stat if entry and file.oid == entry.oid else None
            changes[os.fsencode(text_path(path))] = Staged(entry.oid, stat) if entry else None
        reach("before-stage")
        self._stage.update(changes)
        reach("after-stage")

    def heal(self) -> bool:
        """Bring whatever lags up to the tip. Needs the lock; False where somebody is in the way."""
        if self._worktree is None:
            return True
        if not self._repository.head_is_main():
            if self._stage.is_held():
                self._stage.release()
            return True
        lagging = {path: lag for path, lag in self._catalog.unprojected().items() if not lag.staged}
        if not lagging:
            if self._stage.is_held():
                self._stage.release()
            return True
        if not self.hold():
            return False
        tip = self._repository.tip()
        if tip is None:
            return True
        root = self._repository.commit(tip).tree
        settled: list[str] = []
        edited: list[str] = []
        for text, lag in lagging.items():
            (settled if self._bring_up(tuple(text.split("/")), lag.base, root) else edited).append(text)
        self._update([tuple(text.split("/")) for text in lagging], root)
        with self._catalog.transaction() as connection:
            self._catalog.clear_unprojected(connection, settled)
            for path in edited:
                self._catalog.set_staged(connection, path)
        self._stage.release()
        return True

    def _bring_up(self, path: Path, base: Oid | None, root: Oid) -> bool:
        assert self._worktree is not None
        entry = self._repository.trees.find(root, path)
        wanted = entry.oid if entry else None
        file = self._worktree.read(path)
        if file.oid == wanted and not file.odd:
            return True
        try:
            data = self._repository.objects.read(wanted, "blob") if wanted else None
            return self._worktree.put(path, data, {base})
        except (OSError, DamagedError):
            return False


def _merged(files: Sequence[FileChange]) -> list[FileChange]:
    """Several writes of one file in a row become one."""
    merged: list[FileChange] = []
    last: dict[Path, FileChange] = {}
    for change in files:
        earlier = last.get(change.path)
        if earlier and change.source is None and earlier.source is None:
            earlier.data = change.data
            earlier.expected |= change.expected
            continue
        if change.source is not None:
            last.pop(change.source, None)
        last[change.path] = change
        merged.append(change)
    return merged
