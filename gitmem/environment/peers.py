"""One remote of an open environment: where it was, where it is, and whether it is still the same history."""

from __future__ import annotations

from typing import Final

from gitmem.environment.catchup import Progress
from gitmem.errors import RemoteHistoryError
from gitmem.git.ancestry import is_ancestor
from gitmem.git.courier import Advertised, Courier
from gitmem.git.files import storage
from gitmem.git.objects import Oid
from gitmem.git.refs import MAIN, Ref
from gitmem.git.remotes import Remote
from gitmem.git.repository import Repository

SYNCED: Final = "refs/gitmem/remotes/{}"
"""Where a remote's main was when it was last joined. Git's own tracking ref moves with every plain fetch."""

TRACKING: Final = "refs/remotes/{}/main"


class Peer:
    """A remote, as the repository knows it."""

    def __init__(self, repository: Repository, courier: Courier, remote: Remote, progress: Progress) -> None:
        self._repository = repository
        self._courier = courier
        self._progress = progress
        self.remote = remote
        self._refs = [Ref(repository.git_dir, name.format(remote.name)) for name in (SYNCED, TRACKING)]

    def known(self) -> Oid | None:
        """Where the remote's main was last; None where it has never been met."""
        return self._refs[0].read()

    def look(self, seconds: float) -> Oid | None:
        """Where the remote's main is, its objects fetched; None for an empty remote.

        Raises RemoteUnreachableError, RemoteRefusedError; RemoteHistoryError where it is not what it was.
        """
        known = self.known()
        here = [oid for oid in (known, self._repository.tip()) if oid and self._repository.objects.exists(oid)]
        found = self._courier.fetch(self.remote, here, seconds, self._progress)
        self._check(found, known)
        return found.tip

    def push(self, expected: Oid | None, new: Oid, seconds: float, borrowed: str | None = None) -> bool:
        """Move the remote's main from `expected` to `new`; False where somebody else moved it first.

        True only where the remote's ref says so, or has gone on from there. Raises
        RemoteUnreachableError, after which the push may have arrived; RemoteRefusedError.
        """
        pushed = self._courier.push(self.remote, expected, new, seconds, self._progress, borrowed)
        if pushed.moved:
            return False
        if pushed.tip != new:
            tip = self.look(seconds)
            return tip is not None and is_ancestor(self._repository, new, tip)
        return True

    def note(self, tip: Oid) -> None:
        """Remember where the remote's main is, for plain git too. Needs the repository's lock."""
        with storage(f"write in {self._repository.git_dir}"):
            for ref in self._refs:
                if ref.read() != tip:
                    ref.hold(tip, self._repository.scratch)
                    ref.swap()

    def _check(self, found: Advertised, known: Oid | None) -> None:
        name = self.remote.name
        if found.tip is None:
            if known:
                raise RemoteHistoryError(
                    f"The remote {name} has no main any more; it was at {known.hex()}. Nothing was changed. "
                    f"To begin there anew: gitmem remote remove {name}, add it again, and sync."
                )
            if found.refs:
                raise RemoteHistoryError(
                    f"The remote {name} has no main, but {', '.join(found.refs[:3])}. Nothing was changed. "
                    f"If it is the right one, push main once with git push {name} {MAIN}."
                )
            return
        if known and not is_ancestor(self._repository, known, found.tip):
            raise RemoteHistoryError(
                f"The history of the remote {name} was rewritten or rewound: its main was at {known.hex()}, which "
                f"{found.tip.hex()} does not hold. Nothing was changed. If that is meant: gitmem remote remove {name}, "
                "add it again, and sync, which merges it."
            )
