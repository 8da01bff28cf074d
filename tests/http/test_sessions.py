"""Sessions, renders, tools and events over HTTP, as an agent's host uses them."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

import gitmem
from gitmem.keys import Keys
from tests.http.server import Api, Server, client_of, refused

SESSIONS = "/api/managed-agents/sessions"


def binding(document_id: str, access: str = "read-write") -> dict[str, dict[str, str]]:
    return {"notes": {"scope": "document", "id": document_id, "access": access}}


def start(api: Api, memory: object, key: str | None = None, **more: object) -> httpx2.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    body = {"agentId": "tutor@development", "memory": memory, **more}
    return api.client.post(SESSIONS, json=body, headers=headers)


def started(api: Api, memory: object) -> str:
    answer = start(api, memory)
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["session"]["id"]
    return found


def rendered(api: Api, session: str, body: object = None) -> Any:
    where = f"{SESSIONS}/{session}/renders"
    answer = api.client.post(where) if body is None else api.client.post(where, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def save(api: Api, session: str, render: str, **arguments: str) -> Any:
    body = {"render": render, "arguments": arguments}
    answer = api.client.post(f"{SESSIONS}/{session}/tools/memory_save", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_session_is_created_inspected_and_ended(api: Api, unique: str) -> None:
    api.created(unique)
    answer = start(api, binding(unique), source="a test")
    assert answer.status_code == 201
    session, deployment = answer.json()["session"], answer.json()["deployment"]
    assert deployment.keys() == {"id", "agentId", "alias", "createdAt"}
    assert (deployment["agentId"], deployment["alias"]) == ("tutor", "development")
    assert (session["deploymentId"], session["status"], session["source"]) == (deployment["id"], "active", "a test")
    state = {"resource": "notes", "scope": "document", "id": unique, "access": "read-write", "writable": True}
    assert session["memory"] == [state]
    where = f"{SESSIONS}/{session['id']}"
    assert api.client.get(where).json() == session
    ended = api.client.post(f"{where}/end").json()
    assert (ended["status"], ended["memory"]) == ("ended", [state | {"writable": False}])
    assert api.client.post(f"{where}/end").json() == ended == api.client.get(where).json()
    refused(api.client.post(f"{where}/renders"), 409, "session_closed")


def test_a_key_gives_the_same_session_and_refuses_another(api: Api, unique: str) -> None:
    api.created(unique)
    first = start(api, binding(unique), unique)
    again = start(api, binding(unique), unique)
    assert (first.status_code, again.status_code, again.json()) == (201, 200, first.json())
    refused(start(api, binding(unique, "read"), unique), 409, "idempotency_conflict")
    assert start(api, binding(unique)).json()["session"]["id"] != first.json()["session"]["id"]
    for key in ("", "a\tb", "x" * 1025):
        refused(start(api, binding(unique), key), 400, "invalid_request")
    twice = [("Idempotency-Key", unique), ("Idempotency-Key", unique)]
    body = {"agentId": "tutor@development", "memory": binding(unique)}
    refused(api.client.post(SESSIONS, json=body, headers=twice), 400, "invalid_request")


def test_one_key_used_at_once_makes_one_session(api: Api, unique: str) -> None:
    api.created(unique)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: start(api, binding(unique), unique), range(16)))
    assert sorted({answer.status_code for answer in answers}) == [200, 201]
    assert len({answer.json()["session"]["id"] for answer in answers}) == 1


@pytest.mark.parametrize(
    ("memory", "says"),
    [
        ({"other": {"scope": "collection"}}, "memory.other"),
        ({"notes": {"scope": "document", "id": "never-made"}}, "memory.notes"),
        ({"notes": {"scope": "document"}}, "memory.notes"),
        ({"notes": {"scope": "collection", "id": "x"}}, "memory.notes"),
        ({"notes": {"scope": "collection", "access": "read-write"}}, "memory.notes"),
        ({"notes": {"scope": "all"}}, "memory.notes"),
        ({"notes": {"scope": "collection", "extra": 1}}, "memory.notes"),
        ({"notes": 99999999999999999999}, "memory.notes"),
        ({"No!": {"scope": "collection"}}, "No!"),
        ({f"r{number}": {"scope": "collection"} for number in range(9)}, "8"),
        ([], "array"),
    ],
)
def test_a_refused_binding_is_named(api: Api, memory: object, says: str) -> None:
    assert says in refused(start(api, memory), 400, "invalid_request")


@pytest.mark.parametrize(
    ("agent", "status", "code"),
    [
        ("tutor", 400, "invalid_request"), ("tutor@staging", 400, "invalid_request"), ("", 400, "invalid_request"),
        ("@development", 400, "invalid_request"), ("Tutor@development", 400, "invalid_request"),
        ("undeployed@production", 404, "not_found"), ("nobody@development", 404, "not_found"),
    ],
)  # fmt: skip
def test_another_agent_is_refused(api: Api, agent: str, status: int, code: str) -> None:
    refused(api.client.post(SESSIONS, json={"agentId": agent, "memory": {}}), status, code)


def test_render_save_conflict_and_freeze(api: Api, unique: str) -> None:
    document = api.created(unique, text="one")
    session = started(api, binding(unique))
    render = rendered(api, session)
    source = {"id": unique, "title": "A title", "revision": document["revision"], "updatedAt": document["updatedAt"]}
    assert render["memory"] == {"notes": {"text": "one", "sources": [source], "writable": True}}
    (tool,) = render["tools"]
    assert (tool["name"], tool.keys()) == ("memory_save", {"name", "description", "inputSchema"})
    saved = save(api, session, render["render"], text="two")
    assert saved == {"status": "saved", "revision": api.read(unique)["revision"], "bytes": 3}
    assert api.read(unique)["writer"] == {"kind": "agent", "sessionId": session}
    again = save(api, session, render["render"], memory="notes", text="three")
    assert again == {"status": "conflict", "text": "two", "summary": ""}
    api("PATCH", unique, {"agentWrites": "disabled"}, match=f'"{saved["revision"]}"')
    newest = rendered(api, session)["render"]
    assert save(api, session, newest, text="x") == {"status": "rejected", "reason": "agent_writes_disabled"}
    api.client.post(f"{SESSIONS}/{session}/end")
    assert save(api, session, newest, text="x") == {"status": "rejected", "reason": "session_closed"}


def test_a_collection_is_listed_and_read(api: Api, unique: str) -> None:
    api.created(unique, summary="A summary")
    session = started(api, {"notes": {"scope": "collection"}})
    render = rendered(api, session)
    assert f"{unique} | A title | A summary | " in render["memory"]["notes"]["text"]
    assert [tool["name"] for tool in render["tools"]] == ["memory_list", "memory_read"]

    def call(tool: str, **arguments: Any) -> httpx2.Response:
        body = {"render": render["render"], "arguments": arguments}
        return api.client.post(f"{SESSIONS}/{session}/tools/{tool}", json=body)

    page = call("memory_list").json()
    assert page["documents"][0].keys() == {"id", "title", "summary", "revision", "updatedAt"}
    assert call("memory_read", id=unique).json()["id"] == unique
    assert call("memory_read", id="missing").json() == {"status": "rejected", "reason": "not_found"}
    assert call("memory_list", cursor="x").json() == {"status": "rejected", "reason": "invalid_cursor"}
    for tool, arguments in (
        ("memory_save", {}), ("nothing", {}), ("memory_read", {}), ("memory_read", {"id": 7}),
        ("memory_list", {"x": "y"}), ("memory_read", {"id": "a b"}), ("memory_read", {"id": [[]]}),
    ):  # fmt: skip
        refused(call(tool, **arguments), 400, "invalid_request")


def test_selecting_nothing_exposes_nothing_and_an_unbound_one_is_refused(api: Api, unique: str) -> None:
    api.created(unique)
    session = started(api, binding(unique))
    bare = rendered(api, session, {"select": []})
    assert (bare["memory"], bare["tools"]) == ({}, [])
    rejected = save(api, session, bare["render"], text="x")
    assert rejected == {"status": "rejected", "reason": "not_bound", "bound": []}
    assert rendered(api, session, {})["memory"].keys() == {"notes"}
    where = f"{SESSIONS}/{session}/renders"
    bad: list[Any] = [{"select": ["other"]}, {"select": "notes"}, {"select": None}, {"unknown": 1}, [], {"select": [1]}]
    for body in bad:
        refused(api.client.post(where, json=body), 400, "invalid_request")


def test_a_forged_or_foreign_render_is_refused(api: Api, unique: str) -> None:
    api.created(unique)
    mine, other = started(api, binding(unique)), started(api, binding(unique))
    foreign = rendered(api, other)["render"]
    for render in (foreign, "", "x", foreign[:-2], rendered(api, mine)["render"] + "A"):
        body = {"render": render, "arguments": {"text": "x"}}
        refused(api.client.post(f"{SESSIONS}/{mine}/tools/memory_save", json=body), 400, "invalid_request")
    body = {"render": 7, "arguments": {"text": "x"}}
    refused(api.client.post(f"{SESSIONS}/{mine}/tools/memory_save", json=body), 400, "invalid_request")
    assert api.read(unique)["text"] == ""


def test_events_tell_of_every_save(api: Api, unique: str) -> None:
    api.created(unique)
    session = started(api, binding(unique))
    where = f"{SESSIONS}/{session}/events"
    assert api.client.get(where).json() == {"events": []}
    revisions = [save(api, session, rendered(api, session)["render"], text=text)["revision"] for text in ("a", "bb")]
    events = api.client.get(where, params={"after": 0}).json()["events"]
    assert [(event["seq"], event["type"], event["data"]) for event in events] == [
        (
            number + 1,
            "memory.saved",
            {"resource": "notes", "documentId": unique, "revision": revision, "bytes": number + 1},
        )
        for number, revision in enumerate(revisions)
    ]
    assert api.client.get(where, params={"after": 1}).json()["events"] == events[1:]
    for after in ("-1", "x", "1.5", "9" * 30, ""):
        refused(api.client.get(where, params={"after": after}), 400, "invalid_request")
    for wait in ("-1", "61", "x"):
        refused(api.client.get(where, params={"wait": wait}), 400, "invalid_request")


def test_who_waits_hears_of_the_next_save_or_of_the_end(api: Api, server: Server, unique: str) -> None:
    api.created(unique)
    session = started(api, binding(unique))

    def wait(after: int) -> Any:
        with client_of(server) as own:
            return own.get(f"{SESSIONS}/{session}/events", params={"after": after, "wait": 60}).json()["events"]

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(wait, 0)
        revision = save(api, session, rendered(api, session)["render"], text="x")["revision"]
        assert [event["data"]["revision"] for event in waiting.result(50)] == [revision]
        waiting = thread.submit(wait, 1)
        api.client.post(f"{SESSIONS}/{session}/end")
        assert waiting.result(50) == []
    assert api.client.get(f"{SESSIONS}/{session}/events", params={"after": 1, "wait": 60}).json() == {"events": []}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_stop_does_not_wait_for_those_who_wait(own_store: Path, tmp_path: Path, workers: str) -> None:
    with Server(own_store, "--workers", workers, log=tmp_path / "log") as server, client_of(server) as client:
        session = started(Api(client), {"notes": {"scope": "collection"}})
        with ThreadPoolExecutor(1) as thread:
            where = f"{SESSIONS}/{session}/events"
            waiting = thread.submit(client.get, where, params={"wait": 60})
            # When this has waited for its second, the other has long begun to wait.
            assert client.get(where, params={"wait": 1}).json() == {"events": []}
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(30) == 0
            assert waiting.result(10).json() == {"events": []}


def test_sessions_are_listed_newest_first_in_pages(own_store: Path, tmp_path: Path) -> None:
    with gitmem.open_store(own_store) as store:
        second = store.project("second").create()
        notes = gitmem.define_memory(id="notes", description="Notes.")
        second.environment("production").deploy(agent="coach", memories=[notes])
        sessions = store.project("bot").environment("development").sessions
        ids = [sessions.create(agent="tutor").id for _ in range(52)]
        other = second.environment("production").sessions.create(agent="coach").id
    with Server(own_store, log=tmp_path / "log") as server, client_of(server) as client:
        first = client.get(SESSIONS).json()
        assert [session["id"] for session in first["sessions"]] == sorted([*ids, other], reverse=True)[:50]
        rest = client.get(SESSIONS, params={"cursor": first["nextCursor"]}).json()
        assert [session["id"] for session in rest["sessions"]] == sorted([*ids, other], reverse=True)[50:]
        assert rest["nextCursor"] is None
        only = client.get(SESSIONS, params={"projectId": "second"}).json()["sessions"]
        assert [(session["id"], session["alias"]) for session in only] == [(other, "production")]
        assert client.get(SESSIONS, params={"projectId": "bot", "environment": "production"}).json()["sessions"] == []
        wrong = {"environment": "production", "cursor": first["nextCursor"]}
        refused(client.get(SESSIONS, params=wrong), 400, "invalid_request")
        refused(client.get(SESSIONS, params={"projectId": "none"}), 404, "project_not_found")
        assert client.get(f"{SESSIONS}/{other}").json()["id"] == other
        refused(client.get(f"{SESSIONS}/{other}", params={"projectId": "bot"}), 404, "not_found")
        _, token = Keys(str(own_store)).create(name="bot-only", project="bot")
        client.headers["x-api-key"] = token
        refused(client.get(f"{SESSIONS}/{other}"), 404, "not_found")
        assert len(client.get(SESSIONS).json()["sessions"]) == 50
        body = {"agentId": "coach@production", "projectId": "second"}
        refused(client.post(SESSIONS, json=body), 403, "forbidden")


def test_an_agent_of_several_projects_needs_the_project(own_store: Path, tmp_path: Path) -> None:
    with gitmem.open_store(own_store) as store:
        store.project("second").create().environment("development").deploy(agent="tutor", memories=[])
    with Server(own_store, log=tmp_path / "log") as server, client_of(server) as client:
        body = {"agentId": "tutor@development"}
        message = refused(client.post(SESSIONS, json=body), 400, "invalid_request")
        assert "bot, second" in message
        assert client.post(SESSIONS, json=body | {"projectId": "second"}).status_code == 201
        refused(client.post(SESSIONS, json=body | {"projectId": "third"}), 404, "project_not_found")
        agents = client.get("/api/managed-agents/agents").json()["agents"]
        assert [(agent["id"], agent["projectId"]) for agent in agents] == [("tutor", "bot"), ("tutor", "second")]
        narrowed = client.get("/api/managed-agents/agents", params={"projectId": "bot", "environment": "production"})
        assert narrowed.json() == {"agents": []}


def test_what_is_no_session_is_not_found(api: Api) -> None:
    for session in ("nope", "ses_0", "ses_" + "0" * 26, "-", "a%20b"):
        for method, rest in (("GET", ""), ("POST", "/end"), ("GET", "/events"), ("POST", "/renders")):
            refused(api.client.request(method, f"{SESSIONS}/{session}{rest}"), 404, "not_found")
    for session in ("%FF", "a%2Fb", "%00", "x" * 200):
        refused(api.client.get(f"{SESSIONS}/{session}"), 400, "invalid_request")


def test_deep_and_large_arguments_do_not_break_it(api: Api, unique: str) -> None:
    api.created(unique)
    session = started(api, binding(unique))
    render = rendered(api, session)["render"]
    where = f"{SESSIONS}/{session}/tools/memory_save"
    for odd in ("[" * 400 + "]" * 400, "[" * 900 + "]" * 900, "99999999999999999999", "1e999", '"\\ud800"', "null"):
        content = f'{{"render": {json.dumps(render)}, "arguments": {{"text": {odd}}}}}'
        answer = api.client.post(where, content=content, headers={"Content-Type": "application/json"})
        refused(answer, 400, "invalid_request")
    assert api.read(unique)["text"] == ""
