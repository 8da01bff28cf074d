"""The commands that Git starts to show and to merge documents: textconv, merge-driver."""

from __future__ import annotations

import click

from gitmem.cli.context import Options, command
from gitmem.cli.output import say_json
from gitmem.git.files import storage
from gitmem.mergedriver import MARKER_SIZE, drive
from gitmem.textconv import show, shown


@command("textconv")
@click.argument("file")
def textconv(options: Options, file: str) -> None:
    """Print a document's file as it reads: its fields, then its text.

    The repositories that gitmem makes name this for git diff, log -p, show and blame.
    """
    with storage(f"show {file}"):
        if not options.json:
            show(file)
            return
        with open(file, "rb") as opened:
            say_json({"text": shown(opened.read()).decode("utf-8", "replace")})


@command("merge-driver")
@click.argument("base")
@click.argument("ours")
@click.argument("theirs")
@click.argument("marker_size", type=int, default=MARKER_SIZE)
@click.argument("path", required=False)
def merge_driver(options: Options, base: str, ours: str, theirs: str, marker_size: int, path: str | None) -> int:
    """Merge three files of one document into OURS.

    The repositories that gitmem makes name this for git merge, rebase, cherry-pick, revert and
    stash. PATH is what the document's file is called. Ends with status 1 where both sides changed
    the same: then OURS has markers. Status 2: one of the files is no document.
    """
    with storage(f"merge {path or ours}"):
        status = drive(base, ours, theirs, str(marker_size), path or ours)
    if options.json:
        say_json({"status": {0: "merged", 1: "conflict"}.get(status, "no document")})
    return status
