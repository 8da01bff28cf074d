"""Asking the process that talks to remotes, and ending it when it takes too long."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Final

from gitmem.errors import RemoteRefusedError, RemoteUnreachableError
from gitmem.git.objects import Oid
from gitmem.git.remotes import Remote
from gitmem.git.urls import shown

TIMEOUT_SECONDS: Final = 30.0
_KEPT: Final = frozenset((
    "GIT_SSL_CAINFO",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
))

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class Advertised:
    """What a remote has: the tip of its main, and the names of all its refs."""

    tip: Oid | None
    refs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pushed:
    """Where the remote's main is after a push. `moved`: it was not where it was expected to be."""

    tip: Oid | None
    moved: bool


class Courier:
    """One repository's messenger. Its process starts with the first step and stays for the next."""

    def __init__(self, git_dir: str) -> None:
        self._git_dir = git_dir
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def fetch(self, remote: Remote, known: list[Oid], seconds: float, progress: Progress) -> Advertised:
        """Read a remote's refs, and get the objects of its main unless it is at one of `known`.

        No ref moves. Raises RemoteUnreachableError, RemoteRefusedError.
        """
        done = self._ask(remote, seconds, progress, step="fetch", known=[oid.hex() for oid in known])
        return Advertised(_oid(done["tip"]), tuple(done["branches"]))

    def push(
        self, remote: Remote, expected: Oid | None, new: Oid, seconds: float, progress: Progress,
        borrowed: str | None = None,
    ) -> Pushed:  # fmt: skip
        """Move a remote's main from `expected` (None: it has none) to `new`, or leave it.

        `borrowed` is an objects folder that holds what the repository has not got yet. Raises
        RemoteUnreachableError, after which the push may have arrived; RemoteRefusedError.
        """
        done = self._ask(
            remote, seconds, progress, step="push",
            expected=expected.hex() if expected else None, new=new.hex(), borrowed=borrowed,
        )  # fmt: skip
        tip, refusal = _oid(done["tip"]), done["refusal"]
        if tip == new or refusal is None:
            return Pushed(tip, moved=False)
        if refusal == "moved" or tip != expected:
            return Pushed(tip, moved=True)
        said = " ".join(refusal.split())[:300].rstrip(".")
        raise RemoteRefusedError(f"{_named(remote)} refused the push: {said}.")

    def close(self) -> None:
        """Let the process end."""
        process, self._process = self._process, None
        if process is not None and self._pid == os.getpid():
            _end(process)

    def _ask(self, remote: Remote, seconds: float, progress: Progress, **request: Any) -> dict[str, Any]:
        remote.address()  # whoever wrote the configuration
        request |= {"git_dir": self._git_dir, "seconds": seconds, "url": remote.url, "insecure": remote.insecure}
        with self._lock:
            process = self._running()
            try:
                answer = _asked(process, request, time.monotonic() + seconds, progress)
            except BaseException:
                self._process = None
                _end(process)
                raise
        if answer is None:
            self._process = None
            _end(process)
            raise RemoteUnreachableError(
                f"{_named(remote)} did not answer within {seconds:g} s. Check the network, or give it more time."
            )
        if "trouble" in answer:
            raise _error(remote, **answer["trouble"])
        done: dict[str, Any] = answer["done"]
        return done

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None or self._pid != os.getpid():
            self._pid = os.getpid()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gitmem.git.transport"],
                bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                cwd="/", env=_environment(), start_new_session=True,
            )  # fmt: skip
        return self._process


def _asked(
    process: subprocess.Popen[bytes], request: dict[str, Any], deadline: float, progress: Progress
) -> dict[str, Any] | None:
    """The answer; None where the time is up, or the process has died."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        while line := _line(process.stdout, deadline):
            answer: dict[str, Any] = json.loads(line)
            if "progress" not in answer:
                return answer
            progress(*answer["progress"])
    except BrokenPipeError:
        pass
    return None


def _line(stream: IO[bytes], deadline: float) -> bytes:
    """A line, which the process writes whole; empty where the time is up, or at the end."""
    waiting = select.poll()  # select.select takes no descriptor above 1023
    waiting.register(stream, select.POLLIN)
    ready = waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
    return stream.readline() if ready else b""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()


def _environment() -> dict[str, str]:
    """The person's environment without what would aim git at another repository, or ask somebody."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key in _KEPT}
    kept.pop("SSH_ASKPASS", None)
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _error(remote: Remote, kind: str, said: str) -> RemoteUnreachableError | RemoteRefusedError:
    match kind:
        case "missing":
            return RemoteRefusedError(f"{_named(remote)} does not exist, or you may not see it ({said}).")
        case "denied":
            return RemoteRefusedError(f"{_named(remote)} does not let us in: {said}")
        case "away":
            return RemoteUnreachableError(f"{_named(remote)} cannot be reached ({said}). Check the network.")
    return RemoteRefusedError(f"{_named(remote)} cannot be used: {said}.")


def _named(remote: Remote) -> str:
    return f"The remote {remote.name} ({shown(remote.url)})"


def _oid(name: str | None) -> Oid | None:
    return bytes.fromhex(name) if name else None
