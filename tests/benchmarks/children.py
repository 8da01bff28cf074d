"""What is measured in a process of its own: `python -m tests.benchmarks.children ROLE STORE …` prints JSON.

It imports nothing but gitmem beforehand, so that its memory is gitmem's.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import gitmem
from tests.benchmarks import corpus

_WARM_SAVES: Final = 5
_OPERATIONS: Final = 20
_PREPARED: Final = 2_000


def contestant(store: str, name: str, documents: str) -> dict[str, Any]:
    """Be one contestant and do what the lines of stdin ask, until there are no more."""
    from tests.benchmarks.peers import CONTESTANTS

    chosen = CONTESTANTS[name](Path(store), int(documents))
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        print(json.dumps(getattr(chosen, method)(*arguments)), flush=True)
    return {}


def writer(store: str, first: str, count: str, seconds: str) -> dict[str, Any]:
    """Save some documents in turn until the time is over, starting when a line arrives on stdin."""
    with gitmem.open_store(store) as opened:
        documents = _documents(opened)
        ids = [corpus.document_id(int(first) + at) for at in range(int(count))]
        revisions: dict[str, str] = {}
        texts = [corpus.text(int(first), time.time_ns() % 1_000_000 + at) for at in range(_PREPARED)]

        def save(serial: int) -> None:
            document_id = ids[serial % len(ids)]
            revision = revisions.get(document_id) or documents.read(document_id).revision
            saved = documents.replace(document_id, text=texts[serial % _PREPARED], if_match=revision)
            revisions[document_id] = saved.revision

        for serial in range(_WARM_SAVES):
            save(serial)
        print(json.dumps("ready"), flush=True)
        sys.stdin.readline()
        took: list[int] = []
        started = now = time.perf_counter_ns()
        while now - started < float(seconds) * 1e9:
            save(_WARM_SAVES + len(took))
            before, now = now, time.perf_counter_ns()
            took.append(now - before)
        return {"nanoseconds": took, "seconds": (now - started) / 1e9}


def rebuild(store: str) -> dict[str, Any]:
    """Make the index again from history, as the first read after its deletion does."""
    for suffix in ("", "-wal", "-shm"):
        Path(store, "bench/development/.git/gitmem", f"index.sqlite{suffix}").unlink(missing_ok=True)
    started = time.perf_counter_ns()
    with gitmem.open_store(store) as opened:
        _documents(opened).read(corpus.document_id(0))
        return {"seconds": (time.perf_counter_ns() - started) / 1e9}


def operation(store: str, name: str) -> dict[str, Any]:
    """Do one kind of operation on some documents, in a store opened for it."""
    with gitmem.open_store(store) as opened:
        documents = _documents(opened)
        for at in range(_OPERATIONS):
            document_id = corpus.document_id(at)
            if name == "save":
                revision = documents.read(document_id).revision
                documents.replace(document_id, text=corpus.text(at, time.time_ns()), if_match=revision)
            elif name == "read":
                documents.read(document_id)
            elif name == "list":
                documents.list()
            elif name == "history":
                documents.history(document_id)
    return {}


def _documents(store: gitmem.Store) -> gitmem.Documents:
    return store.project("bench").environment("development").documents("notes")


def peak_bytes() -> int:
    """The most memory that this process has held.

    Not getrusage's ru_maxrss: the kernel lets that one start from the parent's.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this kernel does not tell VmHWM")


_ROLES: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    "contestant": contestant,
    "writer": writer,
    "rebuild": rebuild,
    "operation": operation,
}

if __name__ == "__main__":
    found = _ROLES[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(found | {"peak": peak_bytes()}), flush=True)
