"""The commands about API keys: key create, key list, key revoke."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

from gitmem.cli.context import Options, command, shared_options
from gitmem.cli.output import note, say, say_json, table
from gitmem.cli.reading import short_time
from gitmem.clock import system_clock, to_rfc3339
from gitmem.errors import InvalidRequestError
from gitmem.keys import ROLES, SCOPES, Key, Keys

_DURATION: Final = re.compile(r"(\d{1,5})(m|h|d|w)\Z", re.ASCII)
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.group("key")
@shared_options
def key() -> None:
    """Make, list and revoke API keys for gitmem serve."""


@command("create")
@click.option("--name", required=True, help="What to call it.")
@click.option("--member", metavar="M", help="Make it the key of this person; an owner's key unless given.")
@click.option("--role", type=click.Choice(ROLES), help="The person's role; member unless given.")
@click.option(
    "--scope", "scopes", type=click.Choice(SCOPES), multiple=True, help="Only for this; for all unless given."
)
@click.option("--expires", metavar="DATE|DURATION", help="When it ends, as 2027-01-31, or after 90d, 12h, 30m or 2w.")
def create(
    options: Options, name: str, member: str | None, role: str | None, scopes: tuple[str, ...], expires: str | None
) -> None:
    """Make a key and print it, once. --project P narrows it to a project."""
    with options.opened_store() as store:
        if options.project is not None:
            store.existing_project(options.project)
        made, token = Keys(store.folder).create(
            name=name,
            project=options.project,
            member=member,
            role=role,
            scopes=scopes,
            expires=None if expires is None else _end(expires, system_clock()),
        )
    if options.json:
        say_json({**made.to_json(), "key": token})
    else:
        say(token)
        note(f"This is the only time that the key {made.id} is shown. Keep it safe.")


@command("list")
def list_keys(options: Options) -> None:
    """List keys, revoked ones too."""
    with options.opened_store() as store:
        found = Keys(store.folder).all()
    if options.json:
        say_json({"keys": [one.to_json() for one in found]})
    elif found:
        now = system_clock()
        say(*table(_row(one, now) for one in found))


@command("revoke")
@click.argument("key_name", metavar="NAME|ID")
def revoke(options: Options, key_name: str) -> None:
    """Take a key away, at once in running servers too."""
    with options.opened_store() as store:
        revoked = Keys(store.folder).revoke(key_name)
    if options.json:
        say_json(revoked.to_json())
    else:
        say(f"revoked {revoked.name} ({revoked.id})")


for subcommand in (create, list_keys, revoke):
    key.add_command(subcommand)


def _row(one: Key, now: int) -> tuple[str, ...]:
    who = f"{one.role} {one.member}" if one.member is not None else one.role
    may = [*(["project " + one.project] if one.project else []), *one.scopes]
    state = "revoked" if one.revoked is not None else "expired" if not one.valid(now) else "valid"
    used = "never used" if one.used is None else f"used {short_time(to_rfc3339(one.used))}"
    until = "" if one.expires is None else f"until {short_time(to_rfc3339(one.expires))}"
    return one.id, one.name, state, who, ", ".join(may), used, until


def _end(expires: str, now: int) -> int:
    """The end in milliseconds. Raises InvalidRequestError."""
    if found := _DURATION.match(expires):
        return now + int(timedelta(**{_UNITS[found[2]]: int(found[1])}).total_seconds() * 1000)
    try:
        moment = datetime.fromisoformat(expires)
    except ValueError:
        raise InvalidRequestError(
            f"{ascii(expires)[:40]} is neither a date as 2027-01-31 nor a duration as 90d, 12h, 30m or 2w."
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
