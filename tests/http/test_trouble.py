"""When the disk, the repository or the server itself is in trouble: still JSON, and nothing half-done."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

import gitmem
from gitmem.http import bodies
from gitmem.http.accesslog import AccessLog
from gitmem.http.answers import Refusal
from gitmem.http.front import Front
from gitmem.http.guard import Guard
from gitmem.http.serving import Serving
from gitmem.keys import Keys
from tests.http.server import Api, Server, answered, client_of, refused
from tests.support import git


@pytest.fixture
def own(own_store: Path, tmp_path: Path) -> Iterator[Api]:
    with Server(own_store, log=tmp_path / "log") as server, client_of(server) as client:
        yield Api(client)


def test_a_rebase_under_way_is_503_with_retry_after(own: Api, own_store: Path) -> None:
    before = own.created("workshop")
    rebase = own_store / "bot" / "development" / ".git" / "rebase-merge"
    rebase.mkdir()
    (rebase / "head-name").write_text("refs/heads/main\n")
    answer = own("PUT", "workshop", {"text": "x"}, match=f'"{before["revision"]}"')
    refused(answer, 503, "busy")
    assert int(answer.headers["retry-after"]) >= 1
    assert own.read("workshop") == before
    (rebase / "head-name").unlink()
    rebase.rmdir()
    assert own("PUT", "workshop", {"text": "x"}, match=f'"{before["revision"]}"').status_code == 200


def test_a_damaged_object_is_500_and_named_and_others_stay_readable(own_store: Path, tmp_path: Path) -> None:
    with gitmem.open_store(own_store) as store:
        for name in ("good", "bad"):
            store.project("bot").environment().documents("notes").create(name, title=name, text="x" * 99)
    tree = own_store / "bot" / "development"
    oid = git(tree, "rev-parse", "main:notes/bad.json")
    file = tree / ".git" / "objects" / oid[:2] / oid[2:]
    whole, shown = file.read_bytes(), (tree / "notes" / "bad.json").read_bytes()
    file.chmod(0o644)
    file.write_bytes(b"")
    (tree / "notes" / "bad.json").unlink()
    with Server(own_store, log=tmp_path / "log") as server, client_of(server) as client:
        assert oid in refused(Api(client)("GET", "bad"), 500, "damaged")
        assert Api(client).read("good")["title"] == "good"
        file.write_bytes(whole)
        (tree / "notes" / "bad.json").write_bytes(shown)
        assert Api(client).read("bad")["title"] == "bad"
    file.chmod(0o444)


def test_a_store_that_is_gone_is_unhealthy(own: Api, own_store: Path) -> None:
    assert own.client.get("/healthz").status_code == 200
    (own_store / "gitmem.toml").rename(own_store / "gitmem.away")
    refused(own.client.get("/healthz"), 500, "storage_failed")
    (own_store / "gitmem.away").rename(own_store / "gitmem.toml")
    assert own.client.get("/healthz").status_code == 200


def test_an_unexpected_error_is_500_and_the_log_says_where_but_not_what(capfd: pytest.CaptureFixture[str]) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "RuntimeError"})

    async def run() -> list[Message]:
        sent: asyncio.Queue[Message] = asyncio.Queue()

        async def send(message: Message) -> None:
            if message["type"] == "RuntimeError":
                raise RuntimeError("SECRET")
            await sent.put(message)

        log = AccessLog()
        scope = {
            "type": "http",
            "method": "GET",
            "raw_path": b"/x",
            "headers": [(b"host", b"localhost")],
            "client": None,
        }
        await Front(broken, Guard(local=True), log)(scope, sent.get, send)
        log.flush()
        return [sent.get_nowait() for _ in range(sent.qsize())]

    start, body = asyncio.run(run())
    assert (start["status"], json.loads(body["body"])["error"]["code"]) == (500, "internal")
    failure, request = map(json.loads, capfd.readouterr().err.splitlines())
    assert (failure["event"], failure["error"], request["status"]) == ("failure", "RuntimeError", 500)
    assert any(place.endswith("broken") for place in failure["at"])
    assert "SECRET" not in json.dumps([failure, request])


def test_more_work_than_it_can_do_is_503(own_store: Path) -> None:
    free = threading.Event()

    async def run() -> Refusal:
        waiting = [asyncio.ensure_future(serving.run(free.wait, writes=True)) for _ in range(1_024)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as refusal:
            await serving.run(free.wait, writes=False)
        free.set()
        assert all(await asyncio.gather(*waiting))
        assert await serving.run(lambda: 7, writes=False) == 7
        return refusal.value

    serving = Serving(gitmem.open_store(own_store), Keys(str(own_store)), local=True)
    answer = asyncio.run(run()).answer
    serving.close()
    assert (answer.status, dict(answer.headers)[b"retry-after"]) == (503, b"1")


def test_a_body_that_does_not_come_is_given_up() -> None:
    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(Refusal) as refusal:
        asyncio.run(bodies.read(never, {}, seconds=0.01))
    assert refusal.value.answer.status == 408


@pytest.mark.slow
def test_a_slow_body_is_408_and_writes_nothing(api: Api, server: Server, unique: str) -> None:
    head = (
        f"PUT {api.documents}/{unique}?environment=development HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: *\r\n"
        'Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"title": "T"'
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(head.encode())
        with connection.makefile("rb") as file:
            status, headers, body = answered(file)
            assert file.read() == b""
    found: Any = json.loads(body)
    assert (status, headers["connection"], found["error"]["code"]) == (408, "close", "invalid_request")
    refused(api("GET", unique), 404, "not_found")
