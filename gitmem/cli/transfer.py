"""The commands that take documents out and in: export, import."""

from __future__ import annotations

from collections.abc import Sequence

import click

from gitmem import export as exporting
from gitmem import importing
from gitmem.cli.anywhere import opened_environment
from gitmem.cli.completion import resources as complete_resources
from gitmem.cli.context import Options, command
from gitmem.cli.output import complain, say, say_json
from gitmem.errors import EXIT_DONE, EXIT_FAILED


@command("export")
@click.option("--out", metavar="DIR", required=True, help="Where to: DIR/RESOURCE/ID.json.")
@click.option(
    "--resource", "resources", metavar="R", multiple=True, shell_complete=complete_resources,
    help="Only this resource; may be repeated.",
)  # fmt: skip
def export_documents(options: Options, out: str, resources: tuple[str, ...]) -> int:
    """Write documents out as JSON files.

    Every current document of every resource, retired ones included, each to a file of its own.
    """
    with opened_environment(options) as environment:
        done = exporting.export(environment, out, resources=resources, progress=options.progress)
    if options.json:
        say_json({"out": out} | done.to_json())
    else:
        say(f"exported {_documents(done.documents)} to {out}")
    return _status(done.left_out, options)


@command("import")
@click.argument("folder", metavar="DIR")
@click.option(
    "--resource", metavar="R", shell_complete=complete_resources,
    help="Create documents of R from the .md and .txt files in DIR.",
)  # fmt: skip
def import_documents(options: Options, folder: str, resource: str | None) -> int:
    """Create documents from files.

    DIR holds an export, or, with --resource, text files. What exists already is left as it is, so
    that an import can be run again.
    """
    with options.opened() as environment:
        if resource is None:
            done = importing.import_export(environment, folder, progress=options.progress)
        else:
            done = importing.import_texts(environment, folder, resource, progress=options.progress)
    if options.json:
        say_json(done.to_json())
    else:
        say(f"created {_documents(done.created)}; {done.unchanged} were there already; {len(done.left_out)} left out")
    return _status(done.left_out, options)


def _documents(count: int) -> str:
    return f"{count} document{'' if count == 1 else 's'}"


def _status(left_out: Sequence[exporting.LeftOut], options: Options) -> int:
    if options.json and left_out:
        complain(left_out[0].code, f"{len(left_out)} left out. The first: {left_out[0].message}", as_json=True)
    elif left_out:
        for found in left_out:
            complain(found.code, f"{found.subject}: {found.message}", as_json=False)
    return EXIT_FAILED if left_out else EXIT_DONE
