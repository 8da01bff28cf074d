"""The save protocol from the tip to the working tree, and reading at the tip, in an open repository."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from gitmem.codec import Content
from gitmem.database import DatabaseUnusableError
from gitmem.environment.catalog import Catalog
from gitmem.environment.catchup import CatchUp
from gitmem.environment.doubt import contradicts, misses
from gitmem.environment.history import Reader, meta_of
from gitmem.environment.layout import Name, text_path
from gitmem.environment.projection import Projection
from gitmem.environment.rows import REMOVALS, Row, State, VersionRow
from gitmem.environment.settings import Settings
from gitmem.environment.stored import Head, root_of
from gitmem.environment.worktree import WorkTree
from gitmem.errors import DamagedError, GitmemError, RemoteUnreachableError, StorageError
from gitmem.failpoints import reach
from gitmem.git.objects import Oid
from gitmem.git.refs import MAIN
from gitmem.git.repository import Repository, TipMovedError
from gitmem.git.upkeep import Upkeep

if TYPE_CHECKING:
    from gitmem.environment.draft import Draft
    from gitmem.environment.peers import Peer
    from gitmem.environment.upstream import Upstream
    from gitmem.git.courier import Courier
    from gitmem.git.remotes import Remote, RemoteConfig

T = TypeVar("T")
Change = Callable[["Draft"], T]

_RETRIES: Final = 100


class Ticket:
    """One waiting change and its answer."""

    __slots__ = ("alone", "change", "done", "error", "result")

    def __init__(self, change: Change[Any], *, alone: bool = False) -> None:
        self.change = change
        self.alone = alone
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False


class _Step(NamedTuple):
    """One attempt to save: a draft, where it began, and whether the working tree follows."""

    draft: Draft
    head: Head
    state: State
    projecting: bool


class Opened:
    """What an open environment works with."""

    def __init__(self, folder: str, settings: Settings) -> None:
        self.settings = settings
        self.form = form = settings.form
        self.repository = Repository(folder, durable=settings.durable)
        self.catalog = Catalog(os.path.join(self.repository.derived, "index.sqlite"), reserving=form.reserving)
        self.reader = Reader(self.repository, form)
        if form.declared:
            self.repository.install_drivers()
        with_tree = settings.worktree and not self.repository.bare
        self.worktree = WorkTree(folder, self.repository.scratch) if with_tree else None
        self.projection = Projection(form, self.repository, self.catalog, self.worktree)
        self._catch_up = CatchUp(self.repository, self.catalog, self.reader, settings.progress)
        self._upkeep = Upkeep(self.repository, heal=self._heal, needs_healing=self.projection.needs_healing)
        self._person = self.repository.person() or settings.author
        self._head: Head | None = None
        self._upstream: Upstream | None = None
        self._state = State(None, 1, False, False, False, False)
        self._doubted: Oid | None = None

    @cached_property
    def remotes(self) -> RemoteConfig:
        """The remotes that the repository's configuration names."""
        from gitmem.git.remotes import RemoteConfig

        return RemoteConfig(self.repository.git_dir)

    @cached_property
    def courier(self) -> Courier:
        """The way to remotes; its process starts when it is first used."""
        from gitmem.git.courier import Courier

        return Courier(self.repository.git_dir)

    def peer(self, remote: Remote) -> Peer:
        """A remote, as this repository knows it."""
        from gitmem.environment.peers import Peer

        return Peer(self.repository, self.courier, remote, self.settings.progress)

    def close(self) -> None:
        if "courier" in self.__dict__:
            self.courier.close()
        self._upkeep.close()
        if self.worktree:
            self.worktree.clear_away()
        self.catalog.close()
        self.repository.close()

    def locked(self) -> AbstractContextManager[None]:
        """Be the environment's only writer. Raises BusyError."""
        return self.repository.locked(self.settings.lock_seconds)

    def _heal(self) -> bool:
        if self.worktree:
            with suppress(OSError):
                self.worktree.clear_away()
        with suppress(GitmemError, OSError, DatabaseUnusableError), self.locked():
            return self.projection.heal()
        return False

    # Saving

    def run(self, batch: list[Ticket]) -> None:
        """Save a batch of changes and set each ticket's answer."""
        try:
            with self.locked():
                try:
                    self._run_locked(batch)
                finally:
                    self._upkeep.wake()
        except BaseException as error:
            for ticket in batch:
                if not ticket.done:
                    ticket.error, ticket.done = error, True
            if not isinstance(error, GitmemError):
                raise

    def _run_locked(self, batch: list[Ticket]) -> None:
        upstream = None if batch[0].alone else self.upstream()
        for _ in range(_RETRIES):
            try:
                step = self._step()
                for ticket in batch:
                    _attempt(step.draft, ticket)
            except DatabaseUnusableError:
                self._distrust()
                continue
            if upstream and not self._taken(upstream, step):
                self._join(upstream.peer, upstream.theirs)
                continue
            if self._followed(upstream, step) if upstream else self._landed(step):
                break
        else:
            raise StorageError("main kept moving while saving. Stop whatever rewrites it, then try again.")
        for ticket in batch:
            ticket.done = True

    def _step(self) -> _Step:
        """A draft on the newest tip."""
        from gitmem.environment.draft import Draft  # reading does without

        head, state = self.bring_up(), self._state
        projecting = self.projection.ready(state)
        if projecting and state.unchecked:
            state = self.catalog.state()
        draft = Draft(
            self.form, self.repository, self.catalog, self.worktree if projecting else None, head, self.settings.clock,
            self._person, self.projection.left_out, doubting=head.tip != self._doubted,
        )  # fmt: skip
        if head.tip is None:
            draft.begin()
        return _Step(draft, head, state, projecting)

    def _landed(self, step: _Step) -> bool:
        """Publish what a draft adds; False where somebody else moved main first."""
        draft, head = step.draft, step.head
        if draft.head == head and not draft.files:
            return True
        try:
            if draft.head.tip != head.tip and draft.head.tip is not None:
                self.repository.publish(head.tip, draft.head.tip, draft.staged, self._before_swap(step))
        except TipMovedError:
            self.repository.trees.forget()
            return False
        except BaseException:
            self.repository.trees.forget()
            self.projection.let_go()
            raise
        self._head = draft.head
        self._follow_linked(head.root, draft.head.root)
        if draft.joined:
            self._follow_joined(step)
        else:
            self._follow(draft, step.state)
        return True

    # With an upstream

    def upstream(self) -> Upstream | None:
        """The environment's upstream, if its configuration names one."""
        remote = self.remotes.upstream() if self.repository.names_upstream() else None
        if remote is None:
            self._upstream = None
        elif self._upstream is None or self._upstream.peer.remote != remote:
            from gitmem.environment.upstream import Upstream

            self._upstream = Upstream(self.repository, self.peer(remote), self.settings.upstream_seconds)
        return self._upstream

    def _taken(self, upstream: Upstream, step: _Step) -> bool:
        """Whether the upstream stands for a draft; what was made for it is forgotten where not."""
        try:
            self.repository.refuse_rebase()
            taken = upstream.takes(step.draft)
        except BaseException:
            self.repository.trees.forget()
            raise
        if not taken:
            self.repository.trees.forget()
        return taken

    def _followed(self, upstream: Upstream, step: _Step) -> bool:
        """Land here what the upstream has taken: trouble here cannot undo it, and what fails is fetched later."""
        if upstream.taken is None:
            return self._landed(step)
        with suppress(GitmemError, OSError):
            if self._landed(step):
                upstream.peer.note(upstream.taken)
            elif upstream.has_moved(self.repository.tip()):
                self._join(upstream.peer, upstream.theirs)
        return True

    def _join(self, peer: Peer, theirs: Oid | None) -> None:
        """Join what a peer has, and only then remember that it is there."""
        from gitmem.environment.joining import Joining

        for _ in range(_RETRIES if theirs else 0):
            assert theirs is not None
            step = self._step()
            Joining(self.repository, step.draft, theirs, peer.remote.name).run()
            if self._landed(step):
                peer.note(theirs)
                return

    def refresh(self, *, needed: bool) -> None:
        """Bring main to where the upstream is now. Raises RemoteUnreachableError, RemoteRefusedError."""
        upstream = self.upstream()
        try:
            moved = upstream is not None and upstream.has_moved(self.repository.tip())
        except RemoteUnreachableError:
            if needed or not (upstream and upstream.peer.remote.offline):
                raise
            return
        if upstream and moved:
            with self.locked():
                self._join(upstream.peer, upstream.theirs)
            self._upkeep.wake()

    def _follow(self, draft: Draft, state: State) -> None:
        """Bring working tree, `.git/index` and index up to a landed save.

        None of this can fail the save: what does not succeed here is found lagging and healed later.
        """
        try:
            reach("before-projection")
            lagging = self.projection.put(draft.files, draft.head.root, lagging=state.lagging)
            reach("after-projection")
            reach("before-index")
            with self.catalog.transaction() as connection:
                self.catalog.check_still(connection, state)
                number = self.catalog.apply(connection, draft.events, state.number, rejected=state.rejected)
                if draft.declared:
                    self._catch_up.set_resources(connection, draft.head.root)
                for name in draft.settled:
                    self.catalog.settle(connection, name)
                if state.noted:
                    self.catalog.clear_unprojected(connection, (text_path(change.path) for change in draft.files))
                for path, base in lagging.items():
                    self.catalog.set_unprojected(connection, path, base)
                if draft.head.tip:
                    self.catalog.set_tip(connection, draft.head.tip, number)
            reach("after-index")
        except (DatabaseUnusableError, OSError, GitmemError):
            with suppress(OSError):
                self.catalog.discard()

    def _follow_linked(self, old: Oid, new: Oid) -> None:
        if self.repository.linked_on_main():
            from gitmem.environment.linked import follow

            with suppress(GitmemError, OSError):
                follow(self.repository, old, new)

    def _before_swap(self, step: _Step) -> Callable[[], object]:
        if not step.projecting:
            return _nothing
        return self._expect_much if step.draft.joined else self.projection.hold

    def _expect_much(self) -> None:
        """Files are about to lag that other people's commits changed: should we be killed, look at all of them."""
        with suppress(DatabaseUnusableError), self.catalog.transaction() as connection:
            self.catalog.set_unchecked(connection, True)
        self.projection.hold()

    def _follow_joined(self, step: _Step) -> None:
        """The same after another history has been joined: the index reads it, the files lag and are healed."""
        try:
            draft = step.draft
            assert draft.head.tip is not None
            unchecked = self._rebuilt(draft.head.tip)
            if not step.projecting:
                return
            changes = self.repository.trees.changes(step.head.root, draft.head.root)
            bases = {path: was.oid if was else None for path, was, _ in changes} | draft.lying()
            with self.catalog.transaction() as connection:
                self.catalog.set_unchecked(connection, unchecked)
                for path, base in bases.items():
                    self.catalog.set_unprojected(connection, text_path(path), base)
            self.projection.heal()
        except (DatabaseUnusableError, OSError, GitmemError):
            with suppress(OSError):
                self.catalog.discard()

    def _rebuilt(self, tip: Oid) -> bool:
        """Bring the index to a joined tip; whether it had to be made anew, and so forgot what lagged."""
        with self.catalog.transaction() as connection:
            self.catalog.set_unchecked(connection, False)
        self._catch_up.run(tip)
        return self.catalog.is_unchecked()

    def bring_up(self) -> Head:
        """Bring the index to the tip, whoever moved it. Needs the lock."""
        tip = self.repository.tip()
        if self._head is None or self._head.tip != tip:
            self._head = root_of(self.repository, tip)
        try:
            self._state = self._caught_up(tip)
        except DatabaseUnusableError:
            with suppress(OSError):
                self.catalog.discard()
            try:
                self._state = self._caught_up(tip)
            except DatabaseUnusableError:
                self.catalog.move_to_memory()
                self._state = self._caught_up(tip)
        return self._head

    def _caught_up(self, tip: Oid | None) -> State:
        state = self.catalog.state()
        if tip is None:
            self._refuse_lost_main()
        elif state.tip != tip:
            self._catch_up.run(tip)
            state = self.catalog.state()
        return state

    def _refuse_lost_main(self) -> None:
        """A branch that is gone is never taken for a new repository."""
        known = self.catalog.tip()
        if known is not None:
            raise DamagedError(
                MAIN,
                f"The branch main of {self.repository.folder} is gone. Its last known commit is {known.hex()}: "
                f"bring it back with git update-ref {MAIN} {known.hex()}.",
            )

    # Reading

    def fresh(self, look: Callable[[Catalog], tuple[Oid | None, T]]) -> T | None:
        for _ in range(4):
            tip = self.repository.tip()
            try:
                if tip is None:
                    self._refuse_lost_main()
                    return None
                stands_at, found = look(self.catalog)
            except DatabaseUnusableError:
                break
            if stands_at == tip:
                return found
        return self._fresh_locked(look)

    def _fresh_locked(self, look: Callable[[Catalog], tuple[Oid | None, T]]) -> T | None:
        try:
            with self.locked():
                self.bring_up()
                try:
                    return look(self.catalog)[1]
                except DatabaseUnusableError:
                    self._distrust()
                    self.bring_up()
                    return look(self.catalog)[1]
        except StorageError as error:
            if isinstance(error, DamagedError) or os.access(self.repository.derived, os.W_OK):
                raise
        # A disk that takes no writes still lets everything be read.
        self.catalog.move_to_memory()
        self.bring_up()
        return look(self.catalog)[1]

    def find(self, name: Name) -> Row | None:
        row = self.fresh(lambda catalog: catalog.find(name))
        if row is None and self._doubt(lambda root: misses(self.form, self.catalog, self.repository.trees, root, name)):
            return self.fresh(lambda catalog: catalog.find(name))
        return row

    def _doubt(self, is_wrong: Callable[[Oid], bool]) -> bool:
        """Make the index anew where the tree at which it stands proves it wrong; whether it was."""
        if not self._proves(is_wrong):
            return False
        with self.locked():
            self.bring_up()
            if self._proves(is_wrong):
                self._distrust()
        return True

    def _proves(self, is_wrong: Callable[[Oid], bool]) -> bool:
        try:
            tip = self.repository.tip()
            if tip is None or tip == self._doubted or self.catalog.tip() != tip:
                return False
            return is_wrong(self.repository.commit(tip).tree)
        except DatabaseUnusableError:
            return True
        except DamagedError:
            return False

    def _distrust(self) -> None:
        """Throw the index away: once for each tip, so that what is wrong elsewhere makes no endless work."""
        with suppress(StorageError):
            self._doubted = self.repository.tip()
        with suppress(OSError):
            self.catalog.discard()
        self.repository.trees.forget()  # some of them belong to a draft that is given up

    def read(self, name: Name, row: Row) -> tuple[Row, Content]:
        try:
            return self._read(name, row)
        except DamagedError:
            wrong = row.blob and self._doubt(
                lambda root: contradicts(self.form, self.repository.trees, root, name, row)
            )
            again = self.find(name) if wrong else None
            if again is None or again.dead:
                raise
        return self._read(name, again)

    def _read(self, name: Name, row: Row) -> tuple[Row, Content]:
        blob = row.blob or self.reader.blob_at(row.revision, name)
        content = self.form.decode(self.repository.objects.read(blob, "blob"), name.id)
        if content is None:
            raise DamagedError(blob.hex(), f"{name} is a tombstone in Git and alive in the index. Run gitmem doctor.")
        if row.blob is None or row.meta is None:
            row = row._replace(blob=blob, meta=meta_of(content))
            self.catalog.fill(name, row)
        return row, content

    def versions(self, name: Name, row: Row, before: int | None, limit: int) -> list[VersionRow]:
        if row.merged:
            return self._merged_versions(name, before, limit)
        found = self.fresh(lambda catalog: (catalog.tip(), catalog.versions(name, before, limit))) or []
        return [
            v if v.blob or v.operation in REMOVALS else v._replace(blob=self.reader.blob_at(v.revision, name))
            for v in found
        ]

    def _merged_versions(self, name: Name, before: int | None, limit: int) -> list[VersionRow]:
        """History through merges, walked as `git log -- <file>` does; numbered from the oldest."""
        tip = self.repository.tip()
        assert tip is not None
        events = list(self.reader.versions(tip, name))
        rows = [
            VersionRow(
                len(events) - at, event.commit,
                event.blob or (None if event.dead else self.reader.blob_at(event.commit, name)),
                event.updated, event.writer, event.operation, event.message,
            )
            for at, event in enumerate(events)
        ]  # fmt: skip
        return [row for row in rows if before is None or row.number < before][:limit]


def _nothing() -> None:
    """What to do before a swap that no working tree follows."""


def _attempt(draft: Draft, ticket: Ticket) -> None:
    mark = draft.mark()
    try:
        ticket.result = ticket.change(draft)
        ticket.error = None
    except DatabaseUnusableError:
        raise  # it says nothing about the change, which runs again on an index made anew
    except Exception as error:
        ticket.error = error
        draft.roll_back(mark)
