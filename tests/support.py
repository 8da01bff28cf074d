"""What tests share: real git and the real command in child processes, and stores found on the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_IDENTITY = {
    "GIT_AUTHOR_NAME": "Pat Person",
    "GIT_AUTHOR_EMAIL": "pat@example.org",
    "GIT_COMMITTER_NAME": "Pat Person",
    "GIT_COMMITTER_EMAIL": "pat@example.org",
}


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The process environment without anybody's Git or gitmem settings."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "GITMEM_"))}
    kept |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    return kept | {"LC_ALL": "C.UTF-8"} | dict(extra or {})


def git(folder: str | os.PathLike[str], *args: str, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """Run plain git in `folder` as Pat Person; its output without the final newline.

    Raises AssertionError with git's words where it fails.
    """
    done = subprocess.run(
        ["git", "-C", os.fspath(folder), *args],
        input=stdin.encode(),
        capture_output=True,
        env=clean_environment(_IDENTITY | dict(env or {})),
        check=False,
    )
    assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr.decode()}{done.stdout.decode()}"
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


def git_fails(folder: str | os.PathLike[str], *args: str) -> str:
    """Run plain git where it must refuse; what it said on stderr."""
    done = subprocess.run(
        ["git", "-C", os.fspath(folder), *args], capture_output=True, env=clean_environment(_IDENTITY), check=False
    )
    assert done.returncode != 0, f"git {' '.join(args)} succeeded"
    return done.stderr.decode("utf-8", "replace")


def gitmem(
    *args: str,
    cwd: str | os.PathLike[str] | None = None,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the installed `gitmem` command as a process of its own."""
    command = os.path.join(os.path.dirname(sys.executable), "gitmem")
    done = subprocess.run(
        [command, *args], cwd=cwd, input=stdin, capture_output=True, env=clean_environment(env), check=False
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode("utf-8")
    )


def python(code: str, *args: str, cwd: str | os.PathLike[str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python code that uses gitmem as a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *args], cwd=cwd, capture_output=True, text=True, env=clean_environment(),
        check=False,
    )  # fmt: skip


def killed_at(failpoint: str, code: str, *args: str, first: str = "") -> None:
    """Run Python code in a child that gets SIGKILL when it reaches `failpoint`; it must reach it.

    `first` runs before, unharmed.
    """
    arm = (
        "import os, signal\nfrom gitmem import failpoints\n"
        f"failpoints.arm({failpoint!r}, lambda: os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    done = python(f"{first}\n{arm}\n{code}", *args)
    assert done.returncode == -9, f"not killed at {failpoint}: {done.returncode} {done.stderr}"


def stores_below(folder: Path) -> Iterator[Path]:
    """Every store: a folder with a `gitmem.toml`."""
    yield from sorted(path.parent for path in folder.rglob("gitmem.toml") if ".git" not in path.parts)


def environments_below(folder: Path) -> Iterator[Path]:
    """Every environment that gitmem has opened outside of a store: a repository with `.git/gitmem`."""
    stores = list(stores_below(folder))
    for derived in sorted(folder.rglob(".git/gitmem")):
        place = derived.parent.parent
        if not any(store in place.parents for store in stores):
            yield place


def fsck(folder: Path) -> str:
    """What `git fsck` says of a repository: nothing where it is healthy."""
    done = subprocess.run(
        ["git", "-C", os.fspath(folder), "fsck", "--no-dangling", "--no-progress"],
        capture_output=True,
        text=True,
        errors="replace",
        env=clean_environment(),
        check=False,
    )
    lines = (done.stdout + done.stderr).splitlines()
    return "\n".join(line for line in lines if not line.startswith("notice: "))
