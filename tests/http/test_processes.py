"""Server processes: how they start, share a store, stop, and are killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

import gitmem
from gitmem.git.housekeeping import PACK_AT
from tests.http.server import Api, Server, answered, client_of
from tests.support import clean_environment, git, python
from tests.support import gitmem as run


def test_without_the_extra_it_says_what_to_install(own_store: Path) -> None:
    code = (
        "import sys\nsys.modules['uvicorn'] = None\n"
        "from gitmem.cli.main import main\nsys.argv = ['gitmem', *sys.argv[1:]]\nmain()"
    )
    done = python(code, "serve", cwd=own_store)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "pip install 'gitmem-store[server]'" in done.stderr


def test_the_base_never_imports_the_packages_of_the_extra(own_store: Path) -> None:
    code = (
        "import sys, gitmem, gitmem.keys, gitmem.cli.main, gitmem.cli.serve, gitmem.cli.keys\n"
        "print({'starlette', 'uvicorn', 'msgspec', 'uvloop', 'httptools'} & sys.modules.keys())"
    )
    assert python(code).stdout == "set()\n"


def test_a_taken_port_and_a_bad_address_are_one_line(own_store: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for address in (["--port", str(taken.getsockname()[1])], ["--host", "no.such.host.invalid"]):
            done = run("serve", *address, cwd=own_store)
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
            assert "Cannot listen" in done.stderr


def test_it_says_where_it_serves(own_store: Path) -> None:
    command = os.path.join(os.path.dirname(sys.executable), "gitmem")
    process = subprocess.Popen(
        [command, "serve", "--port", "0", "--host", "::1"],
        cwd=own_store, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment(),
    )  # fmt: skip
    with process:
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith(f"Serving {own_store} at http://[::1]:")
        assert httpx2.get(line.split(" at ")[1].strip() + "/healthz").json() == {"status": "ok"}
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_stop_finishes_the_saves_under_way(own_store: Path, tmp_path: Path, workers: str) -> None:
    with Server(own_store, "--workers", workers, log=tmp_path / "log") as server, client_of(server) as client:
        api = Api(client)
        # A request that has been begun when the stop comes, and whose body ends after it.
        body = b'{"title": "Late"}'
        head = (
            f"PUT {api.documents}/late?environment=development HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: *\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(head.encode())
            with connection.makefile("rb") as file:
                assert file.readline() == b"HTTP/1.1 100 Continue\r\n"
                server.process.send_signal(signal.SIGTERM)
                connection.sendall(body)
                file.readline()
                assert answered(file)[0] == 201
        assert server.process.wait(60) == 0
    with gitmem.open_store(own_store) as store:
        assert store.project("bot").environment().documents("notes").read("late").title == "Late"
    assert git(own_store / "bot" / "development", "status", "--porcelain") == ""


def test_workers_and_the_command_line_share_a_store(own_store: Path, tmp_path: Path) -> None:
    with Server(own_store, "--workers", "2", log=tmp_path / "log") as server, client_of(server) as client:
        seen = Api(client).created("counter", text="0")

        def add(number: int) -> int:
            with client_of(server) as own:
                while True:
                    found = Api(own).read("counter")
                    text = str(int(found["text"]) + 1)
                    saved = Api(own)("PUT", "counter", {"text": text}, match=f'"{found["revision"]}"')
                    if saved.status_code == 200:
                        return number
                    assert saved.status_code == 412

        with ThreadPoolExecutor(8) as threads:
            for _ in threads.map(add, range(16)):
                pass
        assert Api(client).read("counter")["text"] == "16"
        edited = run("edit", "notes", "counter", "--text-stdin", "--project", "bot", cwd=own_store, stdin=b"by hand")
        assert edited.returncode == 0
        for _ in range(4):
            with client_of(server) as fresh:
                assert Api(fresh).read("counter")["text"] == "by hand"
        history = Api(client)("GET", "counter/history").json()["versions"]
        assert len(history) == 18
        assert history[-1]["revision"] == seen["revision"]


def test_a_killed_supervisor_leaves_no_worker_behind(own_store: Path, tmp_path: Path) -> None:
    server = Server(own_store, "--workers", "2", log=tmp_path / "log")
    with client_of(server) as client:
        assert client.get("/healthz").status_code == 200
    os.kill(server.process.pid, signal.SIGKILL)
    with server:
        server.process.wait()
        assert server.process.stdout
        # Workers hold this pipe too: it ends when the last of them does.
        assert server.process.stdout.read() == ""
        again = f"--port={server.port}"
        with Server(own_store, again, log=tmp_path / "log") as second, client_of(second) as client:
            assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("workers", ["1", "2"])
def test_every_answered_write_survives_kill_9(own_store: Path, tmp_path: Path, workers: str) -> None:
    server = Server(own_store, "--workers", workers, log=tmp_path / "log")
    answered_writes: list[list[tuple[str, str, str]]] = [[] for _ in range(6)]
    enough = threading.Event()

    def write(number: int) -> None:
        mine = answered_writes[number]
        with client_of(server) as client:
            api = Api(client)
            try:
                for count in range(10_000):
                    document_id = f"w{number}-{count // 3}"
                    if count % 3 == 0:
                        answer = api("PUT", document_id, {"title": "T", "text": str(count)}, none_match="*")
                    else:
                        answer = api("PUT", document_id, {"text": str(count)}, match=f'"{mine[-1][2]}"')
                    assert answer.status_code in {200, 201}, answer.text
                    mine.append((document_id, str(count), answer.json()["revision"]))
                    if sum(map(len, answered_writes)) > 150:
                        enough.set()
            except httpx2.TransportError:
                pass

    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    assert enough.wait(60)
    server.kill()
    for writer in writers:
        writer.join()
    assert server.process.stdout
    server.process.stdout.close()
    with Server(own_store, log=tmp_path / "log") as second, client_of(second) as client:
        api = Api(client)
        for mine in answered_writes:
            assert mine
            for document_id, text, revision in mine:
                assert api("GET", document_id, revision=revision).json()["text"] == text
            newest, text, _ = mine[-1]
            # The one write that was under way when the kill came may be there, or not.
            assert int(api.read(newest)["text"]) in {int(text), int(text) + 1}


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_running_server_packs_what_is_due(own_store: Path, tmp_path: Path, workers: str) -> None:
    with gitmem.open_store(own_store) as store:
        environment = store.project("bot").environment()
        many = (gitmem.NewDocument(id=f"d{number}", title="T") for number in range(PACK_AT // 4))
        assert all(isinstance(made, gitmem.Document) for made in environment.documents("notes").create_many(many))
    before = int(git(environment.folder, "count-objects").split()[0])
    with Server(own_store, "--workers", workers, log=tmp_path / "log") as server, client_of(server) as client:
        api = Api(client)
        api.created("one-more")
        while int(git(environment.folder, "count-objects").split()[0]) > before // 10:
            assert api.read("d7")["title"] == "T"
        api.created("and-another")
