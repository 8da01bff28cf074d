"""Linked worktrees that have main checked out: a commit made there must undo no save."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from gitmem.environment.layout import text_path
from gitmem.environment.worktree import WorkTree
from gitmem.errors import GitmemError
from gitmem.git.objects import Oid
from gitmem.git.repository import Repository
from gitmem.git.stage import Stage, Staged
from gitmem.git.trees import FILE, Entry, Path


def follow(repository: Repository, old: Oid, new: Oid) -> None:
    """Bring to the tree `new` what still is as the tree `old` had it, in their files and indexes.

    A file that differs is left as it is, and so is everything in a worktree where git is at work, or
    on another disk: there `git status` shows the file. Needs the writer's lock.
    """
    for folder, git_dir in _on_main(repository):
        stage, worktree = Stage(git_dir, repository.scratch), WorkTree(folder, repository.scratch)
        with suppress(OSError, GitmemError):
            if stage.obstacle() is None:
                stage.update(dict(_changes(repository, stage, worktree, old, new)))
        worktree.clear_away()


def _on_main(repository: Repository) -> Iterator[tuple[str, str]]:
    """The folder of each such worktree, and what is its `.git`."""
    for git_dir in repository.linked_on_main():
        with suppress(OSError), open(os.path.join(git_dir, "gitdir"), "rb") as file:
            yield os.path.dirname(os.fsdecode(file.read().rstrip(b"\n"))), git_dir


def _changes(
    repository: Repository, stage: Stage, worktree: WorkTree, old: Oid, new: Oid
) -> Iterator[tuple[bytes, Staged | None]]:
    for path, was, entry in repository.trees.changes(old, new):
        name = os.fsencode(text_path(path))
        if stage.find(name) != (was.oid if was else None):
            continue
        if entry is None or entry.mode != FILE:
            yield name, Staged(entry.oid, None, entry.mode) if entry else None
        else:
            yield name, Staged(entry.oid, _put(repository, worktree, path, was, entry))


def _put(
    repository: Repository, worktree: WorkTree, path: Path, was: Entry | None, entry: Entry
) -> os.stat_result | None:
    with suppress(OSError):
        return worktree.put(path, repository.objects.read(entry.oid, "blob"), {was.oid if was else None})
    return None
