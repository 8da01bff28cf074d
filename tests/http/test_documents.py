"""The operations of seed 000's management API, over a real server."""

from __future__ import annotations

import re

import pytest

from tests.http.server import ENVIRONMENT, Api, Server, refused
from tests.support import git


def test_create_answers_201_with_the_document_and_its_tag(api: Api, unique: str) -> None:
    answer = api("PUT", unique, {"title": "Workshop notes"}, none_match="*")
    assert answer.status_code == 201
    document = answer.json()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", document.pop("updatedAt"))
    assert answer.headers["etag"] == f'"{document.pop("revision")}"'
    assert document == {
        "id": unique,
        "title": "Workshop notes",
        "text": "",
        "summary": "",
        "agentWrites": "enabled",
        "bytes": 0,
        "maxBytes": 8192,
        "writer": {"kind": "owner"},
    }


def test_a_document_lives_through_every_operation(api: Api, server: Server, unique: str) -> None:
    created = api(
        "PUT", unique, {"title": "T", "text": "Ünö", "summary": "S", "agentWrites": "disabled"}, none_match="*"
    )
    assert (created.json()["bytes"], created.json()["agentWrites"]) == (5, "disabled")
    replaced = api("PUT", unique, {"text": "two"}, match=created.headers["etag"])
    assert replaced.status_code == 200
    assert (replaced.json()["text"], replaced.json()["summary"]) == ("two", "S")
    cleared = api("PUT", unique, {"text": "two", "summary": ""}, match=replaced.headers["etag"])
    assert cleared.json()["summary"] == ""
    patched = api("PATCH", unique, {"title": "New", "agentWrites": "enabled"}, match=cleared.headers["etag"])
    assert (patched.json()["title"], patched.json()["agentWrites"]) == ("New", "enabled")
    read = api("GET", unique)
    assert (read.json(), read.headers["etag"]) == (patched.json(), patched.headers["etag"])
    deleted = api("DELETE", unique, match=read.headers["etag"])
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert not {"etag", "content-type", "content-length"} & deleted.headers.keys()
    refused(api("GET", unique), 404, "not_found")
    log = git(server.folder / "bot" / "development", "log", "--format=%s", "--", f"notes/{unique}.json")
    assert [line.split()[0] for line in log.splitlines()] == ["delete", "patch", "replace", "replace", "create"]


def test_a_stale_revision_is_412_and_changes_nothing(api: Api, unique: str) -> None:
    old = api.created(unique)["revision"]
    new = api("PUT", unique, {"text": "newer"}, match=f'"{old}"').json()
    for method, body in (("PUT", {"text": "x"}), ("PATCH", {"title": "x"}), ("DELETE", None)):
        message = refused(api(method, unique, body, match=f'"{old}"'), 412, "precondition_failed")
        assert new["revision"] in message
    assert api.read(unique) == new


def test_an_id_is_taken_once_and_for_ever(api: Api, unique: str) -> None:
    tag = f'"{api.created(unique)["revision"]}"'
    refused(api("PUT", unique, {"title": "x"}, none_match="*"), 412, "precondition_failed")
    api("DELETE", unique, match=tag)
    refused(api("PUT", unique, {"title": "x"}, none_match="*"), 412, "precondition_failed")
    for method, body in (("PUT", {"text": "x"}), ("PATCH", {"title": "x"}), ("DELETE", None)):
        refused(api(method, unique, body, match=tag), 404, "not_found")


def test_a_replace_that_changes_nothing_keeps_the_revision(api: Api, unique: str) -> None:
    document = api.created(unique, text="same")
    again = api("PUT", unique, {"text": "same"}, match=f'"{document["revision"]}"')
    assert (again.status_code, again.json()) == (200, document)


