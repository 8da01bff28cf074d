"""Keeping the working tree and `.git/index` at the tip, without losing what a person has put there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from gitmem.database import DatabaseUnusableError
from gitmem.environment.aftermath import aftermath, changed
from gitmem.environment.catalog import Catalog
from gitmem.environment.comparison import differs
from gitmem.environment.form import Form
from gitmem.environment.history import FILE_MODES
from gitmem.environment.lagging import Search
from gitmem.environment.layout import text_path
from gitmem.environment.rows import State
from gitmem.environment.worktree import WorkTree
from gitmem.errors import DamagedError, StorageError
from gitmem.failpoints import reach
from gitmem.git.files import sync_path
from gitmem.git.journal import Record
from gitmem.git.objects import Oid
from gitmem.git.repository import Repository
from gitmem.git.stage import Stage, Staged, UnusableIndexError
from gitmem.git.trees import FILE, Entry, Path

if TYPE_CHECKING:
    from gitmem.environment.draft import FileChange

_HEALED_AT_ONCE: Final = 2_000
_WRITTEN_AT_ONCE: Final = 32 * 1024
"""An index file of up to this many bytes is written with each save; a larger one a little later."""


class Projection:
    """The working tree and `.git/index` of one environment; neither, where it has no working tree."""

    def __init__(self, form: Form, repository: Repository, catalog: Catalog, worktree: WorkTree | None) -> None:
        self._form = form
        self._repository = repository
        self._catalog = catalog
        self._worktree = worktree
        self._stage = Stage(repository.git_dir, repository.scratch)
        self._after = aftermath(repository) if worktree else None
        repository.flush_followers = self._flush

    def active(self) -> bool:
        """Whether the working tree stands for main."""
        return self._worktree is not None and self._repository.head_is_main()

    def stage_size(self) -> int:
        """Bytes of `.git/index`."""
        return self._stage.size()

    def hold(self) -> bool:
        """Keep plain git from committing from an index that is about to lag; False where it is at work."""
        try:
            return self._stage.hold()
        except OSError:
            return False

    def obstacle(self) -> str | None:
        """The index lock of another Git process that keeps `.git/index` from following."""
        return self._stage.obstacle() if self._worktree is not None else None

    def left_out(self, path: Path) -> str | None:
        """Why an absent file means nothing: a sparse checkout leaves it out."""
        return "a sparse checkout leaves it out" if self._stage.left_out(os.fsencode(text_path(path))) else None

    def let_go(self) -> None:
        """After a save that failed: nothing lags because of it."""
        if self._worktree and self._stage.is_held() and not self._lagging():
            self._stage.release()

    def put(self, files: Sequence[FileChange], root: Oid, *, lagging: bool) -> dict[str, Oid | None]:
        """Write the files of a landed save; the paths that lag, with what gitmem last put there.

        `lagging` says that others lag already: then `.git/index` follows later, for all of them.
        """
        if not files or self._worktree is None:
            return {}
        late: dict[str, Oid | None] = {}
        stats: dict[Path, os.stat_result | None] = {}
        for change in _merged(files):
            if change.source is not None:
                self._move(change.source, change.path, stats, late)
                continue
            stats[change.path] = stat = self._put(change)
            if stat is None and not (change.data is None and self._removed(change)):
                late[text_path(change.path)] = change.base
        held = self.hold()
        if self._stage.size() <= _WRITTEN_AT_ONCE and not lagging:
            with suppress(OSError, StorageError):
                self._update(stats, root)
                if held:
                    self._stage.release()
                    return late
                # Another Git process holds the index and may put its own in place: look again later.
        for path in stats:
            entry = self._repository.trees.find(root, path)
            late.setdefault(text_path(path), entry.oid if entry else None)
        return late

    def _put(self, change: FileChange) -> os.stat_result | None:
        assert self._worktree is not None
        if change.data is None:
            return None
        with suppress(OSError):
            return self._worktree.put(change.path, change.data, change.expected)
        return None

    def _removed(self, change: FileChange) -> bool:
        """Take a removed file away; whether nothing lies there any more."""
        assert self._worktree is not None
        with suppress(OSError):
            lying = self._worktree.read(change.path)
            if lying.oid in change.expected and lying.oid is not None and not lying.odd:
                return self._worktree.remove(change.path, lying.oid)
            return lying.absent
        return False

    def _move(
        self, old: Path, new: Path, stats: dict[Path, os.stat_result | None], late: dict[str, Oid | None]
    ) -> None:
        assert self._worktree is not None
        stats[old] = stats[new] = None
        with suppress(OSError):
            self._worktree.move(old, new)
        if text_path(old) in late:
            late[text_path(new)] = late.pop(text_path(old))
        else:
            stats[new] = self._worktree.read(new).stat

    def ready(self, state: State) -> bool:
        """Whether the working tree stands for main, and it is known what lags there. Needs the lock."""
        if not self.active():
            return False
        with suppress(OSError, StorageError, DatabaseUnusableError):
            return self._knows(state.unchecked) or self.heal() or self._knows(self._catalog.is_unchecked())
        return False

    def _knows(self, unchecked: bool) -> bool:
        return not unchecked and self._after is None

    def _flush(self, records: Sequence[Record]) -> None:
        """Flush what follows saves: the files of the working tree, and `.git/index`. Raises OSError."""
        if self._worktree is not None:
            self._worktree.flush(set(changed(self._repository, records)))
            sync_path(self._stage.path)
            sync_path(self._repository.git_dir)

    def needs_healing(self) -> bool:
        """Whether something lags or may lag, or a lock of gitmem's own was left on the index."""
        if self._worktree is None or not os.access(self._repository.derived, os.W_OK):
            return False
        try:
            return self._stage.is_held() or self._lagging() or (self.active() and self._lost_track())
        except DatabaseUnusableError:
            return True
        except StorageError:
            return False  # a damaged main: a person must mend it first

    def _lost_track(self) -> bool:
        """Whether only a comparison can tell what lags. While a person merges, it could not."""
        if self._repository.tip() is None:
            return False
        doubtful = not self._knows(self._catalog.is_unchecked()) and not self._repository.operation_in_progress()
        return doubtful or not self._stage.is_usable()

    def _lagging(self) -> bool:
        return self._catalog.state().lagging

    def _update(self, stats: Mapping[Path, os.stat_result | None], root: Oid) -> None:
        """Let the index hold the tip's blobs for some paths, with the stat of each file that has it."""
        changes: dict[bytes, Staged | None] = {}
        for path, stat in stats.items():
            entry = self._repository.trees.find(root, path)
            changes[os.fsencode(text_path(path))] = Staged(entry.oid, stat, _staged_mode(entry)) if entry else None
        reach("before-stage")
        try:
            self._stage.update(changes)
        except UnusableIndexError:
            self._stage.rebuild(self._all_staged(root))
        reach("after-stage")

    def _all_staged(self, root: Oid) -> Iterator[tuple[bytes, Staged]]:
        """Every file of the tip, with the stat of those that are in the working tree as they are there."""
        assert self._worktree is not None
        for path, entry in self._repository.trees.walk(root):
            file = self._worktree.read(path)
            yield (
                b"/".join(name.encode("utf-8", "surrogateescape") for name in path),
                Staged(entry.oid, file.stat if file.oid == entry.oid else None, entry.mode),
            )

    def heal(self) -> bool:
        """Bring what lags up to the tip, some thousand files at once, so that savers need not wait long.

        Needs the lock. False where somebody is in the way; ask `needs_healing` whether more is left.
        """
        if self._worktree is None:
            return True
        if not self._repository.head_is_main():
            if self._stage.is_held():
                self._stage.release()
            return True
        if not self._lagging() and not self._lost_track():
            self._settle_edits()
            if self._stage.is_held():
                self._stage.release()
            return True
        tip = self._repository.tip()
        if tip is None:
            return True
        held = self.hold()
        if not self._knows(self._catalog.is_unchecked()) and not self._repository.operation_in_progress():
            self._search(self._worktree, tip)
        self._bring_up_all(self._repository.commit(tip).tree, held)
        self._settle_edits()
        if held and not self._lagging():
            self._stage.release()
        return held

    def _search(self, worktree: WorkTree, tip: Oid) -> None:
        """Find what lags, and note it; files at a former place are moved on."""
        found = Search(self._form, self._repository, self._catalog, worktree, self._stage, tip, self._after).run()
        for old, new in found.moves.items():
            worktree.move(old, new)
        with self._catalog.transaction() as connection:
            for path, base in found.bases.items():
                self._catalog.set_unprojected(connection, text_path(path), base)
            self._catalog.set_unchecked(connection, False)
        self._after = None

    def _bring_up_all(self, root: Oid, held: bool) -> None:
        stats: dict[Path, os.stat_result | None] = {}
        settled: list[str] = []
        edited: list[str] = []
        lagging = ((text, lag) for text, lag in self._catalog.unprojected().items() if not lag.staged)
        for text, lag in islice(lagging, _HEALED_AT_ONCE):
            path = tuple(text.split("/"))
            done, stats[path] = self._bring_up(path, lag.base, root)
            (settled if done else edited).append(text)
        self._update(stats, root)
        if not held:
            return
        with self._catalog.transaction() as connection:
            self._catalog.clear_unprojected(connection, settled)
            for text in edited:
                self._catalog.set_staged(connection, text)

    def _settle_edits(self) -> None:
        """Forget the edits on top of an older version that their person has given up or committed."""
        edited = [tuple(text.split("/")) for text, lag in self._catalog.unprojected().items() if lag.staged]
        tip = self._repository.tip() if edited else None
        if tip is None or self._worktree is None:
            return
        root = self._repository.commit(tip).tree
        settled = [
            text_path(path)
            for path in edited
            if not differs(self._repository.trees.find(root, path), self._worktree.read(path))
        ]
        if settled:
            with self._catalog.transaction() as connection:
                self._catalog.clear_unprojected(connection, settled)

    def _bring_up(self, path: Path, base: Oid | None, root: Oid) -> tuple[bool, os.stat_result | None]:
        """Whether the file is at the tip now, and its stat if so."""
        assert self._worktree is not None
        entry = self._repository.trees.find(root, path)
        file = self._worktree.read(path)
        if entry is None:
            with suppress(OSError):
                return file.absent or (base is not None and self._worktree.remove(path, base)), None
            return False, None
        if entry.mode not in FILE_MODES:
            return True, None  # a link or a submodule that somebody committed: never made here
        if file.oid == entry.oid:
            return True, file.stat
        try:
            stat = self._worktree.put(path, self._repository.objects.read(entry.oid, "blob"), {base})
        except (OSError, DamagedError):
            stat = None
        return stat is not None, stat


def _staged_mode(entry: Entry) -> int:
    return FILE if entry.mode in FILE_MODES else entry.mode


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
