"""Pack files: writing one with its index, and taking entries out of existing ones unchanged.

Format: Git's own documentation (gitformat-pack), version 2 of pack and index.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from hashlib import sha1
from typing import Final, NamedTuple

from gitmem.failpoints import reach
from gitmem.git.files import scratch_name, sync_path, write_all
from gitmem.git.objects import Kind, Oid

TEMPORARY_PREFIX: Final = "tmp_gitmem_"
_TYPE_NUMBERS: Final = {"commit": 1, "tree": 2, "blob": 3}
_OFFSET_DELTA: Final = 6
_NAMED_DELTA: Final = 7
_HEADER: Final = struct.Struct(">4sII")
_LARGEST_PACK: Final = 1 << 30


class PackWriter:
    """Writes one pack below `folder` (`objects/pack`). Nothing can be seen of it before `finish`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        os.makedirs(folder, exist_ok=True)
        self._path = os.path.join(folder, TEMPORARY_PREFIX + scratch_name())
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        self._entries: dict[Oid, tuple[int, int]] = {}
        self._size = 0
        self._write(_HEADER.pack(b"PACK", 2, 0))

    def __contains__(self, oid: Oid) -> bool:
        return oid in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def full(self) -> bool:
        """Whether the pack is as large as one should become."""
        return self._size >= _LARGEST_PACK

    def add(self, oid: Oid, kind: Kind, data: bytes) -> None:
        """Add an object whole."""
        self._add(oid, _entry_header(_TYPE_NUMBERS[kind], len(data)) + zlib.compress(data))

    def add_delta(self, oid: Oid, base: Oid, delta: bytes) -> None:
        """Add an object as its difference from `base`, which the same pack holds."""
        self._add(oid, _entry_header(_NAMED_DELTA, len(delta)) + base + zlib.compress(delta))

    def add_raw(self, oid: Oid, entry: bytes) -> None:
        """Add the bytes of an entry that another pack held."""
        self._add(oid, entry)

    def finish(self) -> str:
        """Flush pack and index and give them their names. Returns the path of the index."""
        os.pwrite(self._descriptor, _HEADER.pack(b"PACK", 2, len(self._entries)), 0)
        digest = self._digest()
        os.lseek(self._descriptor, 0, os.SEEK_END)
        write_all(self._descriptor, digest)
        os.fsync(self._descriptor)
        os.close(self._descriptor)
        stem = os.path.join(self._folder, f"pack-{digest.hex()}")
        index_path = self._path + ".idx"
        with open(index_path, "xb") as file:
            file.write(self._index(digest))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(index_path, 0o444)
        # The index first: git and libgit2 pass over one without a pack, but a pack without its index is damage.
        os.rename(index_path, stem + ".idx")
        sync_path(self._folder)
        reach("naming-pack")
        os.rename(self._path, stem + ".pack")
        sync_path(self._folder)
        return stem + ".idx"

    def discard(self) -> None:
        """Give up; nothing remains."""
        os.close(self._descriptor)
        os.unlink(self._path)

    def _add(self, oid: Oid, entry: bytes) -> None:
        self._entries[oid] = (self._size, zlib.crc32(entry))
        self._write(entry)

    def _write(self, data: bytes) -> None:
        write_all(self._descriptor, data)
        self._size += len(data)

    def _digest(self) -> bytes:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        digest = sha1()
        while block := os.read(self._descriptor, 1 << 20):
            digest.update(block)
        return digest.digest()

    def _index(self, digest: bytes) -> bytes:
        oids = sorted(self._entries)
        counts = [0] * 256
        for oid in oids:
            counts[oid[0]] += 1
        total, fanout = 0, []
        for count in counts:
            total += count
            fanout.append(total)
        body = b"".join((
            b"\xfftOc\0\0\0\2",
            struct.pack(">256I", *fanout),
            *oids,
            struct.pack(f">{total}I", *(self._entries[oid][1] for oid in oids)),
            struct.pack(f">{total}I", *(self._entries[oid][0] for oid in oids)),
            digest,
        ))
        return body + sha1(body).digest()


