"""API keys: who may come in, and what each kind of key may do."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

import gitmem
from gitmem.keys import Keys
from tests.http.server import ENVIRONMENT, Api, Server, client_of, prepared_store, raw, refused
from tests.support import gitmem as run
from tests.support import python

LIST = "/api/managed-agents/projects/bot/memory/notes/documents"
HOUR = 3_600_000


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose store has had a key from the start."""
    folder = tmp_path_factory.mktemp("guarded")
    store = prepared_store(folder / "store")
    Keys(str(store)).create(name="first")
    with Server(store, log=folder / "log") as running:
        yield running


@pytest.fixture
def keys(guarded: Server) -> Keys:
    return Keys(str(guarded.folder))


@pytest.fixture
def visitor(guarded: Server) -> Iterator[httpx2.Client]:
    """A client without a key."""
    with client_of(guarded) as client:
        yield client


def listed(visitor: httpx2.Client, *headers: tuple[str, str]) -> httpx2.Response:
    return visitor.get(LIST, params=ENVIRONMENT, headers=list(headers))


def test_a_key_is_needed_and_comes_in_either_header(visitor: httpx2.Client, keys: Keys, unique: str) -> None:
    _, token = keys.create(name=unique)
    answer = listed(visitor)
    assert answer.headers["www-authenticate"] == 'Bearer realm="gitmem"'
    refused(answer, 401, "unauthorized")
    for headers in (
        [("x-api-key", token)],
        [("Authorization", f"Bearer {token}")],
        [("Authorization", f"bearer  {token}")],
        [("x-api-key", token), ("Authorization", f"Bearer {token}")],
        [("x-api-key", token), ("x-api-key", token)],
    ):
        assert listed(visitor, *headers).status_code == 200, headers
    assert visitor.get("/healthz").status_code == 200
    assert visitor.get("/openapi.json").status_code == 200


def test_anything_else_is_401(visitor: httpx2.Client, guarded: Server, keys: Keys, unique: str) -> None:
    key, token = keys.create(name=unique)
    _, other = keys.create(name=f"{unique}-other")
    right = token.rpartition("_")[0]
    for wrong in ("", "x", token[:-1], f"{token}x", token.upper(), right + "_" + "A" * 43, key.hash, key.id, key.name):
        refused(listed(visitor, ("x-api-key", wrong)), 401, "unauthorized")
        refused(listed(visitor, ("Authorization", f"Bearer {wrong}".strip())), 401, "unauthorized")
    refused(listed(visitor, ("x-api-key", token), ("Authorization", f"Bearer {other}")), 401, "unauthorized")
    refused(listed(visitor, ("x-api-key", token), ("x-api-key", "")), 401, "unauthorized")
    refused(listed(visitor, ("x-api-key", token), ("Authorization", f"Basic {token}")), 401, "unauthorized")
    refused(listed(visitor, ("Authorization", token)), 401, "unauthorized")
    for strange in ("é", "gitmem_" + "ü" * 56, "\xff\xfe"):
        sent = f"GET {LIST}?environment=development HTTP/1.1\r\nHost: localhost\r\nx-api-key: {strange}\r\n\r\n"
        for coded in (sent.encode("utf-8"), sent.encode("latin-1")):
            assert raw(guarded.port, coded)[0] == 401


def test_revoking_counts_at_once(visitor: httpx2.Client, guarded: Server, keys: Keys, unique: str) -> None:
    _, token = keys.create(name=unique)
    for _ in range(3):
        assert listed(visitor, ("x-api-key", token)).status_code == 200
    assert run("key", "revoke", unique, cwd=guarded.folder).returncode == 0
    refused(listed(visitor, ("x-api-key", token)), 401, "unauthorized")
    _, again = keys.create(name=unique)
    assert listed(visitor, ("x-api-key", again)).status_code == 200


def test_an_expired_key_is_401(visitor: httpx2.Client, guarded: Server, unique: str) -> None:
    yesterday = Keys(str(guarded.folder), clock=lambda: 1_700_000_000_000)
    _, token = yesterday.create(name=unique, expires=1_700_000_000_000 + HOUR)
    refused(listed(visitor, ("x-api-key", token)), 401, "unauthorized")


def test_a_member_may_not_manage(guarded: Server, keys: Keys, unique: str) -> None:
    for role, status in (("member", 403), ("admin", 200), ("owner", 200)):
        _, token = keys.create(name=f"{unique}-{role}", member="ann", role=role)
        with client_of(guarded, token) as client:
            answer = client.get(LIST, params=ENVIRONMENT)
            assert answer.status_code == status
            if status == 403:
                refused(answer, 403, "forbidden")
                refused(client.get("/api/managed-agents/agents"), 403, "forbidden")


