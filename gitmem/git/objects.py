"""Git objects: their names, reading them from wherever they lie, writing them as loose files."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha1
from typing import Final, Literal

import pygit2

from gitmem.errors import DamagedError
from gitmem.git.files import scratch_name, write_file

Oid = bytes
"""The raw 20 bytes of an object's name."""

Kind = Literal["blob", "tree", "commit"]

_VANISHING_FOLDERS: Final = 20
_TYPES: Final = {"commit": 1, "tree": 2, "blob": 3}


def object_id(kind: Kind, data: bytes) -> Oid:
    """The name that Git gives to `data`."""
    return sha1(b"%b %d\0" % (kind.encode(), len(data)) + data).digest()


class Objects:
    """The object database of one repository."""

    def __init__(self, git_dir: str) -> None:
        self.folder = os.path.join(git_dir, "objects")
        # Without a libgit2 repository around it: that would read a person's whole configuration,
        # and refuse folders of another owner.
        self._odb = pygit2.Odb(self.folder)
        self.mend: Callable[[Oid], bool] = lambda oid: False

    def read(self, oid: Oid, kind: Kind) -> bytes:
        """The bytes of an object. Raises DamagedError, naming it, where that cannot be."""
        name = pygit2.Oid(raw=oid)
        try:
            try:
                found, data = self._odb.read(name)
            except (KeyError, pygit2.GitError, OSError):
                if not self.mend(oid):
                    raise
                found, data = self._odb.read(name)
        except (KeyError, pygit2.GitError, OSError) as error:
            raise self._damaged(oid, kind, _one_line(error)) from error
        if found != _TYPES[kind]:
            raise self._damaged(oid, kind, "it is of another type")
        return bytes(data)

    def exists(self, oid: Oid) -> bool:
        """Whether the database holds an object of that name, whole or not."""
        return pygit2.Oid(raw=oid) in self._odb

    def intact(self, oid: Oid, kind: Kind) -> bool:
        """Whether the object can be read and its bytes have that name."""
        try:
            return object_id(kind, self.read(oid, kind)) == oid
        except DamagedError:
            return False

    def loose_path(self, oid: Oid) -> str:
        """Where the object lies, or would lie, as a file of its own."""
        name = oid.hex()
        return f"{self.folder}/{name[:2]}/{name[2:]}"

    def write(self, oid: Oid, kind: Kind, data: bytes, scratch: str) -> None:
        """Write a loose object, whole or not at all and not yet flushed.

        An existing file is replaced, so that saving the same bytes again mends a damaged object.
        Stored, not deflated: housekeeping packs it later, and zlib's set-up would be most of the cost.
        """
        temporary = f"{scratch}/{scratch_name()}"
        write_file(temporary, zlib.compress(b"%b %d\0" % (kind.encode(), len(data)) + data, 0), 0o444)
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


def _rename_into(temporary: str, path: str) -> None:
    """Rename into a folder that may not exist, or that a gc beside us removes because it is empty."""
    for _ in range(_VANISHING_FOLDERS):
        with suppress(FileNotFoundError):
            os.rename(temporary, path)
            return
        with suppress(FileExistsError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
    os.rename(temporary, path)


def _one_line(error: Exception) -> str:
    return "no such object" if isinstance(error, KeyError) else " ".join(str(error).split())
