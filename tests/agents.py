"""What the tests of sessions share: bindings, a project with two resources, and looks at its control.git."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem import ErrorCode, GitmemError, Session
from tests.support import git

NOTES = gitmem.define_memory(id="notes", description="Workshop requirements and decisions.")
PLANS = gitmem.define_memory(id="plans", description="What comes next.")

WRITE = {"notes": {"scope": "document", "id": "workshop", "access": "read-write"}}
READ = {"notes": {"scope": "document", "id": "workshop"}}
COLLECTION = {"notes": {"scope": "collection"}}


class Desk:
    """A project with two resources, deployed for the agents "tutor" and "critic", and one document."""

    def __init__(self, store: gitmem.Store) -> None:
        self.store = store
        self.project = store.project("bot")
        self.environment = self.project.environment()
        self.production = self.project.environment("production")
        self.deployment = self.environment.deploy(agent="tutor", memories=[NOTES, PLANS])
        self.environment.deploy(agent="critic", memories=[NOTES])
        self.sessions = self.environment.sessions
        self.notes = self.environment.documents("notes")
        self.plans = self.environment.documents("plans")
        self.document = self.notes.create("workshop", title="Workshop notes", text="Node.js 20.", summary="Runtime.")
        self.control = Path(self.project.folder) / "control.git"

    def session(self, memory: dict[str, Any] = WRITE, **options: Any) -> Session:
        return self.sessions.create(**({"agent": "tutor", "memory": memory} | options))

    def records(self) -> list[str]:
        """The paths of all records of sessions and keys."""
        return [path for path in git(self.control, "ls-tree", "-r", "--name-only", "main").splitlines()
                if path.startswith(("sessions/", "keys/"))]  # fmt: skip

    def own_edit(self, text: str) -> gitmem.Document:
        """The owner writes the document."""
        return self.notes.replace("workshop", text=text, if_match=self.notes.read("workshop").revision)

    def freeze(self) -> None:
        self.notes.patch("workshop", agent_writes="disabled", if_match=self.notes.read("workshop").revision)

    def unfreeze(self) -> None:
        self.notes.patch("workshop", agent_writes="enabled", if_match=self.notes.read("workshop").revision)

    def delete(self) -> None:
        self.notes.delete("workshop", if_match=self.notes.read("workshop").revision)


def save(render: gitmem.Render | gitmem.Toolbox, **arguments: Any) -> dict[str, Any]:
    """What the model is told of its save."""
    return render.call("memory_save", arguments).to_json()


def refusal(code: ErrorCode, call: Any, *words: str) -> None:
    """`call` raises this code, and says these words."""
    with pytest.raises(GitmemError) as caught:
        call()
    assert caught.value.code is code, caught.value
    for word in words:
        assert word in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.message.isprintable()
