"""The entry point: every command by name, and what becomes of an error."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile
from typing import Any, Final, NoReturn

import click

from gitmem.cli.context import Options, shared_options
from gitmem.cli.output import OutputClosedError, complain, flush
from gitmem.errors import EXIT_DONE, EXIT_FAILED, EXIT_STATUS, EXIT_USAGE, ErrorCode, GitmemError
from gitmem.git.files import storage_error

EXIT_INTERRUPTED: Final = 130

COMMANDS: Final = {
    "init": "projects:init",
    "deploy": "projects:deploy",
    "resources": "projects:resources",
    "list": "reading:list_documents",
    "show": "reading:show",
    "path": "reading:path",
    "create": "writing:create",
    "edit": "writing:edit",
    "retitle": "writing:retitle",
    "freeze": "writing:freeze",
    "unfreeze": "writing:unfreeze",
    "remove": "writing:remove",
    "restore": "writing:restore",
    "log": "history:log",
    "diff": "history:diff",
    "blame": "history:blame",
    "file": "files:file",
    "session": "sessions:session",
    "export": "transfer:export_documents",
    "import": "transfer:import_documents",
    "remote": "remotes:remote",
    "sync": "syncing:sync",
    "conflicts": "syncing:conflicts",
    "resolve": "syncing:resolve",
    "status": "handedits:status",
    "adopt": "handedits:adopt",
    "discard": "handedits:discard",
    "doctor": "health:doctor",
    "gc": "health:gc",
    "textconv": "drivers:textconv",
    "merge-driver": "drivers:merge_driver",
    "serve": "serve:serve",
    "key": "keys:key",
    "mcp": "mcp:mcp",
    "demo": "demo:demo",
}
"""Each command with the module and name of its function; a module is imported when it is needed."""


class Commands(click.Group):
    """All commands. Its `main` never shows a traceback and always ends the process."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found: click.Command = getattr(import_module(f"gitmem.cli.{module}"), name)
        return found

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        arguments = sys.argv[1:] if args is None else list(args)
        options = extra.setdefault("obj", Options())
        try:
            status = super().main(arguments, prog_name or "gitmem", complete_var, standalone_mode=False, **extra)
            flush()
        except Exception as error:
            status = _answer(_unflushed() or error, as_json=options.json or _asks_for_json(arguments))
        sys.exit(status or EXIT_DONE)


@click.group(cls=Commands)
@click.version_option(package_name="gitmem-store", message="gitmem %(version)s")
@shared_options
def cli() -> None:
    """A document memory for AI agents that lives in Git.

    The store is --store, $GITMEM_STORE, or the nearest folder upwards with a gitmem.toml; the project
    is --project, $GITMEM_PROJECT, or what gitmem.toml says. These options may stand before or after a
    command. A document id that begins with a dash goes after two dashes: gitmem show notes -- -rf

    Ends with status 0 when done, 1 when refused or failed, 2 for wrong usage, 3 when done with conflicts left.
    """


def main() -> None:
    """Run the command line of this process."""
    _open_standard_streams()
    cli.main()


def _open_standard_streams() -> None:
    """Fill closed standard descriptors, or a repository's file would become somebody's stdout."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def _asks_for_json(arguments: Sequence[str]) -> bool:
    return "--json" in takewhile(lambda argument: argument != "--", arguments)


def _unflushed() -> Exception | None:
    """Why stdout does not take what was printed, if it does not."""
    try:
        flush()
    except (OutputClosedError, GitmemError) as error:
        return error
    return None


def _answer(error: Exception, *, as_json: bool) -> int:
    """Say what went wrong; the exit status."""
    match error:
        case OutputClosedError():
            return EXIT_FAILED
        case click.Abort():
            return EXIT_INTERRUPTED
        case click.exceptions.NoArgsIsHelpError() if not as_json:
            error.show(sys.stderr)
            return EXIT_USAGE
        case click.ClickException():
            complain(ErrorCode.INVALID_REQUEST, _usage(error), as_json=as_json)
            return error.exit_code
        case GitmemError():
            complain(error.code, error.message, as_json=as_json)
            return EXIT_STATUS[error.code]
        case OSError():
            complain(ErrorCode.STORAGE_FAILED, storage_error(error, "go on").message, as_json=as_json)
            return EXIT_FAILED
    if os.environ.get("GITMEM_DEBUG"):
        raise error
    what = f"{type(error).__name__}: {error}"
    message = f"gitmem failed unexpectedly: {what[:300]}. Please report it; GITMEM_DEBUG=1 shows where."
    complain("internal", message, as_json=as_json)
    return EXIT_FAILED


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "gitmem"
    message = "Missing command." if isinstance(error, click.exceptions.NoArgsIsHelpError) else error.format_message()
    return f"{path}: {' '.join(message.split())} See {path} --help."
