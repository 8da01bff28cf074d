"""`If-Match` and `If-None-Match`: what a request says that it has seen (RFC 9110, section 13)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gitmem.errors import InvalidRequestError, PreconditionRequiredError

# A member of the list, which may be empty, and the comma behind it.
_MEMBER: Final = re.compile(r'[ \t]*(?:(W/)?"([\x21\x23-\x7e\x80-\xff]*)")?[ \t]*(?:,|\Z)')


Lines = Sequence[str]
"""All lines of one header; none where it is absent."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader has already. Reading compares weakly: W/"x" and "x" are the same to it."""

    revisions: frozenset[str] = frozenset()
    anything: bool = False

    def __contains__(self, revision: str) -> bool:
        return self.anything or revision in self.revisions


NOTHING_SEEN: Final = Seen()


def to_read(match: Lines, none_match: Lines) -> Seen:
    """What the reader has. Raises InvalidRequestError."""
    if match:
        raise InvalidRequestError("Reading takes If-None-Match, not If-Match.")
    if not none_match:
        return NOTHING_SEEN
    if _is_any(none_match):
        return Seen(anything=True)
    return Seen(frozenset(value for _, value in _tags("If-None-Match", none_match)))


def to_put(match: Lines, none_match: Lines) -> tuple[str, ...] | None:
    """As `to_change`, or None where the document must not exist yet."""
    if none_match and not match:
        if not _is_any(none_match):
            raise InvalidRequestError('Creating takes If-None-Match: *, replacing takes If-Match: "<revision>".')
        return None
    return to_change(match, none_match)


def to_change(match: Lines, none_match: Lines) -> tuple[str, ...]:
    """The revisions that may be replaced. Raises PreconditionRequiredError, InvalidRequestError.

    A weak tag never matches here, so it is given with its mark, which no revision has.
    """
    if match and none_match:
        raise InvalidRequestError("If-Match and If-None-Match exclude each other. Send one of them.")
    if none_match:
        raise InvalidRequestError('This takes If-Match: "<revision>", not If-None-Match.')
    if not match:
        raise PreconditionRequiredError(
            'Say what you have seen: If-Match: "<revision>" with the ETag as it was read; '
            "to create a document, If-None-Match: *."
        )
    return tuple(weak + value for weak, value in _tags("If-Match", match))


def _is_any(lines: Lines) -> bool:
    return [line.strip(" \t") for line in lines] == ["*"]


def _tags(header: str, lines: Lines) -> list[tuple[str, str]]:
    """The tags of all lines, which count as one list: the mark of a weak one, and the value."""
    found = [(member[1] or "", member[2]) for member in _members(header, ",".join(lines)) if member[2] is not None]
    if not found:
        raise InvalidRequestError(f'{header} names no tag. Send {header}: "<revision>" with the ETag as it was read.')
    return found


def _members(header: str, text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        member = _MEMBER.match(text, at)
        if member is None:
            raise InvalidRequestError(f'{header} is no list of quoted tags. Send {header}: "<revision>".')
        yield member
        at = member.end()
