"""Trees, parsed once and kept: finding a path, and making the trees that an edit needs."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from gitmem.errors import DamagedError
from gitmem.git.objects import Objects, Oid, object_id

FILE: Final = 0o100644
FOLDER: Final = 0o040000
EMPTY_TREE: Final = object_id("tree", b"")

Path = tuple[str, ...]

_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_CACHED_ENTRIES: Final = 200_000


class Entry(NamedTuple):
    """What a tree holds under a name."""

    mode: int
    oid: Oid

    @property
    def is_folder(self) -> bool:
        return self.mode == FOLDER


_NOTHING: Final = Entry(0, b"")


class Tree:
    """One parsed tree. Keys are names in bytes, a folder's with a final slash: Git's sort order."""

    __slots__ = ("oid", "rendered")

    def __init__(self, oid: Oid, rendered: dict[bytes, bytes]) -> None:
        self.oid = oid
        self.rendered = rendered

    def __len__(self) -> int:
        return len(self.rendered)

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        for key, entry in self.rendered.items():
            yield key.rstrip(b"/").decode("utf-8", "surrogateescape"), _unrendered(entry)

    def file(self, name: str) -> Entry | None:
        """The entry of that name unless it is a folder."""
        entry = self.rendered.get(_bytes(name))
        return _unrendered(entry) if entry else None

    def folder(self, name: str) -> Oid | None:
        """The tree under that name."""
        entry = self.rendered.get(_bytes(name) + b"/")
        return entry[-20:] if entry else None

    def beyond(self, other: Tree | None) -> Iterator[tuple[str, Entry]]:
        """The entries that `other` does not have just so."""
        known = other.rendered if other else {}
        for key, entry in self.rendered.items() - known.items():
            yield key.rstrip(b"/").decode("utf-8", "surrogateescape"), _unrendered(entry)

    def replaced(self, changes: Mapping[bytes, bytes | None]) -> tuple[Tree, bytes]:
        """A tree with some rendered entries set or removed, and its bytes."""
        rendered = dict(self.rendered)
        unsorted = False
        for key, entry in changes.items():
            if entry is None:
                rendered.pop(key, None)
            else:
                unsorted |= key not in rendered
                rendered[key] = entry
        if unsorted:
            rendered = {key: rendered[key] for key in sorted(rendered)}
        data = b"".join(rendered.values())
        return Tree(object_id("tree", data), rendered), data


class Trees:
    """The trees of one repository, and those made but not yet written."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._cache: OrderedDict[Oid, Tree] = OrderedDict()
        self._cached_entries = 0

    def get(self, oid: Oid) -> Tree:
        """The tree of that name. Raises DamagedError."""
        tree = self._cache.get(oid)
        if tree is None:
            data = self._objects.read(oid, "tree") if oid != EMPTY_TREE else b""
            tree = Tree(oid, _parsed(oid, data))
            self.keep(tree)
        return tree

    def keep(self, tree: Tree) -> None:
        """Remember a tree; the longest-kept ones go when there are too many entries."""
        if tree.oid in self._cache:
            return
        self._cache[tree.oid] = tree
        self._cached_entries += len(tree) + 8
        while self._cached_entries > _CACHED_ENTRIES and len(self._cache) > 1:
            _, dropped = self._cache.popitem(last=False)
            self._cached_entries -= len(dropped) + 8

    def forget(self) -> None:
        """Drop every kept tree: after a lost swap, some were never written."""
        self._cache.clear()
        self._cached_entries = 0

    def find(self, root: Oid, path: Path) -> Entry | None:
        """What lies at `path`; a path ends at a file or a folder."""
        oid = root
        for name in path[:-1]:
            below = self.get(oid).folder(name)
            if below is None:
                return None
            oid = below
        tree = self.get(oid)
        folder = tree.folder(path[-1])
        return Entry(FOLDER, folder) if folder else tree.file(path[-1])

    def walk(self, root: Oid, at: Path = (), *, whole: bool = True) -> Iterator[tuple[Path, Entry]]:
        """Every file below `root`, in Git's order. Reads each tree without keeping it.

        Raises DamagedError; where it need not be the `whole`, damaged trees are passed over.
        """
        open_folders = [(at, self._items(root, whole))]
        while open_folders:
            folder, items = open_folders[-1]
            for key, entry in items:
                name = key.rstrip(b"/").decode("utf-8", "surrogateescape")
                if key.endswith(b"/"):
                    open_folders.append(((*folder, name), self._items(entry[-20:], whole)))
                    break
                yield (*folder, name), _unrendered(entry)
            else:
                open_folders.pop()

    def _items(self, oid: Oid, whole: bool) -> Iterator[tuple[bytes, bytes]]:
        try:
            data = self._objects.read(oid, "tree") if oid != EMPTY_TREE else b""
            return iter(_parsed(oid, data).items())
        except DamagedError:
            if whole:
                raise
            return iter(())

    def differing(self, old: Oid, new: Oid) -> Iterator[tuple[str, Entry | None, Entry | None]]:
        """The entries of two trees that differ, one level deep: name, before and after."""
        before, after = self.get(old).rendered, self.get(new).rendered
        for key in {key for key, _ in before.items() ^ after.items()}:
            was, now = before.get(key), after.get(key)
            yield (
                key.rstrip(b"/").decode("utf-8", "surrogateescape"),
                _unrendered(was) if was else None,
                _unrendered(now) if now else None,
            )

    def changes(self, old: Oid, new: Oid, at: Path = ()) -> Iterator[tuple[Path, Entry | None, Entry | None]]:
        """Each file that differs between two trees: its path, and its entry before and after."""
        if old == new:
            return
        if old == EMPTY_TREE:
            yield from ((path, None, entry) for path, entry in self.walk(new, at))
            return
        for name, was, now in self.differing(old, new):
            path = (*at, name)
            if (was or now or _NOTHING).is_folder:
                yield from self.changes(was.oid if was else EMPTY_TREE, now.oid if now else EMPTY_TREE, path)
            else:
                yield path, was, now

    def edit(self, root: Oid, edits: Mapping[Path, Entry | None], made: list[tuple[Oid, bytes]]) -> Oid:
        """The root after `edits` (None removes); each new tree is appended to `made`.

        Touches only the trees on the paths. A folder that becomes empty is removed.
        """
        here: dict[bytes, bytes | None] = {}
        below: dict[str, dict[Path, Entry | None]] = {}
        for path, entry in edits.items():
            if len(path) == 1:
                key = _bytes(path[0])
                here[key] = _rendered(key, entry) if entry else None
            else:
                below.setdefault(path[0], {})[path[1:]] = entry
        tree = self.get(root)
        for name, inner in below.items():
            key = _bytes(name)
            oid = self.edit(tree.folder(name) or EMPTY_TREE, inner, made)
            empty = oid == EMPTY_TREE
            here[key + b"/"] = None if empty else _rendered(key, Entry(FOLDER, oid))
            if not empty:
                here.setdefault(key, None)
        changed, data = tree.replaced(here)
        if changed.oid != root:
            self.keep(changed)
            made.append((changed.oid, data))
        return changed.oid


def _parsed(oid: Oid, data: bytes) -> dict[bytes, bytes]:
    rendered = {
        name + b"/" if mode in (b"40000", b"040000") else name: mode + b" " + name + b"\0" + raw
        for mode, name, raw in _ENTRY.findall(data)
    }
    if sum(map(len, rendered.values())) != len(data):
        raise DamagedError(oid.hex(), f"The tree {oid.hex()} is damaged. The rest stays readable.")
    return rendered


def _rendered(name: bytes, entry: Entry) -> bytes:
    return b"%o %b\0%b" % (entry.mode, name, entry.oid)


def _unrendered(entry: bytes) -> Entry:
    return Entry(int(entry[: entry.index(b" ")], 8), entry[-20:])


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
