"""`.git/index`: moving single entries of it, whatever its size, and leaving all others as they are."""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha1
from typing import Final, NamedTuple

from gitmem.errors import StorageError
from gitmem.git.files import Bytes, older_than_boot, read_small, rename_new, replace_cheaply, scratch_name, write_file
from gitmem.git.objects import Oid

_SIGNATURE: Final = b"DIRC"
_SMALLEST: Final = 32
_STAT = struct.Struct(">10I")
_FILE_MODE: Final = 0o100644
_MARK: Final = b"gitmem brings .git/index up to date; this lock goes within a second\n"
_EXTENDED: Final = 0x4000
_STAGE_MASK: Final = 0x3000
_SKIP_WORKTREE: Final = 0x40
_KEPT_BYTES: Final = 1024 * 1024
_KEPT_EXTENSIONS: Final = (b"REUC",)


class UnusableIndexError(StorageError):
    """The index is gone or damaged; it is a cache, and can be made again from main."""


class _FormError(StorageError):
    """The index is of a form that is not edited in place."""


class Staged(NamedTuple):
    """What the index should hold for a path: a blob, and the file's stat where the file is that blob."""

    oid: Oid
    stat: os.stat_result | None
    mode: int = _FILE_MODE


class Stage:
    """The index of one repository with a working tree. Changed only under the writer's lock."""

    def __init__(self, git_dir: str, scratch: str) -> None:
        self.path = os.path.join(git_dir, "index")
        self.lock_path = self.path + ".lock"
        self._scratch = scratch
        self._kept: tuple[tuple[int, int, int], _Index] | None = None

    def size(self) -> int:
        """Bytes of the index file; what it costs to write it grows with them."""
        try:
            return os.stat(self.path).st_size
        except FileNotFoundError:
            return 0

    def hold(self) -> bool:
        """Take Git's lock on the index, so that plain git cannot commit from one that lags.

        True also where gitmem has it already; False where another Git process holds it.
        """
        if self.is_held():
            return True
        temporary = os.path.join(self._scratch, scratch_name())
        write_file(temporary, _MARK)
        try:
            rename_new(temporary, self.lock_path)
        except FileExistsError:
            os.unlink(temporary)
            return self.is_held()
        return True

    def obstacle(self) -> str | None:
        """The lock file that another Git process holds, or left."""
        return self.lock_path if os.path.exists(self.lock_path) and not self.is_held() else None

    def left_out(self, path: bytes) -> bool:
        """Whether a sparse checkout leaves the path out of the working tree."""
        try:
            index = self._index()
        except StorageError:
            return False
        at = index.position(path)
        return at < len(index) and index.name(at) == path and index.left_out(at)

    def all_left_out(self) -> frozenset[bytes]:
        """The paths that a sparse checkout leaves out of the working tree."""
        try:
            index = self._index()
        except StorageError:
            return frozenset()
        return frozenset(index.name(at) for at in range(len(index)) if index.left_out(at))

    def is_held(self) -> bool:
        """Whether gitmem, this process or another, alive or dead, holds the lock; nobody alive holds an old one."""
        held = read_small(self.lock_path, len(_MARK))
        return held == _MARK or (held is not None and older_than_boot(self.lock_path))

    def release(self) -> None:
        """Give the lock up."""
        with suppress(FileNotFoundError):
            os.unlink(self.lock_path)

    def update(self, changes: Mapping[bytes, Staged | None]) -> None:
        """Set or remove (None) the entries of some paths. Needs the lock.

        Unmerged paths stay as they are: their person resolves them. Raises UnusableIndexError where
        there is no index to edit, and StorageError for one of a form that cannot be edited in place
        (split, sparse, version 4) and that git is not there to convert.
        """
        index = self._index()
        pieces, offsets = index.replaced(changes)
        if sum(map(len, pieces)) > _KEPT_BYTES:
            digest = sha1()
            for piece in pieces:
                digest.update(piece)
            self._put(*pieces, digest.digest())
        elif pieces:
            new = index.joined(pieces, offsets)
            self._put(new.data)
            self._kept = self._signature(), new

    def rebuild(self, entries: Iterable[tuple[bytes, Staged]]) -> None:
        """Make the index anew from every entry that it should hold, in Git's order. Needs the lock."""
        body, count = bytearray(_header(2, 0)), 0
        for path, staged in entries:
            body += _entry(path, staged)
            count += 1
        body[: len(_header(2, 0))] = _header(2, count)
        self._put(body, sha1(body).digest())

    def is_usable(self) -> bool:
        """Whether there is an index that begins like one; cheap whatever its size."""
        try:
            with open(self.path, "rb", buffering=0) as file:
                return file.read(4) == _SIGNATURE and self.size() >= _SMALLEST
        except FileNotFoundError:
            return False

    def _put(self, *pieces: Bytes) -> None:
        temporary = os.path.join(self._scratch, scratch_name())
        write_file(temporary, *pieces)
        replace_cheaply(temporary, self.path)

    def _index(self) -> _Index:
        """The parsed index; the one kept from last time where the file is still that one."""
        if self._kept and self._kept[0] == self._signature():
            return self._kept[1]
        try:
            return _Index.read(self.path)
        except _FormError:
            self._convert()
            return _Index.read(self.path)

    def _convert(self) -> None:
        """Let git write the index in the plain form, through an index file of our own."""
        import shutil
        import subprocess

        copy = os.path.join(self._scratch, scratch_name())
        # A split index is found beside the repository's own, whatever the name of the other half.
        shutil.copyfile(self.path, copy)
        command = ["git", "-c", "core.splitIndex=false", "-c", "index.version=2", "-c", "index.sparse=false"]
        command += [f"--git-dir={os.path.dirname(self.path)}", "--work-tree=/", "update-index", "--no-split-index"]
        environment = {"PATH": os.defpath, "GIT_INDEX_FILE": copy}
        try:
            subprocess.run(
                [*command, "--index-version=2", "--force-write-index"],
                env=environment, check=True, capture_output=True, stdin=subprocess.DEVNULL, cwd="/", timeout=60,
            )  # fmt: skip
            os.rename(copy, self.path)
        except (OSError, subprocess.SubprocessError):
            with suppress(FileNotFoundError):
                os.unlink(copy)

    def _signature(self) -> tuple[int, int, int]:
        try:
            stat = os.stat(self.path)
        except FileNotFoundError:
            return (0, 0, 0)
        return (stat.st_ino, stat.st_mtime_ns, stat.st_size)

    def entries(self) -> Iterator[tuple[bytes, Oid]]:
        """Every merged path with its blob."""
        index = _Index.read(self.path)
        for at in range(len(index)):
            if not index.flags(at) & _STAGE_MASK:
                yield index.name(at), index.oid(at)

    def find(self, path: bytes) -> Oid | None:
        """The blob staged for a path; None where it is absent or unmerged."""
        index = _Index.read(self.path)
        at = index.position(path)
        if at < len(index) and index.name(at) == path and not index.flags(at) & _STAGE_MASK:
            return index.oid(at)
        return None


