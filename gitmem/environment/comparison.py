"""The working tree held against the tip's tree, folder by folder."""

from __future__ import annotations

from collections.abc import Iterator

from gitmem.environment.form import Form
from gitmem.environment.layout import RESOURCE_FILE
from gitmem.environment.worktree import File, WorkTree
from gitmem.errors import DamagedError
from gitmem.git.objects import Oid
from gitmem.git.trees import EMPTY_TREE, Entry, Path, Trees
from gitmem.limits import is_resource_id

Pair = tuple[Path, Entry | None, File]
"""A path, what the tip has there, and what lies there; one of the two may be missing."""


def compared(form: Form, trees: Trees, root: Oid, worktree: WorkTree) -> Iterator[Pair]:
    """Every file of the tip and of the working tree that can be gitmem's, in no set order.

    Of documents: what lies below the folders of resources, which count where the tip or the disk has
    a declaration in them. Of memory files: all but what begins with a dot at the top. Below a damaged tree nothing
    can be said, and nothing is.
    """
    top = trees.get(root)
    for mark in form.marks:
        entry = top.file(mark)
        if entry:
            yield (mark,), entry, worktree.read((mark,))
    if not form.declared:
        yield from _folder(trees, root, worktree, ())
        return
    for name in {name for name, _ in top} | set(worktree.resources()):
        folder = top.folder(name)
        if is_resource_id(name) and (_declared(trees, folder) or worktree.has_resource(name)):
            yield from _folder(trees, folder or EMPTY_TREE, worktree, (name,))


def differs(entry: Entry | None, file: File) -> bool:
    """Whether a file is not what the tip has at its path."""
    return file.odd is not None or file.oid != (entry.oid if entry else None)


def _declared(trees: Trees, folder: Oid | None) -> bool:
    if folder is None:
        return False
    try:
        return trees.get(folder).file(RESOURCE_FILE) is not None
    except DamagedError:
        return False


def _folder(trees: Trees, tree: Oid, worktree: WorkTree, path: Path) -> Iterator[Pair]:
    try:
        expected = dict(trees.get(tree))
    except DamagedError:
        return
    if not path:
        expected = {name: entry for name, entry in expected.items() if not name.startswith(".")}
    for name, file in worktree.scan(path):
        if not path and name.startswith("."):
            continue
        here = (*path, name)
        entry = expected.get(name)
        if file is None:
            below = entry.oid if entry and entry.is_folder else EMPTY_TREE
            yield from _folder(trees, below, worktree, here)
            if entry and not entry.is_folder:
                yield here, entry, File(odd="a folder stands there")
        elif entry is None or entry.is_folder:
            yield here, None, file
            continue
        else:
            yield here, entry, file
        expected.pop(name, None)
    for name, entry in expected.items():
        if entry.is_folder:
            yield from _folder(trees, entry.oid, worktree, (*path, name))
        else:
            yield (*path, name), entry, File()
