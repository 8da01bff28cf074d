"""The commands for what people do to files by hand: status, adopt, discard."""

from __future__ import annotations

import click

from gitmem.cli import arguments
from gitmem.cli.context import Options, command
from gitmem.cli.health import size_json, size_of, sizes
from gitmem.cli.output import say, say_json, table
from gitmem.environment.adopting import Adopted
from gitmem.environment.status import FileStatus, Status
from gitmem.errors import EXIT_CONFLICTS_LEFT, EXIT_DONE
from gitmem.store import Environment


@command("status")
def status(options: Options) -> None:
    """Show how the working tree and the repository stand.

    Lists every file that is not what the newest commit says: hand edits that wait to be committed,
    those that are not valid, and files that lag behind.
    """
    with options.opened() as environment:
        found = environment.status()
        size, control = size_of(environment), size_of(environment.control)
    if options.json:
        say_json(found.to_json() | {"size": size_json(size), "controlSize": size_json(control)})
    else:
        say(*_standing(environment, found), *sizes(size, control), *table(map(_row, found.files)))


@command("adopt")
@click.option("--deletions", is_flag=True, help="Also where so much is gone that it looks like a loss.")
def adopt(options: Options, deletions: bool) -> int:
    """Commit every hand edit, each as a commit of its own.

    What cannot be committed is left alone and listed, as by gitmem status; then it ends with status 3.
    """
    with options.opened() as environment:
        done = environment.adopt(deletions=deletions)
    if options.json:
        say_json(done.to_json())
    else:
        say(*table(map(_adopted, done.adopted)), *table(map(_row, done.left)))
    return EXIT_CONFLICTS_LEFT if any(file.state in _REFUSED for file in done.left) else EXIT_DONE


_REFUSED = ("invalid", "stale", "missing", "misplaced")


@command("discard")
@arguments.resource
@arguments.document
def discard(options: Options, resource: str, document_id: str) -> None:
    """Give up the hand edit of a document.

    The newest version takes its place. What was given up is kept, and the answer says where.
    """
    with options.opened() as environment:
        done = environment.discard(resource, document_id)
    if options.json:
        say_json(done.to_json())
    else:
        say(f"gave up the edit of {done.document}", *([f"kept as {done.kept}"] if done.kept else []))


def _adopted(found: Adopted) -> tuple[str, ...]:
    return "committed", f"{found.operation} {found.document}", found.revision


def _standing(environment: Environment, found: Status) -> list[str]:
    where = "main" if found.on_main else f"{found.branch or 'no branch'}; gitmem writes main"
    lines = [f"{environment.folder} is on {where}: {found.documents} document{'' if found.documents == 1 else 's'}"]
    if found.operation:
        lines.append(f"A {found.operation} is under way: hand edits wait until it has ended.")
    if found.lock:
        lines.append(f"{found.lock} keeps .git/index behind. If no git is running, remove it.")
    if not found.index_current:
        lines.append("The index was behind and has been brought up.")
    return lines


def _row(file: FileStatus) -> tuple[str, ...]:
    return file.state, file.path, file.reason or file.change or ""
