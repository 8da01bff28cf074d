"""Bringing the index to the tip: the new commits, or all of history where it does not fit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from zlib import crc32

from gitmem.environment.catalog import Catalog
from gitmem.environment.form import touches_no_document
from gitmem.environment.history import Aside, Outcome, Reader, Rejection, Settled, SideSave
from gitmem.environment.layout import RESOURCE_FILE, Name, text_path
from gitmem.environment.rebuild import rebuild
from gitmem.environment.rows import Clashed, Event
from gitmem.errors import DamagedError
from gitmem.git.commits import Commit
from gitmem.git.objects import Oid
from gitmem.git.repository import Repository
from gitmem.limits import MAX_BYTES_CEILING, is_resource_id
from gitmem.memory import define_memory
from gitmem.records import Memory, Provider
from gitmem.strictjson import loads

Progress = Callable[[str, int, int | None], None]
"""Called with what is being done, how many are done, and how many there are if that is known."""

_LONGEST_STEP: Final = 20_000
_REPORT_EVERY: Final = 2_000


def silent(what: str, done: int, total: int | None) -> None:
    """The progress of a library: none."""


class CatchUp:
    """Reads history into the index of one environment. Runs under the writer's lock."""

    def __init__(self, repository: Repository, catalog: Catalog, reader: Reader, progress: Progress) -> None:
        self._repository = repository
        self._catalog = catalog
        self._reader = reader
        self._progress = progress

    def run(self, tip: Oid) -> None:
        """Bring the index to `tip`. Raises DamagedError, DatabaseUnusableError."""
        state = self._catalog.state()
        known, number = state.tip, state.number
        new = self._since(known, tip) if known else None
        if known is None or new is None:
            self.rebuild(tip)
            return
        before = self._repository.commit(known).tree
        root = self._repository.commit(tip).tree
        with self._catalog.transaction() as connection:
            self._catalog.check_still(connection, state)
            for commit in new:
                events = self._take(connection, commit, number)
                number += len(events)
                if commit.own:
                    self._note_unprojected(connection, events, before, root)
                if touches_no_document(commit):
                    self._catalog.set_unchecked(connection, True)
            self.set_resources(connection, root)
            self._catalog.set_tip(connection, tip, number)

    def _since(self, known: Oid, tip: Oid) -> list[Commit] | None:
        """The commits behind `known`, oldest first; None where it is not on the line, or too far back."""
        commits: list[Commit] = []
        for commit in self._reader.back(tip, known):
            commits.append(commit)
            if len(commits) > _LONGEST_STEP:
                return None
        if not commits[-1].parents or commits[-1].parents[0] != known:
            return None
        return commits[::-1]

    def _take(self, connection: sqlite3.Connection, commit: Commit, number: int) -> list[Event]:
        events: list[Event] = []
        for found in self._reader.events(commit):
            if isinstance(found, Rejection):
                self._catalog.set_rejected(connection, found.name, found.commit, found.reason)
            elif isinstance(found, SideSave):
                self._catalog.add_save(connection, found.session, found.name, found.commit)
            elif isinstance(found, Aside):
                self._catalog.set_merged(connection, [found.name])
            elif isinstance(found, Clashed):
                self._catalog.add_conflict(connection, found)
            elif isinstance(found, Settled):
                self._catalog.settle(connection, found.name)
            else:
                self._catalog.apply(connection, (found,), number + len(events))
                events.append(found)
        return events

    def _note_unprojected(self, connection: sqlite3.Connection, events: list[Event], before: Oid, root: Oid) -> None:
        """A gitmem that was killed after its save may not have written the file: look later."""
        trees = self._repository.trees
        for event in events:
            _, was = self._reader.form.locate(trees, before, event.name)
            path, _ = self._reader.form.locate(trees, root, event.name)
            self._catalog.set_unprojected(connection, text_path(path), was.oid if was else None)

    # From scratch

    def rebuild(self, tip: Oid) -> None:
        """Make the index anew from all of history, in little memory."""
        with self._catalog.transaction() as connection:
            root = self._repository.commit(tip).tree
            self._catalog.clear(connection)
            total = rebuild(connection, self._counted(self._reader.everything(tip)), reserving=self._catalog.reserving)
            if not self._fits(root):
                self._catalog.clear(connection)
                events = self._reader.everything_compared(tip)
                total = rebuild(connection, self._counted(events), reserving=self._catalog.reserving)
            self.set_resources(connection, root)
            self._catalog.set_tip(connection, tip, total + 1)
            self._catalog.set_unchecked(connection, True)
        self._progress("reading history", total, total)

    def _fits(self, root: Oid) -> bool:
        """Whether a tree holds the documents that history told of, and no others.

        It does not where commits that gitmem made were rewritten by others, to purge a document say.
        """
        try:
            return self._digest_of_index() == self._digest_of_tree(root) or self._fits_name_by_name(root)
        except DamagedError:
            return True  # a comparison of trees would come no further

    def _digest_of_index(self) -> tuple[int, int]:
        return _digest(str(Name(*name)) for name in self._catalog.live_names())

    def _digest_of_tree(self, root: Oid) -> tuple[int, int]:
        form = self._reader.form
        return _digest(
            str(name)
            for path, entry in self._repository.trees.walk(root)
            if (name := form.named_by(path)) and not form.is_removed(entry)
        )

    def _fits_name_by_name(self, root: Oid) -> bool:
        missing = {name for name, row in self._catalog.documents() if not row.dead}
        rejected = {name for name, _, _ in self._catalog.rejected()}
        for path, _ in self._repository.trees.walk(root):
            here = self._reader.form.named_by(path)
            if here is None:
                continue
            if here in missing:
                missing.remove(here)
            elif here not in rejected and self._catalog.find(here)[1] is None:
                return False
        return not missing - rejected

    def _counted(self, found: Iterator[Outcome]) -> Iterator[Outcome]:
        for done, event in enumerate(found):
            yield event
            if done % _REPORT_EVERY == 0:
                self._progress("reading history", done, None)

    def set_resources(self, connection: sqlite3.Connection, root: Oid) -> None:
        """Take the declarations from the tip's tree."""
        if self._reader.form.declared:
            self._catalog.set_resources(connection, declarations(self._repository, root))


def _digest(names: Iterable[str]) -> tuple[int, int]:
    """What tells two sets of names apart in little memory, whatever their order."""
    count = total = 0
    for name in names:
        count += 1
        total += crc32(name.encode("utf-8", "surrogateescape"))
    return count, total


def declarations(repository: Repository, root: Oid) -> list[Memory]:
    """Every readable `.resource.json` of a tree. One that is not valid counts as absent."""
    found = []
    for name, entry in repository.trees.get(root):
        if not entry.is_folder or not is_resource_id(name):
            continue
        try:
            file = repository.trees.get(entry.oid).file(RESOURCE_FILE)
            memory = declaration(name, repository.objects.read(file.oid, "blob")) if file else None
        except DamagedError:
            memory = define_memory(id=name, description="(damaged)")  # its documents stay readable
        if memory:
            found.append(memory)
    return found


def declaration(name: str, data: bytes) -> Memory | None:
    """What a `.resource.json` declares; None where it is not one."""
    try:
        value = loads(data)
        description, provider = value["description"], value["provider"]
        kind, max_bytes = provider["kind"], provider.get("maxBytes")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(description, str) or kind != "document" or type(max_bytes) is not int:
        return None
    if not 1 <= max_bytes <= MAX_BYTES_CEILING:
        return None
    return Memory(id=name, description=description, provider=Provider(kind=kind, max_bytes=max_bytes))
