"""Who has signed in to the page, and the one-time links that do so: small files that every worker sees.

A file's name is the hash of a random token, which only the browser, or the reader of the link, has.
"""

from __future__ import annotations

import json
import os
import re
from base64 import urlsafe_b64encode
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Final

from gitmem.clock import Clock, system_clock
from gitmem.errors import UnauthorizedError
from gitmem.git.files import storage, write_file
from gitmem.ids import Random, system_random

SIGN_IN_SECONDS: Final = 12 * 3600
LINK_SECONDS: Final = 600

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}\Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class SignIn:
    """Somebody who came in with a key, or by a link of the server run `run`. `until` is milliseconds."""

    key: str | None
    run: str
    until: int


class SignIns:
    """The sign-ins of the store in `folder`. `run` names this run of the server, in all its workers."""

    def __init__(self, folder: str, run: str, *, clock: Clock = system_clock, random: Random = system_random) -> None:
        self._folder = os.path.join(folder, ".gitmem", "page")
        self._run = run
        self._clock = clock
        self._random = random

    def new_token(self) -> str:
        """A token that nobody has."""
        return urlsafe_b64encode(self._random(32)).rstrip(b"=").decode()

    def begin(self, key_id: str | None) -> str:
        """Sign in; the token that stands for it. Without a key it ends with this run of the server."""
        return self._write("signin", key_id, SIGN_IN_SECONDS)

    def find(self, token: str) -> SignIn | None:
        """The sign-in that a token stands for, while it lasts."""
        return self._read(self._path("signin", token)) if is_token(token) else None

    def end(self, token: str) -> None:
        """Sign out."""
        if is_token(token):
            with storage("sign out"), suppress(FileNotFoundError):
                os.unlink(self._path("signin", token))

    def link(self) -> str:
        """A token that signs the owner in, once and soon."""
        return self._write("link", None, LINK_SECONDS)

    def redeem(self, link: str) -> str:
        """Sign in by a link; the token of the sign-in. Raises UnauthorizedError."""
        path = self._path("link", link)
        found = self._read(path) if is_token(link) else None
        try:
            # Of several that come with one link, the unlink lets exactly one in.
            os.unlink(path)
        except FileNotFoundError:
            found = None
        if found is None:
            raise UnauthorizedError("This link has been used or has expired. Start gitmem serve --open for a new one.")
        return self.begin(None)

    def _path(self, kind: str, token: str) -> str:
        return os.path.join(self._folder, f"{kind}-{sha256(token.encode()).hexdigest()}.json")

    def _write(self, kind: str, key_id: str | None, seconds: int) -> str:
        token = self.new_token()
        made = SignIn(key=key_id, run=self._run, until=self._clock() + seconds * 1000)
        with storage("sign in"):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            self._sweep()
            write_file(self._path(kind, token), json.dumps(asdict(made)).encode(), mode=0o600)
        return token

    def _read(self, path: str) -> SignIn | None:
        try:
            with open(path, "rb") as file:
                found = SignIn(**json.load(file))
        except (OSError, ValueError, TypeError):
            return None
        if found.until <= self._clock() or (found.key is None and found.run != self._run):
            return None
        return found

    def _sweep(self) -> None:
        """Remove what is long over. A file that another worker is writing is young, whatever it holds."""
        oldest = self._clock() / 1000 - SIGN_IN_SECONDS
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if entry.stat().st_mtime < oldest:
                        os.unlink(entry.path)


def is_token(value: str) -> bool:
    """Whether `value` could be a token."""
    return _TOKEN.match(value) is not None
