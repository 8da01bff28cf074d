"""The client's connections: kept, shared by threads, mended, and never a cause for a second write."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import gitmem
from gitmem import ErrorCode, GitmemError
from tests.faces.conftest import Place
from tests.http.server import Server, prepared_store


@contextmanager
def scripted(*answers: bytes) -> Generator[tuple[str, list[bytes]], None, None]:
    """A server that takes a connection for each answer, reads one request, says that, and hangs up."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    requests.append(connection.recv(65536))
                    connection.sendall(answer)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
        finally:
            thread.join()


def answer(status: str, body: bytes, *headers: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status}".encode(), b"Content-Length: %d" % len(body), *headers, b"", body]
    return b"\r\n".join(lines)


def notes_of(client: gitmem.Client, project: str) -> gitmem.client.documents.RemoteDocuments:
    return client.project(project).environment().documents("notes")


def refusal(code: ErrorCode, url: str, key: str | None = None, *, words: str = "", timeout: float = 60) -> None:
    """Reading at `url` is refused with this code, in one line that does not hold the key."""
    with pytest.raises(GitmemError) as caught, gitmem.Client(url, key, timeout=timeout) as client:
        notes_of(client, "bot").read("a")
    assert caught.value.code is code
    assert words in caught.value.message
    assert "\n" not in caught.value.message
    assert key is None or key not in caught.value.message


def test_threads_share_a_client(place: Place, served: Server) -> None:
    project = place.new_project()
    with gitmem.Client(served.url, place.key) as client, ThreadPoolExecutor(8) as pool:
        notes = notes_of(client, project)
        made = list(pool.map(lambda n: notes.create(f"d{n}", title=str(n)), range(40)))
        assert [found.title for found in pool.map(lambda n: notes.read(f"d{n}"), range(40))] == list(
            map(str, range(40))
        )
        # Of many writers on one revision one wins; the others learn which revision won.
        outcomes = list(pool.map(lambda n: _replaced(notes, made[0], str(n)), range(8)))
        winner = notes.read("d0")
        assert outcomes.count(None) == 1
        assert {actual for actual in outcomes if actual is not None} == {winner.revision}


def _replaced(notes: gitmem.client.documents.RemoteDocuments, seen: gitmem.Document, text: str) -> str | None:
    try:
        notes.replace(seen.id, text=text, if_match=seen.revision)
    except gitmem.PreconditionFailedError as error:
        return error.actual
    return None


def test_connections_are_kept_between_requests(place: Place, served: Server) -> None:
    project = place.new_project()
    with gitmem.Client(served.url, place.key) as client:
        notes = notes_of(client, project)
        before = _sockets()
        notes.create("a", title="A")
        for _ in range(20):
            notes.read("a")
        assert len(_sockets() - before) == 1
    assert not _sockets() - before


def _sockets() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue
    return {link for link in found if link.startswith("socket:")}


def test_a_client_outlives_a_restart_of_its_server(tmp_path: Path) -> None:
    store = prepared_store(tmp_path / "store")
    with Server(store, log=tmp_path / "log") as first, gitmem.Client(first.url) as client:
        notes = notes_of(client, "bot")
        made = notes.create("a", title="A")
        port = str(first.port)
        assert first.stop() == 0
        with pytest.raises(GitmemError) as caught:
            notes.read("a")
        assert caught.value.code is ErrorCode.REMOTE_UNREACHABLE
        with Server(store, "--port", port, log=tmp_path / "log"):
            # A write finds the old connection dead before it is sent.
            assert notes.replace("a", text="1", if_match=made.revision).text == "1"
            assert notes.read("a").text == "1"


