"""The commands about memory files: put, edit, show, list, log, diff, restore, remove, context, enable, disable."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from gitmem.cli import arguments
from gitmem.cli.anywhere import opened_files
from gitmem.cli.context import Options, command, shared_options
from gitmem.cli.history import SHORT
from gitmem.cli.output import one_line, say, say_json, table
from gitmem.cli.pages import every_file, every_revision
from gitmem.cli.reading import short_time
from gitmem.cli.textinput import given_text
from gitmem.cli.writing import expanded
from gitmem.errors import InvalidRequestError, NotFoundError, RevisionConflictError
from gitmem.filepaths import SCOPES, Scope, normalized
from gitmem.files import ANYTHING, Expected, FileRevision, MemoryFile, MemoryFileInfo

if TYPE_CHECKING:
    from gitmem.cli.anywhere import AnyFiles

_scope: Final = click.option(
    "--scope", type=click.Choice(SCOPES), required=True, help="Your own memory, or the team's."
)
_path: Final = click.argument("path", metavar="PATH")
_if_match: Final = click.option("--if-match", metavar="REV", help="Only where the file is still at this revision.")
_member: Final = click.option(
    "--member", metavar="M", help="Who you are; $GITMEM_MEMBER or the address of your Git identity unless given."
)


def _on_files(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make a function the command `name` of the group; it gets the Options, and the files that the member sees."""

    def decorate(function: Callable[..., None]) -> click.Command:
        def run(options: Options, member: str | None, **given: Any) -> None:
            with opened_files(options, member) as files:
                function(options, files, **given)

        run.__doc__ = function.__doc__
        run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        return command(name)(_member(run))

    return decorate


@click.group("file")
@shared_options
def file() -> None:
    """Read and write memory files: the team's notes, and your own.

    PATH is MEMORY.md, the index that a session starts with, or a note such as web-app.
    """


@_on_files("put")
@_scope
@_path
@arguments.text_file
@arguments.text_stdin
@_if_match
@click.option("--new", is_flag=True, help="Only where there is no such file.")
def put(
    options: Options,
    files: AnyFiles,
    scope: Scope,
    path: str,
    text_file: str | None,
    text_stdin: bool,
    if_match: str | None,
    new: bool,
) -> None:
    """Create a file, or replace its whole text."""
    if new and if_match is not None:
        raise InvalidRequestError("Give --if-match or --new, not both.")
    text = given_text(text_file, stdin=text_stdin)
    if text is None:
        raise InvalidRequestError("Where is the text? Give --text-file or --text-stdin, or use gitmem file edit.")
    expected = None if new else _seen(files, scope, path, if_match)
    _tell(options, "put", files.put(scope, path, text, expected_revision_id=expected))


@_on_files("edit")
@_scope
@_path
@_if_match
def edit(options: Options, files: AnyFiles, scope: Scope, path: str, if_match: str | None) -> None:
    """Edit a file in $VISUAL or $EDITOR; a new one where there is none."""
    from gitmem.cli.editor import draft_of, editor_command

    name = normalized(scope, path)
    editor = editor_command()
    if editor is None:
        raise InvalidRequestError("There is no editor: set EDITOR, or use gitmem file put.")
    opened = _found(files, scope, name)
    revision = opened.revision_id if opened else None
    if if_match is not None and (revision is None or expanded(if_match, revision) != revision):
        at = f"is at {revision}" if revision else "does not exist"
        raise RevisionConflictError(f"{name} {at}. Read it again, then decide.", expected=if_match, actual=revision)
    before = opened.content if opened else ""
    with draft_of(name.rpartition("/")[2], before) as draft:
        text = draft.edited_with(editor)
        if opened is not None and text == before:
            _tell(options, "edited", opened)
        else:
            _tell(options, "edited", files.put(scope, name, text, expected_revision_id=revision))


@_on_files("show")
@_scope
@_path
@click.option("--revision", metavar="REV", help="As it was at this revision.")
def show(options: Options, files: AnyFiles, scope: Scope, path: str, revision: str | None) -> None:
    """Show a file."""
    found = files.read(scope, path, at=revision)
    if options.json:
        say_json(found.to_json())
    else:
        say(*_header(found), "", found.content.removesuffix("\n"))


@_on_files("list")
@_scope
def list_files(options: Options, files: AnyFiles, scope: Scope) -> None:
    """List the files of a scope, by path: those at the top first."""
    found = list(every_file(files, scope))
    if options.json:
        say_json({"files": [info.to_json() for info in found]})
    elif found:
        say(*table(map(_row, found)))


