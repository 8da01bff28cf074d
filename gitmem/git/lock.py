"""The lock of a repository: one writer at a time, over threads and over processes."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from gitmem.git.files import busy, lies_at

_FIRST_WAIT: Final = 0.0001
_LONGEST_WAIT: Final = 0.004


class WriterLock:
    """A lock file held by `flock`, which the kernel gives back when its holder dies.

    It only spares retries: what makes a save right is the compare-and-swap of the ref.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._descriptor = -1

    @contextmanager
    def hold(self, seconds: float) -> Generator[None, None, None]:
        """Hold the lock for the block. Raises BusyError after `seconds`, OSError where it cannot be made."""
        deadline = time.monotonic() + seconds
        if not self._threads.acquire(timeout=max(seconds, 0.0)):
            raise self._busy(seconds)
        try:
            self._take(deadline, seconds)
            try:
                yield
            finally:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def _take(self, deadline: float, seconds: float) -> None:
        wait = _FIRST_WAIT
        while True:
            try:
                self._open()
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if lies_at(self._path, self._descriptor):
                    return
                self.close()  # the file was deleted: others hold another one
                continue
            except FileNotFoundError:  # so was the folder
                os.makedirs(os.path.dirname(self._path), exist_ok=True)
                continue
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._busy(seconds) from None
            time.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT)

    def _open(self) -> None:
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)

    def note(self, data: bytes) -> None:
        """Leave 80 bytes in the file for whoever takes the lock after this holder died."""
        os.pwrite(self._descriptor, data, 0)

    def noted(self) -> bytes:
        """What the last holder left."""
        return os.pread(self._descriptor, 80, 0)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _busy(self, seconds: float) -> Exception:
        return busy(
            f"Another process has been writing for {seconds:g} s and holds {self._path}",
            "Try again.",
        )