def test_a_forked_process_uses_connections_of_its_own(place: Place, served: Server) -> None:
    with gitmem.Client(served.url, place.key) as client:
        notes = notes_of(client, place.new_project())
        notes.create("a", title="A")
        before = _sockets()
        child = os.fork()
        if child == 0:
            ok = notes.read("a").title == "A" and len(_sockets() - before) == 1
            os._exit(0 if ok else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert notes.read("a").title == "A"


def test_a_write_whose_answer_is_lost_is_not_sent_again() -> None:
    with scripted(b"", b"") as (url, requests), gitmem.Client(url) as client:
        for write in (
            lambda: notes_of(client, "bot").create("a", title="A"),
            lambda: notes_of(client, "bot").delete("a", if_match="0" * 40),
        ):
            with pytest.raises(gitmem.RemoteUnreachableError) as caught:
                write()
            assert "may have been made" in caught.value.message
    assert len(requests) == 2


def test_what_is_no_gitmem_is_said_to_be_none(served: Server, place: Place) -> None:
    page = answer("200 OK", b"<html>")
    moved = answer("301 Moved", b"", b"Location: http://elsewhere.example/")
    gateway = answer("502 Bad Gateway", b"<html>")
    other = answer("200 OK", b'{"id": "a"}')
    for said in (page, moved, gateway, other):
        with scripted(said) as (url, requests):
            refusal(ErrorCode.REMOTE_REFUSED, url, "secret-key")
        assert b"x-api-key: secret-key" in requests[0]
    with scripted(b"not HTTP\r\n\r\n") as (url, _):
        refusal(ErrorCode.REMOTE_UNREACHABLE, url)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        refusal(ErrorCode.REMOTE_UNREACHABLE, f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2, words="long")
    refusal(ErrorCode.REMOTE_UNREACHABLE, "http://no.such.host.invalid:1", words="Nothing was sent")


def test_an_error_that_this_version_does_not_know_needs_a_person() -> None:
    with scripted(answer("500 Oops", b'{"error": {"code": "new_trouble", "message": "Look."}}')) as (url, _):
        refusal(ErrorCode.STORAGE_FAILED, url, words="Look.")


def test_damage_comes_with_the_name_of_what_is_damaged() -> None:
    body = b'{"error": {"code": "damaged", "message": "Object 12 is damaged."}}'
    with scripted(answer("500 Oops", body, b'Gitmem-Error: {"object": "12"}')) as (url, _):
        with pytest.raises(gitmem.DamagedError) as caught, gitmem.Client(url) as client:
            notes_of(client, "bot").read("a")
        assert caught.value.object == "12"


def test_keys_that_open_nothing(served: Server) -> None:
    refusal(ErrorCode.UNAUTHORIZED, served.url)
    refusal(ErrorCode.UNAUTHORIZED, served.url, "gm_nothing")
    for wrong in ("", "two words", "two\nlines", "ключ", "a\r\nx: y"):
        with pytest.raises(gitmem.InvalidRequestError) as caught:
            gitmem.Client(served.url, wrong)
        assert not wrong or wrong not in caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8420",
        "ftp://h",
        "http://",
        "http://h:port",
        "http://u:secret@h",
        "http://h/?key=secret",
        "http://ä",
    ],
)
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(gitmem.InvalidRequestError) as caught:
        gitmem.Client(url)
    assert "secret" not in caught.value.message


def test_half_a_character_is_refused(place: Place, served: Server) -> None:
    with gitmem.Client(served.url, place.key) as client:
        notes = notes_of(client, place.new_project())
        for call in (lambda: notes.list(cursor="\ud800"), lambda: notes.list(matching="\ud800")):
            with pytest.raises(gitmem.InvalidRequestError):
                call()


def test_a_request_that_no_server_takes_is_not_sent(place: Place) -> None:
    with gitmem.Client("http://127.0.0.1:1") as client, pytest.raises(gitmem.LimitExceededError) as caught:
        notes_of(client, "bot").create("a", title="A", text="\x01" * 16_384)
    assert caught.value.max_bytes == 64 * 1024


def test_a_base_path_is_kept() -> None:
    said = answer("404 Not Found", b'{"error": {"code": "not_found", "message": "No."}}')
    with (
        scripted(said) as (url, requests),
        gitmem.Client(f"{url}/memory/") as client,
        pytest.raises(gitmem.NotFoundError),
    ):
        notes_of(client, "bot").read("a")
    assert requests[0].startswith(b"GET /memory/api/managed-agents/projects/bot/memory/notes/documents/a?environment=")
