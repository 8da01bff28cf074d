"""Bit rot: a store to spoil, ways of spoiling one of its files, and a process that then tries everything."""

from __future__ import annotations

import json
import random
import selectors
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import gitmem
from tests.support import clean_environment

ANSWER_SECONDS: Final = 60.0
IDS: Final = ("a", "b", "c", "d")

PROBE = """
import json, sys
import gitmem
from gitmem import doctor

def told(action):
    try:
        return {"is": action()}
    except gitmem.DamagedError as error:
        return {"damaged": error.object, "message": error.message}
    except gitmem.GitmemError as error:
        return {"refused": error.code, "message": error.message}

def saved(notes, document_id):
    document = notes.read(document_id)
    return notes.replace(document_id, text=document.text + "!", if_match=document.revision).text

def tried(folder, revisions):
    with gitmem.open_store(folder) as store:
        environment = store.project("bot").environment("development")
        notes, sessions = environment.documents("notes"), environment.sessions
        found = {
            "read": {i: told(lambda: notes.read(i).to_json()) for i in revisions},
            "old": {i: {at: told(lambda: notes.read(i, at=at).text) for at in revisions[i]} for i in revisions},
            "history": {i: told(lambda: [v.revision for v in notes.history(i).versions]) for i in revisions},
            "gone": told(lambda: notes.read("gone").id),
            "list": told(lambda: sorted(document.id for document in notes.list().documents)),
            "sessions": told(lambda: sorted(session.id for session in sessions.list().sessions)),
            "saved": {i: told(lambda: saved(notes, i)) for i in revisions},
            "created": told(lambda: notes.create("new", title="New").id),
            "collected": told(environment.collect),
        }
    with gitmem.open_store(folder) as store:
        found["findings"] = [finding.to_json() for finding in doctor.examine(store)]
        found["again"] = {
            i: told(lambda: store.project("bot").environment("development").documents("notes").read(i).text)
            for i in revisions
        }
    return found

for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps(tried(asked["store"], asked["revisions"])), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Sound:
    """A closed store before anything was damaged, and what it holds: by id, the newest first."""

    folder: Path
    documents: dict[str, list[gitmem.Document]] = field(default_factory=dict)
    sessions: list[str] = field(default_factory=list)


def sound_store(folder: Path) -> Sound:
    """Documents and sessions, half of them packed, the rest loose."""
    found = Sound(folder)
    with gitmem.open_store(folder, create=True) as store:
        environment = store.project("bot").create().environment("development")
        notes = environment.documents("notes")
        environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="Notes.")])
        notes.delete("gone", if_match=notes.create("gone", title="Gone").revision)
        for number in range(4):
            for i in IDS:
                text = f"{i} {number}\n" + "\n".join(random.Random(i).choices("xyz", k=200))
                if number == 0:
                    found.documents[i] = [notes.create(i, title=f"Title of {i}", text=text)]
                else:
                    before = found.documents[i][0].revision
                    found.documents[i].insert(0, notes.replace(i, text=text, if_match=before))
            found.sessions.append(environment.sessions.create(agent="tutor", memory={}).id)
            if number == 1:
                environment.collect()
                environment.control.collect()
        environment.sessions.list()
    return found


# Damage


def flip(data: bytes, chance: random.Random) -> bytes:
    """One bit is another."""
    at = chance.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << chance.randrange(8),)) + data[at + 1 :]


def scribble(data: bytes, chance: random.Random) -> bytes:
    """Some bytes are others."""
    at = chance.randrange(len(data))
    length = min(chance.randrange(1, 65), len(data) - at)
    return data[:at] + chance.randbytes(length) + data[at + length :]


def zero(data: bytes, chance: random.Random) -> bytes:
    """From somewhere on there are only NUL bytes."""
    at = chance.randrange(len(data))
    return data[:at] + bytes(len(data) - at)


def cut(data: bytes, chance: random.Random) -> bytes:
    """The end is missing."""
    return data[: chance.randrange(len(data))]


DAMAGE: Final[tuple[Callable[[bytes, random.Random], bytes], ...]] = (flip, scribble, zero, cut)

KINDS: Final = {
    "loose": "development/.git/objects/??/*",
    "pack": "development/.git/objects/pack/*.pack",
    "idx": "development/.git/objects/pack/*.idx",
    "ref": "development/.git/refs/heads/main",
    "HEAD": "development/.git/HEAD",
    "git index": "development/.git/index",
    "journal": "development/.git/gitmem/journal",
    "sqlite": "development/.git/gitmem/index.sqlite",
    "control loose": "control.git/objects/??/*",
    "control pack": "control.git/objects/pack/*.pack",
    "control idx": "control.git/objects/pack/*.idx",
    "control ref": "control.git/refs/heads/main",
    "control sqlite": "control.git/gitmem/sessions.sqlite",
}


DERIVED: Final = ("gitmem/index.sqlite", "gitmem/sessions.sqlite")
"""What may tell a wrong title or time when it is damaged, and is found by doctor."""


def spoilt(sound: Sound, kind: str, seed: int, place: Path) -> Path:
    """Copy the store to `place` with one file of that kind damaged; that file, relative to the project."""
    shutil.copytree(sound.folder, place)
    chance = random.Random(f"{kind} {seed}")
    path = chance.choice(sorted((place / "bot").glob(KINDS[kind])))
    whole = path.read_bytes()
    damage = DAMAGE[seed % len(DAMAGE)]
    while (data := damage(whole, chance)) == whole:
        continue
    path.chmod(0o644)
    path.write_bytes(data)
    return path.relative_to(place / "bot")


class Prober:
    """A process that opens one spoilt store after the other and tells what happened."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Prober:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def probe(self, store: Path, sound: Sound) -> dict[str, Any]:
        """Everything that was tried. Raises AssertionError where the process crashed or hangs."""
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-c", PROBE],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=clean_environment(),
            )  # fmt: skip
        child = self._child
        assert child.stdin
        assert child.stdout
        assert child.stderr
        revisions = {i: [document.revision for document in versions] for i, versions in sound.documents.items()}
        child.stdin.write(json.dumps({"store": str(store), "revisions": revisions}) + "\n")
        child.stdin.flush()
        with selectors.DefaultSelector() as waiting:
            waiting.register(child.stdout, selectors.EVENT_READ)
            answered = waiting.select(ANSWER_SECONDS)
        line = child.stdout.readline() if answered else ""
        if not line:
            self._child = None
            child.kill()
            raise AssertionError(f"{'crashed' if answered else 'hangs'}: {child.communicate()[1]}")
        found: dict[str, Any] = json.loads(line)
        return found

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.communicate()
