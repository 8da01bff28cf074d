"""What a session is bound to: one document or a whole collection of each resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from gitmem.errors import InvalidRequestError
from gitmem.limits import BINDINGS_PER_SESSION, is_document_id, is_resource_id, shown

Scope = Literal["document", "collection"]
Access = Literal["read", "read-write"]

_KEYS: Final = frozenset(("scope", "id", "access"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """A session's admission to a resource (seed 000, "Session bindings"); a collection has no `id`."""

    resource: str
    scope: Scope
    id: str | None = None
    access: Access = "read"

    @property
    def writes(self) -> bool:
        """Whether it admits `memory_save`."""
        return self.access == "read-write"

    def to_json(self) -> dict[str, Any]:
        """The binding as a session is created with it, without its resource."""
        found: dict[str, Any] = {"scope": self.scope}
        if self.id is not None:
            found["id"] = self.id
        return found | {"access": self.access}


def bindings_from(memory: object) -> tuple[Binding, ...]:
    """The bindings that `memory` asks for, by resource, with `access` filled in.

    `memory` maps resource ids to bindings as in the seed's JSON. Raises InvalidRequestError, naming
    the binding that is not one.
    """
    if not isinstance(memory, Mapping):
        raise InvalidRequestError("memory must map resource ids to bindings.")
    if len(memory) > BINDINGS_PER_SESSION:
        raise InvalidRequestError(f"A session has at most {BINDINGS_PER_SESSION} bindings, not {len(memory)}.")
    return tuple(sorted((_binding(name, value) for name, value in memory.items()), key=lambda b: b.resource))


def _binding(name: object, value: object) -> Binding:
    if not is_resource_id(name):
        raise InvalidRequestError(f"The binding {shown(name)} is refused: that is not a resource id.")
    resource = cast(str, name)
    if not isinstance(value, Mapping):
        raise refused(resource, 'it must be an object such as {"scope": "document", "id": "workshop"}')
    if unknown := [key for key in value if key not in _KEYS]:
        raise refused(resource, f"it has an unknown field {shown(unknown[0])}")
    scope, document_id, access = value.get("scope"), value.get("id"), value.get("access", "read")
    if access not in ("read", "read-write"):
        raise refused(resource, f'access must be "read" or "read-write", not {shown(access)}')
    if scope == "document":
        if not is_document_id(document_id):
            raise refused(resource, f"its id must be 1 to 128 letters, digits, '-' or '_', not {shown(document_id)}")
        return Binding(resource=resource, scope="document", id=document_id, access=access)
    if scope == "collection":
        if "id" in value:
            raise refused(resource, "a collection has no id; leave it out, or bind a document")
        if access != "read":
            raise refused(resource, "a collection can only be read; bind a document to write")
        return Binding(resource=resource, scope="collection")
    raise refused(resource, f'scope must be "document" or "collection", not {shown(scope)}')


def refused(resource: str, why: str) -> InvalidRequestError:
    """The error that names a binding and says why it is refused."""
    return InvalidRequestError(f"The binding memory.{resource} is refused: {why}.")
