"""The commands that set a project up: init, deploy, resources."""

from __future__ import annotations

import os

import click

from gitmem import config
from gitmem.cli.anywhere import opened_environment, opened_project
from gitmem.cli.context import Deployed, Options, agent_of, checked_folder, command
from gitmem.cli.declarations import declared_in
from gitmem.cli.output import say, say_json, table
from gitmem.errors import InvalidRequestError
from gitmem.limits import check_resource_id
from gitmem.records import Memory, Resource
from gitmem.store import open_store


@command("init")
@click.argument("folder", metavar="[DIR]", required=False)
def init(options: Options, folder: str | None) -> None:
    """Make a store and a project in it.

    In DIR, or here. An existing store gets one more project.
    """
    options.check_here()
    named = folder if folder is not None else options.named_store
    place = os.path.abspath(checked_folder(named if named is not None else "."))
    project_id = options.named_project
    if project_id is None and os.path.exists(os.path.join(place, config.FILE)):
        project_id = config.read(place).project
    if project_id is None:
        raise InvalidRequestError("Which project? Name it: gitmem init --project NAME.")
    config.write_new(place, check_resource_id(project_id, "project id"))
    with open_store(place) as store:
        store.project(project_id).create()
    if options.json:
        say_json({"store": place, "project": project_id})
    else:
        say(
            f"The store {place} has the project {project_id}.",
            f"Declare its memory in {os.path.join(place, config.FILE)}, then run gitmem deploy --agent NAME.",
        )


@command("deploy")
@click.option("--agent", metavar="A", help="Which agent; agent in gitmem.toml, or the only one, unless given.")
@click.option("--module", metavar="FILE.py", help="Take the declarations of a Python file instead of gitmem.toml's.")
def deploy(options: Options, agent: str | None, module: str | None) -> None:
    """Activate an agent's declarations of memory."""
    with opened_project(options) as (project, settings):
        environment = project.environment(options.environment or "development")
        chosen = agent_of(settings, environment, agent)
        memories = list(settings.memories) if module is None else declared_in(module)
        _check_not_forgotten(environment, chosen, memories)
        deployment = environment.deploy(agent=chosen, memories=memories)
    if options.json:
        say_json(deployment.to_json())
    else:
        names = ", ".join(memory.id for memory in deployment.memory) or "no memory"
        say(f"deployed {deployment.agent_id}@{deployment.alias} with {names} ({deployment.id})")


def _check_not_forgotten(environment: Deployed, agent: str, memories: list[Memory]) -> None:
    # An agent that had memory may give it all up; one that never had any has forgotten to declare it.
    if not memories and agent not in environment.deployments():
        raise InvalidRequestError(
            "No memory is declared: write a [memory.NAME] table in gitmem.toml, or give --module."
        )


@command("resources")
def resources(options: Options) -> None:
    """List every resource, retired ones too."""
    with opened_environment(options) as environment:
        found = environment.inventory()
    if options.json:
        say_json({"resources": [resource.to_json() for resource in found]})
    else:
        say(*table(map(_row, found)))


def _row(resource: Resource) -> tuple[str, ...]:
    count = f"{resource.documents} document{'' if resource.documents == 1 else 's'}"
    state = "declared" if resource.declared else "retired"
    return resource.id, count, f"up to {resource.provider.max_bytes} bytes", state
