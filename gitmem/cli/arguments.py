"""The arguments that several commands share."""

from __future__ import annotations

from typing import Final

import click

from gitmem.cli import completion

resource: Final = click.argument("resource", metavar="R", shell_complete=completion.resources)
document: Final = click.argument("document_id", metavar="ID", shell_complete=completion.documents)
text_file: Final = click.option("--text-file", metavar="FILE", help="Read the text from a file.")
text_stdin: Final = click.option("--text-stdin", is_flag=True, help="Read the text from stdin.")
if_match: Final = click.option(
    "--if-match", metavar="REV", help="Only where the document is still at this revision; the current one unless given."
)
fresh: Final = click.option("--fresh", is_flag=True, help="Ask the upstream first, where there is one.")
