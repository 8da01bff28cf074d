"""Disks that refuse: read-only, or with room for a given number of files. Made for tests, by the kernel itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

MAY_MOUNT = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode == 0
"""Whether this process may mount: root on a machine of its own."""


@contextmanager
def read_only(folder: Path) -> Generator[None]:
    """Let nothing below `folder` be written for the block: a read-only mount where we may, else permission bits."""
    if not MAY_MOUNT:
        yield from _without_write_bits(folder)
        return
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,bind,ro", str(folder))
        yield
    finally:
        _unmount(folder)


class SmallDisk:
    """A file system of its own at `folder`, on which the number of files can be limited. Needs MAY_MOUNT."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        _mount("-t", "tmpfs", "-o", "size=64m,nr_inodes=20000", "tmpfs", str(folder))

    def leave_room_for(self, files: int) -> None:
        """Let exactly so many more files be created."""
        space = os.statvfs(self.folder)
        _mount("-o", f"remount,nr_inodes={space.f_files - space.f_ffree + files}", str(self.folder))

    def close(self) -> None:
        _unmount(self.folder)


def _without_write_bits(folder: Path) -> Generator[None]:
    modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*")) if not path.is_symlink()}
    try:
        for path, mode in modes.items():
            path.chmod(mode & ~0o222)
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def _mount(*args: str) -> None:
    subprocess.run(["mount", *args], check=True, capture_output=True)


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)
