"""The server under load: `wrk` on reads and durable writes, beside an empty handler and the library itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import gitmem
from gitmem.keys import Keys
from tests.benchmarks import corpus
from tests.http.server import Server

DOCUMENTS: Final = 1_000
CONNECTIONS: Final = 16
_SECONDS: Final = 8
_WARM_SECONDS: Final = 2
_LIBRARY_SECONDS: Final = 3.0
_PATH: Final = "/api/managed-agents/projects/bench/memory/notes/documents/"
_MILLISECONDS: Final = {"us": 0.001, "ms": 1.0, "s": 1_000.0}
_ROOT: Final = Path(__file__).parents[2]

_SCRIPTS: Final = {
    "empty": "",
    "read": """
local at = 0
function request()
  at = (at + 7) % {documents}
  return wrk.format("GET", string.format("{path}doc-%07d?environment=development", at))
end
""",
    "create": """
wrk.headers["If-None-Match"] = "*"
wrk.headers["Content-Type"] = "application/json"
local at = 0
function request()
  at = at + 1
  return wrk.format("PUT", string.format("{path}w{run}-%d?environment=development", at), nil, body)
end
""",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What a run of wrk found; latencies in milliseconds."""

    rate: float
    median: float
    p99: float
    errors: int


@dataclass(slots=True)
class HttpResults:
    """Loads by name, calls of the library a second, and resident bytes of the server before and after."""

    loads: dict[str, Load]
    calls: dict[str, float]
    memory: dict[int, tuple[int, int]]
    requests: dict[int, int]


def measure(folder: Path) -> HttpResults:
    """Everything, in about a minute and a half."""
    store = folder / "http"
    key = _prepare(store)
    found = HttpResults(loads={}, calls={}, memory={}, requests={})
    with _empty() as url:
        _wrk(url, "empty", key, _WARM_SECONDS)
        found.loads["empty handler"] = _wrk(url, "empty", key)
    text = corpus.text(0, 0)
    found.calls["read"] = _library_rate(store, 1, lambda notes, at: notes.read(corpus.document_id(at % DOCUMENTS)))
    for threads in (1, CONNECTIONS):
        found.calls[_creating(threads)] = _library_rate(
            store, threads, lambda notes, at: notes.create(f"l{at}-{time.time_ns()}", title="T", text=text)
        )
    for workers in (1, 2):
        with Server(store, "--workers", str(workers), log=folder / f"log{workers}") as server:
            _wrk(server.url, "read", key, _WARM_SECONDS)
            before = _resident(server.process.pid)
            loads = {f"{load}, workers: {workers}": _wrk(server.url, load, key) for load in ("read", "create")}
            found.memory[workers] = before, _resident(server.process.pid)
            found.requests[workers] = round(sum(load.rate * _SECONDS for load in loads.values()))
            found.loads |= loads
    return found


def _creating(threads: int) -> str:
    return f"create, threads: {threads}"


def rows(found: HttpResults) -> list[tuple[str, ...]]:
    """The table: rates, latencies, and ratios to what does less."""
    empty, read = found.loads["empty handler"].rate, found.calls["read"]
    lines = []
    for name, load in found.loads.items():
        is_write = name.startswith("create")
        beside = found.calls[_creating(CONNECTIONS)] if is_write else read
        lines.append((
            name, f"{load.rate:,.0f}", f"{load.median:.2f}", f"{load.p99:.2f}", str(load.errors),
            f"{load.rate / empty:.2f}", f"{load.rate / beside:.2f}",
        ))  # fmt: skip
    lines += [(f"library: {name}", f"{rate:,.0f}", "", "", "", "", "") for name, rate in found.calls.items()]
    for workers, (before, after) in found.memory.items():
        text = f"{before / 1e6:,.0f} -> {after / 1e6:,.0f} MB"
        lines.append((
            f"memory over {found.requests[workers]:,} requests, workers: {workers}",
            text,
            "",
            "",
            "",
            "",
            "",
        ))
    return lines


HEAD: Final = ("measure", "a second", "median ms", "p99 ms", "errors", "/ empty", "/ library")


def _prepare(store: Path) -> str:
    """A store with a thousand documents, and a key to it."""
    with gitmem.open_store(store, create=True) as opened:
        environment = opened.project("bench").create().environment()
        environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="To measure.")])
        new = (
            gitmem.NewDocument(id=corpus.document_id(at), title="T", text=corpus.text(at, 0)) for at in range(DOCUMENTS)
        )
        for made in environment.documents("notes").create_many(new):
            assert isinstance(made, gitmem.Document), made
    return Keys(str(store)).create(name="wrk")[1]


def _library_rate(store: Path, threads: int, call: Callable[[gitmem.Documents, int], object]) -> float:
    """Calls a second that the library itself makes."""
    counts = [0] * threads
    with gitmem.open_store(store) as opened:
        notes = opened.project("bench").environment().documents("notes")
        end = time.monotonic() + _LIBRARY_SECONDS

        def run(thread: int) -> None:
            while time.monotonic() < end:
                call(notes, counts[thread] * threads + thread)
                counts[thread] += 1

        running = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    return sum(counts) / _LIBRARY_SECONDS


def _wrk(url: str, load: str, key: str, seconds: int = _SECONDS) -> Load:
    """Put load on a server. Raises FileNotFoundError where there is no wrk."""
    script = _SCRIPTS[load].format(documents=DOCUMENTS, path=_PATH, run=time.time_ns())
    body = json.dumps({"title": "T", "text": corpus.text(0, 0)})
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(f"wrk.headers['x-api-key'] = '{key}'\nlocal body = [==[{body}]==]\n{script}")
        file.flush()
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", file.name, f"{url}/x"]
        return _parsed(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _parsed(text: str) -> Load:
    def latency(share: str) -> float:
        found = re.search(rf"{share}%\s+([\d.]+)(us|ms|s)\b", text)
        assert found, text
        return float(found[1]) * _MILLISECONDS[found[2]]

    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    assert rate, text
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    errors = (int(failed[1]) if failed else 0) + (sum(map(int, broken.groups())) if broken else 0)
    return Load(rate=float(rate[1]), median=latency("50"), p99=latency("99"), errors=errors)


@contextmanager
def _empty() -> Generator[str, None, None]:
    command = [sys.executable, "-m", "tests.benchmarks.empty"]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def _resident(pid: int) -> int:
    """Resident bytes of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(_resident, map(int, children)))
