"""A ref, the branch main above all: reading it, and moving it by compare-and-swap under Git's own lock file."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from typing import Final

from gitmem.errors import DamagedError, StorageError
from gitmem.git.files import busy, older_than_boot, read_small, rename_new, replace_cheaply, scratch_name, write_file
from gitmem.git.objects import Oid

MAIN: Final = "refs/heads/main"
_HEX = re.compile(rb"[0-9a-f]{40}\n?\Z")
_HELD_REF_SECONDS: Final = 3.0


class Ref:
    """One ref of a repository, loose or packed; `refs/heads/main` unless another is named."""

    def __init__(self, git_dir: str, name: str = MAIN) -> None:
        self.name = name
        self._packed = os.path.join(git_dir, "packed-refs")
        self.path = os.path.join(git_dir, name)
        self.lock_path = self.path + ".lock"

    def read(self) -> Oid | None:
        """The tip; None where the branch does not exist.

        Raises DamagedError for a ref file that is there but unreadable: it is never taken for a
        new repository.
        """
        try:
            data = read_small(self.path, 64)
        except IsADirectoryError:
            raise StorageError(f"{self.name} is a folder: a branch below it is in the way.") from None
        if data is None:
            return self._read_packed()
        if not _HEX.match(data):
            raise DamagedError(
                self.name,
                f"The ref file {self.path} is damaged. Write the right commit into it "
                "(git reflog, git fsck --lost-found), or run gitmem doctor --repair.",
            )
        return bytes.fromhex(data[:40].decode())

    def _read_packed(self) -> Oid | None:
        try:
            with open(self._packed, "rb") as file:
                for line in file:
                    if line.rstrip(b"\n").endswith(b" " + self.name.encode()):
                        return bytes.fromhex(line[:40].decode())
        except FileNotFoundError:
            pass
        except ValueError:
            raise DamagedError("packed-refs", f"{self._packed} is damaged. Restore it from a clone.") from None
        return None

    def hold(self, new: Oid, scratch: str) -> None:
        """Take Git's lock on the ref, with the new value already in it.

        A lock that Git holds for a moment is waited for; one that stays raises BusyError naming the
        file. The lock appears whole (renamed there), so what a killed process leaves is never empty.
        """
        temporary = f"{scratch}/{scratch_name()}"
        write_file(temporary, new.hex().encode() + b"\n")
        try:
            self._take_lock(temporary)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise

    def _take_lock(self, temporary: str) -> None:
        deadline = time.monotonic() + _HELD_REF_SECONDS
        while True:
            try:
                rename_new(temporary, self.lock_path)
                return
            except FileNotFoundError:
                if not os.path.exists(temporary):
                    raise
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
            except FileExistsError:
                if older_than_boot(self.lock_path):
                    os.unlink(self.lock_path)
                    continue
                if time.monotonic() > deadline:
                    raise busy(
                        f"{self.lock_path} is held by another Git process",
                        "If none is running, remove that file and try again.",
                    ) from None
                time.sleep(0.005)

    def release(self) -> None:
        """Give the lock up without moving the ref."""
        os.unlink(self.lock_path)

    def swap(self) -> None:
        """Publish the value that the held lock carries."""
        replace_cheaply(self.lock_path, self.path)

    def remove(self) -> None:
        """Delete the ref, wherever it lies. Raises OSError where git is rewriting its packed refs."""
        with suppress(FileNotFoundError), open(self._packed, "rb") as file:
            lines = file.read().splitlines(keepends=True)
            kept = [line for line in lines if not line.rstrip(b"\n").endswith(b" " + self.name.encode())]
            if kept != lines:
                write_file(f"{self._packed}.lock", b"".join(kept))
                os.rename(f"{self._packed}.lock", self._packed)
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def held_value(self) -> bytes | None:
        """The 40 hex digits that a lock file carries; None where there is no lock."""
        data = read_small(self.lock_path, 41)
        return data[:40] if data is not None else None
