"""The newest tree: every file where it belongs, every document valid, no deleted id alive again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gitmem.checks.findings import Finding
from gitmem.environment.catalog import Catalog
from gitmem.environment.catchup import declaration
from gitmem.environment.form import Form
from gitmem.environment.history import FILE_MODES
from gitmem.environment.layout import RESOURCE_FILE, Name, text_path
from gitmem.errors import DamagedError, InvalidDocumentError
from gitmem.git.objects import Oid
from gitmem.git.repository import Repository
from gitmem.git.trees import Entry, Path
from gitmem.limits import is_resource_id

_LINK: Final = 0o120000


class Tip:
    """One tree, with the index that history made of it; `whole` is false where damage hides some of it."""

    def __init__(self, form: Form, repository: Repository, fresh: Catalog, root: Oid, *, whole: bool) -> None:
        self._form = form
        self._repository = repository
        self._trees = repository.trees
        self._fresh = fresh
        self._root = root
        self._whole = whole
        self._reasons = {name: reason for name, _, reason in fresh.rejected()}

    def run(self) -> Iterator[Finding]:
        """The findings. What a damaged object hides is passed over: it has been named."""
        if not self._form.declared:
            yield from self._folder((), self._root)
            return
        for name, entry in self._readable(self._root):
            files = self._readable(entry.oid) if entry.is_folder and is_resource_id(name) else []
            if files:
                if any(file == RESOURCE_FILE for file, _ in files):
                    yield from self._folder((name,), entry.oid)
                elif self._fresh.count(name):
                    yield Finding(
                        check="resources",
                        subject=name,
                        message=f"There are documents in {name}, but no {RESOURCE_FILE}. Declare it (gitmem deploy).",
                    )

    def _readable(self, tree: Oid) -> list[tuple[str, Entry]]:
        try:
            return list(self._trees.get(tree))
        except DamagedError:
            return []

    def _folder(self, path: Path, tree: Oid) -> Iterator[Finding]:
        entries = self._readable(tree)
        for name, entry in entries:
            here = (*path, name)
            if not path and name.startswith("."):
                continue
            if entry.is_folder:
                yield from self._folder(here, entry.oid)
                continue
            try:
                yield from self._file(here, entry)
            except DamagedError:
                continue
        if self._repository.ignores_case:
            yield from _alike(path, [name for name, _ in entries])

    def _file(self, path: Path, entry: Entry) -> Iterator[Finding]:
        name, resource, text = self._form.named_by(path), self._form.resource_named_by(path), text_path(path)
        if entry.mode == _LINK:
            yield Finding(
                check="layout", subject=text, message="A symbolic link is committed here. It is not followed."
            )
        elif resource:
            if declaration(resource, self._repository.objects.read(entry.oid, "blob")) is None:
                message = "It is no valid declaration, so that the resource does not exist. Correct and commit it."
                yield Finding(check="resources", subject=text, message=message)
        elif name:
            yield from self._document(path, entry, name)
        elif path[-1].endswith(".json"):
            yield Finding(check="layout", subject=text, message=self._form.misplaced(path))

    def _document(self, path: Path, entry: Entry, name: Name) -> Iterator[Finding]:
        place, _ = self._form.locate(self._trees, self._root, name)
        if place != path:
            message = f"{name} is stored at {text_path(place)} too, and only that counts. Remove one with git rm."
            yield Finding(check="layout", subject=text_path(path), message=message)
        elif self._whole:
            yield from self._row(entry, name)

    def _row(self, entry: Entry, name: Name) -> Iterator[Finding]:
        _, row = self._fresh.find(name)
        if row and row.dead and self._form.reserving:
            if self._content(entry, name):
                message = (
                    "A deleted id is in use again. It stays deleted: save the text under a new id, and git revert."
                )
                yield Finding(check="tombstones", subject=str(name), message=message)
        elif row is None or row.blob != entry.oid or entry.mode not in FILE_MODES:
            reason = self._reasons.get(name, "it is not an ordinary file")
            message = f"What is committed does not count: {reason}. Correct and commit it."
            yield Finding(check="documents", subject=str(name), message=message)

    def _content(self, entry: Entry, name: Name) -> bool:
        """Whether anything but a tombstone lies there."""
        try:
            return self._form.decode(self._repository.objects.read(entry.oid, "blob"), name.id) is not None
        except InvalidDocumentError:
            return True


def _alike(path: Path, names: list[str]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            message = f"This disk cannot hold it beside {other}: they differ in case only. Use another id for one."
            yield Finding(check="layout", subject=text_path((*path, name)), message=message)
