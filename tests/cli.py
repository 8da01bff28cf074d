"""The command line in this process, for tests of what its commands answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from gitmem.cli.main import cli

TOML = """
project = "bot"
agent = "tutor"
[memory.notes]
description = "Workshop requirements and decisions."
"""


def prepared(folder: Path) -> Cli:
    """A store in `folder`, with project "bot" and the resource "notes" deployed for the agent "tutor"."""
    folder.mkdir()
    (folder / "gitmem.toml").write_text(TOML)
    run = Cli(folder)
    run.ok("init")
    run.ok("deploy")
    return run


@dataclass(frozen=True)
class Answer:
    """What a command answered."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """The one error on stderr, which must be all that is there."""
        (line,) = self.err.splitlines()
        found: dict[str, str] = json.loads(line)["error"]
        return found


class Cli:
    """Runs commands on the store in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str | None] | None = None) -> Answer:
        environment = {"GITMEM_STORE": str(self.folder), "GITMEM_PROJECT": None, "VISUAL": None, "EDITOR": None}
        done = CliRunner().invoke(cli, list(arguments), input=stdin, env=environment | dict(env or {}))
        return Answer(done.exit_code, done.stdout, done.stderr)

    @property
    def tree(self) -> Path:
        """The working tree of the development environment."""
        return self.folder / "bot" / "development"

    def ok(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run a command that must succeed; its stdout."""
        done = self(*arguments, stdin=stdin)
        assert done.status == 0, done
        return done.out

    def json(self, *arguments: str, stdin: bytes = b"") -> Any:
        """Run a command that must succeed with --json; what it answered."""
        return json.loads(self.ok(*arguments[:1], "--json", *arguments[1:], stdin=stdin))

    def refused(self, *arguments: str, stdin: bytes = b"", status: int = 1) -> dict[str, str]:
        """Run a command that must fail with one clear line, the same with --json; its error."""
        plain = self(*arguments, stdin=stdin)
        assert (plain.status, plain.out, plain.err.count("\n")) == (status, "", 1), plain
        machine = self(*arguments[:1], "--json", *arguments[1:], stdin=stdin)
        assert (machine.status, machine.out) == (status, ""), machine
        assert machine.error["message"] in plain.err
        return machine.error
