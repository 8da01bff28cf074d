"""A render on a server: what one model turn is shown of its memory, and its tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gitmem.client import decoding
from gitmem.client.api import Answer
from gitmem.errors import InvalidRequestError, ToolArgumentError
from gitmem.limits import shown
from gitmem.recall import MemoryView
from gitmem.records import Memory
from gitmem.results import ToolResult
from gitmem.tools import LIST, SAVE, Tools, checked


class Asking(Protocol):
    """Sends a request about the render's session."""

    def __call__(self, method: str, *below: str, body: Mapping[str, Any] | None = None) -> Answer: ...


class RemoteToolbox:
    """What `gitmem.Toolbox` is to a store on this machine: tools on what one render showed."""

    def __init__(self, ask: Asking, value: Any) -> None:
        self._ask = ask
        self.token: str = value["render"]
        self.tools: Tools = decoding.tools(value["tools"])

    def call(self, name: str, arguments: object) -> ToolResult:
        """Do what the model asks for; `arguments` is the JSON object that it gave."""
        given = checked(name, arguments)
        try:
            answer = self._ask("POST", "tools", name, body={"render": self.token, "arguments": given})
        except InvalidRequestError as error:
            raise ToolArgumentError(error.message) from None
        return answer.into(lambda value: _result(name, value, answer.tag))


class RemoteRender:
    """What `gitmem.Render` is to a store on this machine."""

    def __init__(self, ask: Asking, value: Any) -> None:
        self._ask = ask
        self._views = {resource: decoding.view(view) for resource, view in value["memory"].items()}
        self._whole = RemoteToolbox(ask, value)
        self._selected: list[str] = []
        self._narrowed: dict[tuple[str, ...], RemoteToolbox] = {tuple(self._views): self._whole}

    def use_memory(self, memory: str | Memory) -> MemoryView:
        """Select a bound resource, by its definition or its id, and see what was recalled of it."""
        resource = memory.id if isinstance(memory, Memory) else memory
        if not isinstance(resource, str) or resource not in self._views:
            bound = ", ".join(self._views) or "nothing"
            raise InvalidRequestError(f"The session does not bind {shown(resource)}. It binds {bound}.")
        if resource not in self._selected:
            self._selected.append(resource)
        return self._views[resource]

    @property
    def selected(self) -> dict[str, MemoryView]:
        """What the selected resources show, by resource."""
        return {resource: self._views[resource] for resource in self._selected}

    @property
    def toolbox(self) -> RemoteToolbox:
        """The tools of the selected resources, on the revisions that this render showed."""
        chosen = tuple(self._selected)
        if chosen not in self._narrowed:
            body = {"render": self._whole.token, "select": list(chosen)}
            answer = self._ask("POST", "renders", body=body)
            self._narrowed[chosen] = answer.into(lambda value: RemoteToolbox(self._ask, value))
        return self._narrowed[chosen]

    @property
    def tools(self) -> Tools:
        """The tools of the selected resources, to be passed to the model."""
        return self.toolbox.tools

    def call(self, name: str, arguments: object) -> ToolResult:
        """Do what the model asks for; see `RemoteToolbox.call`."""
        return self.toolbox.call(name, arguments)

    def token(self) -> str:
        """This render's selection as an opaque string, which `render_from` takes, here or next to the store."""
        return self.toolbox.token


def _result(name: str, value: Any, tag: str) -> ToolResult:
    if name == SAVE:
        return decoding.saved(value, tag)
    return decoding.listed(value) if name == LIST else decoding.read(value)
