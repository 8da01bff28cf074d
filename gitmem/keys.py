"""The API keys of a store: who may come in over the network.

A key is shown once, when it is made. What is kept of it is a SHA-256: the secret part is 256 random
bits, so there is nothing to guess that a slow hash would protect. Keys lie outside of Git, since
they belong to one machine and must be gone when they are revoked.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final, TypeVar

from gitmem.clock import Clock, system_clock, to_rfc3339
from gitmem.errors import InvalidRequestError, NotFoundError, StorageError, UnauthorizedError
from gitmem.git.files import storage, sync_path, write_file
from gitmem.git.lock import WriterLock
from gitmem.ids import Random, system_random
from gitmem.limits import check_resource_id, utf8_size

T = TypeVar("T")

ROLES: Final = ("owner", "admin", "member")
SCOPES: Final = ("memory:read", "memory:write")
_NAME_BYTES: Final = 120
_LOCK_SECONDS: Final = 10.0
_USE_MILLISECONDS: Final = 60_000
_TOKEN: Final = re.compile(rb"gitmem_([0-9a-f]{12})_[A-Za-z0-9_-]{43}\Z")
_NO_HASH: Final = "0" * 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One API key, without its secret. Times are milliseconds since 1970, UTC.

    `project` narrows it to one project, `scopes` (none: all) to some uses. `member` makes it a
    person's; without one it is an owner's key.
    """

    id: str
    name: str
    hash: str
    created: int
    project: str | None = None
    member: str | None = None
    role: str = "owner"
    scopes: tuple[str, ...] = ()
    expires: int | None = None
    revoked: int | None = None
    used: int | None = None

    def valid(self, now: int) -> bool:
        """Whether it opens anything at `now`."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def to_json(self) -> dict[str, Any]:
        """All that may be shown."""
        return {
            "id": self.id,
            "name": self.name,
            "project": self.project,
            "member": self.member,
            "role": self.role,
            "scopes": list(self.scopes),
            "createdAt": to_rfc3339(self.created),
            "expiresAt": _shown_time(self.expires),
            "revokedAt": _shown_time(self.revoked),
            "lastUsedAt": _shown_time(self.used),
        }


class Keys:
    """The keys of the store in `folder`, shared by every process that works with it.

    Each look compares the file's state with what was read, so that a revocation counts at once.
    Every method raises StorageError where the file cannot be read: never "there are no keys".
    """

    def __init__(self, folder: str, *, clock: Clock = system_clock, random: Random = system_random) -> None:
        self._folder = os.path.join(folder, ".gitmem")
        self._path = os.path.join(self._folder, "keys.json")
        self._clock = clock
        self._random = random
        self._lock = WriterLock(os.path.join(self._folder, "keys.lock"))
        self._reading = threading.Lock()
        self._seen: tuple[int, ...] | None = None
        self._keys: Mapping[str, Key] = {}
        self._used: dict[str, int] = {}

    @property
    def exist(self) -> bool:
        """Whether a key was ever made. Revoked ones count: taking the last key away opens nothing."""
        return bool(self._current())

    def all(self) -> list[Key]:
        """Every key, revoked ones too, the oldest first."""
        return sorted(self._current().values(), key=lambda key: (key.created, key.id))

    def create(
        self,
        *,
        name: str,
        project: str | None = None,
        member: str | None = None,
        role: str | None = None,
        scopes: tuple[str, ...] = (),
        expires: int | None = None,
    ) -> tuple[Key, str]:
        """Make a key; it, and the token that opens with it, which is kept nowhere.

        Raises InvalidRequestError for a name in use, a role without a member, or a time gone by.
        """
        _check(name, project, member, role, scopes)
        now = self._clock()
        if expires is not None and expires <= now:
            raise InvalidRequestError("The key would have expired already. Give a later time.")
        key_id = self._random(6).hex()
        token = f"gitmem_{key_id}_{urlsafe_b64encode(self._random(32)).rstrip(b'=').decode()}"
        key = Key(
            id=key_id,
            name=name,
            hash=sha256(token.encode()).hexdigest(),
            created=now,
            project=project,
            member=member,
            role=role or ("owner" if member is None else "member"),
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            expires=expires,
        )

        def add(keys: dict[str, Key]) -> None:
            if any(other.name == name and other.valid(now) for other in keys.values()):
                raise InvalidRequestError(f"There is a key {name!a} already. Revoke it, or choose another name.")
            keys[key.id] = key

        self._change(add)
        return key, token

    def revoke(self, name_or_id: str) -> Key:
        """Take a key away, at once in every running server. Raises NotFoundError."""

        def mark(keys: dict[str, Key]) -> Key:
            found = keys.get(name_or_id) or next(
                (key for key in keys.values() if key.name == name_or_id and key.revoked is None), None
            )
            if found is None:
                raise NotFoundError(f"There is no key {ascii(name_or_id)[:60]}. See gitmem key list.")
            if found.revoked is None:
                found = keys[found.id] = replace(found, revoked=self._clock())
            return found

        return self._change(mark)

    def find(self, token: bytes) -> Key:
        """The valid key that a token opens with. Raises UnauthorizedError."""
        match = _TOKEN.match(token)
        key = self._current().get(match[1].decode()) if match else None
        right = hmac.compare_digest(sha256(token).hexdigest().encode(), (key.hash if key else _NO_HASH).encode())
        if key is None or not right:
            raise UnauthorizedError("The API key is not known here. See gitmem key list.")
        return self._used_now(key)

    def recall(self, key_id: str) -> Key:
        """The key that somebody came in with before, while it is valid. Raises UnauthorizedError."""
        key = self._current().get(key_id)
        if key is None:
            raise UnauthorizedError("The API key is not known here any more. See gitmem key list.")
        return self._used_now(key)

    def _used_now(self, key: Key) -> Key:
        now = self._clock()
        if not key.valid(now):
            raise UnauthorizedError(f"The API key {key.id} has been revoked or has expired. Make a new one.")
        self._used[key.id] = now
        return key

    def write_uses(self) -> None:
        """Note when keys were last used, to the minute; call it now and then."""
        used, self._used = self._used, {}
        stale = {
            key.id: used[key.id]
            for key in self._current().values()
            if key.id in used and used[key.id] - (key.used or 0) >= _USE_MILLISECONDS
        }

        def note(keys: dict[str, Key]) -> None:
            for key_id in stale.keys() & keys.keys():
                keys[key_id] = replace(keys[key_id], used=max(stale[key_id], keys[key_id].used or 0))

        if stale:
            self._change(note)

    def _current(self) -> Mapping[str, Key]:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StorageError(f"Cannot read {self._path}: {error.strerror}.") from error
        state = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
        if state != self._seen:
            with self._reading:
                # The state is taken first: a file replaced meanwhile is read again by the next look.
                self._keys, self._seen = self._read(), state
        return self._keys

    def _read(self) -> dict[str, Key]:
        with storage("read the API keys"):
            try:
                with open(self._path, "rb") as file:
                    data = file.read()
            except FileNotFoundError:
                return {}
        try:
            return {value["id"]: _key(value) for value in json.loads(data)["keys"]}
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{self._path} is damaged. Restore it, or remove it and make new keys.") from error

    def _change(self, change: Callable[[dict[str, Key]], T]) -> T:
        with self._locked():
            keys = self._read()
            result = change(keys)
            self._write(keys)
        return result

    @contextmanager
    def _locked(self) -> Generator[None, None, None]:
        with storage("write the API keys"):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            with self._lock.hold(_LOCK_SECONDS):
                yield

    def _write(self, keys: Mapping[str, Key]) -> None:
        temporary = f"{self._path}.new"
        data = json.dumps({"keys": [_record(key) for key in keys.values()]}, indent=1).encode() + b"\n"
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        write_file(temporary, data, mode=0o600)
        sync_path(temporary)
        os.rename(temporary, self._path)
        sync_path(self._folder)


def _check(name: str, project: str | None, member: str | None, role: str | None, scopes: tuple[str, ...]) -> None:
    for what, value in (("name", name), ("member", member)):
        if value is not None and not (0 < utf8_size(what, value) <= _NAME_BYTES and value.isprintable()):
            raise InvalidRequestError(f"The {what} must be 1 to {_NAME_BYTES} bytes of printable text.")
    if project is not None:
        check_resource_id(project, "project id")
    if role is not None and role not in ROLES:
        raise InvalidRequestError(f"{ascii(role)[:40]} is no role: use {', '.join(ROLES)}.")
    if role is not None and member is None:
        raise InvalidRequestError("A role belongs to a person: give --member too.")
    if unknown := set(scopes) - set(SCOPES):
        raise InvalidRequestError(f"{ascii(min(unknown))[:40]} is no scope: use {' or '.join(SCOPES)}.")


def _record(key: Key) -> dict[str, Any]:
    return {field: getattr(key, field) for field in Key.__slots__}


def _key(value: Mapping[str, Any]) -> Key:
    return Key(**{field: value[field] for field in Key.__slots__} | {"scopes": tuple(value["scopes"])})


def _shown_time(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else to_rfc3339(milliseconds)
