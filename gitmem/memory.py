"""Declarations: what a resource is called, what it is for, and how large its documents may be."""

from __future__ import annotations

from collections.abc import Iterable

from gitmem.errors import InvalidRequestError
from gitmem.limits import MAX_BYTES_DEFAULT, check_max_bytes, check_resource_id, utf8_size
from gitmem.records import Memory, Provider


def document_memory(*, max_bytes: int = MAX_BYTES_DEFAULT) -> Provider:
    """The provider that keeps documents in Git; `max_bytes` limits a text, 1 to 16,384 UTF-8 bytes."""
    return Provider(kind="document", max_bytes=check_max_bytes(max_bytes))


def define_memory(*, id: str, description: str, provider: Provider | None = None) -> Memory:
    """Declare a resource (seed 000, "Configuration").

    Raises InvalidRequestError for an id outside the grammar or an empty description.
    """
    check_resource_id(id)
    if not utf8_size("description", description) or not description.strip():
        raise InvalidRequestError(f"The description of {id} is empty. Say what the memory is for.")
    return Memory(id=id, description=description, provider=provider or document_memory())


def agreed(memories: Iterable[Memory]) -> tuple[Memory, ...]:
    """The declarations, each id once. Raises InvalidRequestError where two of one id disagree."""
    found: dict[str, Memory] = {}
    for memory in memories:
        if found.setdefault(memory.id, memory) != memory:
            raise InvalidRequestError(f"{memory.id} is declared twice, and differently. Make the declarations agree.")
    return tuple(found.values())
