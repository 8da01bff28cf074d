"""The steps of a tour: what was done, what came of it, and what Git says of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any, Final

from gitmem.errors import StorageError
from gitmem.store import Environment

LOG_FORMAT: Final = "%h %an: %s"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Something done, and what came of it."""

    about: str
    command: str
    status: int
    output: str

    def to_json(self) -> dict[str, Any]:
        return {"about": self.about, "command": self.command, "status": self.status, "output": self.output}


def log_of(environment: Environment) -> str:
    """The commits of an environment, newest first, each as a line of `LOG_FORMAT`; by git where there is one."""
    if shutil.which("git") is None:
        return _log_lines(environment)
    return _git(environment.folder, "log", f"--format={LOG_FORMAT}").rstrip("\n")


def _git(folder: str, *arguments: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(
        ["git", "--no-pager", "-C", folder, *arguments], capture_output=True, env=kept, encoding="utf-8", check=False
    )
    if done.returncode:
        raise StorageError(f"git log failed: {done.stderr.strip()}")
    return done.stdout


def _log_lines(environment: Environment) -> str:
    parts = environment.parts()
    tip = parts.repository.tip()
    commits = parts.reader.back(tip, None) if tip else ()
    return "\n".join(f"{commit.oid.hex()[:7]} {commit.author}: {commit.subject}" for commit in commits)
