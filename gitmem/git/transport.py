"""The process that talks to remotes: one request a line on stdin, one answer a line on stdout.

A process of its own, because libgit2 can hang (on a silent peer, on an object cut short), reads
everybody's configuration, and cannot be stopped from within: whoever started it ends it in time.
Nothing that a person could be asked reaches one from here.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Final

import pygit2
from pygit2.enums import CredentialType

from gitmem.errors import InvalidRequestError
from gitmem.git.credentials import Credential, Credentials, NoCredentialError
from gitmem.git.refs import MAIN
from gitmem.git.urls import Address, address, shown

_NOTHING: Final = "0" * 40
_PROGRESS_SECONDS: Final = 0.2

_MISSING: Final = ("404", "not found", "does not exist", "not appear to be", "unsupported url protocol")
_DENIED: Final = ("authenticat", "401", "403", "credential", "publickey", "permission denied", "certificate", "hostkey")
_AWAY: Final = (
    "connect", "resolve", "timed out", "timeout", "eof", "socket", "reset", "ssl", "network", "unexpected http",
    "early", "closed", "hung up", "could not read", "failed to read", "failed to send", "failed to start", "banner",
    "bad packet", "disconnect", "session", "no route", "request failed with status code: 5",
)  # fmt: skip


_REFUSED: Final = re.compile(r"^!.*\[remote rejected\] \((.*)\)", re.MULTILINE)
_SAID: Final = re.compile(r"^remote: (.*?)\s*$", re.MULTILINE)


class _MovedError(Exception):
    """The remote's branch is not where the caller expects it."""


class _Callbacks(pygit2.RemoteCallbacks):
    """What libgit2 asks and tells while it works."""

    def __init__(self, place: Address) -> None:
        super().__init__()
        self._credentials = Credentials(place, os.environ)
        self._told = time.monotonic()
        self.expected: str | None = None
        self.refusal: str | None = None
        self.accepted = False
        self.said = ""

    def credentials(self, url: str, username_from_url: str | None, allowed_types: CredentialType) -> Credential:
        return self._credentials.next(url, username_from_url, allowed_types)

    def certificate_check(self, certificate: None, valid: bool, host: bytes) -> bool:
        # Left to itself, pygit2 lets unknown ssh hosts pass.
        return valid

    def sideband_progress(self, string: str) -> None:
        self.said = (self.said + string)[-1000:]

    def transfer_progress(self, stats: pygit2.remotes.TransferProgress) -> None:
        self._tell("receiving objects", stats.received_objects, stats.total_objects)

    def push_transfer_progress(self, objects_pushed: int, total_objects: int, bytes_pushed: int) -> None:
        self._tell("sending objects", objects_pushed, total_objects)

    def push_negotiation(self, updates: list[pygit2.remotes.PushUpdate]) -> None:
        # The server moves its branch from what it told us in this very connection; so if that is what
        # the caller expects, the push is a compare-and-swap.
        for update in updates:
            if str(update.src) != (self.expected or _NOTHING):
                raise _MovedError

    def push_update_reference(self, refname: str, message: str | None) -> None:
        self.refusal = f"{message} {self.said}" if message else None
        self.accepted = message is None

    def _tell(self, what: str, done: int, total: int) -> None:
        if time.monotonic() - self._told > _PROGRESS_SECONDS:
            self._told = time.monotonic()
            _answer({"progress": [what, done, total]})


