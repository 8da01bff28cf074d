"""The tables of a run, as Markdown in fixed columns."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pygit2

from tests.benchmarks import http
from tests.benchmarks.figures import AtSize, Results, Sample, Shared
from tests.benchmarks.measures import HISTORY_AT, MEMORY_OPERATIONS, PROCESSES, SHARED_AT, THREADS
from tests.benchmarks.peers import DULWICH, GIT, GITMEM, GITPYTHON, MODULES, SQLITE
from tests.benchmarks.stores import STORIED_VERSIONS

NOT_MEASURED = "n/a"
_FASTER = {1_000: 12, 10_000: 30, 100_000: 200}
_GROWTH = {100_000: 1.5, 1_000_000: 2}


def machine(folder: Path) -> str:
    """What the figures were measured on."""
    libraries = [f"{name} {version}" for name in ("pygit2", GITPYTHON, DULWICH) if (version := _version(name))]
    git = subprocess.run(["git", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[2]
    return (
        f"{os.cpu_count()} cores, Linux {platform.release()}, {_file_system(folder)}, "
        f"Python {platform.python_version()}, git {git}, libgit2 {pygit2.LIBGIT2_VERSION}, "
        f"SQLite {sqlite3.sqlite_version}, {', '.join(libraries)}"
    )


def render(results: Results) -> str:
    """Every table."""
    return "\n".join((
        "One save: median in milliseconds, and the 99th percentile",
        "",
        _table(("documents", *MODULES), [_save_row(size) for size in results.sizes]),
        "",
        "One save: ratios of medians",
        "",
        _table(_RATIOS, [_ratio_row(size, results.sizes[0]) for size in results.sizes]),
        "",
        "One read: median in milliseconds",
        "",
        _table(_READS, [_read_row(size) for size in results.sizes]),
        "",
        "All measures",
        "",
        _table(("measure", "found", "goal"), list(_measures(results))),
    ))


def render_http(found: http.HttpResults) -> str:
    """The server under load."""
    about = f"The server under load: {http.CONNECTIONS} connections, {http.DOCUMENTS:,} documents, saves are durable"
    return "\n".join((about, "", _table(http.HEAD, http.rows(found))))


_RATIOS = (
    "documents", "git CLI / gitmem", "GitPython / gitmem", "dulwich / gitmem", "gitmem / SQLite FULL", "gitmem / at 100"
)  # fmt: skip
_READS = (
    "documents", "by id", "SQLite by id", "page of 50", "SQLite page of 50", "first page after a rebuild"
)  # fmt: skip


def _save_row(size: AtSize) -> tuple[str, ...]:
    return (f"{size.documents:,}", *(_spread(size.saves.get(name)) for name in MODULES))


def _ratio_row(size: AtSize, smallest: AtSize) -> tuple[str, ...]:
    own = size.saves[GITMEM]
    return (
        f"{size.documents:,}",
        *(_ratio(size.saves.get(name), own) for name in (GIT, GITPYTHON, DULWICH)),
        _ratio(own, size.saves[SQLITE]),
        _ratio(own, smallest.saves[GITMEM]),
    )


def _read_row(size: AtSize) -> tuple[str, ...]:
    found = (size.reads[GITMEM], size.reads[SQLITE], size.pages[GITMEM], size.pages[SQLITE])
    return (f"{size.documents:,}", *(_ms(sample.median) for sample in found), _ms(size.first_page))


def _measures(results: Results) -> list[tuple[str, str, str]]:
    return [
        *_save_measures(results),
        *_shared_measures(results),
        *_read_measures(results),
        *_process_measures(results),
        *_memory_measures(results),
    ]


def _save_measures(results: Results) -> list[tuple[str, str, str]]:
    first, *rest = results.sizes
    rows = [
        (f"git CLI / one save at {size.documents:,}", _ratio(size.saves[GIT], size.saves[GITMEM]), f"over {goal}")
        for size in rest
        if (goal := _FASTER.get(size.documents))
    ]
    rows += [
        (f"one save / SQLite FULL at {size.documents:,}", _ratio(size.saves[GITMEM], size.saves[SQLITE]), "below 5")
        for size in rest
    ]
    rows += [
        (f"one save at {size.documents:,} / at 100", _ratio(size.saves[GITMEM], first.saves[GITMEM]), f"below {most}")
        for size in rest
        if (most := _GROWTH.get(size.documents))
    ]
    return rows


def _shared_measures(results: Results) -> list[tuple[str, str, str]]:
    threads, processes = results.threads, results.processes
    assert threads
    assert processes
    p99 = processes.latencies.p99
    return [
        (f"{THREADS} threads: cost a save / single writer", _costs(threads), "below 0.5"),
        (
            f"{PROCESSES} processes: throughput / one process",
            f"{1 / processes.ratio:.2f} ({_rates(processes)} saves/s)",
            "over 0.7",
        ),
        (
            f"{PROCESSES} processes: p99 / median",
            f"{p99 / processes.latencies.median:.1f} ({_ms(p99)} ms)" if p99 else NOT_MEASURED,
            "below 10",
        ),
    ]


def _read_measures(results: Results) -> list[tuple[str, str, str]]:
    rows = []
    for size in results.sizes:
        if size.documents >= HISTORY_AT:
            at = f"{size.documents:,}"
            rows.append((f"read by id at {at}", f"{_ms(size.reads[GITMEM].median)} ms", "below 0.2 ms"))
            rows.append((f"list page at {at}", f"{_ms(size.pages[GITMEM].median)} ms", "below 1 ms"))
    if results.history:
        own, git = results.history[GITMEM], results.history[GIT]
        found = f"{_ms(own.median)} ms (git log: {_ms(git.median)} ms)"
        rows.append((f"history of {STORIED_VERSIONS} versions among {HISTORY_AT:,} commits", found, "below 5 ms"))
    return rows


def _process_measures(results: Results) -> list[tuple[str, str, str]]:
    rows = [
        (
            f"index rebuild {'with' if with_git else 'without'} a git binary",
            f"{rate:,.0f} commits/s",
            f"over {goal}",
        )
        for with_git, goal in ((True, "20,000"), (False, "10,000"))
        if (rate := results.rebuild.get(with_git))
    ]
    shown = sorted(results.show)
    rows.append(
        ("gitmem show / python importing click, pygit2", f"{shown[len(shown) // 2]:.2f}" if shown else NOT_MEASURED,
         "below 1.5")
    )  # fmt: skip
    disk = results.disk
    found = f"{disk.packed:,.0f} (before: {disk.loose:,.0f}; gc {disk.seconds:.1f} s)" if disk else NOT_MEASURED
    rows.append((f"bytes on disk a save after housekeeping, {SHARED_AT:,} documents", found, "below 3,000"))
    return rows


def _memory_measures(results: Results) -> list[tuple[str, str, str]]:
    largest = f"{results.sizes[-1].documents:,}"
    return [
        (f"peak memory of {name} at {largest}", f"{results.memory[name] / 1e6:,.0f} MB", "below 200 MB")
        for name in (*MEMORY_OPERATIONS, "rebuild")
    ]


# Cells


def _spread(sample: Sample | None) -> str:
    if not sample:
        return NOT_MEASURED
    return f"{_ms(sample.median)} ({_ms(sample.p99)})" if sample.p99 else _ms(sample.median)


def _ratio(left: Sample | None, right: Sample | None) -> str:
    if not left or not right:
        return NOT_MEASURED
    ratio = left.median / right.median
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def _costs(shared: Shared) -> str:
    return f"{shared.ratio:.2f} ({_ms(min(shared.together))} to {_ms(max(shared.together))} ms)"


def _rates(shared: Shared) -> str:
    return f"{1e9 / max(shared.together):,.0f} to {1e9 / min(shared.together):,.0f}"


def _ms(nanoseconds: float) -> str:
    value = nanoseconds / 1e6
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _file_system(folder: Path) -> str:
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    over = [(len(place), kind) for place, kind in mounts if folder.resolve().is_relative_to(place)]
    return max(over)[1]