@_on_files("log")
@_scope
@_path
def log(options: Options, files: AnyFiles, scope: Scope, path: str) -> None:
    """List the revisions of a file.

    The newest comes first. Works for removed files too.
    """
    found = list(every_revision(files, scope, path))
    if options.json:
        say_json({"revisions": [revision.to_json() for revision in found]})
    else:
        say(*table(map(_revision_row, found)))


@_on_files("diff")
@_scope
@_path
@click.argument("a", metavar="[A]", required=False)
@click.argument("b", metavar="[B]", required=False)
def diff(options: Options, files: AnyFiles, scope: Scope, path: str, a: str | None, b: str | None) -> None:
    """Show what changed.

    From revision A to B: from the one before B, and to the newest, unless given.
    """
    changes = files.diff(scope, path, a, b)
    if options.json:
        say_json({"diff": changes})
    elif changes:
        say(changes.removesuffix("\n"))


@_on_files("restore")
@_scope
@_path
@click.argument("revision", metavar="REV")
@_if_match
def restore(options: Options, files: AnyFiles, scope: Scope, path: str, revision: str, if_match: str | None) -> None:
    """Bring an earlier text back, of a removed file too."""
    expected = _seen(files, scope, path, if_match)
    _tell(options, "restored", files.restore(scope, path, revision, expected_revision_id=expected))


@_on_files("remove")
@_scope
@_path
@_if_match
def remove(options: Options, files: AnyFiles, scope: Scope, path: str, if_match: str | None) -> None:
    """Remove a file.

    Its history stays readable, and its path may be written again.
    """
    name = normalized(scope, path)
    files.remove(scope, name, expected_revision_id=_seen(files, scope, path, if_match))
    if options.json:
        say_json({"scope": scope, "path": name, "removed": True})
    else:
        say(f"removed {scope}:/{name}")


@_on_files("context")
def context(options: Options, files: AnyFiles) -> None:
    """Show what a session starts with: the team's MEMORY.md, then your own."""
    found = files.context()
    if options.json:
        say_json({"files": [each.to_json() for each in found]})
    else:
        for number, each in enumerate(found):
            say(*([""] if number else []), *_header(each), "", each.content.removesuffix("\n"))


@_on_files("enable")
def enable(options: Options, files: AnyFiles) -> None:
    """Turn your personal memory on again."""
    _switch(options, files, enabled=True)


@_on_files("disable")
def disable(options: Options, files: AnyFiles) -> None:
    """Turn your personal memory off: nothing in it changes, and no session starts with it."""
    _switch(options, files, enabled=False)


def _switch(options: Options, files: AnyFiles, *, enabled: bool) -> None:
    files.enable(enabled)
    if options.json:
        say_json({"scope": "personal", "enabled": enabled})
    else:
        say(f"personal memory is {'on' if enabled else 'off'}")


for _command in (put, edit, show, list_files, log, diff, restore, remove, context, enable, disable):
    file.add_command(_command)


def _found(files: AnyFiles, scope: Scope, path: str) -> MemoryFile | None:
    try:
        return files.read(scope, path)
    except NotFoundError:
        return None


def _seen(files: AnyFiles, scope: Scope, path: str, if_match: str | None) -> str | Expected:
    """The revision to replace; whatever there is, unless the caller named one, whole or by its beginning."""
    if if_match is None:
        return ANYTHING
    found = _found(files, scope, path)
    return expanded(if_match, found.revision_id) if found else if_match


def _tell(options: Options, done: str, found: MemoryFile) -> None:
    if options.json:
        say_json(found.to_json())
    else:
        say(f"{done if found.updated else 'unchanged:'} {found.scope}:/{found.path} at {found.revision_id}")


def _header(found: MemoryFile) -> list[str]:
    return [
        f"{found.scope}:/{found.path}",
        f"revision  {found.revision_id}",
        f"updated   {short_time(found.updated_at)} UTC by {one_line(found.updated_by)}",
    ]


def _row(info: MemoryFileInfo) -> tuple[str, ...]:
    return info.path, short_time(info.updated_at), info.updated_by, f"{info.bytes} bytes"


def _revision_row(revision: FileRevision) -> tuple[str, ...]:
    session = f"in {revision.session_id}" if revision.session_id else ""
    return (
        revision.revision_id[:SHORT],
        short_time(revision.created_at),
        revision.created_by,
        revision.operation,
        f"{revision.bytes} bytes {session}".rstrip(),
    )
