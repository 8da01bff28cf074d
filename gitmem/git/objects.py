"""Git objects: their names, reading them from wherever they lie, writing them as loose files."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha1
from struct import Struct
from typing import Final, Literal

import pygit2

from gitmem.errors import DamagedError
from gitmem.git.files import read_file, scratch_name, write_file

Oid = bytes
"""The raw 20 bytes of an object's name."""

Kind = Literal["blob", "tree", "commit"]

_VANISHING_FOLDERS: Final = 20
_KINDS: Final = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_DEEPEST_ALTERNATE: Final = 5
_BLOCK: Final = Struct("<BHH")
_MOST_IN_A_BLOCK: Final = 0xFFFF
_PACKED_IN_A_ROW: Final = 64
_MAPPED: Final = 8 * 1024 * 1024
_MOST_MAPPED: Final = 4 * _MAPPED
_DAMAGE: Final = (OSError, ValueError, zlib.error, pygit2.GitError)

# libgit2 would map each pack whole, and whoever walks through all of history would hold all of it.
pygit2.settings.mwindow_size = _MAPPED
pygit2.settings.mwindow_mapped_limit = _MOST_MAPPED


def object_id(kind: Kind, data: bytes) -> Oid:
    """The name that Git gives to `data`."""
    return sha1(b"%b %d\0" % (kind.encode(), len(data)) + data).digest()


class _UnreadableError(Exception):
    """Neither a loose file nor a pack gives the object back whole."""


class Objects:
    """The object database of one repository."""

    def __init__(self, git_dir: str) -> None:
        self.folder = os.path.join(git_dir, "objects")
        self._folders = list(_with_alternates(self.folder))
        # Packs only: libgit2 never returns from reading a loose file that was cut short. And without a
        # libgit2 repository around it, which would read a person's whole configuration and refuse
        # folders of another owner.
        self._packs = pygit2.Odb()
        for folder in self._folders:
            self._packs.add_backend(pygit2.OdbBackendPack(folder), 1)
        self.mend: Callable[[Oid], bool] = lambda oid: False
        self._packed_in_a_row = 0

    def read(self, oid: Oid, kind: Kind) -> bytes:
        """The bytes of an object. Raises DamagedError, naming it, where that cannot be."""
        try:
            try:
                found, data = self._read(oid)
            except _UnreadableError:
                if not self.mend(oid):
                    raise
                found, data = self._read(oid)
        except _UnreadableError as error:
            raise self._damaged(oid, kind, str(error)) from error
        if found != kind:
            raise self._damaged(oid, kind, "it is of another type")
        return data

    def _read(self, oid: Oid) -> tuple[str, bytes]:
        why = "no such object"
        # A miss costs: of a loose file little, of a pack more, so packs come first only in a long walk.
        looks = (self._read_loose, self._read_packed, self._read_loose)  # it may be unpacked meanwhile
        for look in looks if self._packed_in_a_row < _PACKED_IN_A_ROW else looks[1:] + looks[1:]:
            try:
                found = look(oid)
                self._packed_in_a_row = self._packed_in_a_row + 1 if look == self._read_packed else 0
                return found
            except FileNotFoundError:
                continue
            except _DAMAGE as error:
                why = " ".join(str(error).split())
        raise _UnreadableError(why)

    def _read_packed(self, oid: Oid) -> tuple[str, bytes]:
        try:
            number, data = self._packs.read(pygit2.Oid(raw=oid))
        except KeyError:
            raise FileNotFoundError from None
        return _KINDS[number], bytes(data)

    def _read_loose(self, oid: Oid) -> tuple[str, bytes]:
        name = oid.hex()
        for folder in self._folders:
            try:
                raw = zlib.decompress(read_file(f"{folder}/{name[:2]}/{name[2:]}"))
            except FileNotFoundError:
                continue
            if sha1(raw).digest() != oid:
                raise ValueError("its bytes have another name")
            head, _, data = raw.partition(b"\0")
            return head.partition(b" ")[0].decode(), data
        raise FileNotFoundError

    def exists(self, oid: Oid) -> bool:
        """Whether the database holds an object of that name, whole or not."""
        name = oid.hex()
        loose = any(os.path.exists(f"{folder}/{name[:2]}/{name[2:]}") for folder in self._folders)
        return loose or pygit2.Oid(raw=oid) in self._packs

    def intact(self, oid: Oid, kind: Kind) -> bool:
        """Whether the object can be read, its bytes have that name, and no damaged file stands in the way."""
        try:
            with suppress(FileNotFoundError):
                self._read_loose(oid)
            return object_id(kind, self.read(oid, kind)) == oid
        except (DamagedError, *_DAMAGE):
            return False

    def loose_path(self, oid: Oid) -> str:
        """Where the object lies, or would lie, as a file of its own."""
        name = oid.hex()
        return f"{self.folder}/{name[:2]}/{name[2:]}"

    def loose(self) -> Iterator[Oid]:
        """The names of all loose objects of the repository itself, not of those that it borrows from."""
        for number in range(256):
            prefix = f"{number:02x}"
            with suppress(FileNotFoundError, NotADirectoryError):
                for name in os.listdir(os.path.join(self.folder, prefix)):
                    with suppress(ValueError):  # a temporary file of git's
                        yield bytes.fromhex(prefix + name)

    def write(self, oid: Oid, kind: Kind, data: bytes, scratch: str) -> None:
        """Write a loose object, whole or not at all and not yet flushed.

        An existing file is replaced, so that saving the same bytes again mends a damaged object.
        Stored, not deflated: housekeeping packs it later, and zlib's set-up would be most of the cost.
        """
        temporary = f"{scratch}/{scratch_name()}"
        write_file(temporary, _stored(b"%b %d\0%b" % (kind.encode(), len(data), data)), mode=0o444)
        try:
            _rename_into(temporary, self.loose_path(oid))
        except BaseException:
            os.unlink(temporary)
            raise

    def _damaged(self, oid: Oid, kind: Kind, why: str) -> DamagedError:
        name = oid.hex()
        return DamagedError(
            name,
            f"The {kind} {name} is damaged or missing ({why}). The rest stays readable; "
            "fetch that object from a clone, or see gitmem doctor.",
        )


def _stored(raw: bytes) -> bytes:
    """A zlib stream that holds `raw` as it is (RFC 1950; RFC 1951, 3.2.4), made without a compressor's memory."""
    parts = [b"\x78\x01"]
    for at in range(0, len(raw), _MOST_IN_A_BLOCK):
        piece = raw[at : at + _MOST_IN_A_BLOCK]
        is_last = at + _MOST_IN_A_BLOCK >= len(raw)
        parts += _BLOCK.pack(is_last, len(piece), len(piece) ^ 0xFFFF), piece
    parts.append(zlib.adler32(raw).to_bytes(4, "big"))
    return b"".join(parts)


def _rename_into(temporary: str, path: str) -> None:
    """Rename into a folder that may not exist, or that a gc beside us removes because it is empty."""
    for _ in range(_VANISHING_FOLDERS):
        with suppress(FileNotFoundError):
            os.rename(temporary, path)
            return
        with suppress(FileExistsError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
    os.rename(temporary, path)


def _with_alternates(folder: str, depth: int = _DEEPEST_ALTERNATE) -> Iterator[str]:
    """The folder, and those from which its repository borrows objects (gitrepository-layout)."""
    yield folder
    with suppress(OSError), open(os.path.join(folder, "info", "alternates"), "rb") as file:
        for line in file.read().splitlines():
            if depth and line and not line.startswith(b"#"):
                yield from _with_alternates(os.path.join(folder, os.fsdecode(line)), depth - 1)
