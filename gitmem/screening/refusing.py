"""What a caller is told whose text must not be kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gitmem.errors import InstructionsRefusedError, Refused, RefusedTextError, SecretRefusedError
from gitmem.screening.screen import screen

_NAMED: Final = 5


def refusal(fields: Mapping[str, str], *, allowed: frozenset[str] = frozenset()) -> RefusedTextError | None:
    """The error to raise before anything of these texts is stored, by field name; None where all may be kept.

    A secret goes before instructions. Raises StorageError as `screen` does.
    """
    found = [(name, finding) for name, text in fields.items() for finding in screen(text, allowed=allowed)]
    for category, error, what in (
        ("secret", SecretRefusedError, "holds what looks like a secret"),
        ("instructions", InstructionsRefusedError, "holds what looks like instructions aimed at a later session"),
    ):
        reasons = [Refused(one.kind, name, one.line) for name, one in found if one.category == category]
        if reasons:
            return error(_message(reasons, what), reasons[:_NAMED])
    return None


def _message(reasons: list[Refused], what: str) -> str:
    places = ", ".join(f"{reason.kind} in line {reason.line}" for reason in reasons[:_NAMED])
    more = f" and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else ""
    return f"The {reasons[0].field} {what}: {places}{more}. Take it out and try again; nothing was saved."
