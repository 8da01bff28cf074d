"""Every example in the README is run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language, in order."""
    return [text for found, text in _BLOCK.findall(README.read_text()) if found == language]


def console_steps(text: str) -> list[tuple[str, str, int]]:
    """Each command of a console block with the output that it shows and its exit status."""
    steps: list[tuple[str, str, int]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:] + "\n", "", 0))
        elif line.startswith("> ") and not steps[-1][1]:
            steps[-1] = (steps[-1][0] + line[2:] + "\n", "", 0)
        elif found := re.fullmatch(r"\[exit (\d)\]", line):
            steps[-1] = (steps[-1][0], steps[-1][1], int(found[1]))
        else:
            steps[-1] = (steps[-1][0], steps[-1][1] + line + "\n", steps[-1][2])
    return steps


def matches(shown: str, printed: str) -> bool:
    """Whether the output is what the README shows; a line of … stands for any lines, … within one for any text."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…\n" else re.escape(line).replace("…", ".*") for line in shown.splitlines(True)
    )
    return re.fullmatch(pattern, printed) is not None


@pytest.fixture
def shell_environment(tmp_path: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {
        "PATH": path,
        "HOME": str(tmp_path),
        "GIT_AUTHOR_NAME": "Owner",
        "GIT_AUTHOR_EMAIL": "owner@example.org",
        "GIT_COMMITTER_NAME": "Owner",
        "GIT_COMMITTER_EMAIL": "owner@example.org",
        "GIT_CONFIG_NOSYSTEM": "1",
        "LANG": "C.UTF-8",
    }


def test_console_examples(tmp_path: Path, shell_environment: dict[str, str]) -> None:
    folder = tmp_path
    steps = [step for text in blocks("console") for step in console_steps(text)]
    assert len(steps) > 20
    for command, shown, status in steps:
        if command.startswith("cd "):
            folder /= command[3:].strip()
            continue
        ran = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=shell_environment, capture_output=True, text=True, check=False
        )
        printed = ran.stdout + ran.stderr
        assert ran.returncode == status, f"{command}{printed}"
        assert matches(shown, printed), f"{command}printed\n{printed}\nnot\n{shown}"


def test_python_examples(tmp_path: Path, shell_environment: dict[str, str]) -> None:
    for text in blocks("python"):
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", text],
            cwd=tmp_path,
            env=shell_environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        expected = re.findall(r"print\(.*\)  # (.*?)(?::.*)?$", text, re.MULTILINE)
        assert ran.stdout.splitlines() == expected
