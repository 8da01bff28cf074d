"""The tools of a render: what models are told, and what each call answers."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem import ErrorCode, ToolArgumentError
from tests.agents import COLLECTION, NOTES, PLANS, READ, WRITE, Desk, refusal, save
from tests.support import git, python
from tests.workshop import limited, operations

PLAN = {"plans": {"scope": "document", "id": "plan", "access": "read-write"}}
BOTH = WRITE | PLAN
COLLECTIONS = COLLECTION | {"plans": {"scope": "collection"}}


def call(render: gitmem.Render | gitmem.Toolbox, name: str, **arguments: Any) -> dict[str, Any]:
    return render.call(name, arguments).to_json()


@pytest.fixture
def plan(desk: Desk) -> gitmem.Document:
    return desk.plans.create("plan", title="Plan", text="First.")


# What is offered


@pytest.mark.parametrize(
    ("memory", "names"),
    [
        (READ, []),
        (WRITE, ["memory_save"]),
        (COLLECTION, ["memory_list", "memory_read"]),
        (WRITE | {"plans": {"scope": "collection"}}, ["memory_save", "memory_list", "memory_read"]),
    ],
)
def test_each_binding_has_its_tools_once_it_is_selected(desk: Desk, memory: dict[str, Any], names: list[str]) -> None:
    render = desk.session(memory).render()
    assert [tool.name for tool in render.tools] == []
    for resource in memory:
        render.use_memory(resource)
    assert [tool.name for tool in render.tools] == names


@pytest.mark.usefixtures("plan")
def test_memory_is_required_where_several_selected_resources_offer_the_tool(desk: Desk) -> None:
    session = desk.session(BOTH)
    (tool,) = session.render(["notes"]).tools
    assert tool.input_schema["required"] == ["text"]
    assert tool.input_schema["properties"]["memory"]["enum"] == ["notes"]
    (tool,) = session.render(["notes", "plans"]).tools
    assert tool.input_schema["required"] == ["memory", "text"]
    assert tool.input_schema["properties"]["memory"]["enum"] == ["notes", "plans"]
    assert tool.input_schema["additionalProperties"] is False


@pytest.mark.usefixtures("plan")
def test_descriptions_hold_declared_guidance_of_the_eligible_and_no_stored_text(desk: Desk) -> None:
    desk.notes.create("other", title="OTHER", text="OTHER")
    session = desk.session(WRITE | {"plans": {"scope": "collection"}})
    desk.environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="CHANGED"), PLANS])
    save_tool, list_tool, read_tool = session.render(["notes", "plans"]).tools
    assert f"- notes: {NOTES.description}" in save_tool.description
    assert PLANS.description not in save_tool.description
    assert "8192 bytes" in save_tool.description
    for tool in (list_tool, read_tool):
        assert f"- plans: {PLANS.description}" in tool.description
        assert NOTES.description not in tool.description
    told = json.dumps(session.render(["notes", "plans"]).tools.mcp())
    for stored in ("Node.js", "Runtime.", "Workshop notes", "First.", "OTHER", "CHANGED"):
        assert stored not in told


def test_tools_come_in_the_shapes_that_hosts_pass_on(desk: Desk) -> None:
    tools = desk.session(WRITE).render(["notes"]).tools
    (tool,) = tools
    schema = {
        "type": "object",
        "properties": {
            "memory": tool.input_schema["properties"]["memory"],
            "text": tool.input_schema["properties"]["text"],
            "summary": tool.input_schema["properties"]["summary"],
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    assert tools.anthropic() == [{"name": "memory_save", "description": tool.description, "input_schema": schema}]
    assert tools.mcp() == [{"name": "memory_save", "description": tool.description, "inputSchema": schema}]
    (openai,) = tools.openai()
    assert openai["type"] == "function"
    assert openai["function"] == {"name": "memory_save", "description": tool.description, "parameters": schema}
    assert json.loads(json.dumps(openai)) == openai


# Saving


def test_a_save_is_one_commit_by_the_session(desk: Desk) -> None:
    session = desk.session(WRITE)
    before = int(git(desk.environment.folder, "rev-list", "--count", "main"))
    done = save(session.render(["notes"]), memory="notes", text="Node.js 22. é", summary="New.")
    assert done == {"status": "saved", "revision": git(desk.environment.folder, "rev-parse", "main"), "bytes": 14}
    assert int(git(desk.environment.folder, "rev-list", "--count", "main")) == before + 1
    message = git(desk.environment.folder, "log", "-1", "--format=%an <%ae>%n%B", "main")
    assert message.splitlines()[:2] == [f"agent <{session.id}@agent.localhost>", "replace notes/workshop"]
    assert f"Gitmem-Writer: agent\nGitmem-Session: {session.id}\n" in message
    read = desk.notes.read("workshop")
    assert (read.text, read.summary, read.title) == ("Node.js 22. é", "New.", "Workshop notes")
    assert read.writer.to_json() == {"kind": "agent", "sessionId": session.id}


def test_a_summary_left_out_stays_and_an_empty_one_clears(desk: Desk) -> None:
    session = desk.session(WRITE)
    save(session.render(["notes"]), text="1")
    assert desk.notes.read("workshop").summary == "Runtime."
    save(session.render(["notes"]), text="2", summary="")
    assert desk.notes.read("workshop").summary == ""


def test_every_save_of_a_render_is_on_the_revision_that_it_showed(desk: Desk) -> None:
    session = desk.session(WRITE)
    render = session.render(["notes"])
    assert save(render, text="One.")["status"] == "saved"
    conflict = {"status": "conflict", "text": "One.", "summary": "Runtime."}
    assert save(render, text="Two.") == conflict
    # Not even what is there already, nor through the same resource selected anew.
    assert save(render, text="One.") == conflict
    render.use_memory("notes")
    assert save(render, text="Two.") == conflict
    assert save(session.render(["notes"]), text="Two.")["status"] == "saved"
    assert operations(desk.notes, "workshop") == ["replace", "replace", "create"]


def test_a_save_that_changes_nothing_makes_no_commit(desk: Desk) -> None:
    session = desk.session(WRITE)
    done = save(session.render(["notes"]), text="Node.js 20.")
    assert done == {"status": "saved", "revision": desk.document.revision, "bytes": 11}
    assert operations(desk.notes, "workshop") == ["create"]


@pytest.mark.parametrize("edit", ["text", "title", "freeze and unfreeze"])
def test_any_other_write_makes_it_conflict(desk: Desk, edit: str) -> None:
    render = desk.session(WRITE).render(["notes"])
    if edit == "text":
        desk.own_edit("Node.js 24.")
    elif edit == "title":
        desk.notes.patch("workshop", title="New title", if_match=desk.document.revision)
    else:
        desk.freeze()
        desk.unfreeze()
    read = desk.notes.read("workshop")
    assert save(render, text="x") == {"status": "conflict", "text": read.text, "summary": read.summary}
    assert desk.notes.read("workshop").revision == read.revision


def test_a_hand_edit_makes_it_conflict_and_stays(desk: Desk) -> None:
    render = desk.session(WRITE).render(["notes"])
    Path(desk.environment.path("notes", "workshop")).write_text('{"title": "Workshop notes", "text": "by hand"}')
    assert save(render, text="x") == {"status": "conflict", "text": "by hand", "summary": ""}
    assert desk.notes.read("workshop").text == "by hand"


def test_a_conflict_tells_the_host_where_the_content_stands(desk: Desk) -> None:
    render = desk.session(WRITE).render(["notes"])
    newer = desk.own_edit("Node.js 24.")
    result = render.call("memory_save", {"text": "x"})
    assert isinstance(result, gitmem.Conflict)
    assert result.revision == newer.revision


def test_a_host_that_keeps_count_itself_saves_on_what_it_showed(desk: Desk) -> None:
    session = desk.session(WRITE | {"plans": {"scope": "collection"}})
    unseen = session.toolbox({"notes": None})
    assert save(unseen, text="x")["status"] == "conflict"
    seen = session.toolbox({"notes": desk.document.revision})
    assert save(seen, text="x")["status"] == "saved"
    refusal(ErrorCode.INVALID_REQUEST, lambda: session.toolbox({"other": None}), "'other'")


def test_frozen_deleted_and_ended_are_rejections(desk: Desk) -> None:
    session, other = desk.session(WRITE), desk.session(WRITE)
    render, ended = session.render(["notes"]), other.render(["notes"])
    desk.freeze()
    assert save(render, text="x") == {"status": "rejected", "reason": "agent_writes_disabled"}
    desk.delete()
    assert save(render, text="x") == {"status": "rejected", "reason": "not_found"}
    other.end()
    assert save(ended, text="x") == {"status": "rejected", "reason": "session_closed"}


def test_a_field_above_its_limit_is_rejected_with_its_size(desk: Desk) -> None:
    limited(desk.environment, 10)
    render = desk.session(WRITE).render(["notes"])
    rejected = {"status": "rejected", "reason": "too_large"}
    assert save(render, text="é" * 6) == rejected | {"field": "text", "bytes": 12, "maxBytes": 10}
    assert save(render, text="x", summary="é" * 121) == rejected | {"field": "summary", "bytes": 242, "maxBytes": 240}
    assert save(render, text="é" * 6, summary="é" * 121)["field"] == "text"
    assert save(render, text="é" * 5, summary="é" * 120)["status"] == "saved"


def test_a_lowered_limit_holds_for_sessions_on_older_deployments(desk: Desk) -> None:
    session = desk.session(WRITE)
    limited(desk.environment, 5)
    assert session.render().use_memory("notes").text == "Node.js 20."
    assert save(session.render(["notes"]), text="123456")["maxBytes"] == 5


def test_checks_come_in_their_order(desk: Desk) -> None:
    limited(desk.environment, 10)
    session = desk.session(WRITE)
    render = session.render(["notes"])
    reader = desk.session(READ).render(["notes"])
    large = "x" * 11
    desk.own_edit("newer")
    assert save(render, text=large)["reason"] == "too_large"
    assert save(render, text="x")["status"] == "conflict"
    desk.freeze()
    assert save(render, text=large)["reason"] == "agent_writes_disabled"
    desk.delete()
    assert save(render, text=large)["reason"] == "not_found"
    session.end()
    assert save(render, text=large)["reason"] == "session_closed"
    assert save(render, memory="other", text=large)["reason"] == "not_bound"
    assert save(reader, text=large)["reason"] == "read_only"


@pytest.mark.usefixtures("plan")
def test_what_is_not_selected_or_only_read_names_what_could_have_been_saved(desk: Desk) -> None:
    def rejected(reason: str, *bound: str) -> dict[str, Any]:
        return {"status": "rejected", "reason": reason, "bound": list(bound)}

    session = desk.session(BOTH)
    assert save(session.render(), text="x") == rejected("not_bound")
    assert save(session.render(), memory="notes", text="x") == rejected("not_bound")
    assert save(session.render(["notes"]), memory="plans", text="x") == rejected("not_bound", "notes")
    assert save(session.render(["plans"]), memory="no such\nthing", text="x") == rejected("not_bound", "plans")
    mixed = desk.session(READ | PLAN).render(["notes", "plans"])
    assert save(mixed, memory="notes", text="x") == rejected("read_only", "plans")
    assert save(mixed, text="Second.")["status"] == "saved"
    assert save(desk.session(READ).render(["notes"]), text="x") == rejected("read_only")
    collection = desk.session(COLLECTION).render(["notes"])
    assert save(collection, memory="notes", text="x") == rejected("read_only")
    assert operations(desk.notes, "workshop") == ["create"]


# Collections


def test_lists_reach_every_document_in_pages_without_texts(desk: Desk) -> None:
    for number in range(60):
        desk.plans.create(f"p{number:02}", title=f"Plan {number}", summary="S", text="hidden")
    render = desk.session({"plans": {"scope": "collection"}}).render(["plans"])
    first = call(render, "memory_list")
    second = call(render, "memory_list", cursor=first["nextCursor"], memory="plans")
    assert (len(first["documents"]), len(second["documents"]), second["nextCursor"]) == (50, 10, None)
    assert {each["id"] for each in first["documents"] + second["documents"]} == {f"p{n:02}" for n in range(60)}
    newest = desk.plans.read("p59")
    assert first["documents"][0] == {
        "id": "p59",
        "title": "Plan 59",
        "summary": "S",
        "revision": newest.revision,
        "updatedAt": newest.updated_at,
    }


def test_a_read_answers_the_whole_document_as_it_is_now(desk: Desk) -> None:
    render = desk.session(COLLECTION).render(["notes"])
    newer = desk.own_edit("Node.js 24.")
    assert call(render, "memory_read", id="workshop") == {
        "id": "workshop",
        "title": "Workshop notes",
        "text": "Node.js 24.",
        "summary": "Runtime.",
        "revision": newer.revision,
        "updatedAt": newer.updated_at,
    }


def test_what_is_missing_or_no_cursor_is_a_rejection(desk: Desk) -> None:
    for number in range(51):
        desk.plans.create(f"p{number}", title="T")
    render = desk.session(COLLECTIONS).render(["notes", "plans"])
    not_found = {"status": "rejected", "reason": "not_found"}
    assert call(render, "memory_read", memory="notes", id="missing") == not_found
    desk.delete()
    assert call(render, "memory_read", memory="notes", id="workshop") == not_found
    assert call(render, "memory_list", memory="notes") == {"documents": [], "nextCursor": None}
    cursor = call(render, "memory_list", memory="plans")["nextCursor"]
    assert len(call(render, "memory_list", memory="plans", cursor=cursor)["documents"]) == 1
    for memory, wrong in (("notes", cursor), ("plans", cursor[:-1]), ("plans", "x"), ("plans", "")):
        assert call(render, "memory_list", memory=memory, cursor=wrong) == {
            "status": "rejected",
            "reason": "invalid_cursor",
        }


def test_an_ended_session_reads_nothing_more(desk: Desk) -> None:
    session = desk.session(COLLECTION)
    render = session.render(["notes"])
    session.end()
    refusal(ErrorCode.SESSION_CLOSED, lambda: call(render, "memory_list"), session.id)
    refusal(ErrorCode.SESSION_CLOSED, lambda: call(render, "memory_read", id="workshop"))


def test_collection_tools_are_offered_for_selected_collections_only(desk: Desk) -> None:
    session = desk.session(WRITE | {"plans": {"scope": "collection"}})
    both = session.render(["notes", "plans"])
    for name, arguments in (("memory_list", {}), ("memory_read", {"id": "workshop"})):
        for render in (session.render(), session.render(["notes"])):
            refusal(ErrorCode.INVALID_REQUEST, lambda r=render, n=name, a=arguments: call(r, n, **a), name)
        refusal(ErrorCode.INVALID_REQUEST, lambda n=name, a=arguments: call(both, n, memory="notes", **a), "'notes'")


# Malformed arguments


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        ("memory_delete", {}, "'memory_delete'"),
        ("", {}, "''"),
        (None, {}, "None"),
        (["memory_save"], {}, "memory_save"),
        ("memory_save", None, "JSON object"),
        ("memory_save", '{"text": "x"}', "JSON object"),
        ("memory_save", ["x"], "JSON object"),
        ("memory_save", {}, "text"),
        ("memory_save", {"summary": "x"}, "text"),
        ("memory_save", {"text": None}, "None"),
        ("memory_save", {"text": 7}, "7"),
        ("memory_save", {"text": ["x"]}, "'x'"),
        ("memory_save", {"text": b"x"}, "b'x'"),
        ("memory_save", {"text": "x", "summary": None}, "summary"),
        ("memory_save", {"text": "x", "memory": None}, "memory"),
        ("memory_save", {"text": "x", "title": "T"}, "'title'"),
        ("memory_save", {"text": "x", "revision": "a" * 40}, "'revision'"),
        ("memory_save", {"text": "x", "\ud800": "x"}, "ud800"),
        ("memory_save", {"text": "x", 7: "x"}, "7"),
        ("memory_save", {"text": "a\ud800"}, "surrogate"),
        ("memory_save", {"text": "x", "summary": "\udfff"}, "surrogate"),
        ("memory_save", {"text": "x", "memory": "\ud800"}, "surrogate"),
        ("memory_save", {"text": "x"}, "memory"),
        ("memory_read", {"memory": "rooms"}, "id"),
        ("memory_read", {"memory": "rooms", "id": "../workshop"}, "'../workshop'"),
        ("memory_read", {"memory": "rooms", "id": "\ud800"}, "surrogate"),
        ("memory_read", {"memory": "notes", "id": "workshop"}, "'notes'"),
        ("memory_list", {"memory": "rooms", "cursor": None}, "cursor"),
        ("memory_list", {"memory": "rooms", "cursor": 1}, "cursor"),
        ("memory_list", {"memory": "rooms", "limit": "1"}, "'limit'"),
        ("memory_list", {"memory": "rooms", "cursor": "\ud800"}, "surrogate"),
    ],
)
def test_malformed_arguments_are_a_tool_error_and_the_next_call_works(
    desk: Desk, plan: gitmem.Document, name: Any, arguments: Any, word: str
) -> None:
    rooms = gitmem.define_memory(id="rooms", description="Where it takes place.")
    desk.environment.deploy(agent="tutor", memories=[NOTES, PLANS, rooms])
    render = desk.session(BOTH | {"rooms": {"scope": "collection"}}).render(["notes", "plans", "rooms"])
    refusal(ErrorCode.INVALID_REQUEST, lambda: render.call(name, arguments), word)
    with pytest.raises(ToolArgumentError):
        render.call(name, arguments)
    assert desk.notes.read("workshop").revision == desk.document.revision
    assert save(render, memory="notes", text="fine")["status"] == "saved"


# Renders as strings


def test_a_render_can_be_taken_up_in_another_process(desk: Desk) -> None:
    session = desk.session(WRITE | {"plans": {"scope": "collection"}})
    token = session.render(["notes", "plans"]).token()
    code = (
        "import sys, gitmem, json\n"
        "session = gitmem.open_store(sys.argv[1]).project('bot').session(sys.argv[2])\n"
        "toolbox = session.render_from(sys.argv[3])\n"
        "print(json.dumps([toolbox.call('memory_save', {'text': text}).to_json() for text in ('One.', 'Two.')]))\n"
        "print(len(toolbox.tools))\n"
    )
    done = python(code, desk.store.folder, session.id, token)
    (first, second), tools = map(json.loads, done.stdout.splitlines())
    assert first["status"] == "saved"
    assert second == {"status": "conflict", "text": "One.", "summary": "Runtime."}
    assert tools == 3
    assert save(session.render_from(token), text="Three.")["text"] == "One."


def test_a_token_selects_what_its_render_selected(desk: Desk, plan: gitmem.Document) -> None:
    session = desk.session(BOTH)
    toolbox = session.render_from(session.render(["notes"]).token())
    assert save(toolbox, memory="plans", text="x") == {"status": "rejected", "reason": "not_bound", "bound": ["notes"]}
    assert list(session.render_from(session.render().token()).tools) == []


def forged(token: str, **revisions: str | None) -> str:
    """The token with another body under the same seal."""
    data = base64.urlsafe_b64decode(token + "==")
    body = json.dumps(revisions, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data[:16] + body).rstrip(b"=").decode()


def test_tokens_cannot_be_forged_or_moved(desk: Desk) -> None:
    session, other = desk.session(WRITE), desk.session(WRITE)
    token = session.render(["notes"]).token()
    newer = desk.own_edit("newer").revision
    wrong: list[Any] = [
        "", "x", "é", "\ud800", None, 7, b"x", token[:-1], token + "A", token[1:], token.swapcase(), "=" * 100,
        forged(token, notes=newer), forged(token, notes=None), forged(token, notes=newer, plans=None),
        other.render(["notes"]).token(),
    ]  # fmt: skip
    for each in wrong:
        refusal(ErrorCode.INVALID_REQUEST, lambda each=each: session.render_from(each), "render", "this session")
    assert save(session.render_from(token), text="x")["status"] == "conflict"
    assert desk.notes.read("workshop").revision == newer


def test_the_secret_is_private_and_no_part_of_history(desk: Desk) -> None:
    session = desk.session(WRITE)
    token = session.render(["notes"]).token()
    secret = desk.control / "gitmem" / "secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert secret.stat().st_size == 32
    objects = git(desk.control, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert all(secret.read_bytes().hex() not in git(desk.control, "cat-file", "-p", each) for each in objects)
    # Lost or torn, it is made anew, and only older renders have to be repeated.
    secret.write_bytes(b"torn")
    refusal(ErrorCode.INVALID_REQUEST, lambda: session.render_from(token), "Render again")
    assert save(session.render_from(session.render(["notes"]).token()), text="x")["status"] == "saved"


def test_another_project_makes_other_tokens(desk: Desk) -> None:
    other = Desk(gitmem.open_store(Path(desk.store.folder).parent / "other", create=True))
    session = desk.session(WRITE)
    theirs = other.session(WRITE).render(["notes"]).token()
    other.store.close()
    refusal(ErrorCode.INVALID_REQUEST, lambda: session.render_from(theirs))
