"""Seed 000's own walk over HTTP, with curl as with a client library."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from gitmem.keys import Keys
from tests.http.server import ENVIRONMENT, Server, client_of

PATH = "/api/managed-agents/projects/bot/memory/notes/documents/workshop"


def test_with_curl(own_store: Path, tmp_path: Path) -> None:
    assert shutil.which("curl"), "curl is missing"
    _, token = Keys(str(own_store)).create(name="curl")

    def curl(*arguments: str, body: object = None) -> tuple[int, dict[str, str], Any]:
        data = [] if body is None else ["--data", json.dumps(body), "-H", "Content-Type: application/json"]
        done = subprocess.run(
            ["curl", "-sS", "-i", "-H", f"x-api-key: {token}", *data, *arguments], capture_output=True, check=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        return int(status.split()[1]), headers, json.loads(content) if content else None

    with Server(own_store, log=tmp_path / "log") as server:
        url = f"{server.url}{PATH}?environment=development"
        status, headers, created = curl("-X", "PUT", url, "-H", "If-None-Match: *", body={"title": "Workshop notes"})
        assert (status, headers["etag"]) == (201, f'"{created["revision"]}"')
        status, _, refused = curl("-X", "PUT", url, "-H", "If-None-Match: *", body={"title": "Workshop notes"})
        assert (status, refused["error"]["code"]) == (412, "precondition_failed")
        status, headers, read = curl(url)
        assert (status, read) == (200, created)
        status, headers, saved = curl("-X", "PUT", url, "-H", f"If-Match: {headers['etag']}", body={"text": "Node 22."})
        assert (status, saved["text"]) == (200, "Node 22.")
        status, _, _ = curl("-X", "PUT", url, "-H", f'If-Match: "{read["revision"]}"', body={"text": "Node 20."})
        assert status == 412
        status, _, nothing = curl("-X", "DELETE", url, "-H", f"If-Match: {headers['etag']}")
        assert (status, nothing) == (204, None)
        status, _, gone = curl(url)
        assert (status, gone["error"]["code"]) == (404, "not_found")
        status, _, _ = curl("-X", "PUT", url, "-H", "If-None-Match: *", body={"title": "Again"})
        assert status == 412


def session_body(document_id: str) -> dict[str, Any]:
    binding = {"scope": "document", "id": document_id, "access": "read-write"}
    return {"agentId": "tutor@development", "memory": {"notes": binding}}


def test_a_session_starts_on_a_new_document_with_curl(own_store: Path, tmp_path: Path) -> None:
    def curl(*arguments: str, body: object = None) -> tuple[int, Any]:
        data = [] if body is None else ["--data", json.dumps(body), "-H", "Content-Type: application/json"]
        command = ["curl", "-sS", "-w", "\n%{http_code}", *data, *arguments]
        content, _, status = subprocess.run(command, capture_output=True, check=True).stdout.rpartition(b"\n")
        return int(status), json.loads(content)

    with Server(own_store, log=tmp_path / "log") as server:
        document = f"{server.url}{PATH}?environment=development"
        for created, found in ((201, 200), (412, 200)):
            answer, _ = curl("-X", "PUT", document, "-H", "If-None-Match: *", body={"title": "Workshop notes"})
            assert answer == created
            assert curl(document)[0] == found
        start = [f"{server.url}/api/managed-agents/sessions", "-H", "Idempotency-Key: topic/workshop/1"]
        status, first = curl(*start, body=session_body("workshop"))
        assert (status, first["session"]["status"], first["deployment"]["agentId"]) == (201, "active", "tutor")
        status, again = curl(*start, body=session_body("workshop"))
        assert (status, again["session"]["id"]) == (200, first["session"]["id"])
        status, refused = curl(*start, body={"agentId": "tutor@development", "memory": {}})
        assert (status, refused["error"]["code"]) == (409, "idempotency_conflict")


def test_a_session_starts_on_a_new_document_with_a_client_library(own_store: Path, tmp_path: Path) -> None:
    with Server(own_store, log=tmp_path / "log") as server, client_of(server) as client:

        def start(key: str) -> tuple[int, int, int | None]:
            created = client.put(
                PATH, params=ENVIRONMENT, headers={"If-None-Match": "*"}, json={"title": "Workshop notes"}
            )
            found = client.get(PATH, params=ENVIRONMENT)
            if found.status_code == 404:
                return created.status_code, 404, None
            sent = {"Idempotency-Key": key}
            session = client.post("/api/managed-agents/sessions", headers=sent, json=session_body("workshop"))
            return created.status_code, found.status_code, session.status_code

        assert start("one") == (201, 200, 201)
        assert start("one") == (412, 200, 200)
        assert start("two") == (412, 200, 201)
        tag = client.get(PATH, params=ENVIRONMENT).headers["etag"]
        assert client.delete(PATH, params=ENVIRONMENT, headers={"If-Match": tag}).status_code == 204
        # Exists says 412, deleted says 404: no session is started on it.
        assert start("one") == (412, 404, None)


def test_with_a_client_library(own_store: Path, tmp_path: Path) -> None:
    _, token = Keys(str(own_store)).create(name="library")
    with Server(own_store, log=tmp_path / "log") as server, client_of(server, token) as client:
        new = {"title": "Workshop notes"}
        for status in (201, 412):
            answer = client.put(PATH, params=ENVIRONMENT, headers={"If-None-Match": "*"}, json=new)
            assert answer.status_code == status
        read = client.get(PATH, params=ENVIRONMENT)
        saved = client.put(
            PATH, params=ENVIRONMENT, headers={"If-Match": read.headers["etag"]}, json={"text": "Node 22."}
        )
        assert (saved.status_code, saved.json()["text"]) == (200, "Node 22.")
        known = client.get(PATH, params=ENVIRONMENT, headers={"If-None-Match": saved.headers["etag"]})
        assert known.status_code == 304
