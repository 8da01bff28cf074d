"""The MCP server from outside: the SDK's own client, over stdio and HTTP, on real processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

import gitmem
from tests.agents import Desk
from tests.support import clean_environment

COMMAND = os.path.join(os.path.dirname(sys.executable), "gitmem")
URI = "gitmem://bot/development/notes/workshop"
SECONDS = 60


def arguments(desk: Desk, *more: str) -> list[str]:
    return ["mcp", "--store", desk.store.folder, "--project", "bot", *more]


def bound(desk: Desk, *memory: str) -> list[str]:
    return arguments(desk, "--agent", "tutor", *(part for each in memory for part in ("--memory", each)))


@asynccontextmanager
async def stdio(args: list[str]) -> AsyncGenerator[Client, None]:
    server = StdioServerParameters(command=COMMAND, args=args, env=clean_environment())
    async with Client(server, read_timeout_seconds=SECONDS) as client:
        yield client


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(SECONDS):
            await scenario()

    asyncio.run(limited())


async def call(client: Client, tool: str, **given: Any) -> Any:
    """A tool's outcome, which is the same as data and as text."""
    result = await client.call_tool(tool, given)
    assert not result.is_error, result.content
    assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
    return result.structured_content


async def error(client: Client, tool: str, given: dict[str, Any]) -> str:
    """What a tool error says."""
    result = await client.call_tool(tool, given)
    assert result.is_error, result.structured_content
    text: str = result.content[0].text  # type: ignore[union-attr]
    return text


