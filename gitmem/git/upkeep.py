"""What follows a save at leisure: healing what lags, the journal's checkpoint, packing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gitmem.errors import GitmemError
from gitmem.git.repository import Repository

_DELAY_SECONDS: Final = 0.2
_COST_SHARE: Final = 10
_IDLE_SECONDS: Final = 5.0
_LAST_TRY_SECONDS: Final = 1.0
_MOST_HEALINGS: Final = 1_000
_BREATH_SECONDS: Final = 0.0002
_BUSY_SECONDS: Final = 0.5
_BUSY_REST: Final = 9
"""While saves go on, packing rests nine times as long as it works: two threads share one interpreter."""
_NOTHING_TO_TIDY_SECONDS: Final = 600.0


class Upkeep:
    """A thread that runs while there is something to do, never in a caller's way for long."""

    def __init__(
        self,
        repository: Repository,
        *,
        heal: Callable[[], bool] = lambda: True,
        needs_healing: Callable[[], bool] = lambda: False,
    ) -> None:
        """`heal` brings up what lags, and says whether it could; it must not raise."""
        self._repository = repository
        self._heal = heal
        self._needs_healing = needs_healing
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._tidying: threading.Thread | None = None
        self._tidy_again = 0.0
        self._due = False
        self._closing = False
        self._saved_at = 0.0
        self._breathed_at = 0.0

    def wake(self) -> None:
        """Something was saved."""
        self._saved_at = time.monotonic()
        if self._due:
            return
        with self._condition:
            self._due = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="gitmem-upkeep", daemon=True)
                self._thread.start()
            else:
                self._condition.notify()

    def close(self) -> None:
        """Do what is left to do now, in the caller's thread."""
        with self._condition:
            thread, self._closing = self._thread, True
            self._condition.notify()
            tidying = self._tidying
        for running in (thread, tidying):
            if running is not None:
                running.join()
        if self._due or self._needs_healing():
            self._heal_all()

    def _heal_all(self) -> None:
        deadline = time.monotonic() + _LAST_TRY_SECONDS
        for _ in range(_MOST_HEALINGS):
            if not self._heal():
                if time.monotonic() > deadline:
                    return
                time.sleep(0.05)
            elif not self._needs_healing():
                return

    def _run(self) -> None:
        pause = _DELAY_SECONDS
        while True:
            with self._condition:
                if not self._due and not self._closing:
                    self._condition.wait(_IDLE_SECONDS)
                if self._closing or not self._due:
                    self._thread = None
                    return
                self._condition.wait_for(lambda: self._closing, pause)
                if self._closing:
                    self._thread = None
                    return
                self._due = False
            started = time.monotonic()
            if not self._heal() or self._needs_healing():
                self._due = True
            with suppress(GitmemError, OSError):
                self._repository.checkpoint()
            self._tidy_if_due()
            # A large index takes long to write: then it is written less often.
            pause = max(_DELAY_SECONDS, (time.monotonic() - started) * _COST_SHARE)

    def _tidy_if_due(self) -> None:
        if time.monotonic() < self._tidy_again or (self._tidying is not None and self._tidying.is_alive()):
            return
        from gitmem.git.housekeeping import measure

        if measure(self._repository).due:
            with self._condition:
                if not self._closing:
                    self._tidying = threading.Thread(target=self._tidy, name="gitmem-packing", daemon=True)
                    self._tidying.start()

    def _tidy(self) -> None:
        """Pack in small steps, on handles of its own, until done or until the environment closes."""
        from gitmem.git.housekeeping import Housekeeping

        packed = 0
        with suppress(GitmemError, OSError, _Closing):
            repository = Repository(self._repository.folder, durable=self._repository.durable)
            self._breathed_at = time.monotonic()
            try:
                packed = Housekeeping(repository, self._breathe).run()
            finally:
                repository.close(flush=False)
        if not packed:
            self._tidy_again = time.monotonic() + _NOTHING_TO_TIDY_SECONDS

    def _breathe(self) -> None:
        if self._closing:
            raise _Closing
        now = time.monotonic()
        is_busy = now - self._saved_at < _BUSY_SECONDS
        time.sleep(max(_BREATH_SECONDS, (now - self._breathed_at) * _BUSY_REST) if is_busy else _BREATH_SECONDS)
        self._breathed_at = time.monotonic()


class _Closing(Exception):
    """The environment closes: what was begun is given up."""
