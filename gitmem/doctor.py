"""Health: every invariant as a check that names what it found, and mending what loses nothing.

One function used three ways: the command `gitmem doctor`, the end of every test, and the last step
of whatever rewrites much at once. It first lets heal what heals by itself at the end of any command,
and never fails because of the damage that it looks for.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace

from gitmem.checks import control, leftovers, projection
from gitmem.checks.agreement import broken, disagreements
from gitmem.checks.findings import Finding
from gitmem.checks.gitfiles import git_files
from gitmem.checks.history import History
from gitmem.checks.refs import last_known
from gitmem.checks.repairs import mend_control, mend_environment
from gitmem.checks.tip import Tip
from gitmem.database import DatabaseUnusableError
from gitmem.environment.catalog import Catalog
from gitmem.environment.catchup import Progress, declarations, silent
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.rebuild import rebuild
from gitmem.errors import DamagedError, InvalidRequestError, StorageError
from gitmem.git.creation import is_made
from gitmem.git.journal import Record
from gitmem.git.objects import Oid
from gitmem.git.refs import MAIN
from gitmem.git.repository import Repository
from gitmem.store import ENVIRONMENTS, Project, Store

__all__ = ["Finding", "examine", "repair"]

Place = Store | EnvironmentRepository


def examine(place: Place, progress: Progress = silent) -> list[Finding]:
    """Everything that is wrong in an environment, or in all of a store.

    Works beside readers and writers. Raises BusyError where a writer keeps the lock for long.
    """
    if isinstance(place, EnvironmentRepository):
        return list(_environment(place, progress))
    found: list[Finding] = []
    for project in _projects(place):
        found += _within(f"{project.id}/control.git", _control(project, progress))
        for name in ENVIRONMENTS:
            found += _within(f"{project.id}/{name}", _environment(project.environment(name), progress))
        for name, files in project.file_repositories().items():
            found += _within(f"{project.id}/{name}", _environment(files, progress))
    return found


def repair(place: Place, progress: Progress = silent) -> list[Finding]:
    """Mend what can be mended without losing anything; what was mended, in the form of findings.

    Examine again to see what is left.
    """
    if isinstance(place, EnvironmentRepository):
        return _mended(place, examine(place, progress))
    mended: list[Finding] = []
    for project in _projects(place):
        mended += _within(f"{project.id}/control.git", _mended_control(project, list(_control(project, progress))))
        for name in ENVIRONMENTS:
            mended += _within(f"{project.id}/{name}", repair(project.environment(name), progress))
        for name, files in project.file_repositories().items():
            mended += _within(f"{project.id}/{name}", repair(files, progress))
    return mended


def _projects(store: Store) -> Iterator[Project]:
    for project_id in store.projects():
        with suppress(InvalidRequestError):  # a folder that its owner keeps beside the projects
            yield store.project(project_id)


def _within(place: str, findings: Iterable[Finding]) -> list[Finding]:
    return [replace(finding, subject=f"{place}: {finding.subject}") for finding in findings]


def _mended(environment: EnvironmentRepository, found: list[Finding]) -> list[Finding]:
    if not found or any(finding.check == "repository" for finding in found):
        return []
    with environment.parts().repository.locked():
        return list(mend_environment(environment, found))


def _mended_control(project: Project, found: list[Finding]) -> list[Finding]:
    if not found or any(finding.check == "repository" for finding in found):
        return []
    with closing(Repository(_control_folder(project))) as repository, repository.locked():
        return list(mend_control(repository, found))


def _control_folder(project: Project) -> str:
    return os.path.join(project.folder, "control.git")


@contextmanager
def _opened(folder: str) -> Generator[Repository, None, None]:
    """A handle of doctor's own: nothing read before is remembered, and nothing is mended in passing."""
    repository = Repository(folder)
    repository.objects.mend = lambda oid: False
    try:
        yield repository
    finally:
        repository.close(flush=False)


def _control(project: Project, progress: Progress) -> Iterator[Finding]:
    folder = _control_folder(project)
    if not is_made(folder):
        return
    try:
        with _opened(folder) as repository:
            records = repository.waiting()
            yield from leftovers.locks(repository)
            yield from git_files(repository)
            yield from control.records(repository, progress)
            yield from leftovers.journal(repository, records, repository.tip())
    except StorageError as error:
        yield _broken(error, folder)


def _broken(error: StorageError, folder: str) -> Finding:
    if isinstance(error, DamagedError):
        return Finding(check="refs" if error.object == MAIN else "objects", subject=error.object, message=error.message)
    return Finding(check="repository", subject=folder, message=error.message)


