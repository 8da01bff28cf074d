"""One repository: opening it safely, and publishing commits durably, whole or not at all."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from gitmem.errors import BusyError, DamagedError, StorageError
from gitmem.failpoints import reach
from gitmem.git.commits import Commit, Person, parse
from gitmem.git.config import Config, identity, shared_configs
from gitmem.git.drivers import install
from gitmem.git.files import busy, older_than_boot, read_small, storage, sync_file_system, sync_path
from gitmem.git.journal import Journal, Record, StagedObject, from_this_boot, staged_objects
from gitmem.git.lock import WriterLock
from gitmem.git.objects import Objects, Oid, object_id
from gitmem.git.refs import MAIN, Ref
from gitmem.git.scratch import sweep
from gitmem.git.torn import is_part
from gitmem.git.trees import Trees

LOCK_SECONDS: Final = 10.0
_SYNC_ONE_BY_ONE: Final = 64


class TipMovedError(Exception):
    """Somebody else moved main after the change had looked; run the change again."""


class Repository:
    """A Git repository whose branch main gitmem writes.

    `folder` is the working tree, or the repository itself where it is bare.
    """

    def __init__(self, folder: str, *, durable: bool = True) -> None:
        self.folder = folder
        self.durable = durable
        self.git_dir, self._config = _opened(folder)
        self.bare = self._config.flag("core.bare")
        self.derived = os.path.join(self.git_dir, "gitmem")
        self.scratch = os.path.join(self.derived, "tmp")
        self.objects = Objects(self.git_dir)
        self.objects.mend = self._mend
        self.trees = Trees(self.objects)
        self.main = Ref(self.git_dir)
        self._lock = WriterLock(os.path.join(self.derived, "lock"))
        self._journal = Journal(os.path.join(self.derived, "journal"))
        self._seen_end = 0
        self._config_stamp: tuple[int, int] | None = None
        self._names_upstream = False
        self.lost_writes = False
        """Whether writes were lost before this opening: by a power loss, or by a disk that went away."""
        self.flush_followers: Callable[[Sequence[Record]], None] = lambda records: None
        self._recover_from_crash()

    def close(self, *, flush: bool = True) -> None:
        """Give back every handle; `flush` what waits for a checkpoint first."""
        with suppress(OSError):
            if flush and self._journal.open(create=False) and not self._journal.is_empty():
                self._rewrite_lost(self._journal.records())  # the journal is about to forget them
                self.checkpoint()
        self._journal.close()
        self._lock.close()

    def tip(self) -> Oid | None:
        """The commit that main names; None in a repository without commits."""
        with storage(f"read {self.main.path}"):
            return self.main.read()

    def commit(self, oid: Oid) -> Commit:
        """A commit, read and parsed. Raises DamagedError."""
        data = self.objects.read(oid, "commit")
        try:
            return parse(oid, data)
        except (ValueError, IndexError) as error:
            raise DamagedError(oid.hex(), f"The commit {oid.hex()} is damaged: {error}.") from error

    def between(self, known: Oid, tips: Sequence[Oid]) -> Iterator[Oid]:
        """The commits reachable from `tips` and not from `known`, newest first.

        Where clocks were wrong, some that `known` reaches too may be among them.
        """
        heap: list[tuple[int, Oid]] = []
        wanted: dict[Oid, bool] = {}

        def push(oid: Oid, want: bool) -> None:
            if oid not in wanted:
                heapq.heappush(heap, (-self.commit(oid).updated, oid))
            wanted[oid] = wanted.get(oid, True) and want

        push(known, False)
        for tip in tips:
            push(tip, True)
        while any(wanted[oid] for _, oid in heap):
            _, oid = heapq.heappop(heap)
            if wanted[oid]:
                yield oid
            for parent in self.commit(oid).parents:
                push(parent, wanted[oid])

    def boundary(self) -> frozenset[Oid]:
        """The commits at which a shallow clone's history was cut off; they count as roots."""
        try:
            with open(os.path.join(self.git_dir, "shallow"), encoding="ascii") as file:
                return frozenset(bytes.fromhex(line.strip()) for line in file)
        except (OSError, ValueError):
            return frozenset()

    # Writing

    @contextmanager
    def locked(self, seconds: float = LOCK_SECONDS) -> Generator[None, None, None]:
        """Be the only writer for the block. Raises BusyError after `seconds`."""
        with storage(f"write in {self.git_dir}"), self._prepared_lock(seconds):
            if self._journal.is_displaced():
                self._flush(list(self._journal.records()))
                self._journal.close()
            if self._journal.open(create=False):
                self._settle()
            yield

    @contextmanager
    def _prepared_lock(self, seconds: float) -> Generator[None, None, None]:
        if not os.path.isdir(self.scratch):
            os.makedirs(self.scratch, exist_ok=True)
        with self._lock.hold(seconds):
            yield

    def publish(
        self,
        old: Oid | None,
        new: Oid,
        staged: Sequence[StagedObject],
        before_swap: Callable[[], object] = lambda: None,
    ) -> None:
        """Make objects durable, write them, and move main from `old` to `new`. Needs the lock.

        `before_swap` runs when everything is durable and only the swap is left to do.
        Raises TipMovedError, having written nothing, where main is not at `old`; BusyError while
        main is being rebased; StorageError where the disk refuses, with main where it was.
        """
        self.refuse_rebase()
        self._hold_main(old, new)
        recorded = False
        try:
            # The lock spares retries; this comparison, made while nobody can move the ref, is what
            # makes a save right.
            if self.main.read() != old:
                raise TipMovedError
            # First the record, then the objects: so an object that a power loss tears stands in a
            # record, and is written again.
            reach("before-barrier")
            recorded = self.durable and self._record(old, new, staged)
            reach("after-barrier")
            reach("before-objects")
            for oid, kind, data in staged:
                self.objects.write(oid, kind, data, self.scratch)
            if self.durable and not recorded:
                sync_file_system(self.git_dir)  # so much at once that no journal takes it
            reach("after-objects")
            before_swap()
            reach("before-swap")
            self.main.swap()
        except BaseException:
            with suppress(OSError):
                self.main.release()
            if recorded and self.main.read() != new:
                self._journal.take_back()
            raise
        self._seen_end = self._journal.end
        if self.durable and not recorded:
            self._sync_main()
        reach("after-swap")

    def _record(self, old: Oid | None, new: Oid, staged: Sequence[StagedObject]) -> bool:
        """Append to the journal, making room where there is none; False where it can never take so much."""
        self._journal.open(create=True)
        self._journal.catch_up()
        if self._journal.append(old, new, staged):
            return True
        self._flush(list(self._journal.records()))
        self._journal.empty()
        while self._journal.grow():
            if self._journal.append(old, new, staged):
                return True
        return self._journal.append(old, new, staged)

    def _hold_main(self, old: Oid | None, new: Oid) -> None:
        self._drop_own_ref_lock()
        # A killed gitmem leaves a ref lock with one of these values in it: then it is known as ours.
        self._lock.note(new.hex().encode() + (old.hex().encode() if old else b"-" * 40))
        self.main.hold(new, self.scratch)

    def _drop_own_ref_lock(self) -> None:
        held = self.main.held_value()
        if held is None:
            return
        ours = len(held) == 40 and held in self._lock.noted()
        if ours or older_than_boot(self.main.lock_path) or (self.lost_writes and not held.strip(b"\0")):
            self.main.release()

    # Durability

    def _settle(self) -> None:
        """Finish what the last holder of the lock could not, where its record is durable."""
        last = self._journal.catch_up()
        if last is None or self._journal.end == self._seen_end:
            self._seen_end = self._journal.end
            return
        self._seen_end = self._journal.end
        try:
            tip = self.main.read()
        except DamagedError:
            tip = None
        if tip == last.new:
            return
        known = {last.old}
        for record in self._journal.records():
            known |= {record.old, record.new}
        # Git's reflog tells a person's reset of main from a move that a crash has lost.
        if (tip is None or tip in known) and not self.moved_away_from(last.new):
            self._rewrite_lost(self._journal.records())
            if self.objects.intact(last.new, "commit"):
                self._hold_main(tip, last.new)
                self.main.swap()

    def moved_away_from(self, tip: Oid) -> bool:
        """Whether Git's reflog says that a person moved main away from a commit."""
        try:
            with open(os.path.join(self.git_dir, "logs", MAIN), "rb") as file:
                return any(line.startswith(tip.hex().encode() + b" ") for line in file)
        except FileNotFoundError:
            return False

    def _recover_from_crash(self) -> None:
        """On opening: take up what a killed gitmem left. Leaves a live writer's alone."""
        with suppress(OSError, BusyError, StorageError):
            waiting = self._journal.open(create=False) and not self._journal.is_empty()
            littered = os.path.isdir(self.scratch) and os.listdir(self.scratch)
            if not waiting and not littered and self.main.held_value() is None:
                return
            after_restart = waiting and not from_this_boot(self.waiting()[0])
            with self._lock.hold(LOCK_SECONDS if after_restart else 0):
                if waiting and (after_restart or self._journal.is_abandoned()):
                    self.lost_writes = self._look_for_losses() or after_restart
                self._drop_own_ref_lock()
                if waiting:
                    self._settle()
                self.sweep()

    def _look_for_losses(self) -> bool:
        """Write again what the journal has and the disk has not; whether that is more than a kill explains."""
        *before, last = self.waiting()
        lost = self._rewrite_lost(before)
        self._rewrite_lost([last])
        with suppress(DamagedError):
            return lost or self.main.read() is None
        return True

    def sweep(self) -> list[str]:
        """Remove left-over temporary files; the paths of those that may hold a person's text. Needs the lock."""
        return sweep(self.scratch, self._known)

    def _known(self, data: bytes) -> bool:
        """Whether a blob holds these bytes, or, where a power loss cut a file short, all that is left of it."""
        return self.objects.exists(object_id("blob", data)) or any(
            kind == "blob" and is_part(data, blob)
            for record in self.waiting()
            for _, kind, blob in staged_objects(record)
        )

    def _rewrite_lost(self, records: Iterable[Record]) -> bool:
        """Write the objects that cannot be read; whether there were any."""
        lost = False
        for record in records:
            for oid, kind, data in staged_objects(record):
                if not self.objects.intact(oid, kind):
                    self.objects.write(oid, kind, data, self.scratch)
                    lost = True
        return lost

    def _mend(self, wanted: Oid) -> bool:
        """Write an unreadable object again where the journal still holds it."""
        with suppress(OSError):
            if self._journal.open(create=False):
                for record in self._journal.records():
                    for oid, kind, data in staged_objects(record):
                        if oid == wanted and object_id(kind, data) == oid:
                            self.objects.write(oid, kind, data, self.scratch)
                            return True
        return False

    def checkpoint(self) -> None:
        """Flush the loose objects that the journal covers, and what follows them, then the ref; empty the journal.

        Most of it happens without the lock, so that writers hardly wait.
        """
        with storage(f"write in {self.git_dir}"):
            if not self._journal.open(create=False):
                return
            with self._prepared_lock(LOCK_SECONDS):
                flushed = list(self._journal.records())  # under the lock, so that what follows them is written
            self._flush(flushed)
            with self._prepared_lock(LOCK_SECONDS):
                self._settle()
                records = list(self._journal.records())
                if flushed and records[: len(flushed)] == flushed:
                    records = records[len(flushed) :]
                reach("before-checkpoint")
                self._flush(records)
                self._journal.empty()
                self._seen_end = 0
                reach("after-checkpoint")

    def waiting(self) -> list[Record]:
        """The saves that no checkpoint has covered, oldest first."""
        with suppress(OSError):
            if self._journal.open(create=False):
                return list(self._journal.records())
        return []

    def pending_bytes(self) -> int:
        """How much of the journal waits for a checkpoint, as this process knows it."""
        return self._journal.end

    def _flush(self, records: Sequence[Record]) -> None:
        """Flush what saves have written: their objects, the files that follow them, the ref."""
        oids = {oid for record in records for oid, _, _ in staged_objects(record)}
        if len(oids) > _SYNC_ONE_BY_ONE:
            sync_file_system(self.git_dir)
        elif records:
            paths = sorted(self.objects.loose_path(oid) for oid in oids)
            folders = sorted({os.path.dirname(path) for path in paths})
            for path in (*paths, *folders, self.objects.folder):
                sync_path(path)
            self.flush_followers(records)
        if records:
            self._sync_main()

    def _sync_main(self) -> None:
        sync_path(self.main.path)
        sync_path(os.path.dirname(self.main.path))

    # What people do in the repository

    def head_is_main(self) -> bool:
        """Whether the working tree and `.git/index` stand for main."""
        return self._state("HEAD").strip() == f"ref: {MAIN}"

    def branch(self) -> str | None:
        """The branch that HEAD names; None where it is detached."""
        head = self._state("HEAD").strip()
        return head.removeprefix("ref: ").removeprefix("refs/heads/") if head.startswith("ref: ") else None

    @property
    def ignores_case(self) -> bool:
        """Whether this disk cannot tell names that differ in case only, as Git found when it was made."""
        return self._config.flag("core.ignorecase")

    def refuse_rebase(self) -> None:
        """Raise BusyError while main is being rebased."""
        if self.rebasing_main():
            raise busy(
                f"A rebase of main is under way in {self.folder}, and aborting it would undo a save",
                "Finish it (git rebase --continue) or abort it, then try again.",
            )

    def install_drivers(self) -> None:
        """Let plain git show and merge documents as gitmem does."""
        install(self.git_dir, self._config)

    def names_upstream(self) -> bool:
        """Whether the configuration may name an upstream of gitmem's: a look that every save can afford."""
        try:
            stat = os.stat(f"{self.git_dir}/config")
            if self._config_stamp != (stat.st_mtime_ns, stat.st_ino):
                with open(f"{self.git_dir}/config", "rb") as file:
                    self._names_upstream = b"upstream" in file.read().lower()
                self._config_stamp = stat.st_mtime_ns, stat.st_ino
        except OSError:
            return False
        return self._names_upstream

    def rebasing_main(self) -> bool:
        """Whether a rebase of main is under way, here or in a linked worktree: its abort would reset main."""
        if _REBASES.isdisjoint(os.listdir(self.git_dir)):
            return False
        with_head = [
            os.path.join(place, folder, "head-name")
            for place in ("", *self._linked_worktrees())
            for folder in ("rebase-merge", "rebase-apply")
        ]
        return any(self._state(name).strip() == MAIN for name in with_head)

    def linked_on_main(self) -> list[str]:
        """What is `.git` in each linked worktree that has main checked out."""
        places = [place for place in self._linked_worktrees() if self._state(f"{place}/HEAD").strip() == f"ref: {MAIN}"]
        return [os.path.join(self.git_dir, place) for place in places]

    def _linked_worktrees(self) -> list[str]:
        try:
            names = os.listdir(os.path.join(self.git_dir, "worktrees"))
        except OSError:
            return []
        return [os.path.join("worktrees", name) for name in names]

    def operation_in_progress(self) -> str | None:
        """The name of a merge, cherry-pick, revert, rebase or bisect under way."""
        there = set(os.listdir(self.git_dir))
        return next((name for name, file in _OPERATIONS.items() if file in there), None)

    def person(self) -> Person | None:
        """The identity that plain git would commit with, from Git's configuration files."""
        found = identity((self._config, *shared_configs()))
        return Person(*found) if found else None

    def _state(self, name: str) -> str:
        try:
            return (read_small(f"{self.git_dir}/{name}") or b"").decode("utf-8", "replace")
        except OSError:
            return ""


