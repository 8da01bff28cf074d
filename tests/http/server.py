"""A real `gitmem serve` in a process of its own, and talking to it: as a client library, or byte by byte."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import httpx2

import gitmem
from tests.support import clean_environment

ENVIRONMENT = {"environment": "development"}


def prepared_store(folder: Path) -> Path:
    """A store with project "bot" and the resource "notes" deployed for the agent "tutor"."""
    with gitmem.open_store(folder, create=True) as store:
        notes = gitmem.define_memory(id="notes", description="Workshop requirements and decisions.")
        store.project("bot").create().environment("development").deploy(agent="tutor", memories=[notes])
    return folder


class Server:
    """A server process. As a context manager it ends with SIGTERM, and must have ended well."""

    def __init__(self, folder: Path, *options: str, log: Path) -> None:
        self.folder = folder
        self.log = log
        command = [os.path.join(os.path.dirname(sys.executable), "gitmem"), "serve", "--json", "--port", "0", *options]
        with log.open("ab") as errors:
            self.process: subprocess.Popen[str] = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True, env=clean_environment(),
                start_new_session=True,
            )  # fmt: skip
        assert self.process.stdout
        self.ready: dict[str, str] = json.loads(_line_of_json(self.process.stdout) or '{"url": ""}')
        self.url = self.ready["url"]
        assert self.url, log.read_text()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def lines(self) -> list[dict[str, Any]]:
        """What the server has written to its log so far, line by line; what is no JSON is left out."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def stop(self) -> int:
        """End it with SIGTERM; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def kill(self) -> None:
        """End it, and every worker of it, with SIGKILL."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            status = self.stop()
            assert status == 0, self.log.read_text()
        if self.process.stdout:
            self.process.stdout.close()


def client_of(server: Server, key: str | None = None) -> httpx2.Client:
    """A client for a server; it is to be closed."""
    headers = {} if key is None else {"x-api-key": key}
    return httpx2.Client(base_url=server.url, headers=headers, timeout=60, verify=False)


class Api:
    """The documents of one resource over HTTP. Each request goes out exactly as the test says."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client
        self.memory = "/api/managed-agents/projects/bot/memory"
        self.documents = f"{self.memory}/notes/documents"

    def __call__(
        self,
        method: str,
        document_id: str | None = None,
        body: Any = None,
        *,
        match: str | None = None,
        none_match: str | None = None,
        headers: Iterable[tuple[str, str]] = (),
        **query: str,
    ) -> httpx2.Response:
        """Send a request about a document, or about the listing."""
        sent = list(headers)
        sent += [("If-Match", match)] if match is not None else []
        sent += [("If-None-Match", none_match)] if none_match is not None else []
        path = self.documents if document_id is None else f"{self.documents}/{document_id}"
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            sent.append(("Content-Type", "application/json"))
        return self.client.request(method, path, params=ENVIRONMENT | query, headers=sent, content=content)

    def created(self, document_id: str, **fields: str) -> dict[str, Any]:
        """Create a document, which must succeed."""
        answer = self("PUT", document_id, {"title": "A title", **fields}, none_match="*")
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def read(self, document_id: str) -> dict[str, Any]:
        """Read a document, which must succeed."""
        answer = self("GET", document_id)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


def refused(answer: httpx2.Response, status: int, code: str) -> str:
    """The message of an error, which must be of the seed's shape, with this status and code."""
    assert answer.headers["content-type"] == "application/json", answer.text
    body = answer.json()
    assert (answer.status_code, body["error"]["code"]) == (status, code), answer.text
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"code", "message"}
    message: str = body["error"]["message"]
    assert message
    assert "\n" not in message
    return message


def raw(port: int, data: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes as they are; status, headers and body of the first answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(data)
        with connection.makefile("rb") as file:
            return answered(file)


def answered(file: IO[bytes]) -> tuple[int, dict[str, str], bytes]:
    """Read one answer."""
    status = int(file.readline().split()[1])
    headers: dict[str, str] = {}
    while line := file.readline().strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    return status, headers, file.read(int(headers.get("content-length", "0")))


def _line_of_json(file: IO[str]) -> str:
    """The first JSON object of a stream, whatever lines it spans."""
    text = ""
    while line := file.readline():
        text += line
        try:
            json.loads(text)
        except ValueError:
            continue
        return text
    return ""
