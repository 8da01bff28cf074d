"""Opaque cursors: a position in one listing, which no other listing accepts."""

from __future__ import annotations

import base64
import binascii
from hashlib import blake2b

from gitmem.errors import InvalidCursorError


def encode(listing: str, number: int, key: str) -> str:
    """A cursor for the entry (`number`, `key`) of a listing named by `listing`."""
    body = f"{number}:{key}".encode()
    return base64.urlsafe_b64encode(_check(listing, body) + body).rstrip(b"=").decode()


def decode(listing: str, cursor: str) -> tuple[int, str]:
    """The entry behind which to go on. Raises InvalidCursorError for any cursor not made here."""
    try:
        data = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        check, body = data[:8], data[8:]
        number, _, key = body.decode("ascii").partition(":")
        if check == _check(listing, body) and encode(listing, int(number), key) == cursor:
            return int(number), key
    except (ValueError, binascii.Error, AttributeError):
        pass
    raise InvalidCursorError("The cursor does not belong to this listing. Start again without one.")


def _check(listing: str, body: bytes) -> bytes:
    # Not a secret: it tells a damaged or foreign cursor from one of this listing.
    return blake2b(listing.encode() + b"\n" + body, digest_size=8, person=b"gitmem").digest()
