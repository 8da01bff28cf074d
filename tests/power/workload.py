"""What the traced child does: saves of every kind, each announced before and acknowledged after on its stdout."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import gitmem
from gitmem import Document, Documents

NOTES = gitmem.define_memory(id="notes", description="Requirements and decisions.")

_serial = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Announced:
    """A write that was begun: to be there whole or not at all until it is acknowledged."""

    number: int
    operation: Literal["deploy", "create", "replace", "retitle", "delete"]
    id: str = ""
    title: str = ""
    text: str = ""


def say(**line: Any) -> None:
    """One line on stdout, written at once."""
    os.write(1, json.dumps(line).encode() + b"\n")


def acknowledged(announced: Announced, write: Callable[[], Document | None]) -> str:
    """Run a write between its two lines; the revision that it made."""
    say(begins=vars(announced))
    made = write()
    revision = str(made.revision) if made else ""
    say(acknowledges=announced.number, revision=revision)
    return revision


class Writer:
    """Writes documents of its own, which nobody else touches."""

    def __init__(self, notes: Documents, prefix: str) -> None:
        self._notes = notes
        self._prefix = prefix

    def run(self, count: int, size: int) -> None:
        """Create and replace `count` documents, retitle some, delete some."""
        for number in range(count):
            name = f"{self._prefix}{number}"
            revision = self.create(name, size)
            for _ in range(2):
                revision = self.replace(name, size, revision)
            if number % 3 == 0:
                revision = self.retitle(name, size, revision)
            if number % 4 == 3:
                self.delete(name, revision)

    def create(self, name: str, size: int) -> str:
        new = Announced(number=next(_serial), operation="create", id=name, title="Title", text=_text(size))
        return acknowledged(new, lambda: self._notes.create(name, title=new.title, text=new.text))

    def replace(self, name: str, size: int, revision: str) -> str:
        new = Announced(number=next(_serial), operation="replace", id=name, title="Title", text=_text(size))
        self._last = new.text
        return acknowledged(new, lambda: self._notes.replace(name, text=new.text, if_match=revision))

    def retitle(self, name: str, size: int, revision: str) -> str:
        new = Announced(number=next(_serial), operation="retitle", id=name, title="Other", text=self._last)
        return acknowledged(new, lambda: self._notes.patch(name, title=new.title, if_match=revision))

    def delete(self, name: str, revision: str) -> None:
        new = Announced(number=next(_serial), operation="delete", id=name)
        acknowledged(new, lambda: self._deleted(name, revision))

    def _deleted(self, name: str, revision: str) -> None:
        self._notes.delete(name, if_match=revision)


def _text(size: int) -> str:
    return (f"Line {next(_serial)} of a text that no other has.\n" * (size // 40 + 1))[:size]


def deployed(folder: str) -> tuple[gitmem.Store, gitmem.Environment]:
    store = gitmem.open_store(folder, create=True)
    environment = store.project("bot").environment()
    new = Announced(number=next(_serial), operation="deploy")
    say(begins=vars(new))
    environment.deploy(agent="tutor", memories=[NOTES])
    say(acknowledges=new.number, revision="")
    return store, environment


def in_threads(environment: gitmem.Environment, writers: int, count: int, size: int) -> None:
    """Several threads at once, so that saves share a flush."""
    threads = [
        threading.Thread(target=Writer(environment.documents("notes"), f"t{number}-").run, args=(count, size))
        for number in range(writers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def mixed(folder: str) -> None:
    """Alone, reopened, in threads, packed, alone again; and the power goes with much unflushed."""
    store, environment = deployed(folder)
    Writer(environment.documents("notes"), "a").run(4, 300)
    store.close()
    store = gitmem.open_store(folder)
    environment = store.project("bot").environment()
    Writer(environment.documents("notes"), "b").run(2, 7000)
    in_threads(environment, 8, 2, 2700)
    environment.collect()
    Writer(environment.documents("notes"), "c").run(3, 2700)
    os._exit(0)


def alone(folder: str) -> None:
    """One writer in a steady state."""
    _, environment = deployed(folder)
    Writer(environment.documents("notes"), "a").run(8, 2700)
    os._exit(0)


def together(folder: str) -> None:
    """Eight writers at once."""
    _, environment = deployed(folder)
    in_threads(environment, 8, 3, 2700)
    os._exit(0)


def many(folder: str) -> None:
    """So many documents that their folder is split, and so much at once that the journal must grow."""
    _, environment = deployed(folder)
    notes = environment.documents("notes")
    new = [
        Announced(number=next(_serial), operation="create", id=f"m{number}", title="Title", text=_text(4000))
        for number in range(200)
    ]
    for each in new:
        say(begins=vars(each))
    documents = (gitmem.NewDocument(id=each.id, title=each.title, text=each.text) for each in new)
    for each, made in zip(new, notes.create_many(documents), strict=True):
        assert isinstance(made, Document)
        say(acknowledges=each.number, revision=made.revision)
    Writer(notes, "a").run(3, 300)
    os._exit(0)


if __name__ == "__main__":
    {"mixed": mixed, "alone": alone, "together": together, "many": many}[sys.argv[1]](sys.argv[2])
