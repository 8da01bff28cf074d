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
@click.option("--open", "opens", is_flag=True, help="Print a link that signs in to the Memory page, once.")
def serve(options: Options, host: str, port: int, names: tuple[str, ...], workers: int, opens: bool) -> None:
    """Serve every project of the store over HTTP, until stopped."""
    try:
        from gitmem.http import server
    except ModuleNotFoundError as error:
        raise InvalidRequestError(
            f"gitmem serve needs the package {error.name}: pip install 'gitmem-store[server]'."
        ) from error

    def ready(found: server.Ready) -> None:
        link = found.link() if opens else None
        if options.json:
            say_json({"url": found.url} | ({"open": link} if link else {}))
        else:
            say(f"Serving {folder} at {found.url}")
            if link:
                say(f"Open the Memory page, once and within ten minutes: {link}")
        flush()
        if not found.locked:
            note("There is no API key yet: anybody on this machine may read and write. See gitmem key create.")

    with options.opened_store() as store:
        folder = store.folder
    address = server.Address(host=host, port=port, names=frozenset(map(str.lower, names)))
    server.serve(folder, address, workers, ready)
