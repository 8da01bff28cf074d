"""The commands that tell a document's story: log, diff, blame."""

from __future__ import annotations

from typing import Final

import click

from gitmem import blame as blaming
from gitmem.cli import arguments
from gitmem.cli.anywhere import opened_environment
from gitmem.cli.context import Options, command
from gitmem.cli.output import say, say_json, table
from gitmem.cli.pages import every_version
from gitmem.cli.reading import short_time, written_by
from gitmem.records import Version

SHORT: Final = 12


@command("log")
@arguments.resource
@arguments.document
@arguments.fresh
def log(options: Options, resource: str, document_id: str, fresh: bool) -> None:
    """List the versions of a document.

    The newest comes first. Works for deleted documents too.
    """
    with opened_environment(options, fresh=fresh) as environment:
        versions = list(every_version(environment.documents(resource), document_id))
    if options.json:
        say_json({"versions": [version.to_json() for version in versions]})
    else:
        say(*table(map(_row, versions)))


@command("diff")
@arguments.resource
@arguments.document
@click.argument("a", metavar="[A]", required=False)
@click.argument("b", metavar="[B]", required=False)
def diff(options: Options, resource: str, document_id: str, a: str | None, b: str | None) -> None:
    """Show what changed.

    From revision A to B: from the version before B, and to the newest, unless given.
    """
    with opened_environment(options) as environment:
        changes = environment.documents(resource).diff(document_id, a, b)
    if options.json:
        say_json({"diff": changes})
    elif changes:
        say(changes.removesuffix("\n"))


@command("blame")
@arguments.resource
@arguments.document
def blame(options: Options, resource: str, document_id: str) -> None:
    """Show who last changed each line."""
    with options.opened() as environment:
        lines = blaming.blame(environment, resource, document_id)
    if options.json:
        say_json({"lines": [line.to_json() for line in lines]})
    elif lines:
        origins = table((line.revision[:SHORT], short_time(line.updated_at), written_by(line.writer)) for line in lines)
        width = max(map(len, origins))
        say(*(f"{origin:{width}}  {line.text}" for origin, line in zip(origins, lines, strict=True)))


def _row(version: Version) -> tuple[str, ...]:
    # A person's own commit says more than what it did to the document.
    said = f" ({version.message})" if not version.message.startswith(f"{version.operation} ") else ""
    return (
        version.revision[:SHORT],
        short_time(version.updated_at),
        written_by(version.writer),
        version.operation,
        f"{version.title}{said}",
    )
