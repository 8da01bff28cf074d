"""What is measured, and how: contestants take turns in one run on one disk, each after a warm-up."""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks import processes
from tests.benchmarks.figures import AtSize, Disk, Results, Sample, Samples, Shared
from tests.benchmarks.peers import GIT, GITMEM, MODULES, SQLITE, Sqlite
from tests.benchmarks.processes import Child
from tests.benchmarks.stores import Seed

SHARED_AT: Final = 10_000
HISTORY_AT: Final = 100_000
THREADS: Final = 32
PROCESSES: Final = 4
MEMORY_OPERATIONS: Final = ("open", "save", "read", "list", "history")

_READERS: Final = (GITMEM, SQLITE)
_WARM_SAVES: Final = 10
_WARM_SECONDS: Final = 1.0
_ANY: Final = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How much is measured: a contestant's turn lasts `seconds`, and each has `rounds` turns.

    One that needs more than `patience` seconds a save is asked once, and not where there are more documents.
    """

    sizes: tuple[int, ...]
    rounds: int
    seconds: float
    patience: float
    reads: int
    saves_a_thread: int
    packed_saves: int


QUICK: Final = Plan(
    sizes=(100, 1_000, 10_000, 100_000),
    rounds=4,
    seconds=0.8,
    patience=0.3,
    reads=200,
    saves_a_thread=20,
    packed_saves=2_000,
)
FULL: Final = Plan(
    sizes=(*QUICK.sizes, 1_000_000),
    rounds=6,
    seconds=2.0,
    patience=2.0,
    reads=500,
    saves_a_thread=50,
    packed_saves=10_000,
)


def progress(text: str) -> None:
    """Say on stderr what is going on."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def measure(plan: Plan, folder: Path) -> Results:
    """Measure everything, in a folder that is empty and will be again."""
    results = Results()
    slow: set[str] = set()
    for size in plan.sizes:
        with _folder(folder / str(size)) as place:
            progress(f"{size:,} documents: making their history")
            seed = Seed(place / "seed.git", size)
            _with_contestants(plan, seed, place, slow, results)
            if size == SHARED_AT:
                results.processes = _processes(plan, place / GITMEM)
                results.disk = _packed(plan, seed, place)
            if size == HISTORY_AT:
                results.rebuild = _rebuild(plan, place / GITMEM, seed.commits)
                results.show = _show(plan, place / GITMEM)
            if size == plan.sizes[-1]:
                results.memory |= _memory(place / GITMEM)
            progress(f"{size:,} documents: clearing away")
    return results


def _with_contestants(plan: Plan, seed: Seed, place: Path, slow: set[str], results: Results) -> None:
    size = seed.documents
    contestants: dict[str, Child] = {}
    try:
        for name, module in MODULES.items():
            if name not in slow and importlib.util.find_spec(module):
                progress(f"{size:,} documents: the store of {name}")
                store = _made(name, seed, place)
                if name == GITMEM:
                    results.memory["rebuild"] = processes.ask("rebuild", store)["peak"]
                contestants[name] = Child("contestant", store, name, str(size))
        (first_page,) = contestants[GITMEM].ask("pages", 1)
        progress(f"{size:,} documents: saving")
        saves = _saves(plan, contestants, slow)
        progress(f"{size:,} documents: reading")
        reads, pages = _reads(plan, contestants)
        results.sizes.append(AtSize(size, saves, reads, pages, first_page))
        if size == HISTORY_AT:
            results.history = _history(plan, contestants)
        if size == SHARED_AT:
            results.threads = _threads(plan, contestants[GITMEM])
    finally:
        for contestant in contestants.values():
            contestant.close()


def _made(name: str, seed: Seed, place: Path) -> Path:
    store = place / name.replace(" ", "-")
    if name == GITMEM:
        return seed.store(store)
    if name == SQLITE:
        Sqlite.fill(store, seed.documents)
        return store
    return seed.checked_out(store)


# One writer


def _saves(plan: Plan, contestants: dict[str, Child], slow: set[str]) -> Samples:
    samples = {name: Sample() for name in contestants}
    for name, contestant in contestants.items():
        warm = _turn(contestant, 0, _WARM_SECONDS, _WARM_SAVES)
        if min(warm) > plan.patience * 1e9:
            progress(f"{name} needs {min(warm) / 1e9:.1f} s a save: asked once more, and then no more")
            slow.add(name)
    for serial in range(1, plan.rounds + 1):
        for name, contestant in contestants.items():
            if serial == 1 or name not in slow:
                samples[name] += _turn(contestant, serial, plan.seconds)
    return samples