class Transport:
    """One repository's way to its remotes."""

    def __init__(self, git_dir: str) -> None:
        pygit2.settings.owner_validation = False
        pygit2.settings.enable_fsync_gitdir(True)  # what was fetched is merged, and a merge is durable
        self._repository = pygit2.Repository(git_dir)

    def fetch(self, url: str, insecure: bool, known: list[str]) -> dict[str, Any]:
        """Read the remote's branches, and get what main needs unless main is at one of `known`."""
        remote, callbacks, _ = self._remote(url, insecure)
        remote.connect(callbacks=callbacks)
        heads = {head.name or "": str(head.oid) for head in remote.list_heads(connect=False)}
        tip = heads.get(MAIN)
        if tip is not None and tip not in known:
            remote.fetch([MAIN], callbacks=callbacks)
        return {"tip": tip, "branches": sorted(name for name in heads if name.startswith("refs/"))}

    def push(self, url: str, insecure: bool, expected: str | None, new: str, borrowed: str | None) -> dict[str, Any]:
        """Move the remote's main from `expected` to `new`, or not at all; then ask where it is.

        `borrowed` is a folder with objects that the repository has not got yet.
        """
        remote, callbacks, place = self._remote(url, insecure)
        refusal = None
        try:
            if place.is_local:
                refusal = _push_locally(self._repository.path, place, expected, new, borrowed)
            else:
                refusal = self._push_to_server(remote, callbacks, expected, new, borrowed)
        except _MovedError:
            refusal = "moved"
        tip = self._tip(url, insecure)
        if tip != new and refusal is None and not callbacks.accepted and not place.is_local:
            refusal = "it did not say that it took the push"
        return {"tip": tip, "refusal": refusal}

    def _push_to_server(
        self, remote: pygit2.Remote, callbacks: _Callbacks, expected: str | None, new: str, borrowed: str | None
    ) -> str | None:
        callbacks.expected = expected
        if borrowed:
            self._repository.odb.add_disk_alternate(borrowed)
        remote.push([f"{new}:{MAIN}"], callbacks=callbacks)
        return callbacks.refusal

    def _tip(self, url: str, insecure: bool) -> str | None:
        remote, callbacks, _ = self._remote(url, insecure)
        heads = remote.list_heads(callbacks=callbacks)
        return next((str(head.oid) for head in heads if head.name == MAIN), None)

    def _remote(self, url: str, insecure: bool) -> tuple[pygit2.Remote, _Callbacks, Address]:
        remote = self._repository.remotes.create_anonymous(url)
        # Git's `insteadOf` may have rewritten the URL: what is used is what must be right.
        place = address(remote.url or "", insecure=insecure)
        if place.is_local:
            remote = self._repository.remotes.create_anonymous(place.folder)
            if not os.path.isdir(place.folder):
                raise FileNotFoundError(f"{place.folder} does not exist")
        return remote, _Callbacks(place), place


def _push_locally(git_dir: str, place: Address, expected: str | None, new: str, borrowed: str | None) -> str | None:
    """Push into a folder with git itself: libgit2 would run no hooks there, and overwrite what others pushed."""
    lease = f"--force-with-lease={MAIN}:{expected or ''}"
    command = ["git", "-c", "core.hooksPath=/dev/null", "push", "--porcelain", "--no-verify", lease]
    env = dict(os.environ) | ({"GIT_ALTERNATE_OBJECT_DIRECTORIES": borrowed} if borrowed else {})
    done = subprocess.run(
        [*command, place.folder, f"{new}:{MAIN}"],
        capture_output=True, cwd=git_dir, env=env | {"GIT_DIR": git_dir}, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        return None
    said = done.stdout.decode("utf-8", "replace") + done.stderr.decode("utf-8", "replace")
    if "stale info" in said or "fetch first" in said or "cannot lock ref" in said or "incorrect old value" in said:
        return "moved"
    why = _REFUSED.findall(said) or [line for line in said.splitlines() if line.startswith(("fatal: ", "error: "))]
    return " ".join([*why, *_SAID.findall(said)]) or "git push failed"


def _answer(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _trouble(error: Exception, url: str) -> dict[str, str]:
    """What kind of trouble an error is, told from libgit2's words in this one place."""
    said = " ".join(str(error).split()).replace(url, shown(url))
    words = said.lower()
    if isinstance(error, (NoCredentialError, InvalidRequestError)):
        kind = "denied"
    elif isinstance(error, FileNotFoundError) or any(word in words for word in _MISSING):
        kind = "missing"
    elif any(word in words for word in _DENIED):
        kind = "denied"
    elif isinstance(error, OSError) or any(word in words for word in _AWAY):
        kind = "away"
    else:
        kind = "failed"
    return {"kind": kind, "said": said}


def main() -> None:
    """Answer requests until stdin ends."""
    transport: Transport | None = None
    for line in sys.stdin:
        request = json.loads(line)
        step, git_dir, seconds = request.pop("step"), request.pop("git_dir"), request.pop("seconds")
        signal.setitimer(signal.ITIMER_REAL, seconds + 1)  # should whoever started this be gone
        pygit2.settings.server_timeout = pygit2.settings.server_connect_timeout = int(seconds * 1000)
        try:
            # Opened anew for each step: a borrowed folder belongs to one push.
            transport = Transport(git_dir)
            _answer({"done": getattr(transport, step)(**request)})
        except (pygit2.GitError, OSError, ValueError, KeyError, NoCredentialError, InvalidRequestError) as error:
            _answer({"trouble": _trouble(error, request["url"])})
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()
