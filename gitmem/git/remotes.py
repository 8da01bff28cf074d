"""Named remotes, kept in the repository's configuration as plain git keeps them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Final

import pygit2

from gitmem.errors import ConflictError, InvalidRequestError, NotFoundError, StorageError
from gitmem.git.files import busy
from gitmem.git.urls import Address, address, shown

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,62}\Z", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Remote:
    """A remote: its name and URL, and whether it is the environment's upstream.

    `insecure` lets it be plain http; `offline` lets saves be made while the upstream is away.
    """

    name: str
    url: str
    upstream: bool = False
    insecure: bool = False
    offline: bool = False

    def address(self) -> Address:
        """The URL, checked. Raises InvalidRequestError."""
        return address(self.url, insecure=self.insecure)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "url": shown(self.url), "upstream": self.upstream, "offline": self.offline}


class RemoteConfig:
    """The remotes that one repository's configuration file names. Whatever git wrote there counts."""

    def __init__(self, git_dir: str) -> None:
        self._path = os.path.join(git_dir, "config")
        self._stamp: tuple[int, int] | None = None
        self._found: list[Remote] = []

    def all(self) -> list[Remote]:
        """Every remote, by name. Raises StorageError where the file cannot be read."""
        try:
            stat = os.stat(self._path)
            if self._stamp != (stat.st_mtime_ns, stat.st_ino):
                self._found = _remotes(pygit2.Config(self._path))
                self._stamp = stat.st_mtime_ns, stat.st_ino
        except FileNotFoundError:
            return []
        except (OSError, pygit2.GitError, UnicodeDecodeError) as error:
            raise StorageError(f"Cannot read {self._path}: {' '.join(str(error).split())}.") from None
        return self._found

    def upstream(self) -> Remote | None:
        """The remote that is the authority, if one is."""
        return next((remote for remote in self.all() if remote.upstream), None)

    def get(self, name: str | None) -> Remote:
        """The remote of that name; without one the upstream, or the only one there is.

        Raises NotFoundError; InvalidRequestError where there are several to choose from.
        """
        known = self.all()
        if name is None:
            chosen = [remote for remote in known if remote.upstream] or known
            if len(chosen) > 1:
                raise InvalidRequestError(f"Which remote? There are {', '.join(remote.name for remote in known)}.")
        else:
            chosen = [remote for remote in known if remote.name == name]
        if not chosen:
            what = "no remote" if name is None else f"no remote {check_remote_name(name)}"
            raise NotFoundError(f"There is {what} here. Add one with gitmem remote add NAME URL.")
        return chosen[0]

    def add(self, remote: Remote) -> None:
        """Write a new remote. Raises InvalidRequestError, ConflictError, BusyError."""
        check_remote_name(remote.name)
        remote.address()
        known = self.all()
        if any(other.name == remote.name for other in known):
            raise ConflictError(f"There is a remote {remote.name} already. Remove it first, or choose another name.")
        if remote.upstream and (other := self.upstream()):
            raise ConflictError(f"{other.name} is the upstream already. Remove it first.")
        flags = {name: getattr(remote, name) for name in ("upstream", "insecure", "offline")}
        settings = {
            f"remote.{remote.name}.url": remote.url,
            f"remote.{remote.name}.fetch": f"+refs/heads/*:refs/remotes/{remote.name}/*",
        } | {f"gitmem.{remote.name}.{name}": "true" for name, value in flags.items() if value}
        with self._written() as config:
            for key, value in settings.items():
                config[key] = value

    def remove(self, name: str) -> Remote:
        """Take a remote out. Raises NotFoundError, BusyError."""
        remote = self.get(check_remote_name(name))
        with self._written() as config:
            for key in [entry.name for entry in config]:
                if key.startswith((f"remote.{name}.", f"gitmem.{name}.")):
                    config.delete_multivar(key, ".*")
        return remote

    def _written(self) -> _Written:
        return _Written(self._path)


class _Written:
    """The configuration file, for a few changes; libgit2's troubles with it become ours."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> pygit2.Config:
        return pygit2.Config(self._path)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (pygit2.GitError, OSError)):
            if os.path.exists(f"{self._path}.lock"):
                raise busy(
                    f"{self._path}.lock is held by another Git process",
                    "If none is running, remove that file and try again.",
                ) from None
            raise StorageError(f"Cannot write {self._path}: {' '.join(str(error).split())}.") from error


def _remotes(config: pygit2.Config) -> list[Remote]:
    urls: dict[str, str] = {}
    flags: set[tuple[str, str]] = set()
    for entry in config:
        section, _, rest = entry.name.partition(".")
        name, _, key = rest.rpartition(".")
        if section == "remote" and key == "url" and name:
            urls.setdefault(name, entry.value or "")
        elif section == "gitmem" and (entry.value or "true").lower() in {"true", "yes", "on", "1"}:
            flags.add((name, key))
    return [
        Remote(
            name=name,
            url=url,
            upstream=(name, "upstream") in flags,
            insecure=(name, "insecure") in flags,
            offline=(name, "offline") in flags,
        )
        for name, url in sorted(urls.items())
    ]


def check_remote_name(name: str) -> str:
    """Return `name`, or raise InvalidRequestError: it becomes part of a ref and of a configuration key."""
    if not _NAME.match(name) or name.endswith((".", ".lock")):
        raise InvalidRequestError(
            f"{ascii(name)[:60]} is not a remote's name: use up to 63 letters, digits, '.', '-' or '_'."
        )
    return name
