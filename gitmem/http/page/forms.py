"""What a submitted form says, and how text comes through a browser unharmed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from gitmem.errors import ErrorCode, InvalidRequestError
from gitmem.http.answers import Refusal

FORM_BYTES: Final = 512 * 1024
"""Room for a text far above any limit, so that it comes back to who typed it instead of being cut off."""

_FIELDS: Final = 20


class Form:
    """The fields of a form. Line ends are those of gitmem, not those of forms."""

    def __init__(self, fields: Mapping[str, str] | None = None) -> None:
        self._fields = fields or {}

    def __getitem__(self, name: str) -> str:
        """A field. Raises InvalidRequestError where the form has none of that name."""
        try:
            return self._fields[name]
        except KeyError:
            raise InvalidRequestError(f"The form has no field {name}. Load the page again.") from None

    def get(self, name: str) -> str:
        """A field, or nothing."""
        return self._fields.get(name, "")


def parse(headers: Mapping[str, list[str]], body: bytes) -> Form:
    """The fields of a body. Raises Refusal (415) for another kind of body; InvalidRequestError."""
    kind = ",".join(headers.get("content-type", ())).partition(";")[0].strip(" \t").lower()
    if kind != "application/x-www-form-urlencoded" or headers.get("content-encoding"):
        raise Refusal(415, ErrorCode.INVALID_REQUEST, "The page takes forms only.")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
    except ValueError:
        raise InvalidRequestError("The form is not percent-encoded UTF-8.") from None
    fields = {name: value.replace("\r\n", "\n") for name, value in pairs}
    if len(fields) < len(pairs):
        raise InvalidRequestError("A field stands twice in the form.")
    return Form(fields)


def carried(text: str) -> str:
    """What a browser makes of a text that it shows in a field, seen from here."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def is_carried_whole(text: str) -> bool:
    """Whether a text can be edited in a browser without any other change to it."""
    return carried(text) == text or _with_ends_of(text, carried(text)) == text


def typed(submitted: str, before: str) -> str:
    """The text that is meant by a field that first held `before`: what was not touched stays byte for byte."""
    return before if submitted == carried(before) else _with_ends_of(before, submitted)


def typed_line(submitted: str, before: str) -> str:
    """The same for a field of one line, from which a browser drops line ends."""
    return before if submitted == carried(before).replace("\n", "") else submitted


def _with_ends_of(before: str, text: str) -> str:
    """A text with line ends as `before` has them, if all of its are CRLF."""
    breaks = before.count("\r\n")
    is_dos = breaks and breaks == before.count("\r") == before.count("\n")
    return text.replace("\n", "\r\n") if is_dos else text
