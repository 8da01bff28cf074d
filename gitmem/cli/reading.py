"""The commands that read documents: list, show, path."""

from __future__ import annotations

import click

from gitmem.cli import arguments
from gitmem.cli.anywhere import opened_environment
from gitmem.cli.completion import documents as complete_documents
from gitmem.cli.completion import resources as complete_resources
from gitmem.cli.context import Options, command
from gitmem.cli.output import one_line, say, say_json, table
from gitmem.cli.pages import every_document
from gitmem.records import Document, DocumentInfo, Writer


@command("list")
@arguments.resource
@arguments.fresh
def list_documents(options: Options, resource: str, fresh: bool) -> None:
    """List documents, the newest update first."""
    with opened_environment(options, fresh=fresh) as environment:
        found = list(every_document(environment.documents(resource)))
    if options.json:
        say_json({"documents": [info.to_json() for info in found]})
    elif found:
        say(*table(map(_row, found)))


@command("show")
@arguments.resource
@arguments.document
@click.option("--revision", metavar="REV", help="As it was at this revision.")
@arguments.fresh
def show(options: Options, resource: str, document_id: str, revision: str | None, fresh: bool) -> None:
    """Show a document."""
    with opened_environment(options, fresh=fresh) as environment:
        document = environment.documents(resource).read(document_id, at=revision)
    if options.json:
        say_json(document.to_json())
    else:
        say(*_header(resource, document), "", document.text.removesuffix("\n"))


@command("path")
@click.argument("resource", metavar="[R]", required=False, shell_complete=complete_resources)
@click.argument("document_id", metavar="[ID]", required=False, shell_complete=complete_documents)
def path(options: Options, resource: str | None, document_id: str | None) -> None:
    """Print where things lie on the disk: the environment, resource R, or document ID."""
    with options.opened() as environment:
        found = environment.path(resource, document_id)
    if options.json:
        say_json({"path": found})
    else:
        say(found)


def written_by(writer: Writer) -> str:
    """A writer in few words."""
    return f"agent {writer.session_id or '(unknown session)'}" if writer.kind == "agent" else "owner"


def short_time(updated_at: str) -> str:
    """An RFC 3339 time as `2026-09-10 12:00:00`, UTC."""
    return updated_at[:19].replace("T", " ")


def _row(info: DocumentInfo) -> tuple[str, ...]:
    state = "frozen" if info.agent_writes == "disabled" else ""
    title = f"{info.title} | {info.summary}" if info.summary else info.title
    return info.id, short_time(info.updated_at), written_by(info.writer), state, title


def _header(resource: str, document: Document) -> list[str]:
    frozen = ", frozen for agents" if document.agent_writes == "disabled" else ""
    return [
        f"{resource}/{document.id}: {one_line(document.title)}",
        *([f"summary   {one_line(document.summary)}"] if document.summary else []),
        f"revision  {document.revision}",
        f"updated   {short_time(document.updated_at)} UTC by {one_line(written_by(document.writer))}",
        f"size      {document.bytes} of {document.max_bytes} bytes{frozen}",
    ]
