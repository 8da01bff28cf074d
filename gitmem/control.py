"""The project's bare `control.git`: which deployments are active, and all that ever were."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from gitmem.clock import Clock, system_clock, to_rfc3339
from gitmem.codec import loads
from gitmem.errors import DamagedError, NotFoundError
from gitmem.git.commits import Person, render
from gitmem.git.journal import StagedObject
from gitmem.git.objects import Oid, object_id
from gitmem.git.repository import Repository, TipMovedError
from gitmem.git.trees import EMPTY_TREE, FILE, Entry, Path
from gitmem.ids import new_id
from gitmem.records import OWNER, Deployment, Memory, Provider

_AUTHOR: Final = Person("gitmem", "gitmem@localhost")
Files = Mapping[Path, Any]


class Control:
    """Deployments of one project, kept as JSON files in Git."""

    def __init__(self, folder: str, *, durable: bool = True, clock: Clock = system_clock) -> None:
        self._folder = folder
        self._durable = durable
        self._clock = clock
        self._opening = threading.Lock()
        self._opened: Repository | None = None

    @property
    def exists(self) -> bool:
        """Whether the repository has been made."""
        return os.path.exists(os.path.join(self._folder, "HEAD"))

    def create(self) -> None:
        """Make the repository where there is none."""
        Repository.create(self._folder, bare=True)

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened:
            opened.close()

    def activate(self, agent: str, alias: str, memories: tuple[Memory, ...]) -> Deployment:
        """Record a deployment and make it the agent's active one in the environment `alias`."""
        now = self._clock()
        deployment = Deployment(
            id=new_id("dep", now), agent_id=agent, alias=alias, created_at=to_rfc3339(now), memory=memories
        )
        record = deployment.to_json() | {"memory": [memory.to_json() for memory in memories]}

        def change(root: Oid) -> Files:
            return {
                _deployment_path(deployment.id): record,
                ("active", alias, f"{agent}.json"): {"deployment": deployment.id},
            }

        self._commit(f"deploy {agent}@{alias}", change)
        return deployment

    def active(self, alias: str) -> dict[str, Deployment]:
        """The active deployment of each agent in an environment."""
        if not self.exists:
            return {}
        repository, root = self._at_tip()
        folder = repository.trees.find(root, ("active", alias))
        if folder is None:
            return {}
        found = {}
        for file, entry in repository.trees.get(folder.oid):
            pointer = _value(repository, entry.oid)
            found[file.removesuffix(".json")] = self._deployment(repository, root, pointer["deployment"])
        return found

    def deployment(self, deployment_id: str) -> Deployment:
        """A deployment, active or not. Raises NotFoundError."""
        repository, root = self._at_tip()
        return self._deployment(repository, root, deployment_id)

    def _deployment(self, repository: Repository, root: Oid, deployment_id: str) -> Deployment:
        entry = repository.trees.find(root, _deployment_path(deployment_id))
        if entry is None:
            raise NotFoundError(f"There is no deployment {deployment_id}.")
        value = _value(repository, entry.oid)
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

    def _at_tip(self) -> tuple[Repository, Oid]:
        repository = self._repository()
        tip = repository.tip()
        return repository, repository.commit(tip).tree if tip else EMPTY_TREE

    def _repository(self) -> Repository:
        with self._opening:
            if self._opened is None:
                self._opened = Repository(self._folder, durable=self._durable)
            return self._opened

    def _commit(self, subject: str, change: Callable[[Oid], Files]) -> None:
        """Write JSON files as one commit; `change` gets the tip's tree and runs again on a lost swap."""
        self.create()
        repository = self._repository()
        with repository.locked():
            while True:
                tip = repository.tip()
                root = repository.commit(tip).tree if tip else EMPTY_TREE
                staged: list[StagedObject] = []
                edits: dict[Path, Entry | None] = {}
                for path, value in change(root).items():
                    data = json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
                    blob = object_id("blob", data)
                    staged.append((blob, "blob", data))
                    edits[path] = Entry(FILE, blob)
                made: list[tuple[Oid, bytes]] = []
                tree = repository.trees.edit(root, edits, made)
                staged.extend((oid, "tree", data) for oid, data in made)
                data = render(
                    tree=tree,
                    parents=[tip] if tip else [],
                    author=_AUTHOR,
                    milliseconds=self._clock(),
                    subject=subject,
                    writer=OWNER,
                )
                commit = object_id("commit", data)
                staged.append((commit, "commit", data))
                try:
                    repository.publish(tip, commit, staged)
                    return
                except TipMovedError:
                    repository.trees.forget()


def _deployment_path(deployment_id: str) -> Path:
    return ("deployments", deployment_id[-2:], f"{deployment_id}.json")


def _value(repository: Repository, blob: Oid) -> Any:
    try:
        return loads(repository.objects.read(blob, "blob"))
    except ValueError as error:
        raise DamagedError(blob.hex(), f"The record {blob.hex()} in control.git is not JSON: {error}.") from error