_REBASES: Final = frozenset(("rebase-merge", "rebase-apply", "worktrees"))
_OPERATIONS: Final = {
    "merge": "MERGE_HEAD",
    "cherry-pick": "CHERRY_PICK_HEAD",
    "revert": "REVERT_HEAD",
    "rebase": "rebase-merge",
    "rebase or am": "rebase-apply",
    "bisect": "BISECT_LOG",
}


def _opened(folder: str) -> tuple[str, Config]:
    """The repository that lies in `folder` itself, never one further up, and its configuration."""
    git_dir = os.path.join(folder, ".git")
    if os.path.isfile(git_dir):
        raise StorageError(f"{folder} is a linked worktree or submodule. Open the repository that it belongs to.")
    if not os.path.isdir(git_dir):
        git_dir = folder
    if not os.path.isfile(os.path.join(git_dir, "HEAD")) or not os.path.isdir(os.path.join(git_dir, "objects")):
        raise StorageError(f"{folder} is not a Git repository: it has no .git with HEAD and objects.")
    config = Config.read(os.path.join(git_dir, "config"))
    if (refs := config.text("extensions.refstorage") or "files") != "files":
        raise StorageError(f"{folder} keeps its refs in {refs}; gitmem needs files.")
    if (names := config.text("extensions.objectformat") or "sha1") != "sha1":
        raise StorageError(f"{folder} uses {names} object names; gitmem needs sha1.")
    return os.path.abspath(git_dir), config
