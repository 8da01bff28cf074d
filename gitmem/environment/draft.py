"""What a change sees and adds to: the tip as it is under the lock, and commits on top of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from gitmem.clock import Clock
from gitmem.codec import TOMBSTONE, Content
from gitmem.database import DatabaseUnusableError
from gitmem.environment.catalog import Catalog
from gitmem.environment.doubt import misses
from gitmem.environment.form import ATTRIBUTES_FILE, SWITCH_FILE, Form
from gitmem.environment.handedits import Adopt, Leave, PutBack, Standing, judge, lost, stray
from gitmem.environment.history import SETTLE, Reader, meta_of
from gitmem.environment.layout import RESOURCE_FILE, Name, text_path
from gitmem.environment.older import Older
from gitmem.environment.rows import Event, Row
from gitmem.environment.stored import Head, Stored, root_of
from gitmem.environment.worktree import File, WorkTree
from gitmem.errors import DamagedError, NotFoundError, StorageError
from gitmem.git.commits import Clash, Person, render
from gitmem.git.journal import StagedObject
from gitmem.git.objects import Oid, object_id
from gitmem.git.repository import Repository
from gitmem.git.trees import FILE, Entry, Path
from gitmem.records import OWNER, Memory, Writer
from gitmem.strictjson import loads

ATTRIBUTES: Final = b"* -text -filter -ident\n"
_CLOCK_SLACK: Final = 24 * 3600 * 1000


@dataclass(slots=True)
class FileChange:
    """A file to put (`data`; None: to remove) or to move here (`source`) in the working tree after the save.

    `expected` are the blobs that may be replaced there; `base` is what gitmem last put there.
    """

    path: Path
    data: bytes | None = b""
    source: Path | None = None
    expected: set[Oid | None] = field(default_factory=set)
    base: Oid | None = None


@dataclass(slots=True)
class _Mark:
    staged: int
    events: int
    files: int
    looked_at: int
    head: Head
    declared: dict[str, Memory]
    settled: list[Name]


class Draft:
    """Commits built in memory. Nothing of it exists until the environment publishes it."""

    def __init__(
        self,
        form: Form,
        repository: Repository,
        catalog: Catalog,
        worktree: WorkTree | None,
        head: Head,
        clock: Clock,
        person: Person | None,
        left_out: Callable[[Path], str | None],
        *,
        doubting: bool,
    ) -> None:
        self._left_out = left_out
        self._doubting = doubting
        self.form = form
        self._repository = repository
        self._catalog = catalog
        self._worktree = worktree
        self._clock = clock
        self._owner = person or Person("owner", "owner@localhost")
        self._agent_address = "agent.localhost"
        self.head = head
        self.published = head.tip
        self.joined = False
        self.staged: list[StagedObject] = []
        self.events: list[Event] = []
        self.files: list[FileChange] = []
        self.declared: dict[str, Memory] = {}
        self.settled: list[Name] = []
        self.left_alone: dict[str, str] = {}
        self._rows: dict[Name, Stored] = {}
        self._looked_at: dict[Name, None] = {}
        self._seen_files: dict[Path, File] = {}
        self._lost: dict[str, str | None] = {}
        self._clean = True

    # For changes

    def resource(self, name: str) -> Memory:
        """A resource's declaration. Raises NotFoundError."""
        found = self.find_resource(name)
        if found is None:
            raise NotFoundError(f"There is no resource {name} here. Declare it and deploy, or see gitmem resources.")
        return found

    def find_resource(self, name: str) -> Memory | None:
        """A resource's declaration, or None."""
        found = self.declared.get(name) or self._catalog.resource(name)
        if found is None:
            self._check_index(self._catalog.tip())
        return found

    def get(self, name: Name) -> Stored | None:
        """A document as it stands; None for an id that was never used.

        A hand edit lying at its path is adopted first, as an owner's commit of its own.
        """
        if name not in self._looked_at:
            self.adopt(name)
        return self._stored(name)

    def adopt(self, name: Name, *, deletions: bool = False) -> None:
        """Take up a hand edit lying at a document's path; `deletions`: also one of so many that they look like a loss.

        Why one is left alone stands in `left_alone`, by its path.
        """
        self._looked_at[name] = None
        self._adopt(name, deletions)

    def put_back_marks(self) -> None:
        """Let declarations and other files of gitmem's own that are missing be put back as the tip has them."""
        if self._worktree is None:
            return
        folders = [name for name, entry in self._repository.trees.get(self.head.root) if entry.is_folder]
        resources = [name for name in folders if self.form.resource_named_by((name, RESOURCE_FILE))]
        for path in (*((mark,) for mark in self.form.marks), *((name, RESOURCE_FILE) for name in resources)):
            entry = self._find(path)
            if entry and self._worktree.read(path).absent:
                self._put_back(path, entry, File())

    def put(
        self,
        name: Name,
        content: Content | None,
        operation: str,
        writer: Writer = OWNER,
        author: Person | None = None,
    ) -> Stored:
        """Add the commit that writes a document (None: its tombstone, or its file's removal).

        `author` is who wrote it, where that is not the owner, or the agent, of this environment.
        """
        self._clean = False
        return self._put(name, content, operation, writer, author)

    def names_in(self, folder: str) -> list[Name]:
        """The memory files that stand in a folder."""
        path = tuple(folder.split("/")) if folder else ()
        found = self._repository.trees.find(self.head.root, path) if path else Entry(0, self.head.root)
        listed = self._repository.trees.get(found.oid) if found and (found.is_folder or not path) else ()
        names = [self.form.named_by((*path, name)) for name, entry in listed if not entry.is_folder]
        return [name for name in names if name]

    def is_switched_on(self) -> bool:
        """Whether the memory in a repository of files is on. Raises DamagedError."""
        entry = self._repository.trees.find(self.head.root, (SWITCH_FILE,))
        return is_on(self._repository, entry)

    def switch(self, on: bool, author: Person | None = None) -> None:
        """Add the commit that turns the memory on or off, unless it is so already."""
        if self.is_switched_on() == on:
            return
        self._clean = False
        data = b'{"enabled": true}\n' if on else b'{"enabled": false}\n'
        self._write((SWITCH_FILE,), data, f"{'enable' if on else 'disable'} memory", OWNER, author)

    def confirm(self, name: Name) -> None:
        """A write that changes nothing: make sure that Git can still read what is there."""
        path, entry = self.form.locate(self._repository.trees, self.head.root, name)
        file = self._seen_files.get(path)
        objects = self._repository.objects
        if entry and file and file.data is not None and file.oid == entry.oid and not objects.intact(file.oid, "blob"):
            objects.write(file.oid, "blob", file.data, self._repository.scratch)

    def declare(self, memory: Memory) -> None:
        """Add the commit that declares a resource, or changes its declaration."""
        self._clean = False
        path = (memory.id, RESOURCE_FILE)
        data = json.dumps(
            {"description": memory.description, "provider": memory.provider.to_json()}, indent=2, ensure_ascii=False
        )
        self._write(path, data.encode() + b"\n", f"declare {memory.id}", OWNER)
        self.declared[memory.id] = memory

    def begin(self) -> None:
        """Lay the first commit of a repository."""
        self._write((ATTRIBUTES_FILE,), ATTRIBUTES, "init", OWNER)

    def settle(self, name: Name) -> None:
        """Add the commit that settles a document's conflicts and leaves it as it is."""
        self._clean = False
        self._commit({}, f"{SETTLE}{name}", OWNER)
        self.settled.append(name)

    # For joining another history. The index does not follow a draft that has done so.

    def forward(self, tip: Oid) -> None:
        """Stand at `tip`, which was made elsewhere on top of what is published."""
        self.staged.clear()  # at most the first commit of an empty repository, which `tip` has of its own
        self.head = root_of(self._repository, tip)
        self.joined = True

    def merge(
        self, theirs: Oid, edits: dict[Path, Entry | None], blobs: list[bytes], subject: str, clashes: list[Clash]
    ) -> None:
        """Add the commit that merges `theirs`: their tree with `edits`, for which `blobs` are needed."""
        self.joined = True
        self.staged.extend((object_id("blob", data), "blob", data) for data in blobs)
        self._commit(edits, subject, OWNER, onto=root_of(self._repository, theirs), clashes=clashes)
        for folder in sorted({path[:-1] for path in edits if self.form.named_by(path)}):
            self._reshard(folder)

    def lying(self) -> dict[Path, Oid | None]:
        """What lies at the paths of hand edits that were adopted, or are to be put in form."""
        return {
            change.path: self._seen_files[change.path].oid for change in self.files if change.path in self._seen_files
        }

    # For the environment

    def mark(self) -> _Mark:
        """Where to roll back to."""
        self._clean = True
        return _Mark(
            len(self.staged), len(self.events), len(self.files), len(self._looked_at), self.head,
            dict(self.declared), list(self.settled),
        )  # fmt: skip

    def roll_back(self, mark: _Mark) -> None:
        """Undo a refused change; adoptions made before its first write stay."""
        if self._clean:
            return
        del self.staged[mark.staged :], self.events[mark.events :], self.files[mark.files :]
        self.head, self.declared, self.settled = mark.head, mark.declared, mark.settled
        self._rows.clear()
        for name in list(self._looked_at)[mark.looked_at :]:
            del self._looked_at[name]
        for event in self.events:
            self._rows[event.name] = self._from_event(event)

    # Inside

    def _stored(self, name: Name) -> Stored | None:
        if name in self._rows:
            return self._rows[name]
        stands_at, row = self._catalog.find(name)
        self._check_index(stands_at)
        if row is None:
            if self._doubting and not self.joined:
                self._doubt(name)
            return None
        if row.dead:
            return Stored(row.revision, None, row.updated, row.writer)
        return Stored(row.revision, lambda: self._content(name, row), row.updated, row.writer)

    def _check_index(self, stands_at: Oid | None) -> None:
        if stands_at != self.published:
            raise DatabaseUnusableError("the index was deleted while a change looked into it")

    def _doubt(self, name: Name) -> None:
        """An id that exists must not be given out again because bytes of the index have changed on the disk."""
        if misses(self.form, self._catalog, self._repository.trees, self.head.root, name):
            raise DatabaseUnusableError(f"the index does not know {name}")

    def _content(self, name: Name, row: Row) -> Content:
        blob = row.blob or Reader(self._repository, self.form).blob_at(row.revision, name)
        path = self.form.locate(self._repository.trees, self.head.root, name)[0]
        file = self._seen_files.get(path)
        if file and file.data is not None and file.oid == blob:
            content = self.form.decode(file.data, name.id)  # the same bytes, without asking Git
        else:
            content = self.form.decode(self._repository.objects.read(blob, "blob"), name.id)
        assert content is not None
        return content

    def _from_event(self, event: Event) -> Stored:
        content = None
        if not event.dead:
            data = next(data for oid, _, data in reversed(self.staged) if oid == event.blob)
            content = self.form.decode(data, event.name.id)
        return Stored(event.commit, content, event.updated, event.writer)

    def _put(
        self, name: Name, content: Content | None, operation: str, writer: Writer, author: Person | None = None
    ) -> Stored:
        data = self.form.encode(content) if content else TOMBSTONE if self.form.reserving else None
        path, blob, commit = self._write(
            self.form.locate(self._repository.trees, self.head.root, name)[0],
            data,
            f"{operation} {name}",
            writer,
            author,
        )
        stored = Stored(commit, content, self.head.updated, writer)
        self._rows[name] = stored
        self.events.append(
            Event(
                name, operation, commit, stored.updated, writer,
                blob=blob, meta=meta_of(content) if content else None, dead=content is None,
            )
        )  # fmt: skip
        self._reshard(path[:-1])
        return stored

    def _write(
        self, path: Path, data: bytes | None, subject: str, writer: Writer, author: Person | None = None
    ) -> tuple[Path, Oid | None, Oid]:
        old = self._find(path)
        blob = object_id("blob", data) if data is not None else None
        if blob is not None and data is not None:
            self.staged.append((blob, "blob", data))
        commit = self._commit({path: Entry(FILE, blob) if blob else None}, subject, writer, author=author)
        self._change_file(path, data, old.oid if old else None)
        return path, blob, commit

    def _find(self, path: Path) -> Entry | None:
        """What the tree holds for a file. Raises StorageError where something else is in the way."""
        trees = self._repository.trees
        for depth in range(1, len(path)):
            above = trees.find(self.head.root, path[:depth])
            if above is None:
                return None
            if not above.is_folder:
                raise StorageError(f"A file stands at {text_path(path[:depth])}. Move it away, then try again.")
        found = trees.find(self.head.root, path)
        if found and found.is_folder:
            raise StorageError(f"A folder stands at {text_path(path)}. Move it away, then try again.")
        return found

    def _commit(
        self,
        edits: dict[Path, Entry | None],
        subject: str,
        writer: Writer,
        *,
        author: Person | None = None,
        onto: Head | None = None,
        clashes: Sequence[Clash] = (),
    ) -> Oid:
        made: list[tuple[Oid, bytes]] = []
        # What was there first comes first: whoever has that already only goes on from it.
        parents = [head for head in (onto, self.head) if head]
        root = self._repository.trees.edit(parents[0].root, edits, made)
        self.staged.extend((oid, "tree", data) for oid, data in made)
        now, newest = self._clock(), max(head.updated for head in parents)
        if now < newest <= now + _CLOCK_SLACK:
            now = newest  # a clock that went back a little must not reorder saves
        if author is None and writer.kind == "agent":
            author = Person("agent", f"{writer.session_id}@{self._agent_address}")
        data = render(
            tree=root,
            parents=[head.tip for head in parents if head.tip],
            author=author or self._owner,
            milliseconds=now,
            subject=subject,
            writer=writer,
            clashes=clashes,
        )
        commit = object_id("commit", data)
        self.staged.append((commit, "commit", data))
        self.head = Head(commit, root, now)
        return commit

    def _change_file(self, path: Path, data: bytes | None, old: Oid | None) -> None:
        if self._worktree is None:
            return
        lag = self._catalog.unprojected(text_path(path)).get(text_path(path)) if self._lags(path, old) else None
        base = lag.base if lag else old
        self.files.append(FileChange(path, data, expected={old, base}, base=base))

    def _lags(self, path: Path, old: Oid | None) -> bool:
        assert self._worktree is not None
        if any(change.path == path for change in self.files):
            return False
        file = self._seen_files.get(path) or self._worktree.read(path)
        return file.oid != old

    def _reshard(self, folder: Path) -> None:
        edits = self.form.split(self._repository.trees, self.head.root, folder)
        if not edits:
            return
        self._commit(edits, f"reshard {text_path(folder)}", OWNER)
        if self._worktree is not None:
            targets = {path[-1]: path for path, entry in edits.items() if entry}
            self.files.extend(
                FileChange(targets[path[-1]], source=path) for path, entry in edits.items() if entry is None
            )

    # Hand edits

    def _adopt(self, name: Name, deletions: bool) -> None:
        if self._worktree is None or self._repository.operation_in_progress():
            return
        path, entry = self.form.locate(self._repository.trees, self.head.root, name)
        lies = self._where_it_lies(path)
        file = self._worktree.read(lies)
        found = stray(self.form, self._worktree, name, path) if file.absent and lies == path else None
        if found:
            lies, file = found
            self.files.append(FileChange(path, source=lies))
        self._seen_files[path] = file
        if file.oid == (entry.oid if entry else None) and not file.odd:
            return
        refusal = self._adopt_file(name, path, entry, file, deletions)
        if refusal:
            self.left_alone[text_path(lies)] = refusal
            if found:
                self.files.pop()

    def _where_it_lies(self, path: Path) -> Path:
        """Where a file still lies that this draft is going to move to `path`."""
        for change in reversed(self.files):
            if change.path == path and change.source is not None:
                path = change.source
        return path

    def _adopt_file(self, name: Name, path: Path, entry: Entry | None, file: File, deletions: bool) -> str | None:
        """Commit a hand edit; the reason where it is left alone instead."""
        stored = self._stored(name)
        standing = Standing(
            form=self.form,
            entry=entry,
            lag=self._catalog.unprojected(text_path(path)).get(text_path(path)),
            alive=stored.alive if stored else None,
            resource=self.find_resource(name.resource),
            holds=lambda content: stored is not None and self._same(stored, content),
            gone=lambda: self._left_out(path) or (None if deletions else self._why_lost(name.resource)),
            join=lambda base, content: self._joined(name, base, stored, content),
        )
        match judge(name, file, standing):
            case Leave(reason, _):
                return reason
            case PutBack():
                self._put_back(path, entry, file)
            case Adopt(content, _):
                operation = "delete" if content is None else "edit" if stored and stored.alive else "create"
                self._put(name, content, operation, OWNER)
                self._expect(path, file.oid)
        return None

    def _why_lost(self, resource: str) -> str | None:
        assert self._worktree is not None
        if resource not in self._lost:
            self._lost[resource] = lost(self.form, self._worktree, self._catalog, resource)
        return self._lost[resource]

    def _joined(self, name: Name, base: Oid | None, newest: Stored | None, edit: Content) -> Content | str:
        assert newest is not None
        limit = self.form.limit(name, self.find_resource(name.resource))
        older = Older(self._repository, self._catalog, Reader(self._repository, self.form), self.published)
        return older.join(name, base, newest, edit, limit)

    def _put_back(self, path: Path, entry: Entry | None, file: File) -> None:
        assert entry is not None
        with suppress(DamagedError):
            self._change_file(path, self._repository.objects.read(entry.oid, "blob"), file.oid)

    def _same(self, stored: Stored, content: Content) -> bool:
        try:
            return stored.content == content
        except DamagedError:
            return False  # what a person has put there is what remains

    def _expect(self, path: Path, oid: Oid | None) -> None:
        for change in self.files:
            if change.path == path and change.source is None:
                change.expected.add(oid)


def is_on(repository: Repository, entry: Entry | None) -> bool:
    """What the file says that turns memory off; on where there is none, or it is not readable as one."""
    if entry is None:
        return True
    try:
        return not isinstance(value := loads(repository.objects.read(entry.oid, "blob")), dict) or (
            value.get("enabled") is not False
        )
    except ValueError:
        return True
