"""Making an empty repository: whole and flushed before it counts as one."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from gitmem.errors import StorageError
from gitmem.git.files import rename_new, scratch_name, storage, sync_file_system, sync_path, write_file
from gitmem.git.refs import MAIN

_FOLDERS: Final = ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info")
_SKELETON: Final = ("objects", "refs", "info", "config")
_NEW: Final = "new-"


def create(folder: str, *, bare: bool = False, without_tree: bool = False, durable: bool = True) -> None:
    """Make an empty repository with branch main; an existing one is left as it is.

    HEAD comes last, when everything else has been flushed: without it nothing is a repository, so
    that one which a kill or a power loss left half made is completed. Raises StorageError.
    """
    git_dir = folder if bare else os.path.join(folder, ".git")
    with storage(f"create {folder}"):
        os.makedirs(folder, exist_ok=True)
        if is_made(git_dir):
            return
        refuse_foreign_folder(folder)
        for name in _FOLDERS:
            os.makedirs(os.path.join(git_dir, name), exist_ok=True)
        new = {
            "config": _written(git_dir, _settings(bare or without_tree)),
            "HEAD": _written(git_dir, f"ref: {MAIN}\n".encode()),
        }
        if durable:
            sync_file_system(git_dir)  # all of it, and the folders above, whoever made them
        for name, path in new.items():
            try:
                rename_new(path, os.path.join(git_dir, name))
            except FileExistsError:
                os.unlink(path)
            if durable:
                sync_path(git_dir)


def is_made(git_dir: str) -> bool:
    """Whether anything lies there but what a creation cut short leaves; it need not be a repository."""
    if os.path.exists(os.path.join(git_dir, "HEAD")) or os.path.isfile(git_dir):
        return True
    return os.path.isdir(git_dir) and not _is_half_made(git_dir)


def refuse_foreign_folder(folder: str) -> None:
    """Raise StorageError where `folder` holds files without being a repository."""
    with suppress(FileNotFoundError):
        git_dir = os.path.join(folder, ".git") if os.listdir(folder) == [".git"] else folder
        if not _is_half_made(git_dir):
            raise StorageError(
                f"{folder} is not empty and not a Git repository. Move its files away, or run git init there."
            )


def _is_half_made(git_dir: str) -> bool:
    names = os.listdir(git_dir)
    if any(name not in _SKELETON and not name.startswith(_NEW) for name in names):
        return False
    if "config" not in names:
        return True
    with open(os.path.join(git_dir, "config"), "rb") as file:
        return file.read() in (_settings(False), _settings(True))


def _written(git_dir: str, data: bytes) -> str:
    path = os.path.join(git_dir, _NEW + scratch_name())
    write_file(path, data)
    return path


def _settings(without_tree: bool) -> bytes:
    bare = b"true" if without_tree else b"false"
    log = b"false" if without_tree else b"true"
    return (
        b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = " + bare
        + b"\n\tlogallrefupdates = " + log + b"\n\tautocrlf = false\n"
    )  # fmt: skip
