"""Sync and upstream mode, measured: `python -m tests.benchmarks.remotes`, some minutes. Prints a table."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import gitmem
from tests.remotes.hub import HttpHub, bare
from tests.remotes.machines import Machine
from tests.workshop import NOTES

_SAVES = 64


@contextmanager
def _machine(folder: Path, kind: str, name: str = "one") -> Generator[Machine, None, None]:
    """A machine whose upstream is a bare repository, by path or over http; "none" is a plain store."""
    with ExitStack() as stack:
        hub = bare(folder / "hub.git") if not (folder / "hub.git").exists() else folder / "hub.git"
        url = stack.enter_context(HttpHub(folder)).url("hub.git") if kind == "http" else str(hub)
        machine = Machine(folder / name, url, upstream=kind != "none")
        machine.environment.deploy(agent="tutor", memories=[NOTES])
        stack.callback(machine.store.close)
        yield machine


def saves(kind: str, threads: int) -> str:
    """Saves of different documents by some threads of one process, as saves a second and median ms."""
    with tempfile.TemporaryDirectory() as folder, _machine(Path(folder), kind) as machine:
        machine.write("warm", "x")

        def save(number: int) -> float:
            started = time.perf_counter()
            machine.notes.create(f"n{number}", title="x", text="line\n" * 50)
            return time.perf_counter() - started

        started = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            each = list(pool.map(save, range(_SAVES)))
        total = time.perf_counter() - started
    return f"{_SAVES / total:,.0f} saves/s, median {statistics.median(each) * 1000:,.0f} ms"


def fresh_reads(kind: str) -> str:
    """Fresh reads of one document, one after the other."""
    with tempfile.TemporaryDirectory() as folder, _machine(Path(folder), kind) as machine:
        machine.write("a", "x")
        each = []
        for _ in range(20):
            started = time.perf_counter()
            machine.notes.read("a", fresh=True)
            each.append(time.perf_counter() - started)
    return f"median {statistics.median(each) * 1000:,.1f} ms"


def merge(documents: int) -> str:
    """Two clones that each made so many documents: the sync that merges, and the one that takes the merge."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare(folder / "hub.git")
        one, two = (Machine(folder / part, str(folder / "hub.git")) for part in ("one", "two"))
        one.environment.deploy(agent="tutor", memories=[NOTES])
        one.environment.sync()
        two.environment.sync()
        for machine, letter in ((one, "a"), (two, "b")):
            new = [
                gitmem.NewDocument(id=f"{letter}{number}", title="x", text="line\n" * 50) for number in range(documents)
            ]
            assert all(isinstance(made, gitmem.Document) for made in machine.notes.create_many(new))
        one.environment.sync(timeout=600)
        times = []
        for machine in (two, one):
            started = time.perf_counter()
            machine.environment.sync(timeout=600)
            times.append(time.perf_counter() - started)
        one.store.close()
        two.store.close()
    return f"merge {times[0]:,.1f} s, taking it {times[1]:,.1f} s"


def main() -> None:
    rows: list[tuple[str, Callable[[], str]]] = [
        *((f"saves, {kind}, {threads} threads", lambda kind=kind, threads=threads: saves(kind, threads))
          for kind in ("none", "path", "http") for threads in (1, 16)),
        *((f"fresh read, {kind}", lambda kind=kind: fresh_reads(kind)) for kind in ("path", "http")),
        *((f"sync, {count:,} new documents on each side", lambda count=count: merge(count))
          for count in (100, 1_000, 5_000)),
    ]  # fmt: skip
    print("| what | measured |\n| --- | --- |")
    for name, measure in rows:
        print(f"{name} …", file=sys.stderr)
        print(f"| {name} | {measure()} |", flush=True)


if __name__ == "__main__":
    main()
