"""The commands about Git remotes: remote add, remote list, remote remove."""

from __future__ import annotations

import click

from gitmem.cli.context import Options, command, shared_options
from gitmem.cli.output import say, say_json, table
from gitmem.git.remotes import Remote
from gitmem.git.urls import shown


@click.group("remote")
@shared_options
def remote() -> None:
    """Add, list and remove Git remotes of an environment."""


@command("add")
@click.argument("name", metavar="NAME")
@click.argument("address", metavar="URL")
@click.option("--upstream", is_flag=True, help="Make it the authority: no save is done before it is there.")
@click.option("--offline", is_flag=True, help="With --upstream: while it is away, save here alone.")
@click.option("--insecure", is_flag=True, help="Let it be plain http.")
def add(options: Options, name: str, address: str, upstream: bool, offline: bool, insecure: bool) -> None:
    """Add a remote: https, ssh, file, or a path.

    It is kept in the repository's Git configuration, so that plain git knows it too. A URL that
    carries a password or a token is refused.
    """
    with options.opened() as environment:
        added = environment.remotes.add(name, address, upstream=upstream, offline=offline, insecure=insecure)
    if options.json:
        say_json(added.to_json())
    else:
        say(f"added {added.name}  {shown(added.url)}")


@command("list")
def list_remotes(options: Options) -> None:
    """List the remotes."""
    with options.opened() as environment:
        found = environment.remotes.list()
    if options.json:
        say_json({"remotes": [one.to_json() for one in found]})
    elif found:
        say(*table(map(_row, found)))


@command("remove")
@click.argument("name", metavar="NAME")
def remove(options: Options, name: str) -> None:
    """Take a remote out. Nothing that came from it is lost."""
    with options.opened() as environment:
        removed = environment.remotes.remove(name)
    if options.json:
        say_json(removed.to_json())
    else:
        say(f"removed {removed.name}")


for subcommand in (add, list_remotes, remove):
    remote.add_command(subcommand)


def _row(one: Remote) -> tuple[str, ...]:
    kind = "upstream, offline allowed" if one.offline else "upstream" if one.upstream else ""
    return one.name, shown(one.url), kind
