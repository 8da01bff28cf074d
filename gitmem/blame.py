"""Who last changed each line of a document's text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from gitmem.clock import to_rfc3339
from gitmem.environment.layout import Name
from gitmem.environment.rows import VersionRow
from gitmem.limits import PAGE_DOCUMENTS
from gitmem.records import Revision, Writer
from gitmem.store import Environment


@dataclass(frozen=True, kw_only=True, slots=True)
class BlamedLine:
    """One line of a text (`number` counts from 1) with the version that brought it."""

    number: int
    text: str
    revision: Revision
    updated_at: str
    writer: Writer

    def to_json(self) -> dict[str, Any]:
        return {
            "line": self.number,
            "text": self.text,
            "revision": self.revision,
            "updatedAt": self.updated_at,
            "writer": self.writer.to_json(),
        }


def blame(environment: Environment, resource: str, document_id: str) -> list[BlamedLine]:
    """The lines of a document as it is. Reads no further back than the oldest of them.

    Raises NotFoundError, InvalidRequestError, DamagedError.
    """
    environment.documents(resource).read(document_id)
    versions = _versions(environment, Name(resource, document_id))
    version, lines = next(versions)
    final = lines
    origins: dict[int, VersionRow] = {}
    unknown = {at: at for at in range(len(final))}
    """Where a line whose origin is not known yet stands in `lines`, and where in `final`."""
    for older, older_lines in versions:
        if not unknown:
            break
        kept = _kept(older_lines, lines)
        origins |= {end: version for at, end in unknown.items() if at not in kept}
        unknown = {kept[at]: end for at, end in unknown.items() if at in kept}
        version, lines = older, older_lines
    origins |= dict.fromkeys(unknown.values(), version)
    return [_blamed(at, text, origins[at]) for at, text in enumerate(final)]


def _versions(environment: Environment, name: Name) -> Iterator[tuple[VersionRow, list[str]]]:
    """Every version with its lines, newest first."""
    before: int | None = None
    while rows := environment.versions(name, before, PAGE_DOCUMENTS):
        for row in rows:
            content = environment.content(name, row.blob) if row.blob else None
            yield row, _lines(content.text if content else "")
        before = rows[-1].number


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _kept(older: list[str], newer: list[str]) -> dict[int, int]:
    """The lines of `newer` that `older` had: where they stand in each."""
    head = _common(older, newer)
    tail = _common(older[head:][::-1], newer[head:][::-1])
    matcher = SequenceMatcher(None, older[head : len(older) - tail], newer[head : len(newer) - tail])
    kept = {at: at for at in range(head)}
    kept |= {len(newer) - at: len(older) - at for at in range(1, tail + 1)}
    for old, new, size in matcher.get_matching_blocks():
        kept |= {head + new + at: head + old + at for at in range(size)}
    return kept


def _common(left: list[str], right: list[str]) -> int:
    length = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        length += 1
    return length


def _blamed(at: int, text: str, version: VersionRow) -> BlamedLine:
    return BlamedLine(
        number=at + 1,
        text=text,
        revision=Revision(version.revision.hex()),
        updated_at=to_rfc3339(version.updated),
        writer=version.writer,
    )
