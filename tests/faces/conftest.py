"""A store with a server, and a project for each test, reached by each face in turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import cast

import pytest

import gitmem
from gitmem import doctor
from gitmem.keys import Keys
from tests.faces.faces import MEMBER, CommandLine, Face, Library
from tests.http.server import Server

KINDS = ("store", "client", "command line", "command line on a server")

_numbers = count()


class Place:
    """A store that a server serves, and the file with a key to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "store"
        gitmem.open_store(self.folder, create=True).close()
        _, self.key = Keys(str(self.folder)).create(name="faces", member=MEMBER, role="owner")
        self.key_file = folder / "key"
        self.key_file.write_text(f"{self.key}\n")

    def new_project(self, description: str = "Decisions.") -> str:
        """A project with the resource "notes" deployed for the agent "tutor"; its id."""
        name = f"p{next(_numbers)}"
        notes = gitmem.define_memory(id="notes", description=description)
        with gitmem.open_store(self.folder) as store:
            store.project(name).create().environment().deploy(agent="tutor", memories=[notes])
        return name


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = Place(tmp_path_factory.mktemp("faces"))
    yield found
    with gitmem.open_store(found.folder) as store:
        assert doctor.examine(store) == []


@pytest.fixture(scope="session")
def served(place: Place) -> Iterator[Server]:
    # Two workers: what one of them has done, the other knows.
    with Server(place.folder, "--workers", "2", log=place.folder.parent / "log") as running:
        yield running
    assert not [line for line in running.lines() if line["event"] != "request"]
    assert place.key not in running.log.read_text()


@pytest.fixture(params=KINDS)
def face(request: pytest.FixtureRequest, place: Place) -> Iterator[Face]:
    """Each face, on a new project."""
    project = place.new_project()
    match request.param:
        case "store":
            with gitmem.open_store(place.folder) as store:
                found = store.project(project)
                yield cast(Face, Library(found, found.files(member=MEMBER)))
        case "client":
            url = request.getfixturevalue("served").url
            with gitmem.Client(url, place.key) as client:
                remote = client.project(project)
                yield cast(Face, Library(remote, remote.files()))
        case "command line":
            yield CommandLine("--store", str(place.folder), "--project", project)
        case _:
            url = request.getfixturevalue("served").url
            yield CommandLine("--url", url, "--api-key-file", str(place.key_file), "--project", project)
