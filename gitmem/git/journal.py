"""The flush that makes saves durable: one append of their objects to a file made beforehand.

A save is acknowledged once its objects and its move of the ref lie in this file and one fdatasync
has covered them. The ordinary loose objects and the ref are written without a flush of their own;
a *checkpoint* flushes them later, at the end of a command or while the process is idle, and empties
the journal. After a power loss the journal holds whatever the loose files may have lost.

So no acknowledged save depends on bytes that no flush has covered, on any file system: nothing is
assumed about the order in which unflushed writes, renames or folders reach the disk. The file's
blocks are written and flushed when it is made, so that the fdatasync of an append has no file size
or block map to flush as well.

Records follow each other from the start of the file. All of one *generation* (a random number)
belong together; what stands behind them is left from earlier ones. A record that a power loss tore
fails its checksum and ends the list. A checkpoint ends a generation by spoiling the first record.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gitmem.git.files import lies_at, sync_path, write_all
from gitmem.git.objects import Kind, Oid

_HEADER = struct.Struct(">4sQIIq16s20s20sI")
_OBJECT = struct.Struct(">20sBI")
_MAGIC: Final = b"GMJ1"
_KINDS: Final[tuple[Kind, ...]] = ("commit", "tree", "blob")
_START_BYTES: Final = 512 * 1024
_LARGEST_BYTES: Final = 8 * 1024 * 1024
_NO_TIP: Final = bytes(20)

StagedObject = tuple[Oid, Kind, bytes]


class Record(NamedTuple):
    """One move of the ref, with the objects that it needs."""

    generation: int
    written_at: int
    boot: bytes
    old: Oid | None
    new: Oid
    end: int
    objects: bytes


class Journal:
    """The journal of one repository. Every method is called under the repository's lock."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._size = 0
        self._generation = 0
        self._start = 0
        self._end = 0
        self._last: Record | None = None

    def open(self, *, create: bool) -> bool:
        """Open the file; False where there is none and `create` is not set. Raises OSError."""
        if self._descriptor < 0:
            flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
            try:
                self._descriptor = os.open(self._path, flags, 0o644)
            except FileNotFoundError:
                return False
            self._size = os.fstat(self._descriptor).st_size
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        if create and self._size < _START_BYTES:
            self._extend(_START_BYTES)
        return True

    def is_displaced(self) -> bool:
        """Whether the open file was deleted: nobody will find what is appended to it."""
        return self._descriptor >= 0 and not lies_at(self._path, self._descriptor)

    def is_abandoned(self) -> bool:
        """Whether no other handle, of this process or another, has the file open: then whoever wrote it is dead."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)  # a failed or a won upgrade may have given it up
        return True

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _extend(self, size: int) -> None:
        os.lseek(self._descriptor, self._size, os.SEEK_SET)
        write_all(self._descriptor, bytes(size - self._size))
        os.fsync(self._descriptor)
        folder = os.path.dirname(self._path)
        sync_path(folder)
        sync_path(os.path.dirname(folder))  # which may just have got that folder
        self._size = size

    def is_empty(self) -> bool:
        """Whether nothing waits for a checkpoint."""
        return self._record_at(0, None) is None

    def records(self) -> Iterator[Record]:
        """The records that no checkpoint has covered, oldest first."""
        record = self._record_at(0, None)
        while record:
            yield record
            record = self._record_at(record.end, record.generation)

    def catch_up(self) -> Record | None:
        """Step over what other processes appended; the newest record, or None when empty."""
        first = self._header(0)
        if first is None or first[1] != self._generation:
            self._last = None
            self._end = 0
            self._generation = first[1] if first else self._generation
        while record := self._record_at(self._end, self._generation if self._end else None):
            self._generation = record.generation
            self._end = record.end
            self._last = record
        return self._last

    def append(self, old: Oid | None, new: Oid, objects: Sequence[StagedObject]) -> bool:
        """Write a record and flush it: the durability barrier. False where it does not fit."""
        body = b"".join(_OBJECT.pack(oid, _KINDS.index(kind), len(data)) + data for oid, kind, data in objects)
        end = self._end + _HEADER.size + len(body)
        if end > self._size:
            return False
        generation = self._generation if self._end else int.from_bytes(os.urandom(8))
        now = time.time_ns()
        boot = _boot_id()
        prefix = _HEADER.pack(_MAGIC, generation, len(body), 0, now, boot, old or _NO_TIP, new, len(objects))
        check = zlib.crc32(body, zlib.crc32(prefix))
        header = _HEADER.pack(_MAGIC, generation, len(body), check, now, boot, old or _NO_TIP, new, len(objects))
        os.pwrite(self._descriptor, header + body, self._end)
        os.fdatasync(self._descriptor)
        self._generation = generation
        self._start, self._end = self._end, end
        self._last = Record(generation, now, boot, old, new, end, b"")
        return True

    def take_back(self) -> None:
        """Spoil the record just appended: its move of the ref failed and is reported as failed."""
        os.pwrite(self._descriptor, bytes(4), self._start)
        os.fdatasync(self._descriptor)
        self._end = self._start
        self._last = None

    @property
    def end(self) -> int:
        """Where the next record goes, in bytes."""
        return self._end

    def empty(self) -> None:
        """End the generation: everything in it has been flushed elsewhere."""
        os.pwrite(self._descriptor, bytes(4), 0)
        os.fdatasync(self._descriptor)
        self._end = 0
        self._last = None

    def grow(self) -> bool:
        """Make the file four times as large, up to 8 MiB; False where it is that large already."""
        if self._size >= _LARGEST_BYTES:
            return False
        # A process killed while it made the file leaves it short, or empty.
        self._extend(min(max(self._size * 4, _START_BYTES), _LARGEST_BYTES))
        return True

    def _header(self, at: int) -> tuple[bytes, int, int, int, int, bytes, bytes, bytes, int] | None:
        data = os.pread(self._descriptor, _HEADER.size, at)
        if len(data) < _HEADER.size or data[:4] != _MAGIC:
            return None
        return _HEADER.unpack(data)

    def _record_at(self, at: int, generation: int | None) -> Record | None:
        header = self._header(at)
        if header is None:
            return None
        _, found, length, check, written, boot, old, new, count = header
        if generation is not None and found != generation:
            return None
        body = os.pread(self._descriptor, length, at + _HEADER.size)
        prefix = _HEADER.pack(_MAGIC, found, length, 0, written, boot, old, new, count)
        if len(body) != length or zlib.crc32(body, zlib.crc32(prefix)) != check:
            return None
        end = at + _HEADER.size + length
        return Record(found, written, boot, old if old != _NO_TIP else None, new, end, body)


def staged_objects(record: Record) -> Iterator[StagedObject]:
    """The objects that a record carries."""
    at = 0
    while at < len(record.objects):
        oid, kind, length = _OBJECT.unpack_from(record.objects, at)
        at += _OBJECT.size
        yield oid, _KINDS[kind], record.objects[at : at + length]
        at += length


def from_this_boot(record: Record) -> bool:
    """Whether the machine has run ever since, so that nothing written can have been lost."""
    return record.boot == _boot_id()


_boot: bytes = b""


def _boot_id() -> bytes:
    global _boot
    if not _boot:
        try:
            with open("/proc/sys/kernel/random/boot_id") as file:
                _boot = bytes.fromhex(file.read().strip().replace("-", ""))
        except (OSError, ValueError):
            _boot = os.urandom(16)
    return _boot
