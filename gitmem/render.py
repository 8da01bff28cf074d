"""A render: what one model turn is shown of its memory, and the tools that it may call on it."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

from gitmem.admission import Admission
from gitmem.errors import InvalidRequestError
from gitmem.limits import shown
from gitmem.recall import MemoryView, recall
from gitmem.records import Memory
from gitmem.results import ToolResult
from gitmem.toolbox import Toolbox
from gitmem.tools import Tools

_MAC_BYTES: Final = 16


class Render:
    """Every bound resource as it was at one time, for one model turn.

    Only the resources that `use_memory` selects expose their tools. Every save through this render is
    made on the revisions that it showed.
    """

    def __init__(self, admission: Admission, views: Mapping[str, MemoryView]) -> None:
        self._admission = admission
        self._views = dict(views)
        self._selected: list[str] = []

    @classmethod
    def of(cls, admission: Admission, select: Iterable[str | Memory] = ()) -> Render:
        """Recall every binding, and select some. Raises what recall raises; InvalidRequestError."""
        render = cls(admission, recall(admission))
        for memory in select:
            render.use_memory(memory)
        return render

    def use_memory(self, memory: str | Memory) -> MemoryView:
        """Select a bound resource, by its definition or its id, and see what was recalled of it.

        Raises InvalidRequestError where the session does not bind it.
        """
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
    def toolbox(self) -> Toolbox:
        """The tools of the selected resources, on the revisions that this render showed."""
        return Toolbox(self._admission, {resource: self._shown(resource) for resource in self._selected})

    @property
    def tools(self) -> Tools:
        """The tools of the selected resources, to be passed to the model."""
        return self.toolbox.tools

    def call(self, name: str, arguments: object) -> ToolResult:
        """Do what the model asks for; see `Toolbox.call`."""
        return self.toolbox.call(name, arguments)

    def token(self) -> str:
        """This render's selection as an opaque string, which `Session.render_from` takes in any process.

        It cannot be forged, nor used on another session.
        """
        return seal(self._admission, self.toolbox.shown)

    def _shown(self, resource: str) -> str | None:
        if self._admission.bindings[resource].scope == "collection":
            return None
        return self._views[resource].sources[0].revision


def seal(admission: Admission, revisions: Mapping[str, str | None]) -> str:
    """A token for resources and the revisions shown of them."""
    body = json.dumps(dict(revisions), separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_mac(admission, body) + body).rstrip(b"=").decode()


def unseal(admission: Admission, token: str) -> Toolbox:
    """The tools that a token of this session stands for. Raises InvalidRequestError for any other string."""
    try:
        data = base64.b64decode(token.encode("ascii") + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (AttributeError, ValueError, binascii.Error):
        data = b""
    mac, body = data[:_MAC_BYTES], data[_MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(admission, body)):
        raise InvalidRequestError("The render does not belong to this session. Render again, and use what it gives.")
    return Toolbox(admission, json.loads(body))


def _mac(admission: Admission, body: bytes) -> bytes:
    message = admission.session_id.encode() + b"\n" + body
    return blake2b(message, digest_size=_MAC_BYTES, key=admission.secret(), person=b"gitmem-render").digest()
