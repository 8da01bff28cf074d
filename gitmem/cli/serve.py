"""The command serve: the store over HTTP."""

from __future__ import annotations

import click

from gitmem.cli.context import Options, command
from gitmem.cli.output import flush, note, say, say_json
from gitmem.errors import InvalidRequestError


@command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8420, show_default=True, help="The port; 0: any.")
@click.option("--allow-host", "names", metavar="NAME", multiple=True, help="Another Host name to answer to.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="How many processes serve.")
def serve(options: Options, host: str, port: int, names: tuple[str, ...], workers: int) -> None:
    """Serve every project of the store over HTTP, until stopped."""
    try:
        from gitmem.http import server
    except ModuleNotFoundError as error:
        raise InvalidRequestError(
            f"gitmem serve needs the package {error.name}: pip install 'gitmem-store[server]'."
        ) from error

    def ready(url: str, locked: bool) -> None:
        if options.json:
            say_json({"url": url})
        else:
            say(f"Serving {folder} at {url}")
        flush()
        if not locked:
            note("There is no API key yet: anybody on this machine may read and write. See gitmem key create.")

    with options.opened_store() as store:
        folder = store.folder
    address = server.Address(host=host, port=port, names=frozenset(map(str.lower, names)))
    server.serve(folder, address, workers, ready)
