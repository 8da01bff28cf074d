"""One server for all tests that do not need one of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import httpx2
import pytest

import gitmem
from gitmem import doctor
from tests.http.server import Api, Server, client_of, prepared_store
from tests.support import fsck


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without keys, which many tests share: each uses documents of its own."""
    folder = tmp_path_factory.mktemp("served")
    store = prepared_store(folder / "store")
    with Server(store, log=folder / "log") as running:
        yield running
    with gitmem.open_store(store) as opened:
        assert doctor.examine(opened) == []
    assert fsck(store / "bot" / "development") == ""
    assert not [line for line in running.lines() if line["event"] != "request"]


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[httpx2.Client]:
    """Talks to the shared server."""
    with client_of(server) as opened:
        yield opened


@pytest.fixture
def api(client: httpx2.Client) -> Api:
    """The documents of the shared server."""
    return Api(client)


@pytest.fixture
def own_store(tmp_path: Path) -> Path:
    """A store for a server of the test's own."""
    return prepared_store(tmp_path / "store")


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """A document id that no other test uses."""
    return f"{request.node.originalname[:80]}-{crc32(request.node.nodeid.encode()):08x}"
