"""What a session has saved, as events that are derived from its commits: none is ever lost."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from gitmem.admission import Admission
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.rows import Save
from gitmem.errors import InvalidRequestError
from gitmem.records import Revision

_LOOK_SECONDS: Final = 0.05
_LAST: Final = 1 << 62


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionEvent:
    """A save that is committed; `seq` counts a session's events from 1, in the order of their commits.

    Numbers are stable as long as the environment's history is not rewritten. `bytes` counts the
    UTF-8 bytes of the text that was saved.
    """

    type: ClassVar[str] = "memory.saved"
    id: str
    seq: int
    resource: str
    document_id: str
    revision: Revision
    bytes: int

    def to_json(self) -> dict[str, Any]:
        data = {
            "resource": self.resource,
            "documentId": self.document_id,
            "revision": self.revision,
            "bytes": self.bytes,
        }
        return {"id": self.id, "seq": self.seq, "type": self.type, "data": data}


def events(admission: Admission, after: int) -> list[SessionEvent]:
    """A session's events behind number `after`. Raises InvalidRequestError; DamagedError."""
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:
        raise InvalidRequestError("after must be the number of an event: an integer from 0.")
    environment = admission.environment
    return [_event(environment, save) for save in environment.saves(admission.session_id, min(after, _LAST))]


def wait(admission: Admission, after: int, timeout: float | None) -> list[SessionEvent]:
    """The events behind number `after` as soon as there are any.

    None after `timeout` seconds, or once the session has ended, when no more can come.
    """
    deadline = time.monotonic() + (timeout if timeout is not None else math.inf)
    repository = admission.environment.parts().repository
    while True:
        # In this order: a save that came before the end is seen, and one after the look moves the tip.
        ended, tip = not admission.is_open(), repository.tip()
        found = events(admission, after)
        if found or ended or time.monotonic() >= deadline:
            return found
        while repository.tip() == tip and admission.is_open() and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)


def _event(environment: EnvironmentRepository, save: Save) -> SessionEvent:
    blob = environment.parts().reader.blob_at(save.revision, save.name)
    content = environment.content(save.name, blob)
    revision = save.revision.hex()
    return SessionEvent(
        id=f"evt_{revision}",
        seq=save.seq,
        resource=save.name.resource,
        document_id=save.name.id,
        revision=Revision(revision),
        bytes=len(content.text.encode()) if content else 0,
    )
