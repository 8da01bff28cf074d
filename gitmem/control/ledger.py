"""JSON records in a bare Git repository: one commit a change, read at whatever tip it has."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gitmem.clock import Clock, system_clock
from gitmem.errors import DamagedError
from gitmem.git.commits import Person, render
from gitmem.git.creation import create, is_made
from gitmem.git.files import rename_new, scratch_name, storage, sync_path, write_file
from gitmem.git.journal import StagedObject
from gitmem.git.objects import Oid, object_id
from gitmem.git.repository import Repository, TipMovedError
from gitmem.git.trees import EMPTY_TREE, FILE, Entry, Path
from gitmem.git.upkeep import Upkeep
from gitmem.ids import Random, system_random
from gitmem.records import OWNER
from gitmem.strictjson import loads

if TYPE_CHECKING:
    from gitmem.git.housekeeping import Size

T = TypeVar("T")
Files = Mapping[Path, Any]
"""Records by path, to be written together."""

_AUTHOR: Final = Person("gitmem", "gitmem@localhost")
_SECRET_BYTES: Final = 32


class Snapshot:
    """The records as one commit has them."""

    def __init__(self, repository: Repository, tip: Oid | None, root: Oid) -> None:
        self._repository = repository
        self.tip = tip
        self.root = root

    def entry(self, path: Path) -> Entry | None:
        """What lies at a path."""
        return self._repository.trees.find(self.root, path)

    def value(self, path: Path) -> Any:
        """The record at a path; None where there is none. Raises DamagedError."""
        entry = self.entry(path)
        return self.read(entry.oid) if entry else None

    def read(self, blob: Oid) -> Any:
        """The record that a blob holds. Raises DamagedError."""
        return parsed(blob, self.data(blob))

    def data(self, blob: Oid) -> bytes:
        """The bytes of a record. Raises DamagedError."""
        return self._repository.objects.read(blob, "blob")

    def folder(self, path: Path) -> Oid:
        """The tree of a folder; the empty tree where there is none."""
        entry = self.entry(path)
        return entry.oid if entry and entry.is_folder else EMPTY_TREE

    def below(self, path: Path) -> Iterator[tuple[str, Entry]]:
        """The names in a folder, with what each is."""
        yield from self._repository.trees.get(self.folder(path))

    def changes(self, old: Oid, new: Oid) -> Iterator[tuple[str, Oid | None]]:
        """The files that differ between two folders, with the blob that is there now. Raises DamagedError."""
        for path, _, now in self._repository.trees.changes(old, new):
            yield path[-1], now.oid if now else None


def parsed(blob: Oid, data: bytes) -> Any:
    """A record's bytes as JSON. Raises DamagedError, naming the blob."""
    try:
        return loads(data)
    except ValueError as error:
        raise DamagedError(blob.hex(), f"The record {blob.hex()} in control.git is not JSON: {error}.") from error


