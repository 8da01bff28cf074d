"""Packing loose objects and joining packs, beside writers and readers, without losing anything.

Nothing is ever pruned: only what main reaches is packed, a loose file goes only after the pack that
holds its object was flushed and read back, and whatever main does not reach is left as it is.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import pygit2

from gitmem.errors import BusyError, DamagedError
from gitmem.failpoints import reach
from gitmem.git.commits import Commit
from gitmem.git.files import busy, storage
from gitmem.git.objects import Kind, Oid, object_id
from gitmem.git.packfile import TEMPORARY_PREFIX, Pack, PackWriter, difference, names_in
from gitmem.git.repository import Repository
from gitmem.git.trees import EMPTY_TREE, Path

PACK_AT: Final = 20_000
"""Loose objects that make packing due."""

_PACKS_AT: Final = 16
_JOIN_FACTOR: Final = 2
_LONGEST_CHAIN: Final = 40
_REMEMBERED_BYTES: Final = 32 * 1024 * 1024
_SAMPLED: Final = 4
_NAMES_A_STEP: Final = 1_000
_GIT_GC_SECONDS: Final = 12 * 3600
_KINDS: Final[dict[int, Kind]] = {1: "commit", 2: "tree", 3: "blob"}

Pause = Callable[[], None]
"""Called between small steps, so that callers come first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """What a repository takes on the disk: `loose` is an estimate, bytes are of the packs."""

    loose: int
    packs: int
    pack_bytes: int

    @property
    def due(self) -> bool:
        """Whether automatic maintenance would do something."""
        return self.loose >= PACK_AT or self.packs > _PACKS_AT


