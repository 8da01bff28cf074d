"""What `gitmem status` shows: where HEAD stands, and every file that is not what the tip says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from gitmem.codec import Content
from gitmem.database import DatabaseUnusableError
from gitmem.environment.catalog import Catalog
from gitmem.environment.catchup import declaration
from gitmem.environment.comparison import compared, differs
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.form import Form
from gitmem.environment.handedits import OLDER, Adopt, Lags, Leave, PutBack, Standing, judge, lost, stray
from gitmem.environment.history import FILE_MODES, Reader
from gitmem.environment.lagging import Search
from gitmem.environment.layout import Name, text_path
from gitmem.environment.older import Older
from gitmem.environment.rows import Row, Unprojected
from gitmem.environment.stored import Stored
from gitmem.environment.worktree import File, WorkTree
from gitmem.errors import DamagedError
from gitmem.git.objects import Oid
from gitmem.git.repository import Repository
from gitmem.git.stage import Stage
from gitmem.git.trees import Entry, Path

State = Literal["unadopted", "invalid", "stale", "missing", "misplaced", "rejected"]
Kind = Literal["created", "edited", "deleted", "reformatted"]

_KEPT: Final = re.compile(r"\.json\.kept-[0-9a-f-]+\Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class FileStatus:
    """A file that is not what the tip says, or that was committed without counting.

    `unadopted`: a person's valid edit, committed when its document is next written, or by `gitmem
    adopt`; `change` says what it does. `invalid`: an edit that cannot be committed, left alone.
    `stale`: behind the tip. `missing`: too much of a resource is gone to count as deletions.
    `misplaced`: where no document's file can be. `rejected`: committed, but no document.
    `path` is relative to the working tree; `document` is `notes/workshop`, None for other files.
    """

    path: str
    state: State
    document: str | None = None
    change: Kind | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "state": self.state,
            "document": self.document,
            "change": self.change,
            "reason": self.reason,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """An environment as it stands.

    `branch` is HEAD's, None where it is detached; `operation` is a merge, rebase and the like under
    way. Files are compared with main only where `on_main`, and hand edits wait while an operation
    is under way. `lock` is a lock file of another Git process that keeps `.git/index` behind.
    """

    branch: str | None
    on_main: bool
    operation: str | None
    lock: str | None
    index_current: bool
    documents: int
    files: tuple[FileStatus, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "onMain": self.on_main,
            "operation": self.operation,
            "lock": self.lock,
            "indexCurrent": self.index_current,
            "documents": self.documents,
            "files": [file.to_json() for file in self.files],
        }


def status(environment: EnvironmentRepository) -> Status:
    """The status of an environment. Changes nothing but the disposable index. Raises DamagedError."""
    if not environment.exists:
        return Status(branch="main", on_main=True, operation=None, lock=None, index_current=True, documents=0, files=())
    parts = environment.parts()
    repository = parts.repository
    current = _is_current(parts.catalog, repository.tip())
    documents = environment.count()
    files: list[FileStatus] = []
    tip = repository.tip()
    if tip is not None:
        root = repository.commit(tip).tree
        if parts.worktree is not None and repository.head_is_main():
            files += _Files(parts.form, repository, parts.catalog, parts.worktree, tip).run()
        files += _rejected(parts.form, repository, parts.catalog, root)
    return Status(
        branch=repository.branch(),
        on_main=repository.head_is_main(),
        operation=repository.operation_in_progress(),
        lock=environment.obstacle(),
        index_current=current,
        documents=documents,
        files=tuple(sorted(files, key=lambda file: (file.path, file.state))),
    )


def _is_current(catalog: Catalog, tip: Oid | None) -> bool:
    try:
        return catalog.tip() == tip
    except DatabaseUnusableError:
        return False


def _rejected(form: Form, repository: Repository, catalog: Catalog, root: Oid) -> Iterator[FileStatus]:
    for name, commit, reason in catalog.rejected():
        path = text_path(form.locate(repository.trees, root, name)[0])
        yield FileStatus(
            path=path, state="rejected", document=str(name), reason=f"committed in {commit.hex()[:12]}, but {reason}"
        )


class _Files:
    """The working tree held against one tip."""

    def __init__(self, form: Form, repository: Repository, catalog: Catalog, worktree: WorkTree, tip: Oid) -> None:
        self._form = form
        self._repository = repository
        self._catalog = catalog
        self._worktree = worktree
        self._root = repository.commit(tip).tree
        self._stage = Stage(repository.git_dir, repository.scratch)
        self._waiting = repository.operation_in_progress() is not None
        self._lags = catalog.unprojected()
        if catalog.is_unchecked() and not self._waiting:
            found = Search(form, repository, catalog, worktree, self._stage, tip).run()
            self._lags |= {text_path(path): Unprojected(base, False) for path, base in found.bases.items()}
        self._older = Older(repository, catalog, Reader(repository, form), tip)
        self._lost: dict[str, str | None] = {}
        self._left_out: frozenset[bytes] | None = None

    def run(self) -> Iterator[FileStatus]:
        for path, entry, file in compared(self._form, self._repository.trees, self._root, self._worktree):
            if not differs(entry, file) or (self._waiting and text_path(path) not in self._lags):
                continue
            if file.absent and entry and self._counts_for_nothing(path, entry):
                continue
            found = self._document(path, entry, file) if self._form.named_by(path) else self._other(path, entry, file)
            if found:
                yield found
        for resource, reason in self._lost.items():
            if reason:
                yield FileStatus(path=resource or ".", state="missing", reason=reason)

    def _counts_for_nothing(self, path: Path, entry: Entry) -> bool:
        """Whether an absent file is no deletion: left out by a sparse checkout, or one of too many."""
        if self._left_out is None:
            self._left_out = self._stage.all_left_out()
        if os.fsencode(text_path(path)) in self._left_out:
            return True
        lag = self._lags.get(text_path(path))
        if lag and lag.base is None:
            return False
        folder = self._folder_of(path)
        if folder is None:
            return False
        if folder not in self._lost:
            self._lost[folder] = lost(self._form, self._worktree, self._catalog, folder)
        return self._lost[folder] is not None

    def _folder_of(self, path: Path) -> str | None:
        """The resource, or the folder of memory files, that a path belongs to."""
        if self._form.declared:
            return path[0] if len(path) > 1 else None
        name = self._form.named_by(path)
        return name.resource if name else None

    def _document(self, path: Path, entry: Entry | None, file: File) -> FileStatus | None:
        name = self._form.named_by(path)
        assert name is not None
        place, there = self._form.locate(self._repository.trees, self._root, name)
        if place != path:
            if not self._worktree.read(place).absent:
                belongs = f"the file of {name} belongs at {text_path(place)}"
                return FileStatus(path=text_path(path), state="misplaced", document=str(name), reason=belongs)
            entry = there
            if not differs(entry, file):
                moved = f"it is going to be moved to {text_path(place)}"
                return FileStatus(path=text_path(path), state="stale", document=str(name), reason=moved)
        elif file.absent:
            file = self._worktree.read(place)
            if file.absent and stray(self._form, self._worktree, name, place):
                return None
        if entry and file.odd and entry.mode not in FILE_MODES:
            return None  # a link that was committed: rejected
        _, row = self._catalog.find(name)
        standing = Standing(
            form=self._form,
            entry=entry,
            lag=self._lags.get(text_path(place)),
            alive=None if row is None else not row.dead,
            resource=self._catalog.resource(name.resource),
            holds=lambda content: self._holds(name, entry, content),
            gone=lambda: None,
            join=lambda base, content: self._joined(name, base, row, content),
        )
        verdict = judge(name, file, standing)
        state, change, reason = _shown(verdict, standing)
        return FileStatus(path=text_path(path), state=state, document=str(name), change=change, reason=reason)

    def _joined(self, name: Name, base: Oid | None, row: Row | None, edit: Content) -> Content | str:
        assert row is not None
        blob = row.blob or self._older.blob(row.revision, name)
        content = self._form.decode(self._repository.objects.read(blob, "blob"), name.id)
        newest = Stored(row.revision, content, row.updated, row.writer)
        return self._older.join(name, base, newest, edit, self._form.limit(name, self._catalog.resource(name.resource)))

    def _holds(self, name: Name, entry: Entry | None, content: Content) -> bool:
        with suppress(DamagedError):
            return (
                entry is not None
                and self._form.decode(self._repository.objects.read(entry.oid, "blob"), name.id) == content
            )
        return False

    def _other(self, path: Path, entry: Entry | None, file: File) -> FileStatus | None:
        """A declaration, a stray file that looks like a document, or what a person keeps beside them."""
        text = text_path(path)
        resource = self._form.resource_named_by(path)
        if resource or (len(path) == 1 and path[0] in self._form.marks):
            lag = self._lags.get(text)
            if lag and not file.odd and lag.base == file.oid:
                return FileStatus(path=text, state="stale", reason=_BROUGHT_UP)
            valid = not resource or file.data is None or declaration(resource, file.data)
            if file.odd or not valid:
                return FileStatus(path=text, state="invalid", reason=file.odd or "it is no declaration of a resource")
            return FileStatus(path=text, state="unadopted", change=_change(entry, file), reason=_BY_GIT)
        if entry is None and _KEPT.search(path[-1]):
            return FileStatus(path=text, state="misplaced", reason=KEPT_ASIDE)
        if entry is None and path[-1].endswith(".json"):
            return FileStatus(path=text, state="misplaced", reason="no document can have its file there")
        return None


_BROUGHT_UP: Final = "gitmem has yet to bring it to the newest version"
_BY_GIT: Final = "commit it with git, or declare the resource in gitmem.toml and run gitmem deploy"
KEPT_ASIDE: Final = "an edit that met a save was kept here; take from it what you need, then delete it"


def _shown(verdict: Adopt | PutBack | Leave | Lags, standing: Standing) -> tuple[State, Kind | None, str | None]:
    match verdict:
        case Lags():
            return "stale", None, _BROUGHT_UP
        case Leave(reason, older):
            return "stale" if older else "invalid", None, reason
        case PutBack():
            return "unadopted", "reformatted", None
        case Adopt(content, merged):
            change: Kind = "deleted" if content is None else "edited" if standing.alive else "created"
            return "unadopted", change, OLDER if merged else None


def _change(entry: Entry | None, file: File) -> Kind:
    return "created" if entry is None else "deleted" if file.absent else "edited"
