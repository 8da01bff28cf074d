"""The commands that look after a store: doctor, gc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from gitmem import doctor as doctors
from gitmem.cli.context import Options, command
from gitmem.cli.output import say, say_json, table
from gitmem.control.ledger import Ledger
from gitmem.doctor import Finding
from gitmem.errors import EXIT_DONE, EXIT_FAILED
from gitmem.git.housekeeping import Size
from gitmem.store import Environment, Store


@command("doctor")
@click.option("--repair", is_flag=True, help="Mend what can be mended without losing anything.")
def doctor(options: Options, repair: bool) -> int:
    """Check every promise that gitmem makes.

    Looks at the whole store, or with --project or --environment at one environment. Ends with
    status 1 where it finds something.
    """
    with options.opened_store() as store:
        place = _place(options, store)
        repaired = doctors.repair(place, options.progress) if repair else []
        found = doctors.examine(place, options.progress)
    if options.json:
        findings = {"findings": [finding.to_json() for finding in found]}
        say_json(findings | ({"repaired": [finding.to_json() for finding in repaired]} if repair else {}))
    else:
        say(*_report("repaired", repaired), *(_report("found", found) or ["healthy"]))
    return EXIT_FAILED if found else EXIT_DONE


@command("gc")
def gc(options: Options) -> None:
    """Pack an environment's repository, and its project's control and memory-file repositories.

    Nothing is pruned.
    """
    with options.opened_store() as store:
        environment = options.environment_of(store)
        packed = environment.collect() + environment.control.collect()
        packed += sum(files.collect() for files in options.project_of(store).file_repositories().values())
        size, control = size_of(environment), size_of(environment.control)
    if options.json:
        say_json({"packed": packed, "size": size_json(size), "controlSize": size_json(control)})
    else:
        say(f"packed {packed:,} object{'' if packed == 1 else 's'}", *sizes(size, control))


def _place(options: Options, store: Store) -> Store | Environment:
    narrowed = options.project is not None or options.environment is not None
    return options.environment_of(store) if narrowed else store


def _report(what: str, findings: Sequence[Finding]) -> list[str]:
    return table((what, finding.check, f"{finding.subject}: {finding.message}") for finding in findings)


def size_of(repository: Environment | Ledger) -> Size | None:
    """What a repository takes on the disk, once it has been made."""
    return repository.size() if repository.exists else None


def sizes(size: Size | None, control: Size | None) -> list[str]:
    """What an environment's repository takes, and the control repository."""
    return [f"{name}  {_size(found)}" for name, found in (("size", size), ("control.git", control)) if found]


def _size(size: Size) -> str:
    due = "; gitmem gc is due" if size.due else ""
    packs = f"{size.packs} pack{'' if size.packs == 1 else 's'}"
    return f"{size.pack_bytes:,} bytes in {packs}, about {size.loose:,} loose objects{due}"


def size_json(size: Size | None) -> dict[str, Any] | None:
    """A size as JSON."""
    if size is None:
        return None
    return {"looseObjects": size.loose, "packs": size.packs, "packBytes": size.pack_bytes, "due": size.due}
