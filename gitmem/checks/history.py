"""History, read object by object and compared tree by tree: nothing that a commit says is believed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gitmem.checks.findings import Finding
from gitmem.environment.catchup import Progress
from gitmem.environment.form import ATTRIBUTES_FILE, SWITCH_FILE, SWITCH_SUBJECTS, Form, touches_no_document
from gitmem.environment.history import Outcome, Reader, Rejection
from gitmem.environment.layout import RESOURCE_FILE, Name, text_path
from gitmem.environment.rows import REMOVALS, Event
from gitmem.errors import DamagedError
from gitmem.git.commits import Commit
from gitmem.git.objects import Kind, Oid
from gitmem.git.repository import Repository
from gitmem.git.trees import EMPTY_TREE, Entry, Path

_REPORT_EVERY: Final = 500
_SUBMODULE: Final = 0o160000
_SHOWN: Final = 3

Change = tuple[Path, Entry | None, Entry | None]


class History:
    """Reads everything that main reaches. `findings` and `complete` are known once `events` is used up."""

    def __init__(self, repository: Repository, form: Form, progress: Progress) -> None:
        self._repository = repository
        self._trees = repository.trees
        self._reader = Reader(repository, form)
        self._form = form
        self._progress = progress
        self._damaged: set[Oid] = set()
        self._last: Commit | None = None
        self._hidden = False
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
        for commit, changes in self._line(tip):
            try:
                yield from reversed(list(self._outcomes(commit, changes)))
            except DamagedError as error:
                self._note_error(error)

    def _outcomes(self, commit: Commit, changes: list[Change] | None) -> Iterator[Outcome]:
        own = self._form.operation_of(commit)
        wrong = self._check_own(commit, changes) if changes is not None else None
        if changes and own and not wrong:
            operation, name = own
            try:
                event = self._reader.event(commit, name, *changes[0][1:])
                yield event._replace(operation=operation, message=None)
            except Rejection as rejection:
                yield rejection
            return
        for outcome in self._reader.exactly(commit):
            if own and isinstance(outcome, Event) and outcome.name == own[1]:
                yield outcome._replace(operation=own[0], message=None)
            else:
                yield outcome

    # Objects

    def _line(self, tip: Oid) -> Iterator[tuple[Commit, list[Change] | None]]:
        """The commits along first parents, each with what it changed; None where damage hides some of it."""
        oid: Oid | None = tip
        boundary = self._repository.boundary()
        done = 0
        while oid:
            try:
                commit = self._commit(oid)
            except DamagedError:
                self._note(oid, "commit", "What lies before it cannot be examined.")
                self.complete = False
                return
            if oid in boundary:
                commit = commit._replace(parents=(), own=False)
            changes = self._verified(commit)
            self._verify_sides(commit)
            yield commit, changes
            oid = commit.parents[0] if commit.parents else None
            done += 1
            if done % _REPORT_EVERY == 0:
                self._progress("examining history", done, None)
        self._progress("examining history", done, done)

    def _commit(self, oid: Oid) -> Commit:
        """A commit; the last one is remembered, as each is met as a parent first."""
        if self._last is None or self._last.oid != oid:
            self._last = self._repository.commit(oid)
        return self._last

    def _verify_sides(self, merge: Commit) -> None:
        if len(merge.parents) < 2:
            return
        try:
            for oid in self._repository.between(merge.parents[0], merge.parents[1:]):
                self._verified(self._repository.commit(oid))
        except DamagedError as error:
            self._note_error(error)

    def _verified(self, commit: Commit) -> list[Change] | None:
        """What a commit changed against its first parent, with all that it brought read."""
        before = EMPTY_TREE
        if commit.parents:
            try:
                before = self._commit(commit.parents[0]).tree
            except DamagedError:
                self._hidden = True  # it is named when the line comes to it
        changes = list(self._compare(commit, before, commit.tree, ()))
        hidden, self._hidden = self._hidden, False
        return None if hidden else changes

    def _compare(self, commit: Commit, old: Oid, new: Oid, path: Path) -> Iterator[Change]:
        old = self._readable(old, "")
        new = self._readable(new, _place(commit, path))
        for name, was, now in self._trees.differing(old, new):
            here = (*path, name)
            if (was and was.is_folder) or (now and now.is_folder):
                yield from self._compare(commit, was.oid if was else EMPTY_TREE, now.oid if now else EMPTY_TREE, here)
                continue
            if now and now.mode != _SUBMODULE and not self._repository.objects.intact(now.oid, "blob"):
                self._note(now.oid, "blob", _place(commit, here))
            yield here, was, now

    def _readable(self, tree: Oid, place: str) -> Oid:
        """The tree, or an empty one in place of one that is damaged; with a place, that is named."""
        try:
            self._trees.get(tree)
        except DamagedError:
            self._hidden = True
            if place:
                self._note(tree, "tree", place)
            return EMPTY_TREE
        return tree

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

    def _check_own(self, commit: Commit, changes: list[Change]) -> str | None:
        """What is wrong with a commit of gitmem's own, which becomes a finding."""
        own = self._form.operation_of(commit)
        if not own and not touches_no_document(commit):
            return None
        wrong = _wrong_write(self._form, *own, changes) if own else _wrong_other(self._form, commit.subject, changes)
        if wrong:
            message = f"Its subject is {commit.subject!a}, but {wrong}. Something other than gitmem made or changed it."
            self.findings.append(Finding(check="commits", subject=commit.oid.hex(), message=message))
        return wrong


def _wrong_write(form: Form, operation: str, name: Name, changes: list[Change]) -> str | None:
    others = [text_path(path) for path, _, _ in changes if form.named_by(path) != name]
    if others:
        return f"it changes {', '.join(others[:_SHOWN])}{' and more' if len(others) > _SHOWN else ''}"
    if len(changes) != 1 or (form.reserving and changes[0][2] is None):
        return "it does more or less than write that document's file"
    if form.is_removed(changes[0][2]) != (operation in REMOVALS):
        return "it leaves a document" if operation in REMOVALS else "it leaves none"
    return None


def _wrong_other(form: Form, subject: str, changes: list[Change]) -> str | None:
    operation, _, what = subject.partition(" ")
    if operation == "reshard":
        removed = {form.named_by(path): was.oid for path, was, _ in changes if was}
        added = {form.named_by(path): now.oid for path, _, now in changes if now}
        return None if removed == added and None not in added else "it does more than move files"
    expected = (what, RESOURCE_FILE) if operation == "declare" else (ATTRIBUTES_FILE,)
    if subject in SWITCH_SUBJECTS:
        expected = (SWITCH_FILE,)
    others = [text_path(path) for path, _, _ in changes if path != expected]
    return f"it changes {', '.join(others[:_SHOWN])}" if others else None


def _place(commit: Commit, path: Path) -> str:
    return f"It belongs to {text_path(path) or 'the whole'} in commit {commit.oid.hex()[:12]}."
