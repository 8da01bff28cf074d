"""Session records, and the idempotency keys that stand for them, written together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from gitmem.bindings import Binding, bindings_from
from gitmem.clock import to_rfc3339
from gitmem.control.index import SessionIndex
from gitmem.control.ledger import Files, Ledger, Snapshot
from gitmem.errors import ConflictError, DamagedError, InvalidRequestError, NotFoundError
from gitmem.git.objects import Oid
from gitmem.git.trees import Path
from gitmem.ids import is_id, new_id

if TYPE_CHECKING:
    from gitmem.git.courier import Progress

_KEPT: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRecord:
    """What is recorded of a session. Its bindings and its deployment never change."""

    id: str
    agent_id: str
    alias: str
    deployment_id: str
    bindings: tuple[Binding, ...]
    created_at: str
    ended_at: str | None = None
    source: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "agentId": self.agent_id,
            "alias": self.alias,
            "deploymentId": self.deployment_id,
            "memory": {binding.resource: binding.to_json() for binding in self.bindings},
            "createdAt": self.created_at,
            "endedAt": self.ended_at,
            "source": self.source,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a session is asked for: by agent, or `pinned` to one deployment."""

    alias: str
    agent_id: str | None
    pinned: str | None
    bindings: tuple[Binding, ...]

    def difference(self, record: SessionRecord) -> str | None:
        """In what a session is not what is asked for; None where it is that."""
        if record.alias != self.alias:
            return "environment"
        if self.pinned is not None and record.deployment_id != self.pinned:
            return "deployment"
        if self.pinned is None and record.agent_id != self.agent_id:
            return "agent"
        return "bindings" if record.bindings != self.bindings else None


@dataclass(frozen=True, slots=True)
class _Kept:
    tip: Oid | None
    blob: Oid
    record: SessionRecord


class SessionRecords:
    """The sessions of one project. A record lies where a hash of its id says, so cost stays flat."""

    def __init__(self, ledger: Ledger, progress: Progress) -> None:
        self._ledger = ledger
        self._index = SessionIndex(ledger, progress)
        self._kept: dict[str, _Kept] = {}

    def close(self) -> None:
        self._index.close()

    def secret(self) -> bytes:
        """A secret of this project's own. Raises StorageError."""
        return self._ledger.secret()

    def find(self, session_id: str) -> SessionRecord | None:
        """A session as it stands at the newest tip; None where there is none. Raises DamagedError."""
        if not is_id("ses", session_id):
            return None
        snapshot = self._ledger.newest()
        return self._at(snapshot, session_id) if snapshot else None

    def get(self, session_id: str) -> SessionRecord:
        """Like `find`, but raises NotFoundError."""
        record = self.find(session_id)
        if record is None:
            raise missing(session_id)
        return record

    def by_key(self, key: str, request: Request) -> SessionRecord | None:
        """The session that a key stands for, if any.

        Raises ConflictError where it is not what is asked for.
        """
        snapshot = self._ledger.newest()
        return self._by_key(snapshot, key, request) if snapshot else None

    def create(
        self, request: Request, *, agent_id: str, deployment_id: str, key: str | None, source: str | None
    ) -> tuple[SessionRecord, bool]:
        """Record a session, and its key in the same commit; or the session that the key already stands for.

        The flag says whether it was created. Raises ConflictError.
        """
        now = self._ledger.clock()
        record = SessionRecord(
            id=new_id("ses", now, self._ledger.random),
            agent_id=agent_id,
            alias=request.alias,
            deployment_id=deployment_id,
            bindings=request.bindings,
            created_at=to_rfc3339(now),
            source=source,
        )

        def change(snapshot: Snapshot) -> tuple[tuple[SessionRecord, bool], Files]:
            known = self._by_key(snapshot, key, request) if key is not None else None
            if known is not None:
                return (known, False), {}
            files: dict[Path, Any] = {_path(record.id): record.to_json()}
            if key is not None:
                files[_key_path(key)] = {"session": record.id}
            return (record, True), files

        return self._ledger.commit(f"start {record.id}", change)

    def end(self, session_id: str) -> SessionRecord:
        """Record that a session has ended; one that ended before stays as it is. Raises NotFoundError.

        Called under the lock of the session's environment, it lets no later save of the session commit.
        """

        def change(snapshot: Snapshot) -> tuple[SessionRecord, Files]:
            record = self._at(snapshot, session_id) if is_id("ses", session_id) else None
            if record is None:
                raise missing(session_id)
            if record.ended_at is not None:
                return record, {}
            ended = replace(record, ended_at=to_rfc3339(self._ledger.clock()))
            return ended, {_path(session_id): ended.to_json()}

        return self._ledger.commit(f"end {session_id}", change)

    def recent(self, alias: str, before: str | None, limit: int) -> list[SessionRecord]:
        """The sessions of an environment, newest first, behind the id `before`."""
        tip, records = self._index.recent(alias, before, limit)
        return [self._keep(tip, blob, _session(blob, value)) for blob, value in records]

    # Inside

    def _at(self, snapshot: Snapshot, session_id: str) -> SessionRecord | None:
        kept = self._kept.get(session_id)
        if kept is not None and kept.tip == snapshot.tip:
            return kept.record
        entry = snapshot.entry(_path(session_id))
        if entry is None:
            return None
        unchanged = kept is not None and kept.blob == entry.oid
        record = kept.record if kept is not None and unchanged else _read(snapshot, entry.oid)
        return self._keep(snapshot.tip, entry.oid, record)

    def _keep(self, tip: Oid | None, blob: Oid, record: SessionRecord) -> SessionRecord:
        """Remember how a record stands at a tip, so that it is not read again while main stays there."""
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        self._kept[record.id] = _Kept(tip, blob, record)
        return record

    def _by_key(self, snapshot: Snapshot, key: str, request: Request) -> SessionRecord | None:
        pointer = snapshot.value(_key_path(key))
        record = self._at(snapshot, pointer["session"]) if pointer is not None else None
        difference = request.difference(record) if record is not None else None
        if record is not None and difference is not None:
            raise ConflictError(
                f"The idempotency key stands for session {record.id}, whose {difference} differs. "
                "Repeat the first request unchanged, or choose a new key."
            )
        return record


def _read(snapshot: Snapshot, blob: Oid) -> SessionRecord:
    return _session(blob, snapshot.read(blob))


def _session(blob: Oid, value: Any) -> SessionRecord:
    try:
        return _record(value)
    except (KeyError, TypeError, InvalidRequestError) as error:
        raise DamagedError(blob.hex(), f"The record {blob.hex()} in control.git is not a session: {error}.") from error


def _record(value: Any) -> SessionRecord:
    return SessionRecord(
        id=value["id"],
        agent_id=value["agentId"],
        alias=value["alias"],
        deployment_id=value["deploymentId"],
        bindings=bindings_from(value["memory"]),
        created_at=value["createdAt"],
        ended_at=value["endedAt"],
        source=value["source"],
    )


def missing(session_id: str) -> NotFoundError:
    """The error for an id that names no session."""
    return NotFoundError(f"There is no session {ascii(session_id)[:40]}. See gitmem session list.")


def _path(session_id: str) -> Path:
    digits = sha256(session_id.encode()).hexdigest()
    return ("sessions", digits[:2], digits[2:4], f"{session_id}.json")


def _key_path(key: str) -> Path:
    digits = sha256(key.encode()).hexdigest()
    return ("keys", digits[:2], digits[2:4], f"{digits}.json")
