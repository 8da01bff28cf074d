"""The commands that change documents: create, edit, retitle, freeze, unfreeze, remove, restore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from gitmem.cli import arguments
from gitmem.cli.anywhere import opened_for_writing
from gitmem.cli.context import Options, command
from gitmem.cli.output import say, say_json
from gitmem.cli.textinput import given_text
from gitmem.errors import InvalidRequestError, PreconditionFailedError
from gitmem.records import AgentWrites, Document

if TYPE_CHECKING:
    from gitmem.cli.anywhere import AnyDocuments

_TRIES: Final = 100
_SHORTEST: Final = 7


_summary: Final = click.option("--summary", metavar="TEXT", help="The summary, at most 240 bytes.")


@command("create")
@arguments.resource
@arguments.document
@click.option("--title", metavar="TEXT", required=True, help="The title, 1 to 240 bytes.")
@arguments.text_file
@arguments.text_stdin
@_summary
@click.option("--frozen", is_flag=True, help="Agents may not write it.")
def create(
    options: Options,
    resource: str,
    document_id: str,
    title: str,
    text_file: str | None,
    text_stdin: bool,
    summary: str | None,
    frozen: bool,
) -> None:
    """Create a document.

    ID must never have been used in resource R, not even by a document that was deleted since.
    """
    text = given_text(text_file, stdin=text_stdin)
    with opened_for_writing(options) as environment:
        document = environment.documents(resource).create(
            document_id,
            title=title,
            text=text or "",
            summary=summary or "",
            agent_writes="disabled" if frozen else "enabled",
        )
    _tell(options, "created", resource, document)


@command("edit")
@arguments.resource
@arguments.document
@arguments.text_file
@arguments.text_stdin
@_summary
@arguments.if_match
def edit(
    options: Options,
    resource: str,
    document_id: str,
    text_file: str | None,
    text_stdin: bool,
    summary: str | None,
    if_match: str | None,
) -> None:
    """Replace the text of a document.

    It opens in $VISUAL or $EDITOR, or comes from a file or stdin. Without an editor, --summary alone
    changes only the summary.
    """
    text = given_text(text_file, stdin=text_stdin)
    with opened_for_writing(options) as environment:
        documents = environment.documents(resource)
        before = documents.info(document_id).revision
        revision = expanded(if_match, before)
        if text is not None:
            after = documents.replace(document_id, text=text, summary=summary, if_match=revision)
        else:
            opened = documents.read(document_id)
            environment.close()
            after = _edited(documents, opened, summary, revision)
    _tell(options, "edited" if after.revision != before else "unchanged:", resource, after)


def _edited(documents: AnyDocuments, opened: Document, summary: str | None, revision: str) -> Document:
    """Let the person edit the text that was opened, and save it on top of that."""
    from gitmem.cli.editor import draft_of, editor_command

    if opened.revision != revision:
        raise PreconditionFailedError(
            f"{documents.resource}/{opened.id} is at {opened.revision}, not at {revision[:40]}. Read it again.",
            expected=revision,
            actual=opened.revision,
        )
    editor = editor_command()
    if editor is None:
        if summary is None:
            raise InvalidRequestError("There is no editor: set EDITOR, or give --text-file or --text-stdin.")
        return documents.replace(opened.id, text=opened.text, summary=summary, if_match=revision)
    with draft_of(f"{opened.id}.md", opened.text) as draft:
        text = draft.edited_with(editor)
        if text == opened.text and summary in (None, opened.summary):
            return opened
        return documents.replace(opened.id, text=text, summary=summary, if_match=revision)


@command("retitle")
@arguments.resource
@arguments.document
@click.argument("title", metavar="TITLE")
@arguments.if_match
def retitle(options: Options, resource: str, document_id: str, title: str, if_match: str | None) -> None:
    """Change the title of a document."""
    with opened_for_writing(options) as environment:
        documents = environment.documents(resource)
        revision = _seen(documents, document_id, if_match)
        document = documents.patch(document_id, title=title, if_match=revision)
    _tell(options, "retitled", resource, document)


@command("freeze")
@arguments.resource
@arguments.document
@arguments.if_match
def freeze(options: Options, resource: str, document_id: str, if_match: str | None) -> None:
    """Refuse agents every later save.

    Once this has succeeded, no agent can save document ID. Owners still can.
    """
    _set_policy(options, resource, document_id, "disabled", if_match, "froze")


@command("unfreeze")
@arguments.resource
@arguments.document
@arguments.if_match
def unfreeze(options: Options, resource: str, document_id: str, if_match: str | None) -> None:
    """Let agents save a document again."""
    _set_policy(options, resource, document_id, "enabled", if_match, "unfroze")


@command("remove")
@arguments.resource
@arguments.document
@arguments.if_match
def remove(options: Options, resource: str, document_id: str, if_match: str | None) -> None:
    """Delete a document.

    Its id stays reserved for ever; its history stays readable.
    """
    with opened_for_writing(options) as environment:
        documents = environment.documents(resource)
        documents.delete(document_id, if_match=_seen(documents, document_id, if_match))
    if options.json:
        say_json({"resource": resource, "id": document_id, "deleted": True})
    else:
        say(f"removed {resource}/{document_id}")


@command("restore")
@arguments.resource
@arguments.document
@click.argument("revision", metavar="REV")
@arguments.if_match
def restore(options: Options, resource: str, document_id: str, revision: str, if_match: str | None) -> None:
    """Bring an earlier version back.

    Title, text and summary become what they were at revision REV; who may write stays as it is.
    """
    with opened_for_writing(options) as environment:
        documents = environment.documents(resource)
        document = documents.restore(document_id, revision, if_match=_seen(documents, document_id, if_match))
    _tell(options, "restored", resource, document)


def _set_policy(
    options: Options, resource: str, document_id: str, policy: AgentWrites, if_match: str | None, done: str
) -> None:
    with opened_for_writing(options) as environment:
        document = _with_policy(environment.documents(resource), document_id, policy, if_match)
    _tell(options, done, resource, document)


def _with_policy(documents: AnyDocuments, document_id: str, policy: AgentWrites, if_match: str | None) -> Document:
    # A policy does not depend on the text: whoever saved meanwhile does not stand in its way.
    tries = _TRIES if if_match is None else 1
    while True:
        tries -= 1
        try:
            revision = _seen(documents, document_id, if_match)
            return documents.patch(document_id, agent_writes=policy, if_match=revision)
        except PreconditionFailedError:
            if not tries:
                raise


def _seen(documents: AnyDocuments, document_id: str, if_match: str | None) -> str:
    return expanded(if_match, documents.info(document_id).revision)


def expanded(if_match: str | None, current: str) -> str:
    """The revision to replace: the current one, whole, also where the caller gave only its beginning."""
    if if_match is None or (len(if_match) >= _SHORTEST and current.startswith(if_match)):
        return current
    return if_match


def _tell(options: Options, done: str, resource: str, document: Document) -> None:
    if options.json:
        say_json(document.to_json())
    else:
        say(f"{done} {resource}/{document.id} at {document.revision}")
