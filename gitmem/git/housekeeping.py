"""Packing loose objects and joining packs, beside writers and readers, without losing anything.

Nothing is ever pruned: only what main reaches is packed, a loose file goes only after the pack that
holds its object was flushed and read back, and whatever main does not reach is left as it is.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import pygit2

from gitmem.errors import DamagedError
from gitmem.failpoints import reach
from gitmem.git.files import storage
from gitmem.git.objects import Kind, Oid, object_id
from gitmem.git.packfile import TEMPORARY_PREFIX, Pack, PackWriter, difference
from gitmem.git.repository import Repository
from gitmem.git.trees import EMPTY_TREE, Path

PACK_AT: Final = 20_000
"""Loose objects that make packing due."""

_PACKS_AT: Final = 16
_JOIN_FACTOR: Final = 2
_LONGEST_CHAIN: Final = 40
_REMEMBERED_BYTES: Final = 32 * 1024 * 1024
_SAMPLED: Final = 4
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
        self._pause = pause

    def run(self, *, everything: bool = False) -> int:
        """Pack the loose objects that main reaches and join packs where there are many.

        Does nothing below the thresholds unless `everything`. Returns how many objects were packed.
        Raises StorageError, DamagedError.
        """
        size = measure(self._repository)
        packed = 0
        with storage(f"pack {self._folder}"), self._alone() as alone:
            if not alone:
                return 0
            self._sweep()
            if everything or size.loose >= PACK_AT:
                packed = self._pack_loose()
            if everything or size.packs > _PACKS_AT:
                self._join()
        return packed

    @contextmanager
    def _alone(self) -> Generator[bool, None, None]:
        """Whether no other gitmem and no git gc is packing; keeps other gitmems out for the block."""
        descriptor = os.open(os.path.join(self._repository.derived, "packing"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield not os.path.exists(os.path.join(self._repository.git_dir, "gc.pid"))
        except BlockingIOError:
            yield False
        finally:
            os.close(descriptor)

    def _sweep(self) -> None:
        """Remove what a killed packing left."""
        for name in _names(self._folder):
            if name.startswith(TEMPORARY_PREFIX):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._folder, name))

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
        for oid in sorted(packed):
            with suppress(FileNotFoundError):
                os.unlink(self._objects.loose_path(oid))
            self._pause()
        if complete:
            self._mark_packed(tip)
        return len(packed)

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
                continue  # it stays where it is, for doctor to report
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
            commit = self._repository.commit(oid)
            if self._is_loose(oid):
                yield (), "commit", oid
                before = self._repository.commit(commit.parents[0]).tree if commit.parents else EMPTY_TREE
                yield from self._changed(before, commit.tree, ())
            self._pause()
            pending.extend(parent for parent in commit.parents if self._objects.exists(parent))

    def _changed(self, old: Oid, new: Oid, path: Path) -> Iterator[tuple[Path, Kind, Oid]]:
        if new in (old, EMPTY_TREE):
            return
        trees = self._repository.trees
        if self._is_loose(new):
            yield path, "tree", new
        for name, was, now in trees.differing(old, new):
            if now and now.is_folder:
                yield from self._changed(was.oid if was else EMPTY_TREE, now.oid, (*path, name))
            elif now and self._is_loose(now.oid):
                yield (*path, name), "blob", now.oid

    def _read_back(self, index_path: str) -> set[Oid]:
        """The objects that the new pack, all by itself, gives back whole."""
        folder = os.path.join(self._repository.derived, "packed.new")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "pack"))
        try:
            for path in (index_path, index_path.removesuffix(".idx") + ".pack"):
                os.link(path, os.path.join(folder, "pack", os.path.basename(path)))
            odb = pygit2.Odb()
            odb.add_backend(pygit2.OdbBackendPack(folder), 1)
            return set(self._whole(odb, Pack(index_path).oids))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _whole(self, odb: pygit2.Odb, oids: list[Oid]) -> Iterator[Oid]:
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
    stem = pack.index_path.removesuffix(".idx")
    for suffix in (".idx", ".rev", ".bitmap", ".pack"):
        with suppress(FileNotFoundError):
            os.unlink(stem + suffix)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