def measure(repository: Repository) -> Size:
    """The size of a repository, from a few of its folders."""
    folder = repository.objects.folder
    loose = sum(len(_names(os.path.join(folder, f"{number:02x}"))) for number in range(_SAMPLED))
    packs = [name for name in _names(os.path.join(folder, "pack")) if name.endswith(".pack")]
    size = 0
    for name in packs:
        with suppress(FileNotFoundError):
            size += os.stat(os.path.join(folder, "pack", name)).st_size
    return Size(loose=loose * 256 // _SAMPLED, packs=len(packs), pack_bytes=size)


@dataclass(slots=True)
class _Kept:
    oid: Oid
    data: bytes
    depth: int


class Housekeeping:
    """Keeps one repository small. One process does so at a time; the writer's lock is not needed."""

    def __init__(self, repository: Repository, pause: Pause = lambda: None) -> None:
        self._repository = repository
        self._objects = repository.objects
        self._folder = os.path.join(repository.objects.folder, "pack")
        self._proving = os.path.join(repository.derived, "packed.new")
        self._pause = pause

    def run(self, *, everything: bool = False) -> int:
        """Pack the loose objects that main reaches and join packs where there are many.

        Does nothing below the thresholds, or beside another packing, unless `everything`. Returns how
        many objects were packed. Raises StorageError, DamagedError; with `everything`, BusyError.
        """
        size = measure(self._repository)
        packed = 0
        try:
            with storage(f"pack {self._folder}"), self._alone():
                self._sweep()
                if everything or size.loose >= PACK_AT:
                    self._drop_packed()
                    packed = self._pack_loose()
                if everything or size.packs > _PACKS_AT:
                    self._join()
        except BusyError:
            if everything:
                raise
        return packed

    @contextmanager
    def _alone(self) -> Generator[None, None, None]:
        """Keep other gitmems from packing for the block. Raises BusyError where one does, or git gc."""
        os.makedirs(self._repository.derived, exist_ok=True)
        descriptor = os.open(os.path.join(self._repository.derived, "packing"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if git_gc_is_running(self._repository.git_dir):
                raise busy(f"git gc is packing {self._repository.git_dir}", "Let it end, then try again.")
            yield
        except BlockingIOError:
            raise busy(f"Another gitmem is packing {self._repository.git_dir}", "Let it end.") from None
        finally:
            os.close(descriptor)

    def _sweep(self) -> None:
        """Remove what a killed packing left: temporary files, and an index that got no pack or lost it."""
        names = set(_names(self._folder))
        for name in names:
            alone = name.endswith(".idx") and name.removesuffix(".idx") + ".pack" not in names
            if alone or name.startswith(TEMPORARY_PREFIX):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._folder, name))
        shutil.rmtree(self._proving, ignore_errors=True)

    # Loose objects

    def _pack_loose(self) -> int:
        tip = self._repository.tip()
        if tip is None:
            return 0
        writer = PackWriter(self._folder)
        try:
            self._fill(writer, tip)
            if not len(writer):
                writer.discard()
                self._mark_packed(tip)
                return 0
        except BaseException:
            writer.discard()
            raise
        reach("before-pack")
        complete = not writer.full
        index = writer.finish()
        reach("after-pack")
        packed = self._read_back(index)
        self._drop(packed)
        if complete:
            self._mark_packed(tip)
        return len(packed)

    def _drop_packed(self) -> None:
        """Remove loose files whose objects a pack gives back whole: a killed packing, or git, left them."""
        loose = set(self._objects.loose())
        twice: list[Oid] = []
        for pack in self._packs():
            for at, oid in enumerate(names_in(pack.index_path)):
                if oid in loose:
                    twice.append(oid)
                if at % _NAMES_A_STEP == 0:
                    self._pause()
        odb = pygit2.Odb()
        odb.add_backend(pygit2.OdbBackendPack(self._objects.folder), 1)
        self._drop(self._whole(odb, twice))

    def _drop(self, packed: Iterable[Oid]) -> None:
        for oid in packed:
            reach("dropping-pack")
            with suppress(FileNotFoundError):
                os.unlink(self._objects.loose_path(oid))
            self._pause()

    def _packed_up_to(self) -> Oid | None:
        """The commit up to which everything was packed last time; only a hint of where to stop."""
        try:
            with open(os.path.join(self._repository.derived, "packed"), encoding="ascii") as file:
                return bytes.fromhex(file.read().strip())
        except (OSError, ValueError):
            return None

    def _mark_packed(self, tip: Oid) -> None:
        with suppress(OSError), open(os.path.join(self._repository.derived, "packed"), "w", encoding="ascii") as file:
            file.write(tip.hex())

    def _is_loose(self, oid: Oid) -> bool:
        return os.path.exists(self._objects.loose_path(oid))

    def _fill(self, writer: PackWriter, tip: Oid) -> None:
        """Add what main reaches, newest first: an older version of a file or folder becomes a delta."""
        newer: OrderedDict[Path, _Kept] = OrderedDict()
        remembered = 0
        for path, kind, oid in self._reached(tip):
            self._pause()
            if writer.full or oid in writer:
                continue
            try:
                data = self._objects.read(oid, kind)
            except DamagedError:
                continue
            base = newer.pop(path, None) if kind != "commit" else None
            delta = difference(base.data, data) if base and base.depth < _LONGEST_CHAIN else None
            if base and delta is not None:
                writer.add_delta(oid, base.oid, delta)
            else:
                writer.add(oid, kind, data)
            if kind != "commit":
                remembered += len(data) - (len(base.data) if base else 0)
                newer[path] = _Kept(oid, data, base.depth + 1 if base and delta is not None else 0)
                while remembered > _REMEMBERED_BYTES:
                    remembered -= len(newer.popitem(last=False)[1].data)

    def _reached(self, tip: Oid) -> Iterator[tuple[Path, Kind, Oid]]:
        """The loose objects of main's history, newest commit first, with the path of trees and blobs."""
        pending, seen, stop = [tip], set[Oid](), self._packed_up_to()
        while pending:
            oid = pending.pop()
            if oid in seen or oid == stop:
                continue
            seen.add(oid)
            commit = self._readable(oid)
            if commit is None:
                continue
            if self._is_loose(oid):
                first = self._readable(commit.parents[0]) if commit.parents else None
                yield from self._changed(first.tree if first else EMPTY_TREE, commit.tree, ())
                yield (), "commit", oid  # behind what it needs: a commit that is packed is not looked into again
            self._pause()
            pending.extend(parent for parent in commit.parents if self._objects.exists(parent))

    def _readable(self, oid: Oid) -> Commit | None:
        """A commit; None where it is damaged: it stays where it is, for doctor to report."""
        try:
            return self._repository.commit(oid)
        except DamagedError:
            return None

    def _changed(self, old: Oid, new: Oid, path: Path) -> Iterator[tuple[Path, Kind, Oid]]:
        if new in (old, EMPTY_TREE):
            return
        trees = self._repository.trees
        if self._is_loose(new):
            yield path, "tree", new
        try:
            differing = list(trees.differing(old, new))
        except DamagedError:
            return
        for name, was, now in differing:
            if now and now.is_folder:
                yield from self._changed(was.oid if was else EMPTY_TREE, now.oid, (*path, name))
            elif now and self._is_loose(now.oid):
                yield (*path, name), "blob", now.oid

    def _read_back(self, index_path: str) -> set[Oid]:
        """The objects that the new pack, all by itself, gives back whole."""
        folder = self._proving
        os.makedirs(os.path.join(folder, "pack"))
        try:
            for path in (index_path, index_path.removesuffix(".idx") + ".pack"):
                os.link(path, os.path.join(folder, "pack", os.path.basename(path)))
            odb = pygit2.Odb()
            odb.add_backend(pygit2.OdbBackendPack(folder), 1)
            return set(self._whole(odb, Pack(index_path).oids))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _whole(self, odb: pygit2.Odb, oids: Iterable[Oid]) -> Iterator[Oid]:
        for oid in oids:
            with suppress(KeyError, pygit2.GitError):
                number, data = odb.read(pygit2.Oid(raw=oid))
                if object_id(_KINDS[number], data) == oid:
                    yield oid
            self._pause()

    # Packs

    def _join(self) -> None:
        """Join the smallest packs, so that each that remains is larger than all smaller ones together."""
        packs = sorted(self._packs(), key=lambda pack: pack.size)
        chosen, total = 0, 0
        for at, pack in enumerate(packs):
            if pack.size < _JOIN_FACTOR * total:
                chosen = at + 1
            total += pack.size
        if chosen < 2:
            return
        # The largest first: an object that stands twice is taken from there, with the bases it has there.
        joined = packs[:chosen][::-1]
        writer = PackWriter(self._folder)
        try:
            for pack in joined:
                for oid, entry in pack.entries():
                    if oid not in writer:
                        writer.add_raw(oid, entry)
                    self._pause()
        except ValueError:
            writer.discard()  # a damaged pack is left as it is, for doctor to report
            return
        except BaseException:
            writer.discard()
            raise
        index = writer.finish()
        whole = self._read_back(index)
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self._folder, "multi-pack-index"))
        for pack in joined:
            if pack.index_path != index and whole.issuperset(pack.oids):
                _remove_pack(pack)

    def _packs(self) -> Iterator[Pack]:
        names = set(_names(self._folder))
        for name in names:
            stem = name.removesuffix(".idx")
            held = any(stem + suffix in names for suffix in (".keep", ".promisor", ".mtimes"))
            if name.endswith(".idx") and stem + ".pack" in names and not held:
                with suppress(ValueError, FileNotFoundError):
                    yield Pack(os.path.join(self._folder, name))


def _remove_pack(pack: Pack) -> None:
    """The index goes last: git and libgit2 pass over one that has no pack, and the next packing removes it."""
    stem = pack.index_path.removesuffix(".idx")
    for suffix in (".rev", ".bitmap", ".pack", ".idx"):
        reach("dropping-pack")
        with suppress(FileNotFoundError):
            os.unlink(stem + suffix)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def git_gc_is_running(git_dir: str) -> bool:
    """Whether a git gc packs the repository, told from its `gc.pid` in the way git itself does (builtin/gc.c)."""
    path = os.path.join(git_dir, "gc.pid")
    try:
        with open(path, "rb") as file:
            number, _, host = file.read().partition(b" ")
        pid = int(number)
        if time.time() - os.stat(path).st_mtime > _GIT_GC_SECONDS:
            return False
        if host.strip() != os.fsencode(os.uname().nodename):
            return True
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return True
