"""What the API has beyond the seed for programs: details of errors, deployments by id, renders narrowed."""

from __future__ import annotations

import json
from typing import Any

import gitmem
from tests.http.server import Api, Server, refused

API = "/api/managed-agents"


def details(answer: Any) -> Any:
    return json.loads(answer.headers["gitmem-error"])


def session_on(api: Api, document_id: str, **body: Any) -> dict[str, Any]:
    memory = {"notes": {"scope": "document", "id": document_id, "access": "read-write"}}
    answer = api.client.post(f"{API}/sessions", json={"memory": memory, **body})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_an_error_brings_what_a_program_needs(api: Api, unique: str) -> None:
    made = api.created(unique)
    stale = api("PUT", unique, {"text": "x"}, match=f'"{"0" * 40}"')
    refused(stale, 412, "precondition_failed")
    assert details(stale) == {"expected": "0" * 40, "actual": made["revision"]}
    taken = api("PUT", unique, {"title": "T"}, none_match="*")
    assert details(taken)["actual"] == made["revision"]
    large = api("PUT", unique, {"text": "x" * 8193}, match=f'"{made["revision"]}"')
    assert details(large) == {"field": "text", "bytes": 8193, "maxBytes": 8192}
    foreign = api("GET", cursor="foreign")
    refused(foreign, 400, "invalid_request")
    assert details(foreign) == {"code": "invalid_cursor"}
    assert "gitmem-error" not in api("GET", f"{unique}-missing").headers
    # What a caller sent is not sent back at any length, and never breaks a header.
    odd = api("PUT", unique, {"text": "x"}, headers=[("If-Match", '"%s"' % ("y" * 5_000))])
    refused(odd, 412, "precondition_failed")
    assert "gitmem-error" not in odd.headers


def test_a_listing_is_narrowed_by_id_or_title(api: Api, unique: str) -> None:
    made = api.created(unique, title=f"Plan of {unique}")
    for part in (unique, f"PLAN OF {unique}"):
        assert [found["id"] for found in api("GET", matching=part).json()["documents"]] == [made["id"]]
    assert api("GET", matching=f"{unique}-nothing").json() == {"documents": [], "nextCursor": None}


def test_a_deployment_is_read_and_pinned(api: Api, server: Server, unique: str) -> None:
    api.created(unique)
    with gitmem.open_store(server.folder) as store:
        environment = store.project("bot").environment()
        notes = gitmem.define_memory(id="notes", description="As it was.")
        old = environment.deploy(agent="pinned", memories=[notes])
        environment.deploy(agent="pinned", memories=[])
    answer = api.client.get(f"{API}/deployments/{old.id}")
    assert answer.json() == old.to_json() | {"memory": [notes.to_json()]}
    assert session_on(api, unique, deploymentId=old.id)["deployment"] == old.to_json()
    agents = api.client.get(f"{API}/agents", params={"projectId": "bot"}).json()["agents"]
    (deployments,) = [agent["deployments"] for agent in agents if agent["id"] == "pinned"]
    assert deployments[0]["memory"] == []
    refused(api.client.get(f"{API}/deployments/dep_none"), 404, "not_found")
    for body in ({"memory": {}}, {"memory": {}, "agentId": "pinned@development", "deploymentId": old.id}):
        assert "agentId" in refused(api.client.post(f"{API}/sessions", json=body), 400, "invalid_request")
    elsewhere = {"memory": {}, "deploymentId": old.id, "projectId": "nobody"}
    refused(api.client.post(f"{API}/sessions", json=elsewhere), 404, "project_not_found")


def test_a_render_is_narrowed_on_what_it_showed(api: Api, unique: str) -> None:
    api.created(unique)
    session = session_on(api, unique, agentId="tutor@development")["session"]
    url = f"{API}/sessions/{session['id']}"
    whole = api.client.post(f"{url}/renders").json()
    nothing = api.client.post(f"{url}/renders", json={"render": whole["render"], "select": []}).json()
    assert (nothing["memory"], nothing["tools"]) == ({}, [])
    same = api.client.post(f"{url}/renders", json={"render": whole["render"]}).json()
    assert same["tools"] == whole["tools"]
    for render, status in ((nothing, "rejected"), (whole, "saved"), (same, "conflict")):
        body = {"render": render["render"], "arguments": {"text": "saved"}}
        answer = api.client.post(f"{url}/tools/memory_save", json=body)
        assert answer.json()["status"] == status
    # Nothing was recalled again: the narrowed render is as old as the whole one. The host learns what is there now.
    assert answer.headers["etag"] == f'"{api.read(unique)["revision"]}"'
    wider = api.client.post(f"{url}/renders", json={"render": nothing["render"], "select": ["notes"]})
    refused(wider, 400, "invalid_request")
