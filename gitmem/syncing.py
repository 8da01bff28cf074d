"""Bringing an environment and a remote to the same history: fetch, merge, push, and look whether it arrived."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gitmem.conflicts import DocumentConflict, conflicts
from gitmem.environment.draft import Draft
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.joining import Joined, Joining
from gitmem.environment.peers import Peer
from gitmem.errors import BusyError, RemoteUnreachableError
from gitmem.git.objects import Oid

_ROUNDS: Final = 20
_LEAST_SECONDS: Final = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Synced:
    """What a sync did. `received` counts the documents that came in, `refused` is incoming files that do not count.

    `sent` says whether the remote moved; `conflicts` are all that nobody has settled, older ones too.
    """

    remote: str
    tip: str | None
    received: int
    merged: bool
    sent: bool
    refused: dict[str, str]
    conflicts: tuple[DocumentConflict, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "remote": self.remote,
            "tip": self.tip,
            "received": self.received,
            "merged": self.merged,
            "sent": self.sent,
            "refused": [{"path": path, "reason": reason} for path, reason in sorted(self.refused.items())],
            "conflicts": [conflict.to_json() for conflict in self.conflicts],
        }


def sync(environment: EnvironmentRepository, name: str | None, seconds: float) -> Synced:
    """Sync with a remote: the named one, else the upstream or the only one, in `seconds` at most.

    Safe beside running servers: what comes in is published as a save is. Raises NotFoundError,
    RemoteUnreachableError, RemoteRefusedError, RemoteHistoryError, all with nothing lost; where a
    push fails, what came in has been merged here and goes out with the next sync.
    """
    environment.make()
    parts = environment.parts()
    peer = parts.peer(parts.remotes.get(name))
    return _Sync(environment, peer, time.monotonic() + seconds).run()


class _Sync:
    def __init__(self, environment: EnvironmentRepository, peer: Peer, deadline: float) -> None:
        self._environment = environment
        self._peer = peer
        self._deadline = deadline
        self._total = Joined()

    def run(self) -> Synced:
        for _ in range(_ROUNDS):
            theirs = self._peer.look(self._left())
            if theirs is not None:
                self._take(theirs)
            ours = self._environment.parts().repository.tip()
            if ours is None or ours == theirs:
                return self._answer(theirs, sent=False)
            if self._peer.push(theirs, ours, self._left()):
                self._note(ours)
                return self._answer(ours, sent=True)
        raise BusyError(f"Others kept moving the remote {self._peer.remote.name}. Sync again.")

    def _take(self, theirs: Oid) -> None:
        """Join what the remote has, and only then remember that it is there."""
        parts = self._environment.parts()
        where = self._peer.remote.name

        def change(draft: Draft) -> Joined:
            return Joining(parts.repository, draft, theirs, where).run()

        joined = self._environment.save(change, alone=True)
        self._total.merged |= joined.merged
        self._total.documents += joined.documents
        self._total.refused |= joined.refused
        self._note(theirs)

    def _note(self, tip: Oid) -> None:
        parts = self._environment.parts()
        with parts.locked():
            self._peer.note(tip)
            if upstream := parts.upstream():
                upstream.is_back()

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left < _LEAST_SECONDS:
            raise RemoteUnreachableError(
                f"The remote {self._peer.remote.name} took too long. Sync again, with a longer --timeout."
            )
        return left

    def _answer(self, tip: Oid | None, *, sent: bool) -> Synced:
        return Synced(
            remote=self._peer.remote.name,
            tip=tip.hex() if tip else None,
            received=self._total.documents,
            merged=self._total.merged,
            sent=sent,
            refused=self._total.refused,
            conflicts=tuple(conflicts(self._environment)),
        )


def watch(
    environment: EnvironmentRepository,
    name: str | None,
    seconds: float,
    pause: Callable[[], bool],
    tell: Callable[[Synced | RemoteUnreachableError | BusyError], None],
) -> None:
    """Sync again and again, until `pause` (called in between) says that it is over.

    A remote that is away is told of, and tried again; everything else is raised.
    """
    while True:
        try:
            tell(sync(environment, name, seconds))
        except (RemoteUnreachableError, BusyError) as error:
            tell(error)
        if pause():
            return