class Ledger:
    """One repository of records. Safe to share between threads; made on its first write."""

    def __init__(
        self,
        folder: str,
        *,
        durable: bool = True,
        clock: Clock = system_clock,
        random: Random = system_random,
    ) -> None:
        self.folder = folder
        self.clock = clock
        self.random = random
        self._durable = durable
        self._opening = threading.Lock()
        self._opened: Repository | None = None
        self._upkeep: Upkeep | None = None
        self._pid = os.getpid()
        self._newest: Snapshot | None = None
        self._recorded = False

    @property
    def exists(self) -> bool:
        """Whether the repository has been made."""
        return is_made(self.folder)

    @property
    def derived(self) -> str:
        """The folder of what may be deleted at any time."""
        return os.path.join(self.folder, "gitmem")

    def create(self) -> None:
        """Make the repository where there is none."""
        create(self.folder, bare=True, durable=self._durable)

    def close(self) -> None:
        """Flush, and give back every handle. May be opened again."""
        opened, self._opened = self._opened, None
        self._newest = None
        if opened is not None and self._pid == os.getpid():
            if self._upkeep is not None:
                self._upkeep.close()
            opened.close()

    def newest(self) -> Snapshot | None:
        """The records at the tip that anybody moved; None where nothing was ever recorded."""
        if not self.exists:
            return None
        repository = self.repository()
        tip = repository.tip()
        kept = self._newest
        if kept is None or kept.tip != tip:
            root = repository.commit(tip).tree if tip else EMPTY_TREE
            self._newest = kept = Snapshot(repository, tip, root)
        return kept

    def commit(self, subject: str, change: Callable[[Snapshot], tuple[T, Files]]) -> T:
        """Write the records that `change` gives as one commit, and return its answer.

        `change` sees the newest records under the writer's lock, and runs again on a lost swap.
        Where it gives no records there is no commit. Raises BusyError, StorageError.
        """
        self.create()
        repository = self.repository()
        with repository.locked():
            while True:
                snapshot = self.newest()
                assert snapshot is not None
                answer, files = change(snapshot)
                if not files:
                    return answer
                try:
                    self._publish(repository, snapshot, subject, files)
                except TipMovedError:
                    repository.trees.forget()
                    continue
                except BaseException:
                    repository.trees.forget()
                    raise
                break
        self._recorded = True
        assert self._upkeep is not None
        self._upkeep.wake()
        return answer

    def repository(self) -> Repository:
        """The opened repository; a process that was forked opens its own. Raises StorageError."""
        with self._opening:
            if self._opened is None or self._pid != os.getpid():
                self._newest = None
                self._opened = Repository(self.folder, durable=self._durable)
                self._upkeep = Upkeep(self._opened)
                self._pid = os.getpid()
            return self._opened

    def collect(self) -> int:
        """Pack every record that main reaches; the number of objects packed. Nothing is pruned.

        Raises BusyError where another process packs; StorageError, DamagedError.
        """
        from gitmem.git.housekeeping import Housekeeping

        return Housekeeping(self.repository()).run(everything=True) if self.exists else 0

    def is_packing_due(self) -> bool:
        """Whether this handle has recorded something, and what lies in the repository is worth packing."""
        return self._recorded and self.size().due

    def size(self) -> Size:
        """What the repository takes on the disk. Raises StorageError where there is none."""
        from gitmem.git.housekeeping import measure

        return measure(self.repository())

    def secret(self) -> bytes:
        """A secret of this repository's own, kept beside history and made when first asked for.

        32 bytes that only the file's owner can read. Where it was deleted, another one is made.
        """
        path = os.path.join(self.derived, "secret")
        with storage(f"keep a secret in {self.derived}"):
            while True:
                try:
                    with open(path, "rb") as file:
                        found = file.read()
                except FileNotFoundError:
                    self._make_secret(path)
                    continue
                if len(found) == _SECRET_BYTES:
                    return found
                os.unlink(path)  # torn by a power loss

    def _make_secret(self, path: str) -> None:
        scratch = os.path.join(self.derived, "tmp")
        os.makedirs(scratch, exist_ok=True)
        temporary = os.path.join(scratch, scratch_name())
        write_file(temporary, self.random(_SECRET_BYTES), mode=0o600)
        sync_path(temporary)
        try:
            rename_new(temporary, path)
        except FileExistsError:
            os.unlink(temporary)

    def _publish(self, repository: Repository, snapshot: Snapshot, subject: str, files: Files) -> None:
        staged: list[StagedObject] = []
        edits: dict[Path, Entry | None] = {}
        for path, value in files.items():
            data = json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
            blob = object_id("blob", data)
            staged.append((blob, "blob", data))
            edits[path] = Entry(FILE, blob)
        made: list[tuple[Oid, bytes]] = []
        root = repository.trees.edit(snapshot.root, edits, made)
        staged.extend((oid, "tree", data) for oid, data in made)
        data = render(
            tree=root,
            parents=[snapshot.tip] if snapshot.tip else [],
            author=_AUTHOR,
            milliseconds=self.clock(),
            subject=subject,
            writer=OWNER,
        )
        commit = object_id("commit", data)
        staged.append((commit, "commit", data))
        repository.publish(snapshot.tip, commit, staged)
        self._newest = Snapshot(repository, commit, root)
