"""The working tree: reading a document's file, and putting a new one there without losing an edit."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from gitmem.codec import MAX_FILE_BYTES
from gitmem.environment.layout import RESOURCE_FILE
from gitmem.git.files import scratch_name, write_file
from gitmem.git.objects import Oid, object_id
from gitmem.git.trees import Path

_EXCHANGE: Final = 2
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class File:
    """What lies at a path: bytes with their blob name, nothing (`odd` is None), or something odd."""

    data: bytes | None = None
    oid: Oid | None = None
    odd: str | None = None
    stat: os.stat_result | None = None

    @property
    def absent(self) -> bool:
        return self.oid is None and self.odd is None


ABSENT: Final = File()


class WorkTree:
    """The working tree of one environment. Symbolic links are never followed."""

    def __init__(self, folder: str, scratch: str) -> None:
        self._folder = folder
        self._scratch = scratch

    def read(self, path: Path) -> File:
        """What lies at `path` now."""
        try:
            with self._parent(path, create=False) as parent:
                return _read(path[-1], parent)
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        except OSError as error:
            if error.errno == errno.ELOOP:
                return File(odd="a symbolic link stands in its path")
            return File(odd=f"it cannot be read ({error.strerror})")

    def put(self, path: Path, data: bytes | None, expected: set[Oid | None]) -> bool:
        """Put `data` at `path`, or remove the file (None), where what lies there is `expected`.

        What lies there is taken out in the same step in which the new file goes in, and looked at
        after: an edit that arrives meanwhile is put back, never overwritten. False where the file
        was left alone. Raises OSError.
        """
        file = self.read(path)
        if file.odd or file.oid not in expected:
            return False
        with self._parent(path, create=data is not None) as parent:
            if data is None:
                return self._remove(path, parent, expected)
            temporary = os.path.join(self._scratch, scratch_name())
            write_file(temporary, data)
            try:
                return self._exchange(temporary, path[-1], parent, object_id("blob", data), expected)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)

    def _exchange(self, temporary: str, name: str, parent: int, new: Oid, expected: set[Oid | None]) -> bool:
        if None in expected:
            try:
                os.link(temporary, name, dst_dir_fd=parent)
                return True
            except FileExistsError:
                if expected == {None}:
                    return False
        if not _swap_names(temporary, name, parent):
            os.rename(temporary, name, dst_dir_fd=parent)
            return True
        taken = _read(os.path.basename(temporary), temporary)
        if taken.oid in expected:
            return True
        # An edit came between: put it back, unless yet another one lies there by now.
        if _read(name, parent).oid == new:
            _swap_names(temporary, name, parent)
        else:
            os.rename(temporary, f"{name}.kept-{scratch_name()}", dst_dir_fd=parent)
        return False

    def _remove(self, path: Path, parent: int, expected: set[Oid | None]) -> bool:
        temporary = os.path.join(self._scratch, scratch_name())
        try:
            os.rename(path[-1], temporary, src_dir_fd=parent)
        except FileNotFoundError:
            return True
        if _read(os.path.basename(temporary), temporary).oid not in expected:
            os.link(temporary, path[-1], dst_dir_fd=parent)
            os.unlink(temporary)
            return False
        os.unlink(temporary)
        self._drop_empty(path)
        return True

    def move(self, old: Path, new: Path) -> bool:
        """Move a file with whatever a person has put into it; False where that cannot be done."""
        with suppress(FileNotFoundError, NotADirectoryError):
            if not self.read(new).absent:
                return False
            with self._parent(old, create=False) as source, self._parent(new, create=True) as target:
                os.rename(old[-1], new[-1], src_dir_fd=source, dst_dir_fd=target)
            return True
        return False

    def _drop_empty(self, path: Path) -> None:
        for depth in range(len(path) - 1, 0, -1):
            try:
                os.rmdir(os.path.join(self._folder, *path[:depth]))
            except OSError:
                return

    def has_resource(self, resource: str) -> bool:
        """Whether the resource's folder is there with its declaration, so that an absent file means something."""
        return not self.read((resource, RESOURCE_FILE)).absent

    def files(self, resource: str) -> Iterator[Path]:
        """Every path below a resource's folder that is not a folder, links included, in no set order."""
        pending: list[Path] = [(resource,)]
        while pending:
            path = pending.pop()
            try:
                with os.scandir(os.path.join(self._folder, *path)) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            pending.append((*path, entry.name))
                        else:
                            yield (*path, entry.name)
            except (FileNotFoundError, NotADirectoryError):
                continue

    def resources(self) -> Iterator[str]:
        """The names of the top-level folders, links left out."""
        with suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                    yield entry.name

    def exists(self) -> bool:
        """Whether the working tree holds anything beside `.git`."""
        try:
            with os.scandir(self._folder) as entries:
                return any(entry.name != ".git" for entry in entries)
        except OSError:
            return False

    def absolute(self, path: Path) -> str:
        """Where a path lies on the disk."""
        return os.path.join(self._folder, *path)

    @contextmanager
    def _parent(self, path: Path, *, create: bool) -> Generator[int, None, None]:
        descriptor = os.open(self._folder, _FOLDER_FLAGS)
        try:
            for name in path[:-1]:
                try:
                    below = os.open(name, _FOLDER_FLAGS, dir_fd=descriptor)
                except FileNotFoundError:
                    if not create:
                        raise
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=descriptor)
                    below = os.open(name, _FOLDER_FLAGS, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)


def _read(name: str, where: int | str) -> File:
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=where) if isinstance(where, int) else os.open(where, _READ_FLAGS)
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        if error.errno == errno.ELOOP:
            return File(odd="it is a symbolic link")
        return File(odd=f"it cannot be read ({error.strerror})")
    try:
        stat = os.fstat(descriptor)
        if stat.st_mode & 0o170000 != 0o100000:
            return File(odd="it is not an ordinary file")
        if stat.st_size > MAX_FILE_BYTES:
            return File(odd=f"it has {stat.st_size} bytes, more than any document")
        data = os.read(descriptor, stat.st_size + 1)
        return File(data, object_id("blob", data), None, stat)
    finally:
        os.close(descriptor)


_renameat2: Any = None


def _swap_names(left: str, right: str, right_folder: int) -> bool:
    """Exchange two files in one step; False on a system that cannot."""
    global _renameat2
    import ctypes

    if _renameat2 is None:
        _renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", False)
    if not _renameat2:
        return False
    at_cwd = -100
    if _renameat2(at_cwd, os.fsencode(left), right_folder, os.fsencode(right), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), right)
