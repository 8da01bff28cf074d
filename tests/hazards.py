"""What the hazard tests share: one command of an owner, and looking at a repository as a person would."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import gitmem
from tests.support import git
from tests.support import gitmem as run


def folder(environment: gitmem.Environment) -> Path:
    """The environment's working tree."""
    return Path(environment.folder)


def git_dir(environment: gitmem.Environment) -> Path:
    """The environment's `.git`."""
    return folder(environment) / ".git"


def file_of(environment: gitmem.Environment, document_id: str) -> Path:
    """Where a document of "notes" lies, in a folder that has not been split."""
    return folder(environment) / "notes" / f"{document_id}.json"


def command(
    environment: gitmem.Environment, *args: str, stdin: str = "", **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run `gitmem` on the environment's store, as a process of its own."""
    return run("--store", _store(environment), "--project", "bot", *args, stdin=stdin.encode(), **more)


def done(environment: gitmem.Environment, *args: str, **more: Any) -> str:
    """What a `gitmem` command printed, which must succeed and say nothing else."""
    ran = command(environment, *args, **more)
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    return ran.stdout


def refused(environment: gitmem.Environment, *args: str, status: int = 1, **more: Any) -> str:
    """The one line of a `gitmem` command that must fail, and print nothing else."""
    ran = command(environment, *args, **more)
    assert (ran.returncode, ran.stdout) == (status, ""), ran
    assert len(ran.stderr.splitlines()) == 1, ran.stderr
    return ran.stderr.removesuffix("\n")


def shown(environment: gitmem.Environment, document_id: str) -> str:
    """The text of a document of "notes", as the command line tells it."""
    text = json.loads(done(environment, "--json", "show", "notes", "--", document_id))["text"]
    assert isinstance(text, str)
    return text


def edited(environment: gitmem.Environment, document_id: str, text: str) -> None:
    """Save a text with `gitmem edit`, on top of whatever is there."""
    done(environment, "edit", "notes", "--text-stdin", "--", document_id, stdin=text)


def status(environment: gitmem.Environment) -> str:
    """What plain `git status` says: nothing where all is clean."""
    return git(environment.folder, "status", "--porcelain")


def subjects(environment: gitmem.Environment, *args: str) -> list[str]:
    """The subjects of main's commits, newest first."""
    return git(environment.folder, "log", "--format=%s", *(args or ("main",))).splitlines()


def handwritten(title: str, text: str) -> str:
    """A document as a person writes it: valid, and not the bytes that gitmem would write."""
    return json.dumps({"title": title, "text": text})


def _store(environment: gitmem.Environment) -> str:
    return str(folder(environment).parents[1])
