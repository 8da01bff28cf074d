"""Host and Origin: what pages of other sites send is refused, and without a key nobody else gets in."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.errors import ForbiddenError
from gitmem.http.guard import Guard
from gitmem.keys import Keys
from tests.http.server import Api, Server, client_of, raw, refused
from tests.support import gitmem as run

LOCAL = Guard(local=True)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:8420", "127.9.9.9", "[::1]:8420", "[::1]", "memory.localhost:80"]
)
def test_a_loopback_host_may_come_in(host: str) -> None:
    LOCAL.check([host], [])


@pytest.mark.parametrize(
    "hosts",
    [
        [], [""], ["example.org"], ["example.org:8420"], ["localhost.example.org"], ["127.0.0.1.example.org"],
        ["0.0.0.0"], ["192.168.1.5"], ["localhost", "localhost"], ["local host"], ["[::1"], ["[::2]"], ["2130706433"],
        ["xlocalhost"], ["localhost@example.org"], ["127.1"], ["é"],
    ],
)  # fmt: skip
def test_a_foreign_host_may_not(hosts: list[str]) -> None:
    with pytest.raises(ForbiddenError):
        LOCAL.check(hosts, [])


@pytest.mark.parametrize(
    "origin",
    [
        "http://example.org", "http://localhost", "http://localhost:3000", "null", "", "file://",
        "http://localhost.example.org:8420", "http://127.0.0.1:8420", "localhost:8420", "http://localhost:x", "http://[",
        "chrome-extension://localhost:8420",
    ],
)  # fmt: skip
def test_a_foreign_origin_may_not(origin: str) -> None:
    with pytest.raises(ForbiddenError):
        LOCAL.check(["localhost:8420"], [origin])


def test_its_own_origin_may_come_in() -> None:
    LOCAL.check(["localhost:8420"], ["http://localhost:8420"])
    LOCAL.check(["LocalHost:8420"], ["http://localhost:8420"])
    LOCAL.check(["localhost"], ["http://localhost"])
    with pytest.raises(ForbiddenError):
        LOCAL.check(["localhost:8420"], ["http://localhost:8420", "http://example.org"])


def test_an_allowed_name_may_come_in_behind_a_proxy() -> None:
    guard = Guard(local=True, names=frozenset({"memory.example.org"}))
    guard.check(["memory.example.org"], ["https://memory.example.org"])
    guard.check(["Memory.Example.Org:443"], ["https://memory.example.org"])
    guard.check(["localhost:8420"], ["https://memory.example.org"])
    for hosts, origins in (
        (["other.example.org"], []),
        (["localhost:8420"], ["https://memory.example.org:9000"]),
        (["localhost:8420"], ["https://other.example.org"]),
    ):
        with pytest.raises(ForbiddenError):
            guard.check(hosts, origins)


def test_a_server_for_others_takes_any_host_unless_told_which() -> None:
    Guard(local=False).check(["memory.example.org"], ["http://memory.example.org"])
    with pytest.raises(ForbiddenError):
        Guard(local=False).check(["memory.example.org"], ["http://example.org"])
    with pytest.raises(ForbiddenError):
        Guard(local=False, names=frozenset({"memory.example.org"})).check(["example.org"], [])


def test_a_foreign_host_or_origin_is_403_and_writes_nothing(api: Api, server: Server, unique: str) -> None:
    for header in (("Host", "example.org"), ("Origin", "http://example.org"), ("Origin", "null")):
        answer = api("PUT", unique, {"title": "T"}, none_match="*", headers=[header])
        refused(answer, 403, "forbidden")
        refused(api.client.get("/healthz", headers=[header]), 403, "forbidden")
        refused(api.client.get("/", headers=[header]), 403, "forbidden")
    refused(api("GET", unique), 404, "not_found")
    own = [("Origin", server.url)]
    assert api("PUT", unique, {"title": "T"}, none_match="*", headers=own).status_code == 201
    assert raw(server.port, b"GET /healthz HTTP/1.0\r\n\r\n")[0] == 403


def test_a_form_of_another_site_cannot_write(api: Api, unique: str) -> None:
    path = f"/api/managed-agents/deployments?projectId=bot&{unique}"
    body = b'{"agentId": "evil", "alias": "development", "memory": []}'
    refused(api.client.post(path, content=body, headers={"Content-Type": "text/plain"}), 415, "invalid_request")
    refused(api.client.post(path, data={"agentId": "evil"}), 415, "invalid_request")


def test_allow_host_adds_a_name(own_store: Path, tmp_path: Path) -> None:
    options = ("--allow-host", "Memory.Example.org")
    with Server(own_store, *options, log=tmp_path / "log") as server, client_of(server) as client:
        assert client.get("/healthz", headers={"Host": "memory.example.org"}).status_code == 200
        refused(client.get("/healthz", headers={"Host": "example.org"}), 403, "forbidden")


def test_without_a_key_it_serves_this_machine_only(own_store: Path, tmp_path: Path) -> None:
    done = run("serve", "--host", "0.0.0.0", "--port", "0", cwd=own_store)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "gitmem key create" in done.stderr
    _, token = Keys(str(own_store)).create(name="only")
    with Server(own_store, "--host", "0.0.0.0", log=tmp_path / "log") as server, client_of(server, token) as client:
        assert Api(client)("GET").status_code == 200
        (own_store / ".gitmem" / "keys.json").unlink()
        refused(Api(client)("GET"), 401, "unauthorized")
