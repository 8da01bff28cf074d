"""Ctrl-C at any moment of a command's life: no traceback, and the status of an interrupted program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import clean_environment

COMMAND = os.path.join(os.path.dirname(sys.executable), "gitmem")
INTERRUPTED = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
STARTS = [[COMMAND], [sys.executable, "-m", "gitmem"]]


def interrupted_importing(module: str, folder: Path, start: list[str], handler: int) -> tuple[int, str, str]:
    """Run a command that gets SIGINT when it imports `module`: its status and what it printed."""
    (folder / f"{module}.py").write_text(f"{INTERRUPTED}raise SystemExit('went on')\n")
    ran = subprocess.run(
        [*start, "--version"],
        env=clean_environment({"PYTHONPATH": str(folder)}),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize("start", STARTS, ids=["script", "module"])
def test_while_it_is_still_importing(tmp_path: Path, start: list[str]) -> None:
    found = interrupted_importing("click", tmp_path, start, signal.SIG_DFL)
    assert found == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("start", STARTS, ids=["script", "module"])
def test_where_it_is_ignored_it_stays_ignored(tmp_path: Path, start: list[str]) -> None:
    found = interrupted_importing("click", tmp_path, start, signal.SIG_IGN)
    assert found == (1, "", "went on\n")


@pytest.mark.parametrize("start", STARTS, ids=["script", "module"])
def test_while_it_ends(tmp_path: Path, start: list[str]) -> None:
    late = "import atexit, os, signal\natexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
    (tmp_path / "sitecustomize.py").write_text(late)
    ran = subprocess.run(
        [*start, "--version"], env=clean_environment({"PYTHONPATH": str(tmp_path)}), capture_output=True, text=True,
        check=False, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (-signal.SIGINT, "")
    assert ran.stdout.startswith("gitmem ")
