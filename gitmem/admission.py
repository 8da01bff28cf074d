"""What a session is admitted to: the checks before it starts, and whether they still hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gitmem.bindings import Access, Binding, Scope, refused
from gitmem.control.deployments import Deployments
from gitmem.control.sessions import SessionRecord, SessionRecords
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.layout import Name
from gitmem.errors import SessionClosedError
from gitmem.records import Deployment


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingState:
    """An entry of a session's inspection (seed 000, "Session bindings").

    `writable` is whether a save could succeed now: never of a collection, a document that is only
    read, frozen or deleted, or once the session has ended.
    """

    resource: str
    scope: Scope
    id: str | None
    access: Access
    writable: bool

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"resource": self.resource, "scope": self.scope}
        if self.id is not None:
            found["id"] = self.id
        return found | {"access": self.access, "writable": self.writable}


def check_bindings(environment: EnvironmentRepository, deployment: Deployment, bindings: Sequence[Binding]) -> None:
    """Raise InvalidRequestError for the first binding that a session on `deployment` cannot have.

    Its resource must be declared by the deployment, and a bound document must exist.
    """
    declared = {memory.id for memory in deployment.memory}
    for binding in bindings:
        if binding.resource not in declared:
            raise refused(
                binding.resource,
                f"the deployment of {deployment.agent_id} does not declare that resource; declare it and deploy",
            )
        if binding.id is not None:
            row = environment.find(Name(binding.resource, binding.id))
            if row is None:
                raise refused(binding.resource, f"there is no document {binding.id}; create it first")
            if row.dead:
                raise refused(binding.resource, f"the document {binding.id} was deleted; use a new id")


class Admission:
    """A session's way to the memory that it is bound to."""

    def __init__(
        self,
        environment: EnvironmentRepository,
        deployments: Deployments,
        sessions: SessionRecords,
        record: SessionRecord,
    ) -> None:
        self.environment = environment
        self._deployments = deployments
        self.sessions = sessions
        self.session_id = record.id
        self.deployment_id = record.deployment_id
        self.bindings = {binding.resource: binding for binding in record.bindings}

    @property
    def deployment(self) -> Deployment:
        """The deployment that the session started on, and keeps."""
        return self._deployments.get(self.deployment_id)

    def guidance(self, resource: str) -> str:
        """What that deployment declares a bound resource to be for."""
        return next(memory.description for memory in self.deployment.memory if memory.id == resource)

    def record(self) -> SessionRecord:
        """The session as it is recorded now. Raises NotFoundError."""
        return self.sessions.get(self.session_id)

    def secret(self) -> bytes:
        """The project's secret, which proves that a render came from here."""
        return self.sessions.secret()

    def is_open(self) -> bool:
        """Whether the session has not ended. Under the environment's lock this holds until the lock is given back."""
        return self.record().ended_at is None

    def check_open(self) -> None:
        """Raise SessionClosedError where the session has ended."""
        if not self.is_open():
            raise SessionClosedError(f"The session {self.session_id} has ended. Start another one.")

    def states(self) -> tuple[BindingState, ...]:
        """Every binding with what it allows now. Raises DamagedError."""
        is_open = self.is_open()
        return tuple(
            BindingState(
                resource=binding.resource,
                scope=binding.scope,
                id=binding.id,
                access=binding.access,
                writable=is_open and self._takes_writes(binding),
            )
            for binding in self.bindings.values()
        )

    def _takes_writes(self, binding: Binding) -> bool:
        if not binding.writes or binding.id is None:
            return False
        name = Name(binding.resource, binding.id)
        row = self.environment.find(name)
        if row is None or row.dead:
            return False
        meta = row.meta or self.environment.read(name, row)[0].meta
        return meta is not None and meta.policy == "enabled"
