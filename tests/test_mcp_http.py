"""The MCP server over streamable HTTP: a real process, the SDK's own client, and raw requests."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import httpx2
from mcp import Client

from gitmem.keys import Keys
from tests.agents import Desk
from tests.support import clean_environment

COMMAND = os.path.join(os.path.dirname(sys.executable), "gitmem")
SECONDS = 60
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@contextmanager
def served(desk: Desk, *more: str) -> Generator[str, None, None]:
    """The URL of a server on notes/workshop, which SIGTERM must end well."""
    args = [COMMAND, "mcp", "--store", desk.store.folder, "--project", "bot", "--agent", "tutor"]
    with subprocess.Popen(
        [*args, "--memory", "notes=workshop", "--http", "--port", "0", *more],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=clean_environment(),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(SECONDS)
    assert status == 0


def post(url: str, body: bytes, **headers: str) -> httpx2.Response:
    return httpx2.post(url, content=body, headers=HEADERS | headers, timeout=SECONDS)


def test_each_client_saves_on_what_it_was_shown_itself(desk: Desk) -> None:
    async def scenario(url: str) -> None:
        async with asyncio.timeout(SECONDS), Client(url) as one, Client(url) as two:
            await one.call_tool("memory_recall", {})
            saved = await one.call_tool("memory_save", {"text": "Node.js 20. One."})
            assert saved.structured_content["status"] == "saved"
            unseen = await two.call_tool("memory_save", {"text": "Two."})
            assert unseen.structured_content["status"] == "conflict"
            merged = await two.call_tool("memory_save", {"text": unseen.structured_content["text"] + " Two."})
            assert merged.structured_content["status"] == "saved"
            late = await one.call_tool("memory_save", {"text": "One again."})
            assert late.structured_content["text"] == "Node.js 20. One. Two."

    with served(desk) as url:
        asyncio.run(scenario(url))
        (session,) = desk.sessions
        assert not session.ended
    assert session.ended
    assert desk.notes.read("workshop").text == "Node.js 20. One. Two."


def test_foreign_hosts_bad_bodies_and_missing_keys_are_refused(desk: Desk) -> None:
    hello = json.dumps(HELLO).encode()
    with served(desk) as url:
        assert post(url, hello, host="evil.example").status_code == 421
        assert post(url, hello, origin="http://evil.example").status_code == 403
        assert post(url, hello.replace(b"raw", b"\\ud800")).status_code == 400
        assert post(url, b"[" * 100_000).status_code == 400
        assert post(url, hello).status_code == 200
        keys = Keys(desk.store.folder)
        _, token = keys.create(name="host")
        _, reader = keys.create(name="reader", scopes=("memory:read",))
        _, foreign = keys.create(name="foreign", project="other")
        assert post(url, hello).json()["error"]["code"] == "unauthorized"
        assert post(url, hello, **{"x-api-key": token + "x"}).status_code == 401
        assert post(url, hello, **{"x-api-key": reader}).status_code == 403
        assert post(url, hello, **{"x-api-key": foreign}).status_code == 403
        assert post(url, hello, **{"x-api-key": token}).status_code == 200
        assert post(url, hello, authorization=f"Bearer {token}").status_code == 200
        keys.revoke("host")
        assert post(url, hello, **{"x-api-key": token}).status_code == 401


def test_without_a_key_only_this_machine_is_served(desk: Desk) -> None:
    done = subprocess.run(
        [COMMAND, "mcp", "--store", desk.store.folder, "--project", "bot", "--agent", "tutor",
         "--memory", "notes=workshop", "--http", "--host", "0.0.0.0", "--port", "0"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env=clean_environment(), timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Without an API key" in done.stderr
    (session,) = desk.sessions
    assert session.ended
