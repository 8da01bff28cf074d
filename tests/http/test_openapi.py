"""/openapi.json is complete and true: every route is in it, and what it says is what is served."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem.http.operations import Operation
from gitmem.http.routes import OPERATIONS
from gitmem.keys import Keys
from tests.http.server import Api, Server
from tests.support import clean_environment


@pytest.fixture
def described(api: Api) -> dict[str, Any]:
    answer = api.client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


def test_it_describes_every_operation_once(described: dict[str, Any]) -> None:
    found = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert found == {(operation.method, operation.path) for operation in OPERATIONS}
    names = [operation["operationId"] for methods in described["paths"].values() for operation in methods.values()]
    assert len(set(names)) == len(names) == len(OPERATIONS)


def test_every_reference_leads_somewhere(described: dict[str, Any]) -> None:
    text = json.dumps(described)
    used = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert used <= described["components"]["schemas"].keys()
    assert described["components"]["schemas"].keys() <= used


def test_every_route_needs_an_environment_and_a_key_but_those_that_say_so(described: dict[str, Any]) -> None:
    for path, methods in described["paths"].items():
        for operation in methods.values():
            names = {(parameter["in"], parameter["name"]) for parameter in operation["parameters"]}
            lists = path.endswith(("/agents", "/sessions")) and "requestBody" not in operation
            assert (("query", "environment") in names) == (path.startswith("/api/") and ("/memory" in path or lists))
            assert bool(operation["security"]) == path.startswith(("/api/", "/v3/"))
            assert operation["responses"].keys() >= {"500", "503"}


def test_the_put_names_its_condition_headers_and_both_bodies(described: dict[str, Any]) -> None:
    path = "/api/managed-agents/projects/{projectId}/memory/{resource}/documents/{documentId}"
    put = described["paths"][path]["put"]
    assert {p["name"] for p in put["parameters"] if p["in"] == "header"} == {"If-Match", "If-None-Match"}
    bodies = put["requestBody"]["content"]["application/json"]["schema"]["anyOf"]
    assert [body["$ref"].rpartition("/")[2] for body in bodies] == ["ReplaceDocument", "CreateDocument"]
    assert put["responses"].keys() >= {"200", "201", "400", "401", "403", "404", "412", "413", "415", "428"}
    assert "ETag" in put["responses"]["201"]["headers"]
    assert described["components"]["schemas"]["CreateDocument"]["additionalProperties"] is False


SCHEMATHESIS = """
[auth.openapi]
apiKey = { api_key = "${TEST_KEY}" }
bearer = { bearer = "${TEST_KEY}" }
[dictionaries]
documents = { values = ["a", "b", "c", "d"] }
tools = { values = ["memory_save", "memory_list"] }
[parameters]
"path.projectId" = "bot"
"query.projectId" = "bot"
"path.resource" = "notes"
"path.documentId" = { dictionary = "documents", probability = 0.9 }
"path.sessionId" = "${TEST_SESSION}"
"path.tool" = { dictionary = "tools", probability = 0.9 }
"query.wait" = 0
"body.render" = "${TEST_RENDER}"
"body.agentId" = "tutor@development"
[checks]
# What no schema can say: a cursor or tag of another page or time, a text beyond maxBytes in UTF-8.
positive_data_acceptance.expected-statuses = ["2xx", 304, 400, 404, 409, 412, 413, 428]
missing_required_header.expected-statuses = [400, 401, 415, 428]
"""


# A schema cannot say "one of two headers", which ETag is current, nor which arguments a tool takes.
UNREACHED = {"putDocument", "patchDocument", "deleteDocument", "restoreDocument", "callTool"}
# Nor which organisation there is, and that a key must be a member's.
UNREACHED |= {operation.name for operation in OPERATIONS if "{orgId}" in operation.path}


@pytest.mark.parametrize(
    ("examples", "unreached"),
    [("3", UNREACHED | {"readDocument", "readHistory"}), pytest.param("30", UNREACHED, marks=pytest.mark.slow)],
)
def test_schemathesis_finds_nothing(own_store: Path, tmp_path: Path, examples: str, unreached: set[str]) -> None:
    _, token = Keys(str(own_store)).create(name="schemathesis")
    with gitmem.open_store(own_store) as store:
        environment = store.project("bot").environment("development")
        environment.documents("notes").create("a", title="A")
        memory = {"notes": {"scope": "document", "id": "a", "access": "read-write"}}
        session = environment.sessions.create(agent="tutor", memory=memory)
        render = session.render(["notes"]).token()
    configuration = tmp_path / "schemathesis.toml"
    configuration.write_text(SCHEMATHESIS)
    command = os.path.join(os.path.dirname(sys.executable), "schemathesis")
    options = ["--checks", "all", "--max-examples", examples, "--seed", "1", "--no-color"]
    with Server(own_store, log=tmp_path / "log") as server:
        # Once the session has ended, nothing more is to be had from it.
        for which in (["--exclude-operation-id", "endSession"], ["--include-operation-id", "endSession"]):
            done = subprocess.run(
                [command, "--config-file", str(configuration), "run", f"{server.url}/openapi.json", *options, *which],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                env=clean_environment({"TEST_KEY": token, "TEST_SESSION": session.id, "TEST_RENDER": render}),
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    assert not [line for line in server.lines() if line["event"] != "request"]
    assert {operation.name for operation in OPERATIONS if not _succeeded(operation, server)} <= unreached


def _succeeded(operation: Operation, server: Server) -> bool:
    path = re.compile(re.sub(r"{.*?}", "[^/]+", operation.path) + r"\Z")
    return any(
        line["method"] == operation.method and path.match(line["path"]) and line["status"] in {200, 201, 204}
        for line in server.lines()
    )