def talk(args: list[str], *lines: str | bytes) -> dict[Any, Any]:
    """Pipe raw lines in, behind a handshake, and end stdin; the answers by their ids."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    opening = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    data = b"".join(line.encode() + b"\n" if isinstance(line, str) else line + b"\n" for line in (opening, *lines))
    done = subprocess.run(
        [COMMAND, *args], input=data, capture_output=True, env=clean_environment(), timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return {answer["id"]: answer for answer in answers}


def request(number: int, name: str, given: object) -> str:
    params = {"name": name, "arguments": given}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def test_a_client_recalls_saves_and_reads_and_its_session_ends_with_it(desk: Desk) -> None:
    async def scenario() -> None:
        async with stdio(bound(desk, "notes=workshop", "plans")) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["memory_recall", "memory_save", "memory_list", "memory_read"]
            recalled = await call(client, "memory_recall")
            document, collection = recalled["memory"]
            assert document["text"] == "Node.js 20."
            assert document["revision"] == desk.document.revision
            assert document["writer"] == {"kind": "owner"}
            assert collection == {
                "memory": "plans", "scope": "collection", "overview": "", "documents": [], "complete": True,
            }  # fmt: skip
            saved = await call(client, "memory_save", text="Node.js 22.")
            assert saved == {"status": "saved", "revision": desk.notes.read("workshop").revision, "bytes": 11}
            again = await call(client, "memory_save", text="Node.js 24.")
            assert again["status"] == "saved"
            read = await client.read_resource(URI)
            assert read.contents[0].text == "Node.js 24."  # type: ignore[union-attr]
            (session,) = desk.sessions
            assert not session.ended

    run(scenario)
    (session,) = desk.sessions
    assert session.ended
    assert [event.seq for event in session.events()] == [1, 2]


@pytest.mark.parametrize(
    ("memory", "tools"),
    [
        ("notes=workshop", ["memory_recall", "memory_save"]),
        ("notes=workshop:read", ["memory_recall"]),
        ("notes", ["memory_recall", "memory_list", "memory_read"]),
    ],
)
def test_only_the_tools_that_the_binding_allows_are_offered(desk: Desk, memory: str, tools: list[str]) -> None:
    listing = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    found = talk(bound(desk, memory), listing)[1]["result"]["tools"]
    assert [tool["name"] for tool in found] == tools


def test_two_clients_on_one_document_lose_nothing(desk: Desk) -> None:
    async def scenario() -> None:
        args = bound(desk, "notes=workshop")
        async with stdio(args) as one, stdio(args) as two:
            unseen = await call(one, "memory_save", text="Blind.")
            assert unseen == {"status": "conflict", "text": "Node.js 20.", "summary": "Runtime."}
            await two.read_resource(URI)
            assert (await call(one, "memory_save", text="Node.js 20. One."))["status"] == "saved"
            late = await call(two, "memory_save", text="Node.js 20. Two.")
            assert late["status"] == "conflict"
            assert (await call(two, "memory_save", text=f"{late['text']} Two."))["status"] == "saved"

    run(scenario)
    assert desk.notes.read("workshop").text == "Node.js 20. One. Two."


def test_a_frozen_and_a_deleted_document_are_outcomes(desk: Desk) -> None:
    async def scenario() -> None:
        async with stdio(bound(desk, "notes=workshop")) as client:
            await call(client, "memory_recall")
            desk.freeze()
            frozen = await call(client, "memory_save", text="x")
            assert frozen == {"status": "rejected", "reason": "agent_writes_disabled"}
            desk.delete()
            assert await call(client, "memory_save", text="x") == {"status": "rejected", "reason": "not_found"}
            assert (await call(client, "memory_recall"))["memory"][0]["reason"] == "not_found"
            with pytest.raises(MCPError, match="was deleted"):
                await client.read_resource(URI)

    run(scenario)


def test_a_session_by_its_id_is_left_open_and_one_that_ends_is_said(desk: Desk) -> None:
    session = desk.session()

    async def scenario() -> None:
        async with stdio(arguments(desk, "--session", session.id)) as client:
            await call(client, "memory_recall")
            assert not session.ended
            session.end()
            assert await call(client, "memory_save", text="x") == {"status": "rejected", "reason": "session_closed"}
            assert "has ended" in await error(client, "memory_recall", {})

    run(scenario)
    other = desk.session()
    assert talk(arguments(desk, "--session", other.id))[0]["result"]
    assert not other.ended


def test_bad_input_is_a_tool_error_and_the_server_lives_on(desk: Desk) -> None:
    desk.plans.create("next", title="Next")

    async def scenario() -> None:
        async with stdio(bound(desk, "notes=workshop", "plans=next")) as client:
            assert "There is no tool 'nope'" in await error(client, "nope", {})
            assert "text must be a string" in await error(client, "memory_save", {"memory": "notes", "text": 1})
            assert "takes no argument" in await error(client, "memory_save", {"text": "x", "force": "yes"})
            assert "needs the argument memory" in await error(client, "memory_save", {"text": "x"})
            assert "does not bind 'other'" in await error(client, "memory_recall", {"memory": "other"})
            assert "cursor" in await error(client, "memory_recall", {"cursor": "abc"})
            assert "not offered" in await error(client, "memory_list", {"memory": "notes"})
            unbound = await call(client, "memory_save", memory="other", text="x")
            assert unbound == {"status": "rejected", "reason": "not_bound", "bound": ["notes", "plans"]}
            with pytest.raises(MCPError, match="There is no resource"):
                await client.read_resource("gitmem://bot/development/notes/other")
            assert len((await call(client, "memory_recall"))["memory"]) == 2

    run(scenario)
    assert desk.notes.read("workshop").revision == desk.document.revision


def test_what_is_no_message_is_answered_and_all_that_was_asked_is_before_the_end(desk: Desk) -> None:
    answers = talk(
        bound(desk, "notes=workshop"),
        "not json",
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": '
        b'{"name": "memory_save", "arguments": {"text": "\xff"}}}',
        '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": '
        '{"name": "memory_save", "arguments": {"text": "a\\ud800"}}}',
        '{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "\\udc00"}}',
        '{"jsonrpc": "2.0", "id": 4, "method": "resources/read", "params": {"uri": "gitmem://\\ud800"}}',
        "[" * 100_000,
        request(5, "memory_save", {"text": "Blind."}),
    )
    assert answers[None]["error"]["message"].startswith("The line cannot be read")
    for number in (1, 2):
        assert answers[number]["result"]["isError"]
        assert "lone surrogate" in answers[number]["result"]["content"][0]["text"]
    assert answers[3]["result"]["isError"]
    assert "error" in answers[4]
    assert answers[5]["result"]["structuredContent"]["status"] == "conflict"
    assert desk.notes.read("workshop").text == "Node.js 20."


def test_a_recall_gives_whole_items_up_to_its_budget_and_a_cursor(store: gitmem.Store) -> None:
    environment = store.project("bot").create().environment()
    provider = gitmem.document_memory(max_bytes=16_384)
    names = [f"m{number}" for number in range(5)]
    environment.deploy(
        agent="tutor", memories=[gitmem.define_memory(id=name, description="m", provider=provider) for name in names]
    )
    for name in names:
        environment.documents(name).create("big", title="Big", text=name[1] * 16_000)
    args = ["mcp", "--store", store.folder, "--project", "bot"]

    async def scenario() -> None:
        async with stdio([*args, *(part for name in names for part in ("--memory", f"{name}=big"))]) as client:
            first = await call(client, "memory_recall")
            second = await call(client, "memory_recall", cursor=first["nextCursor"])
            assert second["nextCursor"] is None
            items = [*first["memory"], *second["memory"]]
            assert [item["memory"] for item in items] == names
            assert all(len(item["text"]) == 16_000 for item in items)

    run(scenario)


def test_a_signal_ends_the_process_and_its_session(desk: Desk) -> None:
    with subprocess.Popen(
        [COMMAND, *bound(desk, "notes=workshop")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"?\n")
        process.stdin.flush()
        assert b"cannot be read" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    (session,) = desk.sessions
    assert session.ended


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Bind memory"),
        (["--memory", "notes=workshop", "--session", "ses_1"], "Bind memory"),
        (["--memory", "notes=workshop", "--port", "1"], "go with --http"),
        (["--memory", "other=workshop"], "does not declare"),
        (["--memory", "notes=missing"], "create it first"),
    ],
)
def test_wrong_usage_is_one_line_on_stderr(desk: Desk, options: list[str], message: str) -> None:
    agent = [] if "--session" in options else ["--agent", "tutor"]
    done = subprocess.run(
        [COMMAND, *arguments(desk, *agent, *options)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env=clean_environment(), timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert message in line
