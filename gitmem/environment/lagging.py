"""Finding what lags without being told: files and `.git/index` entries that hold an older version.

The index of an environment notes what lags. Once it has been deleted, or a process was killed in
mid-save, only a comparison can tell an older version, which gitmem owes an update, from a person's
edit, which it must not touch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from gitmem.environment.aftermath import Aftermath
from gitmem.environment.catalog import Catalog
from gitmem.environment.comparison import compared
from gitmem.environment.form import Form
from gitmem.environment.history import Reader
from gitmem.environment.layout import Name, text_path
from gitmem.environment.older import Older
from gitmem.environment.worktree import File, WorkTree
from gitmem.errors import DamagedError, StorageError
from gitmem.git.objects import Oid
from gitmem.git.repository import Repository
from gitmem.git.stage import Stage
from gitmem.git.trees import Entry, Path


@dataclass(slots=True)
class Found:
    """What lags: each path with the blob that lies there, and the files that lie at a former place.

    `behind` are the paths whose entry in `.git/index` lags, so that a plain commit would undo a save.
    """

    bases: dict[Path, Oid | None] = field(default_factory=dict)
    behind: set[Path] = field(default_factory=set)
    moves: dict[Path, Path] = field(default_factory=dict)


class Search:
    """A comparison of working tree and `.git/index` with one tip. Changes nothing."""

    def __init__(
        self,
        form: Form,
        repository: Repository,
        catalog: Catalog,
        worktree: WorkTree,
        stage: Stage,
        tip: Oid,
        after: Aftermath | None = None,
    ) -> None:
        self._form = form
        self._repository = repository
        self._catalog = catalog
        self._worktree = worktree
        self._stage = stage
        self._tip = tip
        self._after = after
        self._root = repository.commit(tip).tree
        self._reader = Reader(repository, form)
        self._older = Older(repository, catalog, self._reader, tip)

    def run(self) -> Found:
        """Everything that lags. Reads every file and tree, but blobs and history only where they differ."""
        found = Found()
        differing = self._staged()
        staged = differing or {}
        absent: list[tuple[Path, Entry]] = []
        strays: dict[Name, tuple[Path, File]] = {}
        for path, entry, file in compared(self._form, self._repository.trees, self._root, self._worktree):
            name = self._form.named_by(path)
            if entry is None:
                if name:
                    strays[name] = path, file
            elif file.absent:
                absent.append((path, entry))
            else:
                self._look(path, entry, file, staged.pop(_staged_path(path), entry.oid), found)
        for path, entry in absent:
            stray = strays.get(self._form.named_by(path) or Name("", ""))
            blob = staged.pop(_staged_path(path), None if differing is None else entry.oid)
            if stray:
                found.moves[stray[0]] = path
                blob = blob or staged.pop(_staged_path(stray[0]), None)
                found.bases[stray[0]] = None
            self._look(path, entry, stray[1] if stray else File(), blob, found)
            if stray:
                found.bases.setdefault(path, entry.oid)
        for name, (path, file) in strays.items():
            if path not in found.moves and self._is_left_over(name, path, file):
                found.bases[path] = file.oid
        for text, oid in staged.items():
            if oid:
                self._look_at_former_place(text, oid, found)
        return found

    def _staged(self) -> dict[bytes, Oid | None] | None:
        """Where `.git/index` is not as the tip, and what it holds there.

        None where it is unusable, and will be made anew as a whole.
        """
        files = self._repository.trees.walk(self._root, whole=False)
        expected = ((_staged_path(path), entry.oid) for path, entry in files)
        try:
            return dict(_differing(self._stage.entries(), expected))
        except StorageError:
            return None

    def _look(self, path: Path, entry: Entry, file: File, blob: Oid | None, found: Found) -> None:
        """Note a path whose file, or whose `blob` in `.git/index`, is an older version."""
        if file.oid == entry.oid == blob:
            return
        if blob is None or (blob != entry.oid and self._is_older(path, blob)):
            # Absent from both, it was never projected, or a person removed it: putting it back loses nothing.
            found.behind.add(path)
            found.bases[path] = entry.oid if file.oid == entry.oid else blob
        if file.oid != entry.oid and (
            (self._after and self._after.took(path, file)) or (file.oid and self._is_older(path, file.oid))
        ):
            found.bases[path] = file.oid

    def _look_at_former_place(self, text: bytes, blob: Oid, found: Found) -> None:
        path = tuple(os.fsdecode(text).split("/"))
        name = self._form.named_by(path)
        with suppress(DamagedError):
            place, entry = self._form.locate(self._repository.trees, self._root, name) if name else (path, None)
            if name and entry and place != path and self._older.revision(name, blob) is not None:
                found.bases[path] = None
                found.behind.add(path)

    def _is_left_over(self, name: Name, path: Path, file: File) -> bool:
        """Whether a power loss undid one half of a move: the file lies at its new place and at this one too."""
        if self._after is None:
            return False
        with suppress(DamagedError):
            place, entry = self._form.locate(self._repository.trees, self._root, name)
            if entry and place != path and place in self._after.paths:
                return self._after.took(place, file) or (
                    file.oid is not None and self._older.revision(name, file.oid) is not None
                )
        return False

    def _is_older(self, path: Path, blob: Oid) -> bool:
        name = self._form.named_by(path)
        with suppress(DamagedError):
            if not self._repository.objects.exists(blob):
                return False
            return self._older.revision(name, blob) is not None if name else blob in self._declared(path)
        return False

    def _declared(self, path: Path) -> Iterator[Oid]:
        """The blobs that gitmem has put at the path of a declaration, or of `.gitattributes`."""
        subjects = self._form.subjects(path)
        for commit in self._reader.back(self._tip, None):
            if commit.own and commit.subject in subjects:
                entry = self._repository.trees.find(commit.tree, path)
                if entry:
                    yield entry.oid


def _staged_path(path: Path) -> bytes:
    return os.fsencode(text_path(path))


def _differing(
    staged: Iterator[tuple[bytes, Oid]], expected: Iterator[tuple[bytes, Oid]]
) -> Iterator[tuple[bytes, Oid | None]]:
    """What is staged otherwise than expected, None for what is not; both in Git's order, and in little memory."""
    here, there = next(staged, None), next(expected, None)
    while here or there:
        if there and (not here or there[0] < here[0]):
            yield there[0], None
            there = next(expected, None)
        elif here:
            if there and there[0] == here[0]:
                if there[1] != here[1]:
                    yield here
                there = next(expected, None)
            else:
                yield here
            here = next(staged, None)
