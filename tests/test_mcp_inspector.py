"""The MCP server under the official inspector's command line, which comes from npm."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.agents import Desk
from tests.support import clean_environment
from tests.test_mcp import COMMAND, URI, bound

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed, and the inspector comes from it"),
]


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the inspector, and the version of node that it needs."""
    folder = tmp_path_factory.mktemp("inspector")
    install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
    subprocess.run([*install, "node@22", "@modelcontextprotocol/inspector"], check=True, capture_output=True)
    return folder / "node_modules"


def inspected(inspector: Path, desk: Desk, method: str, *more: str) -> Any:
    """What the inspector prints of one request to a server of its own."""
    command = [
        inspector / "node/bin/node", inspector / ".bin/mcp-inspector", "--cli",
        COMMAND, *bound(desk, "notes=workshop"), "--method", method, *more,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_inspector_finds_the_tools(inspector: Path, desk: Desk) -> None:
    desk.store.close()
    tools = inspected(inspector, desk, "tools/list")["tools"]
    assert [tool["name"] for tool in tools] == ["memory_recall", "memory_save"]


def test_the_inspector_reads_the_bound_document(inspector: Path, desk: Desk) -> None:
    desk.store.close()
    (resource,) = inspected(inspector, desk, "resources/list")["resources"]
    assert resource["uri"] == URI
    (contents,) = inspected(inspector, desk, "resources/read", "--uri", URI)["contents"]
    assert desk.notes.read("workshop").text in contents["text"]


def test_the_inspector_is_told_of_a_conflict_as_an_outcome(inspector: Path, desk: Desk) -> None:
    desk.store.close()
    saving = ["--tool-name", "memory_save", "--tool-arg", "text=New text.", "--tool-arg", "summary=New summary."]
    result = inspected(inspector, desk, "tools/call", *saving)
    assert result["structuredContent"]["status"] == "conflict"  # nothing was shown to this client before
    assert not result.get("isError")
    assert desk.notes.read("workshop").text != "New text."
