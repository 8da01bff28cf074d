"""The working tree: reading a document's file, and putting a new one there without losing an edit."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager, suppress
from stat import S_IFDIR, S_IFMT, S_IFREG
from typing import Final, NamedTuple

from gitmem.codec import MAX_FILE_BYTES
from gitmem.environment.layout import RESOURCE_FILE
from gitmem.git.files import exchange, rename_new, scratch_name, write_file
from gitmem.git.objects import Oid, object_id
from gitmem.git.trees import Path

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_REPLACED: Final = 128


class File(NamedTuple):
    """What lies at a path: bytes with their blob name, nothing (`odd` is None), or something odd."""

    data: bytes | None = None
    oid: Oid | None = None
    odd: str | None = None
    stat: os.stat_result | None = None

    @property
    def absent(self) -> bool:
        return self.oid is None and self.odd is None


ABSENT: Final = File()
BLOCKED: Final = File(odd="a link or a file stands in its path")


class WorkTree:
    """The working tree of one environment. Symbolic links are never followed."""

    def __init__(self, folder: str, scratch: str) -> None:
        self._folder = folder
        self._scratch = scratch
        self._replaced: list[str] = []

    def read(self, path: Path) -> File:
        """What lies at `path` now."""
        try:
            with self._parent(path, create=False) as parent:
                return _read(path[-1], parent)
        except FileNotFoundError:
            return ABSENT
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOTDIR}:
                return BLOCKED
            return File(odd=f"it cannot be read ({error.strerror})")

    def put(self, path: Path, data: bytes, expected: set[Oid | None]) -> os.stat_result | None:
        """Put `data` at `path` where what lies there is `expected` (None: nothing); the file's stat.

        What lies there is taken out in the same step in which the new file goes in, and looked at
        after: an edit that arrives meanwhile is put back, never overwritten. None where the file
        was left alone. Raises OSError.
        """
        temporary = f"{self._scratch}/{scratch_name()}"
        with self._parent(path, create=True) as parent:
            write_file(temporary, data)
            try:
                placed = self._placed(temporary, path[-1], parent, object_id("blob", data), expected)
                return os.stat(path[-1], dir_fd=parent, follow_symlinks=False) if placed else None
            finally:
                self._replaced.append(temporary)
                if len(self._replaced) > _MOST_REPLACED:
                    self.clear_away()

    def clear_away(self) -> None:
        """Remove what was replaced. Freeing a file's blocks is slow, so it is not done within a save."""
        while self._replaced:
            with suppress(IndexError, FileNotFoundError):
                os.unlink(self._replaced.pop())

    def _placed(self, temporary: str, name: str, parent: int, new: Oid, expected: set[Oid | None]) -> bool:
        if None in expected:
            with suppress(FileExistsError):
                rename_new(temporary, name, folder=parent)
                return True
        if expected == {None}:
            return False
        try:
            if not exchange(temporary, name, right_folder=parent):
                return self._renamed_over(temporary, name, parent, expected)
        except FileNotFoundError:
            return False
        if _is(_read(temporary), expected):
            return True
        # An edit lay there: put it back, unless yet another one has come by now.
        if _read(name, parent).oid == new:
            exchange(temporary, name, right_folder=parent)
        else:
            os.rename(temporary, f"{name}.kept-{scratch_name()}", dst_dir_fd=parent)
        return False

    def _renamed_over(self, temporary: str, name: str, parent: int, expected: set[Oid | None]) -> bool:
        """The best that a file system without exchange allows: look, then rename."""
        if not _is(_read(name, parent), expected):
            return False
        os.rename(temporary, name, dst_dir_fd=parent)
        return True

    def remove(self, path: Path, expected: Oid) -> bool:
        """Remove a file that holds the blob `expected`; an edit is put back. Raises OSError."""
        temporary = f"{self._scratch}/{scratch_name()}"
        try:
            with self._parent(path, create=False) as parent:
                os.rename(path[-1], temporary, src_dir_fd=parent)
                if _is(_read(temporary), {expected}):
                    os.unlink(temporary)
                    return True
                try:
                    os.link(temporary, path[-1], dst_dir_fd=parent)
                    os.unlink(temporary)
                except FileExistsError:
                    os.rename(temporary, f"{path[-1]}.kept-{scratch_name()}", dst_dir_fd=parent)
        except FileNotFoundError:
            return True
        return False

    def take_out(self, path: Path, target: str) -> None:
        """Move whatever lies at a path to `target`, outside of the working tree. Raises OSError."""
        with self._parent(path, create=False) as parent:
            os.rename(path[-1], target, src_dir_fd=parent)

    def move(self, old: Path, new: Path) -> bool:
        """Move a file with whatever a person has put into it; False where that cannot be done."""
        with suppress(FileNotFoundError, NotADirectoryError):
            if not self.read(new).absent:
                return False
            with self._parent(old, create=False) as source, self._parent(new, create=True) as target:
                os.rename(old[-1], new[-1], src_dir_fd=source, dst_dir_fd=target)
            return True
        return False

    def flush(self, paths: Collection[Path]) -> None:
        """Flush files and the folders above them. Raises OSError where the disk refuses."""
        folders = {path[:length] for path in paths for length in range(len(path))}
        for path in (*paths, *sorted(folders, key=len, reverse=True)):
            descriptor = self._opened(path)
            if descriptor is None:
                continue
            try:
                if S_IFMT(os.fstat(descriptor).st_mode) in (S_IFREG, S_IFDIR):
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _opened(self, path: Path) -> int | None:
        """A file or folder; None for what is not there, or has become a person's oddity."""
        try:
            if not path:
                return os.open(self._folder, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
            with self._parent(path, create=False) as parent:
                return os.open(path[-1], _READ_FLAGS, dir_fd=parent)
        except OSError:
            return None

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

    def files_in(self, folder: str) -> Iterator[str]:
        """The names of the JSON files in one folder, named from the top."""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(os.path.join(self._folder, folder)) as found:
            yield from (entry.name for entry in found if entry.name.endswith(".json") and entry.name[0] != ".")

    def scan(self, path: Path) -> Iterator[tuple[str, File | None]]:
        """What lies in a folder, in no set order: each file with what it holds, None for a folder.

        Nothing where there is no such folder, or a link stands for it.
        """
        try:
            with self._parent((*path, ""), create=False) as folder, os.scandir(folder) as entries:
                for entry in entries:
                    yield entry.name, None if entry.is_dir(follow_symlinks=False) else _read(entry.name, folder)
        except (FileNotFoundError, NotADirectoryError):
            return

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
        # The environment's own folder may be a link that its owner made; what lies below it may not.
        descriptor = os.open(self._folder, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
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


def _is(file: File, expected: set[Oid | None]) -> bool:
    return not file.odd and file.oid in expected


def _read(name: str, folder: int | None = None) -> File:
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=folder)
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