@pytest.mark.parametrize(("field", "limit"), [("title", 240), ("summary", 240), ("text", 8192)])
def test_field_limits_count_utf8_bytes(api: Api, unique: str, field: str, limit: int) -> None:
    body = {"title": "t", field: "é" * (limit // 2)}
    message = refused(
        api("PUT", unique, body | {field: body[field] + "x"}, none_match="*"), 413, "memory_limit_exceeded"
    )
    assert field in message
    assert str(limit) in message
    assert api("PUT", unique, body, none_match="*").status_code == 201
    tag = f'"{api.read(unique)["revision"]}"'
    change = {field: "y" * (limit + 1)} | ({"text": ""} if field == "summary" else {})
    refused(api("PATCH" if field == "title" else "PUT", unique, change, match=tag), 413, "memory_limit_exceeded")


def test_lists_page_without_text(api: Api, server: Server) -> None:
    notes, api.documents = api.documents, api.documents.replace("notes", "paged")
    deploy = {"agentId": "pager", "alias": "development", "memory": [{"id": "paged", "description": "Many."}]}
    answer = api.client.post("/api/managed-agents/deployments", params={"projectId": "bot"}, json=deploy)
    assert answer.status_code == 201
    for number in range(53):
        api.created(f"d{number:02}")
    first = api("GET").json()
    assert [document["id"] for document in first["documents"]] == [f"d{n:02}" for n in range(52, 2, -1)]
    assert "text" not in first["documents"][0]
    second = api("GET", cursor=first["nextCursor"]).json()
    assert [document["id"] for document in second["documents"]] == ["d02", "d01", "d00"]
    assert second["nextCursor"] is None
    for cursor in ("", "x", first["nextCursor"][:-2], "%00", "é"):
        refused(api("GET", cursor=cursor), 400, "invalid_request")
    other = api.client.get(notes, params=ENVIRONMENT | {"cursor": first["nextCursor"]})
    refused(other, 400, "invalid_request")


def test_the_inventory_shows_retired_resources(api: Api) -> None:
    where = {"projectId": "bot"}
    deploy = {"agentId": "fickle", "alias": "development", "memory": [{"id": "given-up", "description": "Old."}]}
    created = api.client.post("/api/managed-agents/deployments", params=where, json=deploy)
    deployment = created.json()
    assert (created.status_code, deployment["agentId"], deployment["alias"]) == (201, "fickle", "development")
    assert deployment.keys() == {"id", "agentId", "alias", "createdAt"}
    api.documents = f"{api.memory}/given-up/documents"
    api.created("kept")
    api.client.post("/api/managed-agents/deployments", params=where, json=deploy | {"memory": []})
    found = api.client.get(api.memory, params=ENVIRONMENT).json()["resources"]
    assert {
        "id": "given-up",
        "provider": {"kind": "document", "maxBytes": 8192},
        "declared": False,
        "documents": 1,
    } in found
    kept = api.read("kept")
    assert api("PUT", "kept", {"text": "still editable"}, match=f'"{kept["revision"]}"').status_code == 200


def test_environments_are_separate(api: Api, unique: str) -> None:
    api.created(unique)
    path = f"{api.documents}/{unique}"
    refused(api.client.get(path, params={"environment": "production"}), 404, "not_found")
    for query in ("", "environment=", "environment=Development", "environment=staging", "environment=development&" * 2):
        refused(api.client.get(f"{path}?{query}"), 400, "invalid_request")


def test_what_does_not_exist_is_404(api: Api) -> None:
    refused(api("GET", "never-made"), 404, "not_found")
    refused(api.client.get(api.documents.replace("notes", "nothing"), params=ENVIRONMENT), 404, "not_found")
    for project in ("other", "Bot", "b" * 200, "%2E%2E", ".gitmem"):
        path = api.documents.replace("bot", project)
        refused(api.client.get(path, params=ENVIRONMENT), 404, "project_not_found")


def test_history_old_versions_and_restore(api: Api, unique: str) -> None:
    first = api.created(unique, text="one", summary="first")
    second = api("PUT", unique, {"text": "two", "summary": ""}, match=f'"{first["revision"]}"').json()
    frozen = api("PATCH", unique, {"agentWrites": "disabled"}, match=f'"{second["revision"]}"').json()
    history = api("GET", f"{unique}/history").json()
    assert [version["operation"] for version in history["versions"]] == ["freeze", "replace", "create"]
    assert history["versions"][0].keys() == {
        "revision",
        "operation",
        "title",
        "bytes",
        "updatedAt",
        "writer",
        "message",
    }
    assert history["nextCursor"] is None
    old = api("GET", unique, revision=first["revision"])
    assert (old.json(), old.headers["etag"]) == (first, f'"{first["revision"]}"')
    refused(api("GET", unique, revision="0" * 40), 404, "not_found")
    refused(api("GET", unique, revision="HEAD"), 400, "invalid_request")
    restore = {"revision": first["revision"]}
    refused(api("POST", f"{unique}/restore", restore), 428, "precondition_required")
    refused(api("POST", f"{unique}/restore", restore, match=f'"{second["revision"]}"'), 412, "precondition_failed")
    restored = api("POST", f"{unique}/restore", restore, match=f'"{frozen["revision"]}"')
    document = restored.json()
    assert (document["text"], document["summary"], document["agentWrites"]) == ("one", "first", "disabled")
    assert restored.headers["etag"] == f'"{document["revision"]}"'
    api("DELETE", unique, match=restored.headers["etag"])
    refused(api("POST", f"{unique}/restore", restore, match=restored.headers["etag"]), 404, "not_found")
    deleted = api("GET", f"{unique}/history").json()["versions"][0]
    assert (deleted["operation"], deleted["bytes"]) == ("delete", 0)
    assert api("GET", unique, revision=first["revision"]).json()["text"] == "one"


def test_a_save_from_elsewhere_is_seen_at_once(api: Api, server: Server, unique: str) -> None:
    document = api.created(unique)
    assert api.read(unique) == api.read(unique) == document
    tree = server.folder / "bot" / "development"
    path = tree / "notes" / f"{unique}.json"
    path.write_text(path.read_text().replace("A title", "By hand"))
    git(tree, "commit", "-m", "by hand", "--", str(path))
    seen = api.read(unique)
    assert (seen["title"], seen["revision"]) == ("By hand", git(tree, "rev-parse", "HEAD"))
    refused(api("PUT", unique, {"text": "x"}, match=f'"{document["revision"]}"'), 412, "precondition_failed")


def test_a_new_limit_is_seen_at_once(api: Api) -> None:
    api.documents = f"{api.memory}/limited/documents"

    def deploy(max_bytes: int) -> None:
        memory = {"id": "limited", "description": "x", "provider": {"kind": "document", "maxBytes": max_bytes}}
        body = {"agentId": "limiter", "alias": "development", "memory": [memory]}
        answer = api.client.post("/api/managed-agents/deployments", params={"projectId": "bot"}, json=body)
        assert answer.status_code == 201

    deploy(10)
    tag = f'"{api.created("small", text="1234567890")["revision"]}"'
    deploy(5)
    assert (api.read("small")["maxBytes"], api.read("small")["bytes"]) == (5, 10)
    refused(api("PUT", "small", {"text": "123456"}, match=tag), 413, "memory_limit_exceeded")
    assert api("PATCH", "small", {"title": "Still"}, match=tag).status_code == 200
