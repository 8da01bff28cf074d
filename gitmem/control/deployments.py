"""Which deployments are active, and all that ever were."""

from __future__ import annotations

from typing import Any

from gitmem.clock import to_rfc3339
from gitmem.control.ledger import Files, Ledger, Snapshot
from gitmem.errors import NotFoundError
from gitmem.git.trees import Path
from gitmem.ids import is_id, new_id
from gitmem.records import Deployment, Memory, Provider


class Deployments:
    """The deployments of one project."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._read: dict[str, Deployment] = {}

    def activate(self, agent: str, alias: str, memories: tuple[Memory, ...]) -> Deployment:
        """Record a deployment and make it the agent's active one in the environment `alias`."""
        now = self._ledger.clock()
        deployment = Deployment(
            id=new_id("dep", now, self._ledger.random),
            agent_id=agent,
            alias=alias,
            created_at=to_rfc3339(now),
            memory=memories,
        )
        record = deployment.to_json() | {"memory": [memory.to_json() for memory in memories]}

        def change(snapshot: Snapshot) -> tuple[Deployment, Files]:
            return deployment, {
                _path(deployment.id): record,
                _active_path(alias, agent): {"deployment": deployment.id},
            }

        return self._ledger.commit(f"deploy {agent}@{alias}", change)

    def active(self, alias: str) -> dict[str, Deployment]:
        """The active deployment of each agent in an environment."""
        snapshot = self._ledger.newest()
        if snapshot is None:
            return {}
        return {
            file.removesuffix(".json"): self._get(snapshot, snapshot.read(entry.oid)["deployment"])
            for file, entry in snapshot.below(("active", alias))
        }

    def active_of(self, agent: str, alias: str) -> Deployment:
        """An agent's active deployment in an environment. Raises NotFoundError."""
        snapshot = self._ledger.newest()
        pointer = snapshot.value(_active_path(alias, agent)) if snapshot else None
        if snapshot is None or pointer is None:
            raise NotFoundError(f"The agent {agent} is not deployed in {alias}. Run gitmem deploy --agent {agent}.")
        return self._get(snapshot, pointer["deployment"])

    def get(self, deployment_id: str) -> Deployment:
        """A deployment, active or not. Raises NotFoundError."""
        kept = self._read.get(deployment_id)
        if kept is not None:
            return kept
        snapshot = self._ledger.newest() if is_id("dep", deployment_id) else None
        if snapshot is None:
            raise _missing(deployment_id)
        return self._get(snapshot, deployment_id)

    def _get(self, snapshot: Snapshot, deployment_id: str) -> Deployment:
        # A deployment never changes, so one that was read once need not be read again.
        kept = self._read.get(deployment_id)
        if kept is None:
            value = snapshot.value(_path(deployment_id))
            if value is None:
                raise _missing(deployment_id)
            self._read[deployment_id] = kept = _deployment(value)
        return kept


def _deployment(value: Any) -> Deployment:
    return Deployment(
        id=value["id"],
        agent_id=value["agentId"],
        alias=value["alias"],
        created_at=value["createdAt"],
        memory=tuple(
            Memory(
                id=memory["id"],
                description=memory["description"],
                provider=Provider(kind=memory["provider"]["kind"], max_bytes=memory["provider"]["maxBytes"]),
            )
            for memory in value["memory"]
        ),
    )


def _path(deployment_id: str) -> Path:
    return ("deployments", deployment_id[-2:], f"{deployment_id}.json")


def _active_path(alias: str, agent: str) -> Path:
    return ("active", alias, f"{agent}.json")


def _missing(deployment_id: str) -> NotFoundError:
    return NotFoundError(f"There is no deployment {ascii(deployment_id)[:40]}.")
