"""What the traced child had announced and had been promised at a moment, held against what a power loss left."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gitmem
from gitmem import doctor
from tests.power.trace import Call
from tests.power.workload import NOTES, Announced
from tests.support import fsck, git


@dataclass(slots=True)
class Claim:
    """A write with its revision, which is None until it is acknowledged."""

    announced: Announced
    revision: str | None = None


class Claims:
    """The writes of a trace, by document and in order, as they stood at a moment."""

    def __init__(self, calls: Iterable[Call], moment: int) -> None:
        self.documents: dict[str, list[Claim]] = defaultdict(list)
        self.deployed = False
        claims: dict[int, Claim] = {}
        for line in (line for call in spoken(calls) if call.begun <= moment for line in _lines(call)):
            if "begins" in line:
                announced = Announced(**line["begins"])
                claims[announced.number] = Claim(announced)
                if announced.id:
                    self.documents[announced.id].append(claims[announced.number])
            else:
                claims[line["acknowledges"]].revision = line["revision"]
                self.deployed |= claims[line["acknowledges"]].announced.operation == "deploy"

    def saved(self, folder: Path) -> None:
        """Open what a power loss left as anybody would: every promised save is there, and saving goes on."""
        with gitmem.open_store(folder, create=not self.deployed) as store:
            self._look(store)
        with gitmem.open_store(folder, create=not self.deployed) as store:
            doctor.examine(store)
            self._go_on(store)
            self._look(store)

    def hold(self, folder: Path) -> None:
        """And nothing is wrong with the repositories and the working tree."""
        with gitmem.open_store(folder, create=not self.deployed) as store:
            self._look(store)
        with gitmem.open_store(folder, create=not self.deployed) as store:
            found = doctor.examine(store)
            assert not found, found
        _healthy(folder)
        self.saved(folder)
        _healthy(folder)

    def _look(self, store: gitmem.Store) -> None:
        environment = store.project("bot").environment()
        if self.deployed:
            assert "tutor" in environment.deployments(), "a deployment was promised"
        if environment.resource("notes") is None:
            assert not self.deployed, "a resource was promised"
            return
        notes = environment.documents("notes")
        for document_id, claims in self.documents.items():
            self._look_at(notes, document_id, claims)

    def _look_at(self, notes: gitmem.Documents, document_id: str, claims: list[Claim]) -> None:
        acknowledged = [claim for claim in claims if claim.revision is not None]
        try:
            versions = notes.history(document_id).versions[::-1]
        except gitmem.NotFoundError:
            versions = ()
        operations = [version.operation for version in versions]
        assert operations == [claim.announced.operation for claim in claims[: len(versions)]], document_id
        assert len(versions) >= len(acknowledged), f"{document_id}: {len(acknowledged)} promised, {operations} there"
        for claim, version in zip(acknowledged, versions, strict=False):
            if claim.announced.operation != "delete":
                assert version.revision == claim.revision
                document = notes.read(document_id, at=version.revision)
                assert (document.title, document.text) == (claim.announced.title, claim.announced.text)
        if versions and versions[-1].operation != "delete":
            newest, document = claims[len(versions) - 1].announced, notes.read(document_id)
            assert (document.title, document.text) == (newest.title, newest.text)

    def _go_on(self, store: gitmem.Store) -> None:
        environment = store.project("bot").environment()
        environment.deploy(agent="tutor", memories=[NOTES])
        environment.documents("notes").create("after-the-power-loss", title="After", text="after")


def spoken(calls: Iterable[Call]) -> list[Call]:
    """The lines that the child wrote on its stdout."""
    return [call for call in calls if call.name == "write" and call.number(0) == 1]


def acknowledgements(calls: Iterable[Call]) -> list[Call]:
    """The lines among them that acknowledge a write."""
    return [call for call in spoken(calls) if any("acknowledges" in line for line in _lines(call))]


def _lines(call: Call) -> list[dict[str, Any]]:
    return [json.loads(line) for line in call.data(1).splitlines()]


def _healthy(folder: Path) -> None:
    for head in (folder / "bot/control.git/HEAD", folder / "bot/development/.git/HEAD"):
        found = fsck(head.parent) if head.exists() else ""
        assert not found, found
    environment = folder / "bot/development"
    changes = git(environment, "status", "--porcelain") if (environment / ".git/HEAD").exists() else ""
    assert not changes, changes
