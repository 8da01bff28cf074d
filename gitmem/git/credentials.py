"""Who to be at a remote: from the environment, the ssh agent, key files, or git's credential helper.

Read in the process that talks to the remote, and nowhere else. Nothing here ever asks a person.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import Final

import pygit2
from pygit2.enums import CredentialType

from gitmem.git.urls import Address, address

USERNAME: Final = "GITMEM_REMOTE_USERNAME"
PASSWORD: Final = "GITMEM_REMOTE_PASSWORD"
SSH_KEY: Final = "GITMEM_REMOTE_SSH_KEY"
_KEY_FILES: Final = ("id_ed25519", "id_ecdsa", "id_rsa")
_PLAIN: Final = CredentialType.USERPASS_PLAINTEXT

Credential = pygit2.UserPass | pygit2.Keypair | pygit2.Username


class NoCredentialError(Exception):
    """Everything that there was has been tried."""


class Credentials:
    """What may be tried at one remote, each once."""

    def __init__(self, place: Address, environ: Mapping[str, str]) -> None:
        self._place = place
        self._environ = environ
        self._passwords = self._with_password()
        self._keys = self._with_key()

    def next(self, url: str, username: str | None, allowed: CredentialType) -> Credential:
        """The next one to try. Raises NoCredentialError; also for another host than the remote's own."""
        if _host(url) != self._place.host:
            raise NoCredentialError("The remote sent us to another host, which gets no credentials.")
        user = username or self._place.user or self._environ.get(USERNAME)
        if allowed & CredentialType.USERNAME:
            return pygit2.Username(user or "git")
        found = next(self._keys if allowed & CredentialType.SSH_KEY else self._passwords, None)
        if found is None:
            raise NoCredentialError(
                "The remote wants credentials, and none that we have are right. Load a key into the ssh agent."
                if self._place.scheme == "ssh"
                else "The remote wants credentials, and none that we have are right. "
                f"Set {USERNAME} and {PASSWORD}, or configure a git credential helper."
            )
        return found

    def _with_password(self) -> Iterator[Credential]:
        password = self._environ.get(PASSWORD)
        if password is not None:
            yield pygit2.UserPass(self._place.user or self._environ.get(USERNAME) or "git", password)
        if self._place.scheme != "ssh":
            filled = _filled(self._place, self._environ)
            if filled:
                yield pygit2.UserPass(*filled)

    def _with_key(self) -> Iterator[Credential]:
        user = self._place.user or self._environ.get(USERNAME) or "git"
        named = self._environ.get(SSH_KEY)
        if named:
            yield pygit2.Keypair(user, None, named, self._environ.get(PASSWORD, ""))
        if self._environ.get("SSH_AUTH_SOCK"):
            yield pygit2.KeypairFromAgent(user)
        for name in _KEY_FILES:
            path = os.path.join(self._environ.get("HOME", "/"), ".ssh", name)
            if os.path.isfile(path):
                yield pygit2.Keypair(user, None, path, "")


def _host(url: str) -> str | None:
    return address(url, insecure=True).host


def _filled(place: Address, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """What git's credential helpers know, as git itself would ask them (git-credential)."""
    user = f"username={place.user}\n" if place.user else ""
    try:
        done = subprocess.run(
            ["git", "-c", "core.askPass=", "credential", "fill"],
            input=f"url={place.url}\n{user}\n".encode(),
            capture_output=True,
            env=dict(environ) | {"GIT_TERMINAL_PROMPT": "0"},
            check=False,
        )
    except OSError:
        return None
    values = dict(line.partition("=")[::2] for line in done.stdout.decode("utf-8", "replace").splitlines())
    if done.returncode != 0 or "password" not in values:
        return None
    return values.get("username", ""), values["password"]
