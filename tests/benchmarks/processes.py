"""The processes that measure something by themselves: starting them, asking them, their answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from tests.benchmarks import corpus
from tests.benchmarks.stores import PROJECT, RESOURCE, STORIED

_ROOT: Final = Path(__file__).parents[2]


class Child:
    """A child that is ready and waits for its next line."""

    def __init__(self, role: str, store: Path, *arguments: str) -> None:
        self._name = " ".join((role, *arguments))
        self._process = subprocess.Popen(
            _command(role, store, *arguments), cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer()

    def ask(self, method: str, *arguments: object) -> Any:
        """What the contestant answers to a call of one of its methods."""
        self.start(json.dumps([method, *arguments]))
        return self._answer()

    def start(self, line: str) -> None:
        """Give it a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """Let it come to its end."""
        self._process.communicate()

    def finish(self) -> dict[str, Any]:
        """Let it come to its end, and its last answer."""
        last: dict[str, Any] = json.loads(self._process.communicate()[0])
        return last

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} has ended")
        return json.loads(line)


def ask(role: str, store: Path, *arguments: str, with_git: bool = True) -> dict[str, Any]:
    """The answer of one child; `with_git` says whether it can find a git binary."""
    environment = os.environ if with_git else os.environ | {"PATH": "/nonexistent"}
    done = subprocess.run(
        _command(role, store, *arguments), cwd=_ROOT, env=environment, check=True, stdout=subprocess.PIPE
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def show(store: Path) -> float | None:
    """Seconds of `gitmem show` for one document; None where that command does not work."""
    command = Path(sys.executable).parent / "gitmem"
    settings = {"GITMEM_STORE": str(store), "GITMEM_PROJECT": PROJECT}
    return _seconds([str(command), "show", RESOURCE, corpus.document_id(STORIED)], settings)


def imports() -> float:
    """Seconds that Python needs to start and import what the command line stands on."""
    took = _seconds([sys.executable, "-c", "import click, pygit2"], {})
    assert took is not None
    return took


def use_plain_git() -> None:
    """Let nobody's configuration or environment decide how fast Git is here."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[name]
    os.environ |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}


def _seconds(command: list[str], settings: dict[str, str]) -> float | None:
    if not os.path.exists(command[0]):
        return None
    started = time.perf_counter_ns()
    done = subprocess.run(command, env=os.environ | settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter_ns() - started) / 1e9 if done.returncode == 0 else None


def _command(role: str, store: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.benchmarks.children", role, str(store), *arguments]