class _Index:
    """A parsed index file: its bytes, and where each entry starts."""

    def __init__(self, data: bytes, version: int, offsets: array[int], extensions: bytes) -> None:
        self.data = data
        self._version = version
        self._offsets = offsets
        self._extensions = extensions

    @classmethod
    def read(cls, path: str) -> _Index:
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            raise UnusableIndexError(f"{path} is gone. gitmem makes it again from main.") from None
        try:
            return cls._parsed(data, path)
        except (IndexError, ValueError, struct.error):
            raise UnusableIndexError(f"{path} is damaged. gitmem makes it again from main.") from None

    @classmethod
    def _parsed(cls, data: bytes, path: str) -> _Index:
        version, count = struct.unpack_from(">II", data, 4)
        if data[:4] != _SIGNATURE or len(data) < _SMALLEST:
            raise ValueError
        if version not in (2, 3):
            raise _FormError(
                f"{path} has version {version}, which gitmem does not edit. "
                "Run git update-index --index-version 2 there."
            )
        offsets = array("Q", [12])
        at = 12
        for _ in range(count):
            flags = (data[at + 60] << 8) | data[at + 61]
            start = at + 64 if flags & _EXTENDED else at + 62
            length = flags & 0xFFF
            end = start + length if length < 0xFFF else data.index(b"\0", start)
            at += (end - at + 8) & ~7
            offsets.append(at)
        # Git leaves the checksum out (NULs) under index.skipHash.
        if at > len(data) - 20 or data[-20:] not in (bytes(20), sha1(memoryview(data)[:-20]).digest()):
            raise ValueError
        return cls(data, version, offsets, _extensions(data[at:-20], path))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def flags(self, at: int) -> int:
        start = self._offsets[at]
        return (self.data[start + 60] << 8) | self.data[start + 61]

    def oid(self, at: int) -> Oid:
        start = self._offsets[at]
        return self.data[start + 40 : start + 60]

    def name(self, at: int) -> bytes:
        start = self._offsets[at] + (64 if self.flags(at) & _EXTENDED else 62)
        return self.data[start : self.data.index(b"\0", start)]

    def left_out(self, at: int) -> bool:
        start = self._offsets[at]
        return bool(self.flags(at) & _EXTENDED) and bool(self.data[start + 62] & _SKIP_WORKTREE)

    def position(self, path: bytes) -> int:
        """The first entry whose name is not below `path`."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.name(middle) < path:
                low = middle + 1
            else:
                high = middle
        return low

    def replaced(self, changes: Mapping[bytes, Staged | None]) -> tuple[list[Bytes], array[int]]:
        """The pieces of the index after `changes` without its checksum, and its offsets; none where nothing changes."""
        pieces: list[Bytes] = [b""]
        offsets = array("Q", [12])
        copied, changed = 0, False
        for path in sorted(changes):
            at = self.position(path)
            found = at < len(self) and self.name(at) == path
            if found and self.flags(at) & _STAGE_MASK:
                continue
            staged = changes[path]
            kept_out = found and self.left_out(at)
            entry = _entry(path, staged, kept_out=kept_out) if staged else b""
            if entry == (self.data[self._offsets[at] : self._offsets[at + 1]] if found else b""):
                continue
            changed = True
            pieces += (self._copied(copied, at, offsets), entry)
            if entry:
                offsets.append(offsets[-1] + len(entry))
            copied = at + 1 if found else at
        if not changed:
            return [], offsets
        pieces += (self._copied(copied, len(self), offsets), self._extensions)
        pieces[0] = _header(self._version, len(offsets) - 1)
        return pieces, offsets

    def joined(self, pieces: list[Bytes], offsets: array[int]) -> _Index:
        """The index of what `replaced` gives."""
        body = b"".join(pieces)
        return _Index(body + sha1(body).digest(), self._version, offsets, self._extensions)

    def _copied(self, start: int, end: int, offsets: array[int]) -> memoryview:
        """Some entries, which are not copied yet; their new offsets are appended."""
        shift = offsets[-1] - self._offsets[start]
        if shift:
            offsets.extend(offset + shift for offset in self._offsets[start + 1 : end + 1])
        else:
            offsets.extend(self._offsets[start + 1 : end + 1])
        return memoryview(self.data)[self._offsets[start] : self._offsets[end]]


def _header(version: int, count: int) -> bytes:
    return _SIGNATURE + struct.pack(">II", version, count)


def _entry(path: bytes, staged: Staged, *, kept_out: bool = False) -> bytes:
    flags = min(len(path), 0xFFF).to_bytes(2)
    if kept_out and staged.stat is None:
        flags = (min(len(path), 0xFFF) | _EXTENDED).to_bytes(2) + bytes((_SKIP_WORKTREE, 0))
    head = _stat(staged) + staged.oid + flags + path
    return head + bytes(8 - len(head) % 8)


def _stat(staged: Staged) -> bytes:
    stat = staged.stat
    if stat is None:
        return _STAT.pack(0, 0, 0, 0, 0, 0, staged.mode, 0, 0, 0)
    ctime, ctime_ns = divmod(stat.st_ctime_ns, 1_000_000_000)
    mtime, mtime_ns = divmod(stat.st_mtime_ns, 1_000_000_000)
    fields = (
        ctime, ctime_ns, mtime, mtime_ns, stat.st_dev, stat.st_ino, staged.mode, stat.st_uid, stat.st_gid, stat.st_size
    )  # fmt: skip
    return _STAT.pack(*(field & 0xFFFFFFFF for field in fields))


def _extensions(data: bytes, path: str) -> bytes:
    kept, at = b"", 0
    while at + 8 <= len(data):
        name, length = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8])
        if name[:1].islower():
            raise _FormError(
                f"{path} is a split or sparse index, which gitmem does not edit. "
                "Run git update-index --no-split-index, or git sparse-checkout disable."
            )
        if name in _KEPT_EXTENSIONS:
            kept += data[at : at + 8 + length]
        at += 8 + length
    return kept