def test_a_scope_is_for_its_own_use(guarded: Server, keys: Keys, unique: str) -> None:
    tokens = {
        scope: keys.create(name=f"{unique}-{scope}", scopes=(f"memory:{scope}",))[1] for scope in ("read", "write")
    }
    with client_of(guarded, tokens["write"]) as writer, client_of(guarded, tokens["read"]) as reader:
        tag = f'"{Api(writer).created(unique)["revision"]}"'
        refused(Api(writer)("GET", unique), 403, "forbidden")
        assert Api(reader).read(unique)["id"] == unique
        restore = {"revision": "0" * 40}
        for method, where, body in (
            ("PUT", unique, {"text": "x"}), ("PATCH", unique, {"title": "x"}), ("DELETE", unique, None),
            ("POST", f"{unique}/restore", restore),
        ):  # fmt: skip
            refused(Api(reader)(method, where, body, match=tag), 403, "forbidden")
        deploy = {"agentId": "tutor", "alias": "development", "memory": []}
        answer = reader.post("/api/managed-agents/deployments", params={"projectId": "bot"}, json=deploy)
        refused(answer, 403, "forbidden")


def test_a_key_of_a_project_opens_no_other(guarded: Server, keys: Keys, unique: str) -> None:
    with gitmem.open_store(guarded.folder) as store:
        store.project("second").create()
    _, token = keys.create(name=unique, project="second")
    with client_of(guarded, token) as client:
        assert client.get(LIST.replace("bot", "second"), params=ENVIRONMENT).status_code == 404
        refused(client.get(LIST, params=ENVIRONMENT), 403, "forbidden")
        refused(client.get(LIST.replace("bot", "unknown"), params=ENVIRONMENT), 403, "forbidden")
        deploy = {"agentId": "coach", "alias": "development", "memory": []}
        where = "/api/managed-agents/deployments"
        refused(client.post(where, params={"projectId": "bot"}, json=deploy), 403, "forbidden")
        assert client.post(where, params={"projectId": "second"}, json=deploy).status_code == 201
        agents = client.get("/api/managed-agents/agents").json()["agents"]
        assert [(agent["id"], agent["projectId"]) for agent in agents] == [("coach", "second")]
        refused(client.get("/api/managed-agents/agents", params={"projectId": "bot"}), 403, "forbidden")


def test_the_first_key_locks_a_running_server_and_the_last_revoked_does_not_open_it(
    own_store: Path, tmp_path: Path
) -> None:
    with Server(own_store, log=tmp_path / "log") as server, client_of(server) as client:
        assert client.get(LIST, params=ENVIRONMENT, headers={"x-api-key": "whatever"}).status_code == 200
        assert "anybody on this machine" in server.log.read_text()
        _, token = Keys(str(own_store)).create(name="only")
        refused(client.get(LIST, params=ENVIRONMENT), 401, "unauthorized")
        assert client.get(LIST, params=ENVIRONMENT, headers={"x-api-key": token}).status_code == 200
        Keys(str(own_store)).revoke("only")
        refused(client.get(LIST, params=ENVIRONMENT), 401, "unauthorized")
        refused(client.get(LIST, params=ENVIRONMENT, headers={"x-api-key": token}), 401, "unauthorized")


def test_a_damaged_file_of_keys_opens_nothing(own_store: Path, tmp_path: Path) -> None:
    _, token = Keys(str(own_store)).create(name="only")
    with Server(own_store, log=tmp_path / "log") as server, client_of(server, token) as client:
        assert client.get(LIST, params=ENVIRONMENT).status_code == 200
        file = own_store / ".gitmem" / "keys.json"
        good = file.read_bytes()
        for bad in (b"", b"{", b"[]", b'{"keys": [{}]}', good[:-20]):
            file.write_bytes(bad)
            refused(client.get(LIST, params=ENVIRONMENT), 500, "storage_failed")
        file.write_bytes(good)
        assert client.get(LIST, params=ENVIRONMENT).status_code == 200


def test_use_is_noted_when_the_server_stops_and_the_log_names_the_key_only(own_store: Path, tmp_path: Path) -> None:
    key, token = Keys(str(own_store)).create(name="only")
    with Server(own_store, log=tmp_path / "log") as server, client_of(server, token) as client:
        Api(client).created("workshop", text="SECRET-TEXT", title="SECRET-TITLE")
        client.get(LIST, params=ENVIRONMENT | {"cursor": "SECRET-CURSOR"})
    line = next(line for line in server.lines() if line["status"] == 201)
    assert (line["method"], line["path"], line["key"]) == ("PUT", f"{LIST}/workshop", key.id)
    assert line["ms"] > 0
    assert "SECRET" not in server.log.read_text()
    assert token[20:] not in server.log.read_text()
    used = Keys(str(own_store)).all()[0].used
    assert used is not None
    assert used >= key.created


def test_only_a_hash_is_kept_where_only_the_owner_reads(own_store: Path) -> None:
    _, token = Keys(str(own_store)).create(name="only")
    file = own_store / ".gitmem" / "keys.json"
    assert token.rpartition("_")[2] not in file.read_text()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(file.parent).st_mode) == 0o700


def test_keys_made_at_once_by_threads_and_processes_are_all_there(own_store: Path) -> None:
    code = (
        "import sys\nfrom gitmem.keys import Keys\n"
        "for n in range(5): Keys(sys.argv[1]).create(name=f'{sys.argv[2]}-{n}')"
    )
    workers = [threading.Thread(target=python, args=(code, str(own_store), f"p{number}")) for number in range(4)]
    keys = Keys(str(own_store))
    workers += [threading.Thread(target=keys.create, kwargs={"name": f"t{number}"}) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len({key.id for key in keys.all()}) == 24