def _unusable(error: DatabaseUnusableError) -> Finding:
    message = f"The index cannot be used: {error}. Run doctor --repair."
    return Finding(check="index", subject="index.sqlite", message=message)


# One environment


def _environment(environment: EnvironmentRepository, progress: Progress) -> Iterator[Finding]:
    if not environment.exists:
        return
    try:
        environment.parts()
        with _opened(environment.folder) as repository, ExitStack() as stack:
            yield from _Examination(environment, repository, stack, progress).run()
    except StorageError as error:
        yield _broken(error, environment.folder)


class _Examination:
    """One look at an environment: at the tip and the index that stand when it begins."""

    def __init__(
        self, environment: EnvironmentRepository, repository: Repository, stack: ExitStack, progress: Progress
    ) -> None:
        self._environment = environment
        self._parts = environment.parts()
        self._repository = repository
        self._stack = stack
        self._progress = progress
        self._tip: Oid | None = None
        self._index: Catalog | None = None
        self._records: list[Record] = []

    def run(self) -> Iterator[Finding]:
        yield from self._begin()
        if self._tip is not None:
            yield from self._history(self._tip)
        yield from leftovers.journal(self._repository, self._records, self._tip)
        try:
            yield from projection.left_alone(self._environment)
            if self._tip is not None:
                yield from projection.staging(self._environment, self._tip)
        except (StorageError, DatabaseUnusableError):
            return  # what keeps these from looking has been named

    def _begin(self) -> list[Finding]:
        """Let heal what heals by itself, and take a picture of what stands then."""
        try:
            with self._parts.repository.locked():
                return [*self._settle(), *self._picture()]
        except StorageError as error:
            # A disk that takes no writes can still be examined.
            return [_broken(error, self._environment.folder), *self._picture()]

    def _settle(self) -> Iterator[Finding]:
        try:
            self._parts.bring_up()
            self._parts.projection.heal()
        except DamagedError:
            pass  # what it is will be named: every object is read
        except StorageError as error:
            yield _broken(error, self._environment.folder)
        except DatabaseUnusableError as error:
            yield _unusable(error)
        yield from leftovers.locks(self._repository)
        yield from git_files(self._repository)
        yield from leftovers.temporaries(self._parts.repository.sweep())

    def _picture(self) -> Iterator[Finding]:
        self._records = self._repository.waiting()
        with suppress(DatabaseUnusableError):
            self._index = self._stack.enter_context(self._parts.catalog.snapshot())
        try:
            self._tip = self._repository.tip()
        except StorageError as error:
            yield _broken(error, self._environment.folder)
            self._tip = last_known(self._repository, self._index, self._records)
            return
        if self._tip is None or not self._repository.objects.exists(self._tip):
            what = f"names {self._tip.hex()}, which is nowhere" if self._tip else "is gone"
            known = last_known(self._repository, self._index, self._records)
            if known:
                message = f"The branch {what}. Its last known commit is {known.hex()}: run doctor --repair."
                yield Finding(check="refs", subject=MAIN, message=message)
                self._tip = known

    def _history(self, tip: Oid) -> Iterator[Finding]:
        """History read once: its objects, its commits, and the index and the tree that follow from it."""
        history = History(self._repository, self._parts.form, self._progress)
        with closing(Catalog.temporary(reserving=self._parts.form.reserving)) as fresh:
            with fresh.transaction() as connection:
                number = rebuild(connection, history.events(tip), reserving=fresh.reserving) + 1
                root = self._root(tip)
                with suppress(DamagedError):
                    declared = declarations(self._repository, root) if root and self._parts.form.declared else []
                    fresh.set_resources(connection, declared)
                fresh.set_tip(connection, tip, number)
            yield from history.findings
            if self._index and history.complete and root is not None:
                yield from self._disagreements(self._index, fresh, tip)
            if root is not None:
                yield from Tip(self._parts.form, self._repository, fresh, root, whole=history.complete).run()

    def _disagreements(self, index: Catalog, fresh: Catalog, tip: Oid) -> Iterator[Finding]:
        try:
            if index.tip() == tip:
                yield from broken(index)
                yield from disagreements(index, fresh)
        except DatabaseUnusableError as error:
            yield _unusable(error)

    def _root(self, tip: Oid) -> Oid | None:
        try:
            root = self._repository.commit(tip).tree
            self._repository.trees.get(root)
        except DamagedError:
            return None
        return root
