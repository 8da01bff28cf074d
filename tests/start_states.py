"""Environments to start from, laid out by plain Git: each made once a session and then copied."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gitmem
from gitmem.codec import Content, encode
from gitmem.environment.layout import shards
from tests.model import Model
from tests.support import git
from tests.workshop import START, ManualClock

LIMIT = 200
DESCRIPTION = "What the model remembers."
Place = Callable[[str], str]


def flat(document_id: str) -> str:
    return f"notes/{document_id}.json"


def deep(document_id: str) -> str:
    return "/".join(("notes", *shards(document_id), f"{document_id}.json"))


@dataclass(frozen=True)
class StartState:
    """A store in `folder` whose environment is bot/development, and the model of its resource notes."""

    folder: Path
    model: Model

    def copy(self, target: Path) -> Model:
        shutil.copytree(self.folder, target, symlinks=True)
        return copy.deepcopy(self.model)


def imported(folder: Path, count: int, place: Place) -> Model:
    """A repository made by `git fast-import`: `count` documents in five commits, and one more with 55 versions."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    provider = {"kind": "document", "maxBytes": LIMIT}
    declaration = json.dumps({"description": DESCRIPTION, "provider": provider})
    commits: list[dict[str, Content]] = [{} for _ in range(5)]
    for number in range(count):
        commits[number % 5][f"d{number:03}"] = Content(f"Title {number}", "", "enabled", f"text {number}")
    commits += [{"long": Content("Long", "", "enabled", f"text {number}")} for number in range(55)]
    files = [{place(name): encode(content) for name, content in commit.items()} for commit in commits]
    files[0] |= {".gitattributes": b"* -text -filter -ident\n", "notes/.resource.json": declaration.encode()}
    git(folder, "fast-import", "--quiet", stdin=_stream(files))
    git(folder, "reset", "-q", "--hard")
    model = Model(limit=LIMIT, tip_time=0)
    revisions = git(folder, "log", "--reverse", "--format=%H").split()
    for number, (revision, commit) in enumerate(zip(revisions, commits, strict=True)):
        for name, content in commit.items():
            model.commit(_seconds(number), name, content, revision, f"write {number}")
    return model


def _seconds(number: int) -> int:
    """The time of a commit; several have the same."""
    return START // 1000 - 100_000 + number // 3


def _stream(commits: list[dict[str, bytes]]) -> str:
    lines = []
    for number, files in enumerate(commits):
        message = f"write {number}"
        lines.append("commit refs/heads/main")
        lines.append(f"committer Pat Person <pat@example.org> {_seconds(number)} +0000")
        lines.append(f"data {len(message)}\n{message}")
        for path, data in files.items():
            lines.append(f"M 100644 inline {path}\ndata {len(data)}\n{data.decode()}")
    return "\n".join(lines) + "\ndone\n"


class StartStates:
    """Each start state, made in `folder` when first asked for.

    `few` documents; `brink`: two more split the folder; `split`: one level; `deep`: two.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, StartState] = {}

    def get(self, name: str) -> StartState:
        if name not in self._made:
            count, place, more = {
                "few": (4, flat, 0),
                "brink": (126, flat, 0),
                "split": (127, flat, 2),
                "deep": (150, deep, 0),
            }[name]
            folder = self._folder / name
            model = imported(folder / "bot/development", count, place)
            add(folder, model, more)
            self._made[name] = StartState(folder, model)
        return self._made[name]


def add(folder: Path, model: Model, count: int) -> None:
    """Create documents through the library."""
    with gitmem.open_store(folder, create=True, settings=gitmem.Settings(clock=ManualClock())) as store:
        notes = store.project("bot").environment().documents("notes")
        for number in range(count):
            content = Content(f"More {number}", "", "enabled", "")
            made = notes.create(f"more{number}", title=content.title)
            model.save(START, f"more{number}", content, "create", expected=None).revision = made.revision
