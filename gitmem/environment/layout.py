"""Where a document's file lies: flat, or in folders named by a hash of its id once there are many."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from gitmem.git.objects import Oid
from gitmem.git.trees import Entry, Path, Tree, Trees
from gitmem.limits import is_document_id, is_resource_id

RESOURCE_FILE: Final = ".resource.json"
FOLDER_LIMIT: Final = 128
"""A folder that comes to hold more documents than this is split into 256, two levels deep at most."""

_DEEPEST: Final = 2
_SHARD = r"[0-9a-f]{2}\Z"


class Name(NamedTuple):
    """What names a document within an environment; of a memory file, its folder and its name there."""

    resource: str
    id: str

    def __str__(self) -> str:
        return f"{self.resource}/{self.id}" if self.resource else self.id


def shards(document_id: str) -> tuple[str, ...]:
    """The folder names for an id, outermost first: two hex digits of its SHA-256 a level."""
    digest = sha256(document_id.encode()).hexdigest()
    return digest[:2], digest[2:4]


def places(name: Name) -> tuple[Path, ...]:
    """Every path at which a document's file may lie, however its resource is split."""
    levels = shards(name.id)
    return tuple((name.resource, *levels[:depth], f"{name.id}.json") for depth in range(_DEEPEST + 1))


def named_by(path: Path) -> Name | None:
    """The document whose file `path` is; None for any other path, a wrong folder included."""
    if not 2 <= len(path) <= 2 + _DEEPEST or not path[-1].endswith(".json"):
        return None
    name = Name(path[0], path[-1][:-5])
    if not is_resource_id(name.resource) or not is_document_id(name.id):
        return None
    return name if path[1:-1] == shards(name.id)[: len(path) - 2] else None


def resource_named_by(path: Path) -> str | None:
    """The resource whose declaration `path` is."""
    return path[0] if len(path) == 2 and path[1] == RESOURCE_FILE and is_resource_id(path[0]) else None


def is_split(tree: Tree) -> bool:
    """Whether a folder of documents has been split: it holds folders named by a hash."""
    return any(entry.is_folder and re.match(_SHARD, name) for name, entry in tree)


def locate(trees: Trees, root: Oid, name: Name) -> tuple[Path, Entry | None]:
    """The path of a document and what lies there.

    A document is found at whatever depth it lies, the deepest first. One that does not exist gets
    the path where it would be created: as deep as its folders are split.
    """
    file = f"{name.id}.json"
    path: Path = (name.resource,)
    oid = trees.get(root).folder(name.resource)
    if oid is None:
        return (*path, file), None
    tree = trees.get(oid)
    found: tuple[Path, Entry] | None = None
    place: Path | None = None
    for shard in (*shards(name.id), None):
        entry = tree.file(file)
        if entry:
            found = ((*path, file), entry)
        below = tree.folder(shard) if shard else None
        if below is None:
            place = (*path, shard, file) if shard and not found and is_split(tree) else (*path, file)
            break
        path = (*path, shard or "")
        tree = trees.get(below)
    if found:
        return found
    assert place is not None
    return place, None


def split(trees: Trees, root: Oid, folder: Path) -> dict[Path, Entry | None]:
    """The edits that move a folder's documents one or more levels down; empty where it is not due.

    Decided from what the tree holds and nothing else, so that two writers and two clones agree.
    """
    oid = _folder(trees, root, folder)
    if oid is None or len(folder) > _DEEPEST:
        return {}
    tree = trees.get(oid)
    if len(tree) <= FOLDER_LIMIT or is_split(tree):
        return {}
    documents = [(name, entry) for name, entry in tree if named_by((*folder, name)) and not entry.is_folder]
    if len(documents) <= FOLDER_LIMIT:
        return {}
    edits: dict[Path, Entry | None] = {}
    for path, entry in _placed(folder, documents):
        edits[path] = entry
    for file, _ in documents:
        edits[*folder, file] = None
    return edits


def _placed(folder: Path, documents: list[tuple[str, Entry]]) -> Iterator[tuple[Path, Entry]]:
    level = len(folder) - 1
    if len(documents) <= FOLDER_LIMIT or level == _DEEPEST:
        yield from (((*folder, file), entry) for file, entry in documents)
        return
    groups: dict[str, list[tuple[str, Entry]]] = {}
    for file, entry in documents:
        groups.setdefault(shards(file[:-5])[level], []).append((file, entry))
    for shard, group in groups.items():
        yield from _placed((*folder, shard), group)


def _folder(trees: Trees, root: Oid, path: Path) -> Oid | None:
    oid: Oid | None = root
    for name in path:
        oid = trees.get(oid).folder(name) if oid else None
    return oid


def text_path(path: Path) -> str:
    """The path as Git prints it."""
    return "/".join(path)
