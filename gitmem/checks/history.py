"""History, read object by object and compared tree by tree: nothing that a commit says is believed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gitmem.checks.findings import Finding
from gitmem.codec import TOMBSTONE
from gitmem.environment.catchup import Progress
from gitmem.environment.comparison import ATTRIBUTES_FILE
from gitmem.environment.history import Outcome, Reader, operation_of, touches_no_document
from gitmem.environment.layout import RESOURCE_FILE, Name, named_by, text_path
from gitmem.environment.rows import Event
from gitmem.errors import DamagedError
from gitmem.git.commits import Commit
from gitmem.git.objects import Kind, Oid, object_id
from gitmem.git.repository import Repository
from gitmem.git.trees import EMPTY_TREE, Entry, Path

_REPORT_EVERY: Final = 500
_SUBMODULE: Final = 0o160000
_TOMBSTONE: Final = object_id("blob", TOMBSTONE)
_SHOWN: Final = 3

Change = tuple[Path, Entry | None, Entry | None]


class History:
    """Reads everything that main reaches. `findings` and `complete` are known once `events` is used up."""

    def __init__(self, repository: Repository, progress: Progress) -> None:
        self._repository = repository
        self._trees = repository.trees
        self._reader = Reader(repository)
        self._progress = progress
        self._damaged: set[Oid] = set()
        self.findings: list[Finding] = []
        self.complete = True

    def verify(self, tip: Oid) -> None:
        """Read every object that `tip` reaches."""
        for _ in self._line(tip):
            pass

    def events(self, tip: Oid) -> Iterator[Outcome]:
        """What each commit of the line did to documents, newest first, by comparing trees alone.

        Every object is read on the way, and every commit of gitmem's own held against its subject.
        """
        for commit in self._line(tip):
            try:
                found = list(self._reader.exactly(commit))
                self._check_own(commit)
            except DamagedError as error:
                self._note_error(error)
                continue
            own = operation_of(commit)
            for event in reversed(found):
                if own and isinstance(event, Event) and event.name == own[1]:
                    yield event._replace(operation=own[0], message=None)
                else:
                    yield event

    # Objects

    def _line(self, tip: Oid) -> Iterator[Commit]:
        """The commits along first parents, each with all that it brought verified."""
        oid: Oid | None = tip
        boundary = self._repository.boundary()
        done = 0
        while oid:
            try:
                commit = self._repository.commit(oid)
            except DamagedError:
                self._note(oid, "commit", "What lies before it cannot be examined.")
                self.complete = False
                return
            if oid in boundary:
                commit = replace(commit, parents=(), own=False)
            self._verify(commit)
            self._verify_sides(commit)
            yield commit
            oid = commit.parents[0] if commit.parents else None
            done += 1
            if done % _REPORT_EVERY == 0:
                self._progress("examining history", done, None)
        self._progress("examining history", done, done)

    def _verify_sides(self, merge: Commit) -> None:
        if len(merge.parents) < 2:
            return
        try:
            for oid in self._repository.between(merge.parents[0], merge.parents[1:]):
                self._verify(self._repository.commit(oid))
        except DamagedError as error:
            self._note_error(error)

    def _verify(self, commit: Commit) -> None:
        """Read what a commit brought beyond its first parent."""
        before: Oid | None = None
        if commit.parents:
            try:
                before = self._repository.commit(commit.parents[0]).tree
            except DamagedError:
                before = None  # named when the line comes to it
        self._verify_tree(commit, commit.tree, before, ())

    def _verify_tree(self, commit: Commit, new: Oid, old: Oid | None, path: Path) -> None:
        if new == old:
            return
        try:
            tree = self._trees.get(new)
        except DamagedError:
            self._note(new, "tree", _place(commit, path))
            return
        before = None
        if old is not None:
            try:
                before = self._trees.get(old)
            except DamagedError:
                before = None
        for name, entry in tree.beyond(before):
            here = (*path, name)
            if entry.is_folder:
                self._verify_tree(commit, entry.oid, before.folder(name) if before else None, here)
            elif entry.mode != _SUBMODULE and not self._repository.objects.intact(entry.oid, "blob"):
                self._note(entry.oid, "blob", _place(commit, here))

    def _note(self, oid: Oid, kind: Kind, where: str) -> None:
        if oid not in self._damaged:
            self._damaged.add(oid)
            message = f"The {kind} is damaged or missing. {where} Bring it back from a clone, or run doctor --repair."
            self.findings.append(Finding(check="objects", subject=oid.hex(), message=message))

    def _note_error(self, error: DamagedError) -> None:
        """Damage that kept a commit from being compared; its objects have mostly been named already."""
        self.complete = False
        if error.object not in {oid.hex() for oid in self._damaged}:
            self.findings.append(Finding(check="objects", subject=error.object, message=error.message))
            self._damaged.add(bytes.fromhex(error.object))

    # Commits of gitmem's own (invariant 1)

    def _check_own(self, commit: Commit) -> None:
        own = operation_of(commit)
        if not own and not touches_no_document(commit):
            return
        before = self._repository.commit(commit.parents[0]).tree if commit.parents else EMPTY_TREE
        changes = list(self._trees.changes(before, commit.tree))
        wrong = _wrong_write(*own, changes) if own else _wrong_other(commit.subject, changes)
        if wrong:
            message = f"Its subject is {commit.subject!a}, but {wrong}. Something other than gitmem made or changed it."
            self.findings.append(Finding(check="commits", subject=commit.oid.hex(), message=message))


def _wrong_write(operation: str, name: Name, changes: list[Change]) -> str | None:
    others = [text_path(path) for path, _, _ in changes if named_by(path) != name]
    if others:
        return f"it changes {', '.join(others[:_SHOWN])}{' and more' if len(others) > _SHOWN else ''}"
    left = [now for _, _, now in changes if now]
    if not left:
        return "it leaves no file of that document"
    if (left[0].oid == _TOMBSTONE) != (operation == "delete"):
        return "it leaves a document" if operation == "delete" else "it leaves a tombstone"
    return None


def _wrong_other(subject: str, changes: list[Change]) -> str | None:
    operation, _, what = subject.partition(" ")
    if operation == "reshard":
        removed = {named_by(path): was.oid for path, was, _ in changes if was}
        added = {named_by(path): now.oid for path, _, now in changes if now}
        return None if removed == added and None not in added else "it does more than move files"
    expected = (what, RESOURCE_FILE) if operation == "declare" else (ATTRIBUTES_FILE,)
    others = [text_path(path) for path, _, _ in changes if path != expected]
    return f"it changes {', '.join(others[:_SHOWN])}" if others else None


def _place(commit: Commit, path: Path) -> str:
    return f"It belongs to {text_path(path) or 'the whole'} in commit {commit.oid.hex()[:12]}."
