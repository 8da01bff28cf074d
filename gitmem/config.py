"""`gitmem.toml`: the mark of a store, its few settings and its declarations."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gitmem.errors import InvalidRequestError, StorageError
from gitmem.git.files import rename_new, scratch_name, sync_path, write_file
from gitmem.limits import MAX_BYTES_DEFAULT, check_resource_id
from gitmem.memory import define_memory, document_memory
from gitmem.records import Memory

FILE: Final = "gitmem.toml"
_KEYS: Final = frozenset(("project", "agent", "durability", "worktree", "memory", "screening"))
_MEMORY_KEYS: Final = frozenset(("description", "max_bytes", "screening"))
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}\Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """What `gitmem.toml` says. `durability` is "full" (flush before acknowledging) or "os".

    `allowed` are the hashes of secret values that may be kept all the same; `screened`, the
    resources whose documents are screened as memory files are.
    """

    project: str | None = None
    agent: str | None = None
    durability: str = "full"
    worktree: bool = True
    memories: tuple[Memory, ...] = ()
    allowed: frozenset[str] = frozenset()
    screened: frozenset[str] = frozenset()


def read(folder: str) -> Config:
    """The settings of the store in `folder`. Raises StorageError or InvalidRequestError."""
    import tomllib

    path = os.path.join(folder, FILE)
    try:
        with open(path, "rb") as file:
            value = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"{path} is not TOML: {error}.") from None
    except OSError as error:
        raise StorageError(f"Cannot read {path}: {error.strerror}.") from None
    try:
        return _config(value)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{path}: {error.message}") from None


def find(start: str) -> str | None:
    """The nearest folder from `start` upwards that holds a `gitmem.toml`."""
    folder = os.path.abspath(start)
    while not os.path.isfile(os.path.join(folder, FILE)):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def write_new(folder: str, project: str | None) -> None:
    """Mark `folder` as a store; an existing `gitmem.toml` is left as it is."""
    text = "# A gitmem store. The memory itself lies in the Git repositories below.\n"
    if project:
        text += f'project = "{project}"\n'
    text += (
        "\n# Declare what your agents remember, then run: gitmem deploy --agent NAME\n"
        "# [memory.notes]\n"
        '# description = "Requirements and decisions."\n'
        f"# max_bytes = {MAX_BYTES_DEFAULT}\n"
    )
    try:
        os.makedirs(folder, exist_ok=True)
        new = os.path.join(folder, f".{FILE}-{scratch_name()}")
        write_file(new, text.encode())
        try:
            # Whole or not at all, a power loss included: without this file nothing is a store.
            sync_path(new)
            rename_new(new, os.path.join(folder, FILE))
            sync_path(folder)
            sync_path(os.path.dirname(os.path.abspath(folder)))
        except FileExistsError:
            os.unlink(new)
    except OSError as error:
        raise StorageError(f"Cannot make a store in {folder}: {error.strerror}.") from None


def _config(value: Mapping[str, Any]) -> Config:
    if unknown := value.keys() - _KEYS:
        raise InvalidRequestError(f"unknown setting {min(unknown)}")
    for key in ("project", "agent"):
        if key in value:
            check_resource_id(value[key], key)
    durability, worktree = value.get("durability", "full"), value.get("worktree", True)
    if durability not in ("full", "os"):
        raise InvalidRequestError('durability is neither "full" nor "os"')
    if not isinstance(worktree, bool):
        raise InvalidRequestError("worktree is neither true nor false")
    memory = value.get("memory", {})
    if not isinstance(memory, dict):
        raise InvalidRequestError("memory is not a table")
    return Config(
        project=value.get("project"),
        agent=value.get("agent"),
        durability=durability,
        worktree=worktree,
        memories=tuple(_declared(name, table) for name, table in memory.items()),
        allowed=_allowed(value.get("screening", {})),
        screened=frozenset(name for name, table in memory.items() if table.get("screening", False)),
    )


def _allowed(table: Any) -> frozenset[str]:
    if not isinstance(table, dict) or table.keys() - {"allow"}:
        raise InvalidRequestError("screening is not a table with nothing but allow")
    allowed = table.get("allow", [])
    if not isinstance(allowed, list) or not all(isinstance(one, str) and _HASH.match(one) for one in allowed):
        raise InvalidRequestError('screening.allow is not a list of hashes such as "sha256:" and 64 hex digits')
    return frozenset(allowed)


def _declared(name: str, table: Any) -> Memory:
    if not isinstance(table, dict):
        raise InvalidRequestError(f"memory.{name} is not a table")
    if unknown := table.keys() - _MEMORY_KEYS:
        raise InvalidRequestError(f"memory.{name} has an unknown key {min(unknown)}")
    if not isinstance(table.get("screening", False), bool):
        raise InvalidRequestError(f"memory.{name}.screening is neither true nor false")
    provider = document_memory(max_bytes=table.get("max_bytes", MAX_BYTES_DEFAULT))
    return define_memory(id=name, description=table.get("description", ""), provider=provider)
