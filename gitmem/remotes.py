"""The Git remotes of an environment: adding, listing, removing."""

from __future__ import annotations

import os

from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.peers import SYNCED, TRACKING
from gitmem.errors import InvalidRequestError
from gitmem.git.files import storage
from gitmem.git.refs import Ref
from gitmem.git.remotes import Remote, RemoteConfig
from gitmem.git.urls import is_relative


class Remotes:
    """The remotes of one environment, kept in its repository's configuration: plain git knows them too."""

    def __init__(self, environment: EnvironmentRepository) -> None:
        self._environment = environment

    def add(
        self, name: str, url: str, *, upstream: bool = False, offline: bool = False, insecure: bool = False
    ) -> Remote:
        """Add a remote. A relative path counts from the current folder.

        `upstream` makes it the authority: from then on a save is acknowledged only when the
        upstream's main has moved; `offline` lets saves be made here alone while it is away.
        Raises InvalidRequestError for a URL that is not accepted (see `gitmem.git.urls`), or one
        with a password or token in it; ConflictError for a name that is taken, or a second upstream.
        """
        if offline and not upstream:
            raise InvalidRequestError("Only an upstream can be away: every other remote may always be. Leave offline.")
        place = os.path.abspath(url) if is_relative(url) else url
        remote = Remote(name=name, url=place, upstream=upstream, offline=offline, insecure=insecure)
        remote.address()
        self._environment.make()
        self._config().add(remote)
        return remote

    def list(self) -> list[Remote]:
        """Every remote, by name; those that plain git added too."""
        return self._config().all() if self._environment.exists else []

    def remove(self, name: str) -> Remote:
        """Take a remote out, and forget where it was. Raises NotFoundError."""
        removed = self._config().remove(name)
        git_dir = self._environment.parts().repository.git_dir
        with storage(f"forget {name} in {git_dir}"):
            for ref in (SYNCED, TRACKING):
                Ref(git_dir, ref.format(name)).remove()
        return removed

    def _config(self) -> RemoteConfig:
        return self._environment.parts().remotes
