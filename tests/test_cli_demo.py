"""The tour."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support import gitmem


def demo(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    temporary = folder / "tmp"
    temporary.mkdir()
    done = gitmem("demo", *arguments, cwd=folder, env={"TMPDIR": str(temporary)} | (env or {}))
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(temporary.iterdir())
    temporary.rmdir()
    return done.stdout


def test_the_tour_shows_a_conflict_a_freeze_a_tombstone_and_the_log(tmp_path: Path) -> None:
    shown = demo(tmp_path)
    for said in (
        "notes/workshop has changed: it is at ",
        "froze notes/workshop at ",
        "notes/scratch was deleted and its id stays reserved.",
        ": delete notes/scratch\n",
        "agent: replace notes/workshop\n",
    ):
        assert said in shown


def test_as_json_it_is_a_list_of_steps(tmp_path: Path) -> None:
    steps = json.loads(demo(tmp_path, "--json"))["steps"]
    assert len(steps) > 10
    assert {frozenset(step) for step in steps} == {frozenset({"about", "command", "status", "output"})}
    refused = [step["command"].split("gitmem ")[1].split()[0] for step in steps if step["status"]]
    assert refused == ["edit", "create"]


@pytest.mark.parametrize(
    "env", [{"GITMEM_STORE": "/nowhere", "GITMEM_PROJECT": "other", "EDITOR": "false"}, {"GIT_DIR": "/nowhere"}]
)
def test_the_callers_settings_do_not_matter(tmp_path: Path, env: dict[str, str]) -> None:
    assert "Bring a laptop." in demo(tmp_path, env=env)


def test_without_a_git_binary_the_log_is_the_same(tmp_path: Path) -> None:
    def log(env: dict[str, str]) -> list[str]:
        last = json.loads(demo(tmp_path, "--json", env=env))["steps"][-1]
        assert last["command"].startswith("git log")
        return [line.partition(" ")[2] for line in last["output"].splitlines()]

    assert log({"PATH": os.devnull}) == log({})
