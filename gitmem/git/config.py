"""The few settings of Git that gitmem reads, from its configuration files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import pygit2


class Config:
    """One configuration file. Whatever cannot be read in it counts as not set."""

    def __init__(self, config: pygit2.Config | None) -> None:
        self._config = config

    @classmethod
    def read(cls, path: str) -> Config:
        """The file at `path`, which may be missing or malformed."""
        with suppress(OSError, pygit2.GitError, ValueError):
            return cls(pygit2.Config(path))
        return cls(None)

    def text(self, key: str) -> str | None:
        """A setting as text; None where it is not set, or not UTF-8."""
        if self._config is None:
            return None
        with suppress(KeyError, pygit2.GitError, UnicodeDecodeError):
            return self._config[key] or None
        return None

    def flag(self, key: str) -> bool:
        """A setting as a truth value; False where it is not set."""
        if self._config is None:
            return False
        with suppress(KeyError, pygit2.GitError, ValueError):
            return self._config.get_bool(key)
        return False


def is_malformed(path: str) -> bool:
    """Whether a configuration file is there that git refuses. libgit2 alone would read past a NUL."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        list(pygit2.Config(path))
    except FileNotFoundError:
        return False
    except (pygit2.GitError, OSError, ValueError):
        return True
    return b"\0" in data


def identity(configs: Iterable[Config]) -> tuple[str, str] | None:
    """The name and the address that the first of the files that has them sets; None without either."""
    known = tuple(configs)
    name, email = (
        next(filter(None, (config.text(key) for config in known)), "") for key in ("user.name", "user.email")
    )
    return (name, email) if name or email else None


def shared_configs() -> Iterator[Config]:
    """The person's own configuration, then the machine's; those that can be read."""
    for read in (pygit2.Config.get_global_config, pygit2.Config.get_xdg_config, pygit2.Config.get_system_config):
        with suppress(OSError, pygit2.GitError, ValueError):
            yield Config(read())
