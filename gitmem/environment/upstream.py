"""The authority of an environment on many machines: no save is done before the upstream's main has moved to it."""

from __future__ import annotations

import os
import shutil
import time
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from gitmem.environment.draft import Draft
from gitmem.environment.peers import Peer
from gitmem.errors import RemoteUnreachableError
from gitmem.failpoints import reach
from gitmem.git.ancestry import is_ancestor
from gitmem.git.files import write_file
from gitmem.git.journal import StagedObject
from gitmem.git.objects import Oid
from gitmem.git.repository import Repository

_AWAY_SECONDS: Final = 5.0
"""How long an upstream that was away is left alone, where saves may be made without it."""


class Upstream:
    """The upstream of one open environment. What changes something needs the environment's lock."""

    def __init__(self, repository: Repository, peer: Peer, seconds: float) -> None:
        self._repository = repository
        self._seconds = seconds
        self._away_until = 0.0
        self.peer = peer
        self.theirs: Oid | None = None
        """Where the upstream was found, by whatever said that it had moved."""
        self.taken: Oid | None = None
        """What the upstream took of the last draft; None where there was nothing to take, or it was away."""

    def has_moved(self, tip: Oid | None) -> bool:
        """Whether the upstream is, right now, somewhere that `tip` does not hold. Needs no lock."""
        self.theirs = self.peer.look(self._seconds)
        return self.theirs is not None and (tip is None or not is_ancestor(self._repository, self.theirs, tip))

    def is_back(self) -> None:
        """It has just been reached: the next save goes there again."""
        self._away_until = 0.0

    def takes(self, draft: Draft) -> bool:
        """Let the upstream stand for a draft: its main moves to it, from where it began, or not at all.

        A draft without commits only has to stand on what the upstream has: its answers say so.
        False where the upstream has moved: join `theirs`, and run the changes again. Raises
        RemoteUnreachableError, unless saves may be made without it; RemoteRefusedError,
        RemoteHistoryError.
        """
        self.taken = None
        if time.monotonic() < self._away_until:
            return True
        try:
            if draft.head.tip == draft.published or draft.head.tip is None:
                return not self.has_moved(draft.published)
            return self._pushed(draft, draft.head.tip)
        except RemoteUnreachableError:
            if not self.peer.remote.offline:
                raise
            self._away_until = time.monotonic() + _AWAY_SECONDS
            return True

    def _pushed(self, draft: Draft, new: Oid) -> bool:
        expected = self.peer.known()
        if expected is None:
            if self.has_moved(draft.published):
                return False
            expected = self.theirs
        if expected and not (draft.published and is_ancestor(self._repository, expected, draft.published)):
            return not self.has_moved(draft.published)  # main was taken back: what the upstream has stays
        with self._borrowed(draft.staged) as folder:
            reach("before-push")
            try:
                pushed = self.peer.push(expected, new, self._seconds, folder)
            except RemoteUnreachableError as error:
                self._look_again(new, error)
                pushed = True
        if pushed:
            self.taken = new
            reach("after-push")
            return True
        self.theirs = self.peer.look(self._seconds)
        return False

    def _look_again(self, new: Oid, error: RemoteUnreachableError) -> None:
        """After a push whose answer was lost: pass where it has arrived, else say that it may have."""
        try:
            if self.peer.look(self._seconds) == new:
                return
        except RemoteUnreachableError:
            pass
        raise RemoteUnreachableError(
            f"{error.message} Nothing was changed here. It may have arrived there: "
            "read with --fresh (fresh=True) before you try again."
        ) from error

    @contextmanager
    def _borrowed(self, staged: Sequence[StagedObject]) -> Generator[str, None, None]:
        """A folder with the draft's objects, for the push alone: the repository gets them when it has landed."""
        folder = os.path.join(self._repository.derived, "outgoing")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            for oid, kind, data in dict.fromkeys(staged):
                name = oid.hex()
                os.makedirs(os.path.join(folder, name[:2]), exist_ok=True)
                write_file(
                    os.path.join(folder, name[:2], name[2:]),
                    zlib.compress(b"%b %d\0" % (kind.encode(), len(data)) + data, 0),
                )
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
