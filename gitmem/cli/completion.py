"""What the shell offers for a resource or a document id."""

from __future__ import annotations

from itertools import islice
from typing import Final

import click

from gitmem.cli.anywhere import opened_environment
from gitmem.cli.context import Options
from gitmem.cli.pages import every_document
from gitmem.errors import GitmemError

_LOOKED_AT: Final = 1_000


def resources(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The resources that begin with what was typed; none where the store cannot be read."""
    try:
        with opened_environment(_options(context)) as environment:
            return [found.id for found in environment.inventory() if found.id.startswith(incomplete)]
    except (GitmemError, OSError):
        return []


def documents(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The documents, of the newest, whose id begins with what was typed."""
    try:
        with opened_environment(_options(context)) as environment:
            newest = islice(every_document(environment.documents(context.params["resource"])), _LOOKED_AT)
            return [info.id for info in newest if info.id.startswith(incomplete)]
    except (GitmemError, OSError, KeyError):
        return []


def _options(context: click.Context) -> Options:
    return context.find_object(Options) or Options()
