"""A store to test on, and the rule that every test that opened one ends with doctor."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import gitmem
from gitmem import doctor
from gitmem.environment import engine
from gitmem.environment.engine import EnvironmentRepository
from tests.agents import Desk
from tests.support import environments_below, fsck, stores_below
from tests.workshop import NOTES, ManualClock


def pytest_configure(config: pytest.Config) -> None:
    # In the background of a script SIGINT is ignored, and so would be what tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers", "findings(*checks): the test leaves damage; doctor must find exactly these checks at its end"
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[gitmem.Store]:
    """An empty store in `tmp_path/store`."""
    with gitmem.open_store(tmp_path / "store", create=True) as opened:
        yield opened


@pytest.fixture
def environment(store: gitmem.Store) -> gitmem.Environment:
    """Project "bot", development, with the resource "notes" declared for the agent "tutor"."""
    project = store.project("bot").create()
    found = project.environment("development")
    notes = gitmem.define_memory(id="notes", description="Workshop requirements and decisions.")
    found.deploy(agent="tutor", memories=[notes])
    return found


@pytest.fixture
def notes(environment: gitmem.Environment) -> gitmem.Documents:
    """The documents of the resource "notes"."""
    return environment.documents("notes")


@pytest.fixture
def desk(store: gitmem.Store) -> Desk:
    """Project "bot" with the resources "notes" and "plans", two agents, and the document notes/workshop."""
    return Desk(store)


@pytest.fixture
def clock() -> ManualClock:
    """The clock of `timed`."""
    return ManualClock()


@pytest.fixture
def timed(tmp_path: Path, clock: ManualClock) -> Iterator[gitmem.Environment]:
    """An environment like `environment`, in a store of its own whose time the test moves."""
    with gitmem.open_store(tmp_path / "timed", create=True, settings=gitmem.Settings(clock=clock)) as opened:
        found = opened.project("bot").environment("development")
        found.deploy(agent="tutor", memories=[NOTES])
        yield found


@pytest.fixture(autouse=True)
def healthy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Ends every test with doctor and `git fsck` over all that it left below its `tmp_path`."""
    uses_disk = "tmp_path" in request.fixturenames
    folder: Path = request.getfixturevalue("tmp_path") if uses_disk else tmp_path_factory.getbasetemp()
    yield
    if not uses_disk:
        return
    for opened in list(engine._open_environments):
        if Path(opened.folder).is_relative_to(folder):
            opened.close()
    found = _findings(folder)
    marker = request.node.get_closest_marker("findings")
    if marker:
        assert {finding.check for finding in found} == set(marker.args), found
    else:
        assert not found, "\n".join(f"{f.check} {f.subject}: {f.message}" for f in found)
        for git_dir in _repositories(folder):
            assert fsck(git_dir) == "", git_dir


def _findings(folder: Path) -> list[doctor.Finding]:
    found: list[doctor.Finding] = []
    for place in stores_below(folder):
        with gitmem.open_store(place) as store:
            found += doctor.examine(store)
    for place in environments_below(folder):
        environment = EnvironmentRepository(str(place))
        found += doctor.examine(environment)
        environment.close()
    return found


def _repositories(folder: Path) -> Iterator[Path]:
    for derived in sorted(folder.rglob("gitmem/tmp")):
        yield derived.parent.parent
