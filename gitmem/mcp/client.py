"""One client of the server: what it has been shown, and the calls that it makes."""

from __future__ import annotations

import json
from typing import Any, Final

from gitmem.bindings import Binding
from gitmem.errors import NotFoundError, ToolArgumentError
from gitmem.limits import shown
from gitmem.mcp.recalling import BUDGET_BYTES, RECALL, Recalled, cursor_at, recalled, spec, wanted
from gitmem.results import Conflict, Saved
from gitmem.sessions import Session
from gitmem.store import Project
from gitmem.tools import LIST, READ, SAVE, ToolSpec

_TOOLS: Final = (SAVE, LIST, READ)


class Client:
    """A client's way to a session's memory.

    A save is made on the version that this client was shown last, by reading a resource, by
    memory_recall, or by the answer to its save before (DESIGN 9): one that has not seen the newest
    text gets a conflict, which shows it.
    """

    def __init__(self, project: Project, session: Session) -> None:
        self._project = project
        self._session = session
        self._seen: dict[str, str | None] = dict.fromkeys(binding.resource for binding in session.bindings)

    def tools(self) -> list[ToolSpec]:
        """The tools that the session's bindings allow."""
        declared = {memory.id: memory.description for memory in self._session.deployment.memory}
        return [spec({resource: declared[resource] for resource in self._seen}),
                *self._session.toolbox(self._seen).tools]  # fmt: skip

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Do what the model asks for. Raises ToolArgumentError, and other GitmemErrors for failures of operation."""
        if name == RECALL:
            return self._recall(arguments)
        if name not in _TOOLS:
            offered = ", ".join(tool.name for tool in self.tools())
            raise ToolArgumentError(f"There is no tool {shown(name)}. There are {offered}.")
        result = self._session.toolbox(self._seen).call(name, arguments)
        if isinstance(result, Saved | Conflict):
            self._seen[self._saved(arguments)] = result.revision
        return result.to_json()

    def read(self, uri: str) -> Recalled:
        """A bound document's text or a collection's overview, by its URI. Raises NotFoundError."""
        for binding in self._session.bindings:
            if self.uri(binding) == uri:
                found = self._show(binding)
                if binding.id is not None and found.revision is None:
                    raise NotFoundError(f"The document {binding.resource}/{binding.id} was deleted.")
                return found
        known = ", ".join(map(self.uri, self._session.bindings)) or "none"
        raise NotFoundError(f"There is no resource {shown(uri)}. There are: {known}.")

    def uri(self, binding: Binding) -> str:
        """Where a bound resource is found."""
        parts = (self._project.id, self._session.alias, binding.resource, *([binding.id] if binding.id else []))
        return f"gitmem://{'/'.join(parts)}"

    def resources(self) -> list[tuple[str, str, str]]:
        """URI, name and what it is for, of every bound resource."""
        declared = {memory.id: memory.description for memory in self._session.deployment.memory}
        return [
            (self.uri(binding), "/".join(filter(None, (binding.resource, binding.id))), declared[binding.resource])
            for binding in self._session.bindings
        ]

    def _recall(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Whole items up to the budget, and a cursor where more are left."""
        items: list[dict[str, Any]] = []
        left = BUDGET_BYTES
        for binding in wanted(self._session, arguments):
            found = recalled(self._project, self._session, binding)
            left -= len(json.dumps(found.data))
            if items and left < 0:
                return {"memory": items, "nextCursor": cursor_at(self._session, binding.resource)}
            self._note(binding, found)
            items.append(found.data)
        return {"memory": items, "nextCursor": None}

    def _show(self, binding: Binding) -> Recalled:
        found = recalled(self._project, self._session, binding)
        self._note(binding, found)
        return found

    def _note(self, binding: Binding, found: Recalled) -> None:
        self._seen[binding.resource] = found.revision

    def _saved(self, arguments: dict[str, Any]) -> str:
        """The resource that a save went to: as named, or the only one that can be saved."""
        named = arguments.get("memory")
        return named if named is not None else next(b.resource for b in self._session.bindings if b.writes)
