"""Commits: rendering gitmem's own, and reading who, when and what from anybody's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from gitmem.clock import to_rfc3339
from gitmem.git.objects import Oid
from gitmem.records import OWNER, Writer

COMMITTER: Final = b"gitmem <gitmem@localhost>"

_TIME: Final = rb"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})Z"
_STAMP: Final = rb"> (-?\d+) [+-]\d{4}$"
_CLASH: Final = rb"(?m)^Gitmem-Conflict: (?:([a-z0-9._/-]+)/)?([A-Za-z0-9._-]+) ([0-9a-f]{40}) ([0-9a-f]{40})$"
_LATEST: Final = 253_402_300_799  # the last second of the year 9999
_ODD: Final = r"[\x00-\x1f\x7f<>\ud800-\udfff]+"


def own_write_pattern(names: str) -> re.Pattern[bytes]:
    """What `own_write` looks for; `names` is an expression whose two groups are a folder and a name in it."""
    return re.compile(
        rb"tree [0-9a-f]{40}\n(?:parent ([0-9a-f]{40})\n)?author [^\n]*\ncommitter "
        + re.escape(COMMITTER)
        + rb" (\d{1,12}) \+0000\n\n(?!reshard )([a-z]+) "
        + names.encode()
        + rb"\n\nGitmem-Writer: (owner|agent)\n(?:Gitmem-Session: ([ -~]+)\n)?"
        rb"Gitmem-Time: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.(\d{3})Z\n\Z"
    )


DOCUMENT_NAMES: Final = r"([a-z0-9-]{1,128})/([A-Za-z0-9_-]{1,128})"
_DOCUMENT_WRITE: Final = own_write_pattern(DOCUMENT_NAMES)


class Person(NamedTuple):
    """A name and an address for Git's author field, cleaned of what Git cannot store."""

    name: str
    email: str

    def render(self) -> str:
        name = " ".join(re.sub(_ODD, " ", self.name).split()).strip(" .,:;\"'\\") or "owner"
        email = re.sub(_ODD, "", self.email).replace(" ", "") or "owner@localhost"
        return f"{name} <{email}>"


class Commit(NamedTuple):
    """What gitmem needs to know of a commit.

    `own` is true under gitmem's committer identity only: an amended, rebased or cherry-picked copy
    is its person's commit, whatever trailers it still carries.
    """

    oid: Oid
    tree: Oid
    parents: tuple[Oid, ...]
    own: bool
    author: str
    address: str
    subject: str
    updated: int
    writer: Writer


class Clash(NamedTuple):
    """A document that both sides of a merge changed, and that could not be merged: its revision on each side.

    `ours` is the side of the repository that merged. The merge holds `theirs`.
    """

    resource: str
    id: str
    ours: Oid
    theirs: Oid


def render(
    *,
    tree: Oid,
    parents: Sequence[Oid],
    author: Person,
    milliseconds: int,
    subject: str,
    writer: Writer,
    clashes: Sequence[Clash] = (),
) -> bytes:
    """The bytes of a commit of gitmem's own; `milliseconds` is its time, UTC."""
    seconds = milliseconds // 1000
    session = f"Gitmem-Session: {writer.session_id}\n" if writer.session_id else ""
    head = "".join(f"parent {parent.hex()}\n" for parent in parents)
    return (
        f"tree {tree.hex()}\n{head}author {author.render()} {seconds} +0000\n"
        f"committer {COMMITTER.decode()} {seconds} +0000\n\n{subject}\n\n{''.join(map(_clash_line, clashes))}"
        f"Gitmem-Writer: {writer.kind}\n{session}Gitmem-Time: {to_rfc3339(milliseconds)}\n"
    ).encode()


def parse(oid: Oid, data: bytes) -> Commit:
    """Read a commit's bytes, whoever made it. Raises ValueError where they are not one."""
    head, _, message = data.partition(b"\n\n")
    lines = head.split(b"\n")
    parents: list[Oid] = []
    author = committer = b""
    for line in lines[1:]:
        if line.startswith(b"parent "):
            parents.append(bytes.fromhex(line[7:].decode()))
        elif line.startswith(b"author ") and not author:
            author = line[7:]
        elif line.startswith(b"committer "):
            committer = line[10:]
            break
    stamp = re.search(_STAMP, committer)
    # Anybody may commit with any time; what RFC 3339 cannot say counts as the nearest that it can.
    updated = min(max(int(stamp[1][:20]), 0), _LATEST) * 1000 if stamp else 0
    own = committer.startswith(COMMITTER + b" ")
    writer = OWNER
    if own:
        updated, writer = _trailers(message, updated)
    return Commit(
        oid=oid,
        tree=bytes.fromhex(lines[0][5:].decode()),
        parents=tuple(parents),
        own=own,
        author=author.partition(b" <")[0].decode("utf-8", "replace"),
        address=author.partition(b" <")[2].rpartition(b">")[0].decode("utf-8", "replace"),
        subject=message.lstrip(b"\n").partition(b"\n")[0].decode("utf-8", "replace"),
        updated=updated,
        writer=writer,
    )


class OwnWrite(NamedTuple):
    """What the bytes of a document write of gitmem's own say."""

    parent: Oid | None
    updated: int
    operation: str
    resource: str
    id: str
    session: str | None


def own_write(data: bytes, pattern: re.Pattern[bytes] = _DOCUMENT_WRITE) -> OwnWrite | None:
    """Read a document write in the one form in which gitmem commits it; None for any other commit.

    Reading all of history goes through here: it costs a tenth of `parse`.
    """
    found = pattern.match(data)
    if found is None:
        return None
    parent, seconds, operation, resource, document_id, kind, session, fraction = found.groups()
    if (kind == b"agent") != (session is not None) or int(seconds) > _LATEST:
        return None
    return OwnWrite(
        bytes.fromhex(parent.decode()) if parent else None,
        int(seconds) * 1000 + int(fraction),
        operation.decode(),
        (resource or b"").decode(),
        document_id.decode(),
        session.decode() if session else None,
    )


def clashes_of(data: bytes) -> list[Clash]:
    """The conflicts that the bytes of a merge of gitmem's own name, in its trailers."""
    trailers = data.partition(b"\n\n")[2].rstrip(b"\n").rpartition(b"\n\n")[2]
    return [
        Clash(
            (found[1] or b"").decode(),
            found[2].decode(),
            bytes.fromhex(found[3].decode()),
            bytes.fromhex(found[4].decode()),
        )
        for found in re.finditer(_CLASH, trailers)
    ]


def _clash_line(clash: Clash) -> str:
    name = f"{clash.resource}/{clash.id}" if clash.resource else clash.id
    return f"Gitmem-Conflict: {name} {clash.ours.hex()} {clash.theirs.hex()}\n"


def _trailers(message: bytes, updated: int) -> tuple[int, Writer]:
    writer = OWNER
    session: str | None = None
    for line in message.rstrip(b"\n").rpartition(b"\n\n")[2].split(b"\n"):
        key, _, value = line.partition(b": ")
        if key == b"Gitmem-Time" and (found := re.fullmatch(_TIME, value)):
            # The seconds stand in the committer line already; only the fraction is new.
            updated += int(found[7])
        elif key == b"Gitmem-Session":
            session = value.decode("utf-8", "replace")
        elif value == b"agent" and key == b"Gitmem-Writer":
            writer = Writer(kind="agent")
    return updated, Writer(kind="agent", session_id=session) if writer.kind == "agent" else OWNER
