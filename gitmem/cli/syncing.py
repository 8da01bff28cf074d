"""The commands that bring clones together: sync, conflicts, resolve."""

from __future__ import annotations

import threading

import click

from gitmem.cli.context import Options, command
from gitmem.cli.output import flush, note, say, say_json, table, to_json
from gitmem.cli.textinput import read_text
from gitmem.conflicts import DocumentConflict, Side
from gitmem.errors import EXIT_CONFLICTS_LEFT, EXIT_DONE, BusyError, InvalidRequestError, RemoteUnreachableError
from gitmem.store import Environment
from gitmem.syncing import Synced, watch


@command("sync")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--timeout", type=click.FloatRange(min=0.5), default=30.0, help="Seconds that it may take; 30.")
@click.option("--watch", "watching", is_flag=True, help="Sync again and again, until stopped.")
@click.option("--every", type=click.FloatRange(min=0.1), default=10.0, help="Seconds between two syncs; 10.")
def sync(options: Options, name: str | None, timeout: float, watching: bool, every: float) -> int:
    """Fetch from a remote, merge document by document, and push.

    Without NAME it is the upstream, or the only remote. Ends with status 3 when conflicts are left:
    see gitmem conflicts.
    """
    with options.opened() as environment:
        if watching:
            _watch(options, environment, name, timeout, every)
            return EXIT_DONE
        done = environment.sync(name, timeout=timeout)
    if options.json:
        say_json(done.to_json())
    else:
        say(*_report(done))
    return EXIT_CONFLICTS_LEFT if done.conflicts else EXIT_DONE


@command("conflicts")
def conflicts(options: Options) -> None:
    """List what could not be merged, and has not been settled."""
    with options.opened() as environment:
        found = environment.conflicts()
    if options.json:
        say_json({"conflicts": [conflict.to_json() for conflict in found]})
    elif found:
        say(*table(map(_row, found)))


@command("resolve")
@click.argument("resource", metavar="R")
@click.argument("document_id", metavar="ID")
@click.option("--ours", "take", flag_value="ours", help="Take the version of the side that merged.")
@click.option("--theirs", "take", flag_value="theirs", help="Take the version that the remote had; it is there now.")
@click.option("--text-file", metavar="F", help="Take the text in this file.")
def resolve(options: Options, resource: str, document_id: str, take: Side | None, text_file: str | None) -> None:
    """Settle a conflict. Every version stays in the history."""
    if (take is None) == (text_file is None):
        raise InvalidRequestError("Say how to settle it: --ours, --theirs or --text-file; one of them.")
    text = read_text(text_file) if text_file is not None else None
    with options.opened() as environment:
        settled = environment.resolve(resource, document_id, take=take, text=text)
    if options.json:
        say_json({"document": settled.to_json()})
    else:
        say(f"settled {resource}/{document_id}  {settled.revision}")


def _watch(options: Options, environment: Environment, name: str | None, seconds: float, every: float) -> None:
    over = threading.Event()

    def tell(what: Synced | RemoteUnreachableError | BusyError) -> None:
        if isinstance(what, Synced):
            if options.json:
                say(to_json(what.to_json()))
            else:
                say(*_report(what))
            flush()
        else:
            note(what.message)

    watch(environment, name, seconds, lambda: over.wait(every), tell)


def _report(done: Synced) -> list[str]:
    count = f"{done.received} document{'' if done.received == 1 else 's'}"
    what = [f"{'merged' if done.merged else 'received'} {count}"] if done.merged or done.received else []
    lines = [f"{done.remote}: {', '.join(what + ['sent'] * done.sent) or 'up to date'}"]
    lines += table(("refused", path, reason) for path, reason in sorted(done.refused.items())) if done.refused else []
    return lines + (table(map(_row, done.conflicts)) if done.conflicts else [])


def _row(conflict: DocumentConflict) -> tuple[str, ...]:
    name = f"{conflict.resource}/{conflict.id}"
    return "conflict", name, f"ours {conflict.ours[:12]}", f"theirs {conflict.theirs[:12]}"