def _turn(contestant: Child, serial: int, seconds: float, most: int = _ANY) -> list[int]:
    """One turn, which starts from a quiet disk: nobody flushes what another one has written."""
    os.sync()
    took: list[int] = contestant.ask("turn", serial, seconds, most)
    return took


def _reads(plan: Plan, contestants: dict[str, Child]) -> tuple[Samples, Samples]:
    reads = {name: Sample() for name in _READERS}
    pages = {name: Sample() for name in _READERS}
    for serial in range(plan.rounds + 1):
        for name in _READERS:
            read = contestants[name].ask("reads", serial, plan.reads)
            page = contestants[name].ask("pages", plan.reads // 4)
            if serial:
                reads[name] += read
                pages[name] += page
    return reads, pages


def _history(plan: Plan, contestants: dict[str, Child]) -> Samples:
    progress("history of one document")
    samples = {GITMEM: Sample(), GIT: Sample()}
    for _ in range(plan.rounds):
        samples[GITMEM] += contestants[GITMEM].ask("history", plan.reads // 4)
        samples[GIT] += contestants[GIT].ask("history", 1)
    return samples


# Several writers


def _threads(plan: Plan, own: Child) -> Shared:
    progress(f"{THREADS} threads")
    shared = Shared()
    for serial in range(plan.rounds + 1):
        alone, _ = _threaded(own, serial, 1, plan.saves_a_thread * THREADS // 2)
        together, latencies = _threaded(own, serial, THREADS, plan.saves_a_thread)
        if serial:
            shared.alone.append(alone)
            shared.together.append(together)
            shared.latencies += latencies
    return shared


def _threaded(own: Child, serial: int, threads: int, saves: int) -> tuple[float, list[int]]:
    os.sync()
    took, latencies = own.ask("threaded", serial, threads, saves)
    return took / len(latencies), latencies


def _processes(plan: Plan, store: Path) -> Shared:
    progress(f"{PROCESSES} processes")
    shared = Shared()
    for _ in range(plan.rounds):
        alone, _ = _in_processes(store, 1, plan.seconds * 2)
        together, latencies = _in_processes(store, PROCESSES, plan.seconds * 2)
        shared.alone.append(alone)
        shared.together.append(together)
        shared.latencies += latencies
    return shared


def _in_processes(store: Path, writers: int, seconds: float) -> tuple[float, list[int]]:
    each = SHARED_AT // PROCESSES
    children = [Child("writer", store, str(at * each), str(each), str(seconds)) for at in range(writers)]
    os.sync()
    for child in children:
        child.start("go")
    answers = [child.finish() for child in children]
    saves_a_second = sum(len(answer["nanoseconds"]) / answer["seconds"] for answer in answers)
    return 1e9 / saves_a_second, [took for answer in answers for took in answer["nanoseconds"]]


# Whole processes, disk and memory


def _rebuild(plan: Plan, store: Path, commits: int) -> dict[bool, float]:
    progress("rebuilding the index")
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(plan.rounds // 2):
        for with_git, found in seconds.items():
            found.append(processes.ask("rebuild", store, with_git=with_git)["seconds"])
    return {with_git: commits / statistics.median(found) for with_git, found in seconds.items()}


def _show(plan: Plan, store: Path) -> list[float]:
    progress("the command line")
    if processes.show(store) is None:
        progress("gitmem show does not work here: left out")
        return []
    ratios = []
    for _ in range(plan.rounds * 5):
        took, imports = processes.show(store), processes.imports()
        assert took is not None
        ratios.append(took / imports)
    return ratios


def _packed(plan: Plan, seed: Seed, place: Path) -> Disk | None:
    progress(f"{plan.packed_saves:,} saves and housekeeping")
    own = Child("contestant", seed.store(place / "packed"), GITMEM, str(seed.documents))
    try:
        # What grows once, as the journal does, is no part of what each save adds.
        _turn(own, 0, _ANY, plan.packed_saves // 4)
        if own.ask("collect") is None:
            progress("there is no housekeeping: left out")
            return None
        before = own.ask("disk_bytes")
        _turn(own, 1, _ANY, plan.packed_saves)
        loose = own.ask("disk_bytes")
        nanoseconds = own.ask("collect")
        packed = own.ask("disk_bytes")
    finally:
        own.close()
    return Disk((loose - before) / plan.packed_saves, (packed - before) / plan.packed_saves, nanoseconds / 1e9)


def _memory(store: Path) -> dict[str, int]:
    progress("memory")
    return {name: processes.ask("operation", store, name)["peak"] for name in MEMORY_OPERATIONS}


@contextmanager
def _folder(path: Path) -> Generator[Path, None, None]:
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path)
