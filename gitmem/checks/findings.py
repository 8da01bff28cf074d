"""The record of what a check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What a check found: the check's name, what it concerns, and one line for a person."""

    check: str
    subject: str
    message: str

    def to_json(self) -> dict[str, Any]:
        return {"check": self.check, "subject": self.subject, "message": self.message}
