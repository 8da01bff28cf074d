"""Small file operations whose failures become one clear StorageError."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Generator
from contextlib import contextmanager

from gitmem.errors import BusyError, GitmemError, StorageError

_serial = itertools.count()

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
    """A file name that no other thread or process uses."""
    return f"{os.getpid()}-{next(_serial)}"


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, or raise OSError: a short write is the disk saying that it is full."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, data[written:])


def write_file(path: str, data: bytes, mode: int = 0o644) -> None:
    """Create `path`, which must not exist, with exactly `data`; leave nothing behind on failure."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        try:
            write_all(descriptor, data)
        finally:
            os.close(descriptor)
    except BaseException:
        os.unlink(path)
        raise


def replace_file(path: str, data: bytes, scratch: str) -> None:
    """Put `data` at `path` in one step, by way of the `scratch` folder on the same disk."""
    temporary = os.path.join(scratch, scratch_name())
    write_file(temporary, data)
    try:
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


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


def busy(what: str, remedy: str) -> BusyError:
    """A BusyError of one shape: what is held, and what to do."""
    return BusyError(f"{what}. {remedy}")
