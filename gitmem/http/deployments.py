"""The operations on deployments and agents, and those that tell of the server itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from gitmem import config
from gitmem.errors import NotFoundError, StorageError
from gitmem.http.answers import Answer, as_json
from gitmem.http.operations import Call
from gitmem.limits import shown
from gitmem.memory import define_memory, document_memory
from gitmem.records import Deployment
from gitmem.store import ENVIRONMENTS, Project


def deploy(call: Call) -> Answer:
    body = call.body
    memories = [
        define_memory(
            id=memory.id,
            description=memory.description,
            provider=document_memory(max_bytes=memory.provider.max_bytes),
        )
        for memory in body.memory
    ]
    deployment = call.project.environment(body.alias).deploy(agent=body.agent_id, memories=memories)
    return as_json(deployment.to_json(), 201)


def agents(call: Call) -> Answer:
    environment = call.parameter("environment")
    chosen = ENVIRONMENTS if environment is None else (environment,)
    return as_json({"agents": [agent for project in call.projects() for agent in _agents(project, chosen)]})


def read(call: Call) -> Answer:
    return as_json(_whole(deployment_named(call.projects(), call.path["deploymentId"])[1]))


def deployment_named(projects: Iterable[Project], deployment_id: str) -> tuple[Project, Deployment]:
    """A deployment of one of the projects. Raises NotFoundError."""
    for project in projects:
        with suppress(NotFoundError):
            return project, project.deployments.get(deployment_id)
    raise NotFoundError(f"There is no deployment {shown(deployment_id)}.")


def health(call: Call) -> Answer:
    folder = call.serving.store.folder
    if not os.path.isfile(os.path.join(folder, config.FILE)):
        raise StorageError("The store is gone.")
    return as_json({"status": "ok"})


def _agents(project: Project, environments: tuple[str, ...]) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for environment in environments:
        for agent, deployment in project.environment(environment).deployments().items():
            found.setdefault(agent, []).append(_whole(deployment))
    return [{"id": agent, "projectId": project.id, "deployments": found[agent]} for agent in sorted(found)]


def _whole(deployment: Deployment) -> dict[str, Any]:
    """A deployment with what it declares."""
    return deployment.to_json() | {"memory": [memory.to_json() for memory in deployment.memory]}
