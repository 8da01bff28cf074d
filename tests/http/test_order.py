"""The order of checks: a request with every fault at once, whose faults are mended one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gitmem.http.checks import ORDER
from gitmem.keys import Keys
from tests.http.server import Api, Server, client_of, refused

GOOD_BODY = json.dumps({"text": "new"}).encode()


@pytest.mark.parametrize(
    ("method", "path", "good", "limit"),
    [
        ("PUT", "{document}", {"text": "new"}, {"text": "x" * 9000}),
        ("PATCH", "{document}", {"title": "new"}, {"title": "x" * 241}),
        ("POST", "{document}/restore", {"revision": "0" * 40}, None),
    ],
)
def test_each_fault_comes_in_its_turn(
    own_store: Path, tmp_path: Path, method: str, path: str, good: dict[str, str], limit: dict[str, str] | None
) -> None:
    keys = Keys(str(own_store))
    reader, writer = (keys.create(name=scope, scopes=(f"memory:{scope}",))[1] for scope in ("read", "write"))
    with Server(own_store, log=tmp_path / "log") as server, client_of(server, writer) as client:
        document = Api(client).created("workshop")
        request: dict[str, Any] = {
            "key": "unknown",
            "project": "nothing",
            "environment": "staging",
            "id": "b%20d",
            "type": "text/plain",
            "body": b"x" * 70_000,
            "match": "",
        }

        def send() -> httpx2.Response:
            where = path.format(document=f"/projects/{request['project']}/memory/notes/documents/{request['id']}")
            headers = {"x-api-key": request["key"], "content-type": request["type"]}
            headers |= {"if-match": request["match"]} if request["match"] else {}
            return client.request(
                method,
                f"/api/managed-agents{where}",
                params={"environment": request["environment"]},
                headers=headers,
                content=request["body"],
            )

        steps: list[tuple[dict[str, Any], int, str]] = [
            ({}, 401, "unauthorized"),
            ({"key": reader}, 403, "forbidden"),
            ({"key": writer}, 404, "project_not_found"),
            ({"project": "bot"}, 400, "invalid_request"),
            ({"environment": "development"}, 400, "invalid_request"),
            ({"id": "missing"}, 415, "invalid_request"),
            ({"type": "application/json"}, 413, "memory_limit_exceeded"),
            ({"body": b"{"}, 400, "invalid_request"),
            ({"body": json.dumps({"unknown": 1}).encode()}, 428, "precondition_required"),
            ({"match": "unquoted"}, 400, "invalid_request"),
            ({"match": '"stale"'}, 400, "invalid_request"),
            *([({"body": json.dumps(limit).encode()}, 413, "memory_limit_exceeded")] if limit else []),
            ({"body": json.dumps(good).encode()}, 404, "not_found"),
        ]
        seen = []
        for mended, status, code in steps:
            request |= mended
            seen.append(refused(send(), status, code))
        assert "environment" in seen[3]
        assert "document id" in seen[4]
        assert "JSON" in seen[7]
        assert "quoted" in seen[9]
        assert "unknown" in seen[10]
        if "restore" not in path:
            request["id"] = "workshop"
            refused(send(), 412, "precondition_failed")
            request["match"] = f'"{document["revision"]}"'
            assert send().status_code == 200


def test_the_table_has_the_order_of_the_design() -> None:
    assert [answers.split(":")[0] for _, _, answers in ORDER] == [
        "401", "403", "404 project_not_found", "400", "415", "413", "400", "428, 400", "400",
    ]  # fmt: skip


def test_a_limit_comes_before_existence_and_before_the_revision(api: Api, unique: str) -> None:
    too_long = {"text": "x" * 8193}
    refused(api("PUT", unique, too_long, match='"x"'), 413, "memory_limit_exceeded")
    api.created(unique)
    refused(api("PUT", unique, too_long, match='"x"'), 413, "memory_limit_exceeded")
    refused(api("PUT", unique, {"title": "t"} | too_long, none_match="*"), 413, "memory_limit_exceeded")


def test_a_bad_cursor_comes_before_a_missing_resource(api: Api) -> None:
    api.documents = f"{api.memory}/nothing/documents"
    refused(api("GET", cursor="x"), 400, "invalid_request")
    refused(api("GET"), 404, "not_found")
