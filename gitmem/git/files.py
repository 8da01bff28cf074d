"""Small file operations whose failures become one clear StorageError."""

from __future__ import annotations

import errno
import functools
import itertools
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from gitmem.errors import BusyError, GitmemError, StorageError

_serial = itertools.count()
_RUN: Final = os.urandom(4).hex()
_AT_CWD: Final = -100
_NO_REPLACE: Final = 1
_EXCHANGE: Final = 2
_USUAL_BYTES: Final = 16 * 1024
_LARGE_BYTES: Final = 1024 * 1024
_UNSUPPORTED: Final = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)

_REMEDIES = {
    errno.ENOSPC: "the disk is full. Free some space and try again",
    errno.EDQUOT: "the disk quota is used up. Free some space and try again",
    errno.EROFS: "the disk is read-only. Mount it writable and try again",
    errno.EACCES: "permission is denied. Check who owns the folder",
    errno.EPERM: "permission is denied. Check who owns the folder",
    errno.ENOTDIR: "a file stands where a folder should be",
    errno.EMFILE: "too many files are open. Raise the limit (ulimit -n)",
}


def storage_error(error: OSError, doing: str) -> StorageError:
    """The StorageError that says what `doing` met and what a person can do."""
    remedy = _REMEDIES.get(error.errno or 0, error.strerror or str(error))
    where = f" ({error.filename})" if error.filename else ""
    return StorageError(f"Cannot {doing}: {remedy}{where}.")


@contextmanager
def storage(doing: str) -> Generator[None, None, None]:
    """Turn an OSError of the block into a StorageError; let every other error pass."""
    try:
        yield
    except GitmemError:
        raise
    except OSError as error:
        raise storage_error(error, doing) from error


def scratch_name() -> str:
    """A file name that no other thread or process uses, nor one that was killed and had the same pid."""
    return f"{os.getpid()}-{_RUN}-{next(_serial)}"


def read_small(path: str, size: int = 4096) -> bytes | None:
    """The first bytes of a file; None where there is none. Raises OSError.

    A fifth of what `open()` costs, which counts where a save looks at several such files.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


def read_file(path: str) -> bytes:
    """All of a file that nobody is changing, for half of what `open()` costs. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, _USUAL_BYTES)
        if len(data) < _USUAL_BYTES:
            return data
        parts = [data]
        while part := os.read(descriptor, _LARGE_BYTES):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def lies_at(path: str, descriptor: int) -> bool:
    """Whether an open file is what lies at a path now."""
    try:
        return os.stat(path).st_ino == os.fstat(descriptor).st_ino
    except (FileNotFoundError, NotADirectoryError):
        return False


Bytes = bytes | bytearray | memoryview


def write_all(descriptor: int, data: Bytes) -> None:
    """Write every byte, or raise OSError: a short write is the disk saying that it is full."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, data[written:])


def write_file(path: str, *pieces: Bytes, mode: int = 0o644) -> None:
    """Create `path`, which must not exist, of exactly these pieces; leave nothing behind on failure."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        try:
            for piece in pieces:
                write_all(descriptor, piece)
        finally:
            os.close(descriptor)
    except BaseException:
        os.unlink(path)
        raise


def exchange(left: str, right: str, *, right_folder: int = _AT_CWD) -> bool:
    """Let two existing files change places in one step; False where the system cannot.

    Beside being atomic this is several times cheaper than renaming over a file, which makes ext4
    write that file's data out at once. Raises OSError.
    """
    return _renamed(left, right, right_folder, _EXCHANGE)


def rename_new(old: str, new: str, *, folder: int = _AT_CWD) -> None:
    """Rename, but never over an existing file: FileExistsError then. Raises OSError."""
    if not _renamed(old, new, folder, _NO_REPLACE):
        os.link(old, new, dst_dir_fd=None if folder == _AT_CWD else folder)
        os.unlink(old)


def replace_cheaply(temporary: str, path: str) -> None:
    """Put `temporary` at `path` in one step, whatever lay there. Raises OSError."""
    try:
        if exchange(temporary, path):
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            return
    except FileNotFoundError:
        pass
    os.rename(temporary, path)


def _renamed(left: str, right: str, right_folder: int, flags: int) -> bool:
    import ctypes

    call = _renameat2()
    if not call:
        return False
    if call(_AT_CWD, os.fsencode(left), right_folder, os.fsencode(right), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), right)


@functools.cache
def _renameat2() -> Any:
    import ctypes

    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def sync_path(path: str) -> None:
    """Flush a file or folder to the disk; one that is gone has nothing to flush."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(path: str) -> None:
    """Flush everything that lies on the same file system as `path`. Raises OSError."""
    import ctypes

    descriptor = os.open(path, os.O_RDONLY)
    try:
        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None:
            os.sync()
        elif syncfs(descriptor):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    finally:
        os.close(descriptor)


def older_than_boot(path: str) -> bool:
    """Whether a lock file was left before the machine last started: nobody holds it."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            booted = next(int(line.split()[1]) for line in file if line.startswith("btime "))
        return os.stat(path).st_mtime < booted - 1
    except (OSError, StopIteration, ValueError):
        return False


def busy(what: str, remedy: str) -> BusyError:
    """A BusyError of one shape: what is held, and what to do."""
    return BusyError(f"{what}. {remedy}")
