"""How an environment is kept, and what it is given from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gitmem.clock import Clock, system_clock
from gitmem.environment.catchup import Progress, silent
from gitmem.environment.form import DOCUMENTS, Form
from gitmem.git.commits import Person
from gitmem.git.repository import LOCK_SECONDS


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How an environment is kept: `durable` flushes before a save is acknowledged; `worktree` keeps
    every document as a file; `author` is the owner's identity where Git's configuration has none;
    `upstream_seconds` is how long a save waits for an answer of the upstream, where there is one; `form` is
    what it keeps: documents, or memory files."""

    durable: bool = True
    worktree: bool = True
    author: Person | None = None
    clock: Clock = system_clock
    progress: Progress = silent
    lock_seconds: float = LOCK_SECONDS
    upstream_seconds: float = 10.0
    form: Form = DOCUMENTS


DEFAULTS: Final = Settings()
