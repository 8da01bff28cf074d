"""The command demo: a tour of gitmem on a temporary store, every result real."""

from __future__ import annotations

import io
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Final

import click

from gitmem import config
from gitmem.cli.context import Options, command
from gitmem.cli.output import say, say_json
from gitmem.cli.steps import LOG_FORMAT, Step, log_of
from gitmem.errors import EXIT_DONE, EXIT_FAILED, StorageError
from gitmem.records import Writer
from gitmem.store import Environment, open_store

_PROJECT: Final = "workshop-bot"
_DECLARATION: Final = """
[memory.notes]
description = "Workshop requirements and decisions."
"""


@command("demo")
@click.option("--agent", is_flag=True, help="See agents at work: two of them and an owner on one document.")
def demo(options: Options, agent: bool) -> None:
    """Take a tour on a temporary store."""
    steps: list[Step] = []

    def show(step: Step) -> None:
        steps.append(step)
        if not options.json:
            say(f"# {step.about}", f"$ {step.command}", *step.output.splitlines(), "")

    with tempfile.TemporaryDirectory(prefix="gitmem-demo-") as folder:
        place = os.path.join(folder, "memory")
        if agent:
            from gitmem.cli.agentdemo import AgentTour

            AgentTour(place, show).run()
        else:
            _Tour(place, show).run()
    if options.json:
        say_json({"steps": [step.to_json() for step in steps]})


class _Tour:
    def __init__(self, folder: str, show: Callable[[Step], None]) -> None:
        self._folder = folder
        self._show = show

    def run(self) -> None:
        """All of it. Raises StorageError where a step did not end as it should."""
        self._begin()
        seen = self._revision()
        self._save_as_agent(seen)
        newer = "Exercises run on Node.js 22.\nBring a laptop.\n"
        self._gitmem(
            "The owner has not seen that save: an edit of the older revision is refused, and nothing is lost.",
            "edit", "notes", "workshop", "--text-stdin", "--if-match", seen, stdin=newer, status=EXIT_FAILED,
        )  # fmt: skip
        self._gitmem("The owner reads what is there now ...", "show", "notes", "workshop")
        self._gitmem("... and edits that.", "edit", "notes", "workshop", "--text-stdin", stdin=newer)
        self._gitmem("No agent may save it any more.", "freeze", "notes", "workshop")
        self._gitmem("Another document ...", "create", "notes", "scratch", "--title", "Scratch")
        self._gitmem("... is deleted ...", "remove", "notes", "scratch")
        self._gitmem(
            "... and its id stays reserved for ever.", "create", "notes", "scratch", "--title", "Again",
            status=EXIT_FAILED,
        )  # fmt: skip
        self._gitmem("What there is.", "list", "notes")
        self._gitmem("The story of one document.", "log", "notes", "workshop")
        self._gitmem("Who wrote which line.", "blame", "notes", "workshop")
        self._read_log()

    def _begin(self) -> None:
        self._gitmem("A store is a folder.", "init", "--project", _PROJECT)
        with open(os.path.join(self._folder, config.FILE), "a", encoding="utf-8") as file:
            file.write(_DECLARATION)
        self._step(f"Its {config.FILE} declares what the agent remembers.", f"tail -2 {config.FILE}", _DECLARATION)
        self._gitmem("Declarations count once they are deployed.", "deploy", "--agent", "tutor")
        self._gitmem(
            "The owner writes a document.", "create", "notes", "workshop", "--title", "Workshop notes",
            "--summary", "Node.js 22.", "--text-stdin", stdin="Exercises run on Node.js 20.\n",
        )  # fmt: skip

    def _revision(self) -> str:
        with self._environment() as environment:
            return environment.documents("notes").read("workshop").revision

    def _save_as_agent(self, seen: str) -> None:
        text = "Exercises run on Node.js 22.\n"
        with self._environment() as environment:
            saved = environment.documents("notes").replace(
                "workshop", text=text, if_match=seen, writer=Writer(kind="agent", session_id="ses_demo")
            )
        self._step(
            "Meanwhile an agent saves the same document, from Python.",
            f'notes.replace("workshop", text={text!r}, if_match="{seen[:12]}...", writer=agent)',
            f"saved at {saved.revision}",
        )

    def _read_log(self) -> None:
        with self._environment() as environment:
            lines = log_of(environment)
        about = "All of it is plain Git: one commit a change, each document a file."
        self._step(about, f"git log --format={shlex.quote(LOG_FORMAT)}", lines)

    def _gitmem(self, about: str, *arguments: str, stdin: str = "", status: int = EXIT_DONE) -> None:
        piped = f"printf {shlex.quote(stdin)} | ".replace("\n", "\\n") if stdin else ""
        command = f"{piped}{shlex.join(['gitmem', *arguments])}"
        ended, output = _run(arguments, Options(store=self._folder, project=_PROJECT), stdin)
        if ended != status:
            raise StorageError(f"The demo went wrong at {command}: {output.strip()}")
        self._step(about, command, output, ended)

    def _step(self, about: str, command: str, output: str, status: int = EXIT_DONE) -> None:
        self._show(Step(about=about, command=command, status=status, output=output.strip("\n")))

    @contextmanager
    def _environment(self) -> Generator[Environment, None, None]:
        with open_store(self._folder) as store:
            yield store.project(_PROJECT).environment()


def _run(arguments: tuple[str, ...], options: Options, stdin: str) -> tuple[int, str]:
    """Run a command of our own; its exit status and what it printed."""
    from gitmem.cli.main import cli

    output = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")
    status: int | str | None = EXIT_DONE
    try:
        with redirect_stdout(output), redirect_stderr(output):
            cli.main(arguments, obj=options)
    except SystemExit as ended:
        status = ended.code
    finally:
        sys.stdin = before
    output.seek(0)
    return int(status or EXIT_DONE), output.read()