def difference(base: bytes, target: bytes) -> bytes | None:
    """A delta that keeps the beginning and the end that two versions share; None where none is worth it."""
    head = _shared_prefix(base, target)
    tail = _shared_suffix(base[head:], target[head:])
    middle = target[head : len(target) - tail]
    if len(middle) * 2 > len(target):
        return None
    parts = [_varint(len(base)), _varint(len(target)), *_copies(0, head)]
    parts.extend(bytes((len(piece),)) + piece for piece in _pieces(middle, 127))
    parts.extend(_copies(len(base) - tail, tail))
    return b"".join(parts)


def _shared_prefix(left: bytes, right: bytes) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _shared_suffix(left: bytes, right: bytes) -> int:
    return _shared_prefix(left[::-1], right[::-1])


def _copies(offset: int, length: int) -> Iterator[bytes]:
    while length:
        size = min(length, 0xFFFF)
        yield struct.pack("<BIH", 0x80 | 0x0F | 0x30, offset, size)
        offset += size
        length -= size


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _entry_header(kind: int, size: int) -> bytes:
    first = kind << 4 | size & 0x0F
    size >>= 4
    return bytes((first | 0x80,)) + _varint(size) if size else bytes((first,))


class _Header(NamedTuple):
    kind: int
    size: int
    length: int


class Pack:
    """An existing pack, read entry by entry. Raises ValueError where its index is damaged."""

    def __init__(self, index_path: str) -> None:
        self.index_path = index_path
        self.path = index_path.removesuffix(".idx") + ".pack"
        with open(index_path, "rb") as file:
            index = file.read()
        if index[:8] != b"\xfftOc\0\0\0\2" or sha1(index[:-20]).digest() != index[-20:]:
            raise ValueError(f"{index_path} is no whole index of version 2")
        count = int.from_bytes(index[8 + 255 * 4 : 8 + 256 * 4])
        names = 8 + 1024
        self.oids: list[Oid] = [index[at : at + 20] for at in range(names, names + 20 * count, 20)]
        crcs = names + 20 * count
        self._crcs = struct.unpack_from(f">{count}I", index, crcs)
        self._offsets = _offsets(index, crcs + 4 * count, count)
        self.size = os.stat(self.path).st_size

    def entries(self) -> Iterator[tuple[Oid, bytes]]:
        """Each object with its entry, in the pack's order; a delta names its base by its oid.

        Raises ValueError where an entry is damaged.
        """
        order = sorted(range(len(self.oids)), key=self._offsets.__getitem__)
        by_offset = {self._offsets[at]: self.oids[at] for at in order}
        with open(self.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for place, at in enumerate(order):
                start = self._offsets[at]
                end = self._offsets[order[place + 1]] if place + 1 < len(order) else self.size - 20
                entry = data[start:end]
                if zlib.crc32(entry) != self._crcs[at]:
                    raise ValueError(f"{self.path} is damaged at {self.oids[at].hex()}")
                yield self.oids[at], _with_named_base(entry, start, by_offset)


def names_in(index_path: str) -> Iterator[Oid]:
    """The objects that an index (version 2) names, in little memory; none where it is not one."""
    with open(index_path, "rb") as file:
        head = file.read(8 + 1024)
        if head[:8] != b"\xfftOc\0\0\0\2" or len(head) < 8 + 1024:
            return
        for _ in range(int.from_bytes(head[-4:])):
            name = file.read(20)
            if len(name) < 20:
                return
            yield name


def _offsets(index: bytes, at: int, count: int) -> list[int]:
    offsets = list(struct.unpack_from(f">{count}I", index, at))
    large = at + 4 * count
    for place, offset in enumerate(offsets):
        if offset & 0x80000000:
            (offsets[place],) = struct.unpack_from(">Q", index, large + 8 * (offset & 0x7FFFFFFF))
    return offsets


def _with_named_base(entry: bytes, start: int, by_offset: dict[int, Oid]) -> bytes:
    header = _parsed_header(entry)
    if header.kind != _OFFSET_DELTA:
        return entry
    at = header.length
    distance = entry[at] & 0x7F
    while entry[at] & 0x80:
        at += 1
        distance = (distance + 1) << 7 | entry[at] & 0x7F
    return _entry_header(_NAMED_DELTA, header.size) + by_offset[start - distance] + entry[at + 1 :]


def _parsed_header(entry: bytes) -> _Header:
    size, shift, at = entry[0] & 0x0F, 4, 0
    while entry[at] & 0x80:
        at += 1
        size |= (entry[at] & 0x7F) << shift
        shift += 7
    return _Header(entry[0] >> 4 & 7, size, at + 1)
