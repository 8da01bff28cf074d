"""What history says: which commit changed which document (invariant 2), merges included.

A document's revision is the newest commit that changed its content. Along first parents that is
plain. At a merge the rule is that of `git log -- <file>`: where the merge's content is some parent's,
the first such parent's history is followed; where it is nobody's, the merge is the revision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, NamedTuple

from gitmem.codec import Content
from gitmem.environment.form import Form, touches_no_document
from gitmem.environment.layout import Name
from gitmem.environment.rows import REMOVALS, RESOLVE, Clashed, Event, Meta
from gitmem.errors import DamagedError, InvalidDocumentError
from gitmem.git.commits import Commit, OwnWrite, clashes_of, own_write
from gitmem.git.objects import Oid
from gitmem.git.repository import Repository
from gitmem.git.trees import EMPTY_TREE, FILE, Entry
from gitmem.records import OWNER, Writer

SETTLE: Final = "settle the conflict in "
"""How the subject of a commit begins that settles a conflict and leaves the document as it is."""

FILE_MODES: Final = (FILE, 0o100755, 0o100664)


def meta_of(content: Content) -> Meta:
    """What a listing shows of a content."""
    return Meta(content.title, content.summary, content.agent_writes, len(content.text.encode()))


class Rejection(Exception):
    """A committed file that is not a document, and why."""

    def __init__(self, name: Name, commit: Oid, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.commit = commit
        self.reason = reason


class SideSave(NamedTuple):
    """An agent's save on a merged branch: it belongs to its session's story, whatever the merge kept."""

    name: Name
    commit: Oid
    session: str


class Aside(NamedTuple):
    """A document that was written on a merged branch: its history goes through the merge."""

    name: Name


class Settled(NamedTuple):
    """Whatever conflicts a document had are settled, and it stays as it is."""

    name: Name


Outcome = Event | Rejection | SideSave | Aside | Clashed | Settled
"""What a commit did, or tried to do."""


class _Found(NamedTuple):
    """A commit that changed a document, and what it did; None where it left something invalid there."""

    commit: Commit
    event: Event | None


class _Walk(NamedTuple):
    """A walk through the history of one document: what each commit passed leads to, and branches not followed yet."""

    known: dict[Oid, _Found | None]
    aside: list[Oid]


class Reader:
    """Reads the history of one repository."""

    def __init__(self, repository: Repository, form: Form) -> None:
        self._repository = repository
        self._trees = repository.trees
        self.form = form

    # Along first parents

    def back(self, tip: Oid, until: Oid | None) -> Iterator[Commit]:
        """The commits from `tip` along first parents, newest first, up to `until` or the root.

        The caller sees whether `until` was met: it is then the last commit's first parent.
        A shallow clone's boundary counts as a root.
        """
        oid, boundary = tip, self._repository.boundary()
        while oid != until:
            commit = self._repository.commit(oid)
            if oid in boundary:
                commit = commit._replace(parents=(), own=False)
            yield commit
            if not commit.parents:
                return
            oid = commit.parents[0]

    def everything(self, tip: Oid) -> Iterator[Outcome]:
        """What all commits on the first-parent line did, newest first."""
        oid: Oid | None = tip
        boundary = self._repository.boundary()
        while oid:
            own = self._own_write(oid) if oid not in boundary else None
            if own:
                writer = Writer(kind="agent", session_id=own.session) if own.session else OWNER
                name = Name(own.resource, own.id)
                yield Event(name, own.operation, oid, own.updated, writer, dead=own.operation in REMOVALS)
                oid = own.parent
            else:
                commit = next(self.back(oid, None))
                yield from list(self.events(commit))[::-1]
                oid = commit.parents[0] if commit.parents else None

    def _own_write(self, oid: Oid) -> OwnWrite | None:
        return own_write(self._repository.objects.read(oid, "commit"), self.form.own_writes)

    def everything_compared(self, tip: Oid) -> Iterator[Outcome]:
        """The same, believing no commit: for a history that somebody has rewritten under gitmem's name."""
        for commit in self.back(tip, None):
            found = list(self.exactly(commit))
            own = self.form.operation_of(commit)
            if own and len(found) == 1 and isinstance(found[0], Event) and found[0].name == own[1]:
                found = [found[0]._replace(operation=own[0], message=None)]
            yield from found[::-1]

    def events(self, commit: Commit) -> Iterator[Outcome]:
        """What a commit on the first-parent line did, its side branches included, oldest first."""
        own = self.form.operation_of(commit)
        if own:
            operation, name = own
            yield Event(name, operation, commit.oid, commit.updated, commit.writer, dead=operation in REMOVALS)
        elif not touches_no_document(commit):
            yield from self.exactly(commit)

    def exactly(self, commit: Commit) -> Iterator[Outcome]:
        """The same by comparing trees alone, whatever the commit says of itself."""
        if len(commit.parents) > 1:
            yield from self._on_sides(commit)
        yield from self._compared(commit)
        yield from self._about_conflicts(commit)

    def _compared(self, commit: Commit) -> Iterator[Event | Rejection]:
        before = self._tree(commit.parents[0]) if commit.parents else EMPTY_TREE
        seen: set[Name] = set()
        from_sides: dict[Oid, set[Name]] = {}
        for path, _, _ in self._trees.changes(before, commit.tree):
            name = self.form.named_by(path)
            if name is None or name in seen:
                continue
            seen.add(name)
            _, was = self.form.locate(self._trees, before, name)
            _, now = self.form.locate(self._trees, commit.tree, name)
            if (was and was.oid) == (now and now.oid):
                continue
            source = self._parent_with(commit, name, now) if len(commit.parents) > 1 else None
            if source:
                from_sides.setdefault(source, set()).add(name)
                continue
            try:
                yield self.event(commit, name, was, now)
            except Rejection as rejection:
                yield rejection
            if len(seen) > 100_000 and not from_sides:
                seen.clear()
        for source, names in from_sides.items():
            yield from self._attributed(source, names)

    def event(self, commit: Commit, name: Name, was: Entry | None, now: Entry | None) -> Event:
        """What a commit did to the document that was one entry before, and is another now. Raises Rejection."""
        event = Event(
            name,
            "edit" if was else "create",
            commit.oid,
            commit.updated,
            commit.writer,
            message=commit.subject,
            merged=len(commit.parents) > 1,
        )
        if now is None:
            return event._replace(operation="delete", dead=True)
        try:
            meta = self.meta(name, now)
        except InvalidDocumentError as error:
            raise Rejection(name, commit.oid, error.message) from None
        except DamagedError:
            return event._replace(blob=now.oid)  # reading this document says so; the others are not held up
        if meta is None:
            return event._replace(operation="delete", dead=True, blob=now.oid)
        return event._replace(blob=now.oid, meta=meta)

    def meta(self, name: Name, entry: Entry) -> Meta | None:
        """A committed file's metadata; None for a tombstone. Raises InvalidDocumentError, DamagedError."""
        if entry.mode not in FILE_MODES:
            raise InvalidDocumentError("it is not an ordinary file")
        content = self.form.checked(self._repository.objects.read(entry.oid, "blob"), name, self.form.limit(name, None))
        return meta_of(content) if content else None

    def _tree(self, commit: Oid) -> Oid:
        return self._repository.commit(commit).tree

    # Merges

    def _about_conflicts(self, commit: Commit) -> Iterator[Clashed | Settled]:
        """What gitmem's own commit says of conflicts, beside what it does to documents."""
        if not commit.own:
            return
        if len(commit.parents) > 1:
            for clash in clashes_of(self._repository.objects.read(commit.oid, "commit")):
                yield Clashed(Name(clash.resource, clash.id), commit.oid, clash.ours, clash.theirs)
        elif commit.subject.startswith(SETTLE):
            resource, _, document_id = commit.subject.removeprefix(SETTLE).rpartition("/")
            yield Settled(Name(resource, document_id))

    def _parent_with(self, merge: Commit, name: Name, now: Entry | None) -> Oid | None:
        for parent in merge.parents[1:]:
            _, theirs = self.form.locate(self._trees, self._tree(parent), name)
            if (theirs and theirs.oid) == (now and now.oid):
                return parent
        return None

    def _on_sides(self, merge: Commit) -> Iterator[Outcome]:
        """What merged branches did that holds whatever it kept: final deletions; then, oldest first, the rest."""
        others: list[Outcome] = []
        names: set[Name] = set()
        for side in self._repository.between(merge.parents[0], merge.parents[1:]):
            commit = self._repository.commit(side)
            own = self.form.operation_of(commit)
            if own:
                names.add(own[1])
                if own[0] in REMOVALS and self.form.reserving:
                    yield Event(own[1], own[0], side, commit.updated, commit.writer, dead=True, merged=True)
                elif own[0] in REMOVALS:
                    continue
                elif own[0] == RESOLVE:
                    others.append(Settled(own[1]))
                elif commit.writer.kind == "agent":
                    others.append(SideSave(own[1], side, commit.writer.session_id or ""))
                continue
            if not touches_no_document(commit) and len(commit.parents) < 2:
                for event in self._compared(commit):
                    names.add(event.name)
                    if isinstance(event, Event) and event.dead and self.form.reserving:
                        yield event._replace(merged=True)
            others += list(self._about_conflicts(commit))[::-1]
        yield from reversed(others)
        yield from map(Aside, sorted(names))

    def _attributed(self, start: Oid, names: set[Name]) -> Iterator[Event]:
        newest = self.newest(start, names)
        for name in sorted(names):
            event = newest.get(name) or next(self.versions(start, name), None)
            if event:
                yield event._replace(merged=True)

    def newest(self, start: Oid, names: set[Name]) -> dict[Name, Event]:
        """The newest version of many documents as seen from `start`, by the rule for merges, in one walk.

        What was left invalid is missing.
        """
        found: dict[Name, Event] = {}
        heap = [(0, start)]
        wanted = {start: set(names)}
        while heap:
            _, oid = heappop(heap)
            here = wanted.pop(oid, None)
            if not here:
                continue
            commit = self._repository.commit(oid)
            for parent, these in self._passed(commit, here, found):
                if parent not in wanted:
                    heappush(heap, (-self._repository.commit(parent).updated, parent))
                wanted.setdefault(parent, set()).update(these)
        return found

    def _passed(self, commit: Commit, names: set[Name], found: dict[Name, Event]) -> Iterator[tuple[Oid, set[Name]]]:
        """Take up what a commit did to some documents; the parents where the others are to be looked for."""
        own = self.form.operation_of(commit)
        if own or touches_no_document(commit):
            changed = {own[1]} & names if own else set()
        elif len(commit.parents) < 2:
            before = self._tree(commit.parents[0]) if commit.parents else EMPTY_TREE
            changed = {
                name for path, _, _ in self._trees.changes(before, commit.tree) if (name := self.form.named_by(path))
            } & names
        else:
            changed = names
        after: dict[Oid, set[Name]] = {commit.parents[0]: names - changed} if commit.parents else {}
        for name in changed:
            _, now = self.form.locate(self._trees, commit.tree, name)
            entries = [self.form.locate(self._trees, self._tree(parent), name)[1] for parent in commit.parents]
            same = [p for p, e in zip(commit.parents, entries, strict=True) if (e and e.oid) == (now and now.oid)]
            if same:
                after.setdefault(same[0], set()).add(name)
            else:
                event = self._found(commit, own, name, next((entry for entry in entries if entry), None), now).event
                if event:
                    found[name] = event
        yield from after.items()

    def versions(self, start: Oid, name: Name) -> Iterator[Event]:
        """The versions of one document as seen from `start`, those that merges left aside too, each once.

        The first is the revision, by the rule for merges. None comes before one that was made on
        top of it; among branches the newer comes first.
        """
        walk = _Walk({}, [])
        first = self._newest(start, name, walk)
        if first is None:
            return
        tops = [first, *(found for found in self._set_aside(name, walk) if found.commit.oid != first.commit.oid)]
        above, below = self._graph(tops, name, walk)
        ready = [(-found.commit.updated, at, found) for at, found in enumerate(tops[1:]) if not above[found.commit.oid]]
        heapify(ready)
        serial = count(len(tops))
        last = first
        while True:
            if last.event:
                yield last.event
            for found in below[last.commit.oid]:
                above[found.commit.oid] -= 1
                if not above[found.commit.oid]:
                    heappush(ready, (-found.commit.updated, next(serial), found))
            if not ready:
                return
            last = heappop(ready)[2]

    def _graph(self, tops: list[_Found], name: Name, walk: _Walk) -> tuple[Counter[Oid], dict[Oid, list[_Found]]]:
        """How many versions stand on each version, and what each stands on."""
        above: Counter[Oid] = Counter()
        below: dict[Oid, list[_Found]] = {}
        pending = list(tops)
        while pending:
            commit = pending.pop().commit
            if commit.oid in below:
                continue
            found = [self._newest(parent, name, walk) for parent in commit.parents]
            stands_on = {one.commit.oid: one for one in (*found, *self._set_aside(name, walk)) if one}
            stands_on.pop(commit.oid, None)
            below[commit.oid] = list(stands_on.values())
            above.update(stands_on.keys())
            pending += below[commit.oid]
        return above, below

    def _set_aside(self, name: Name, walk: _Walk) -> list[_Found]:
        """The newest versions on the branches that merges on the way did not follow."""
        found: dict[Oid, _Found] = {}
        while walk.aside:
            one = self._newest(walk.aside.pop(), name, walk)
            if one:
                found[one.commit.oid] = one
        return list(found.values())

    def _newest(self, start: Oid, name: Name, walk: _Walk) -> _Found | None:
        """The newest commit, from `start` back, that changed a document, following merges by their rule."""
        passed: list[Oid] = []
        result: _Found | None = None
        oid: Oid | None = start
        while oid:
            if oid in walk.known:
                result = walk.known[oid]
                break
            passed.append(oid)
            commit = self._repository.commit(oid)
            own = self.form.operation_of(commit)
            if (own and own[1] != name) or touches_no_document(commit):
                oid = commit.parents[0] if commit.parents else None
                continue
            _, now = self.form.locate(self._trees, commit.tree, name)
            entries = [self.form.locate(self._trees, self._tree(parent), name)[1] for parent in commit.parents]
            same = [p for p, e in zip(commit.parents, entries, strict=True) if (e and e.oid) == (now and now.oid)]
            if same:
                walk.aside.extend(parent for parent in commit.parents if parent != same[0])
                oid = same[0]
                continue
            if now is not None or entries:
                was = next((entry for entry in entries if entry), None)
                result = self._found(commit, own, name, was, now)
            break
        walk.known.update(dict.fromkeys(passed, result))
        return result

    def _found(
        self, commit: Commit, own: tuple[str, Name] | None, name: Name, was: Entry | None, now: Entry | None
    ) -> _Found:
        try:
            event = self.event(commit, name, was, now)
        except Rejection:
            return _Found(commit, None)
        return _Found(commit, event._replace(operation=own[0], message=None) if own else event)

    def blob_at(self, commit: Oid, name: Name) -> Oid:
        """The blob of a document's file in a commit's tree. Raises DamagedError where there is none."""
        _, entry = self.form.locate(self._trees, self._tree(commit), name)
        if entry is None:
            raise DamagedError(commit.hex(), f"Commit {commit.hex()} says that it wrote {name}, but has no such file.")
        return entry.oid
