"""The labelled texts of fixtures/screening, and what screening says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, Literal, NamedTuple

from gitmem.screening.screen import screen

Part = Literal["rules", "held-out"]
PARTS: Final[tuple[Part, ...]] = ("rules", "held-out")
_FOLDER: Final = Path(__file__).parent.parent.parent / "fixtures" / "screening"
_WANTED: Final = {"secrets": "secret", "injections": "instructions", "harmless": None, "imperatives": None}


class Labelled(NamedTuple):
    """A text; for a secret also its kind, and whether that kind has a documented format."""

    text: str
    kind: str = ""
    format: bool = False


def labelled(part: Part, what: str) -> list[Labelled]:
    """The texts of one file. Secrets lie there in two pieces, so that no scanner takes the file for a leak."""
    found = [json.loads(line) for line in (_FOLDER / part / f"{what}.jsonl").read_text("utf-8").splitlines()]
    return [
        Labelled(one) if isinstance(one, str) else Labelled("".join(one["text"]), one["kind"], one["format"])
        for one in found
    ]


def refused(part: Part, what: str) -> list[Labelled]:
    """Those that screening finds something in; in a text that holds something, of the right category."""
    wanted = _WANTED[what]
    return [
        one for one in labelled(part, what) if any(wanted in {None, finding.category} for finding in screen(one.text))
    ]


def report() -> str:
    """Hit rates and false alarms, a line each."""
    return "\n".join(
        f"{part:8} {what:11} {len(refused(part, what)):3} of {len(labelled(part, what)):3} refused"
        for part in PARTS
        for what in _WANTED
    )


if __name__ == "__main__":
    print(report())
