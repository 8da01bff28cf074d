"""The code keeps its own rules: types, lint, formatting, and which layer may import which."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        ["mypy", "--no-error-summary"],
        ["ruff", "check", "--quiet", "gitmem", "tests"],
        ["ruff", "format", "--check", "--quiet", "gitmem", "tests"],
        ["lint-imports"],
    ],
    ids=" ".join,
)
def test_the_code_keeps_its_rules(command: list[str], tmp_path: Path) -> None:
    caches = {"mypy": ["--cache-dir", str(tmp_path)], "ruff": ["--no-cache"], "lint-imports": ["--no-cache"]}
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:], *caches[command[0]]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_can_be_imported() -> None:
    import gitmem

    assert gitmem.__all__ == sorted(gitmem.__all__, key=lambda name: (name.islower(), name))
    for name in gitmem.__all__:
        assert getattr(gitmem, name).__doc__, name
