"""Three machines' processes on one upstream: what they saw can have happened one after the other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.linearizability import Call, stuck
from tests.remotes.hub import HttpHub, bare
from tests.remotes.machines import Machine
from tests.support import clean_environment, git
from tests.workshop import NOTES

_MACHINE = """
import json, random, sys, threading, time
import gitmem

folder, seed, count, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
notes = gitmem.open_store(folder).project("bot").environment().documents("notes")
out = threading.Lock()

def call(operation, name, expected, act):
    began = time.monotonic_ns()
    answer = {"answer": "done", "revision": None}
    try:
        document = act()
        answer["revision"] = document.revision if document else None
    except gitmem.PreconditionFailedError:
        answer["answer"] = "stale"
    except gitmem.NotFoundError:
        answer["answer"] = "missing"
    said = {"document": name, "operation": operation, "began": began, "ended": time.monotonic_ns(),
            "expected": expected} | answer
    with out:
        print(json.dumps(said), flush=True)
    return answer["revision"]

def work(chance):
    known = {}
    for number in range(count):
        name = chance.choice(["a", "b"]) + str(number // 8)
        expected = known.get(name)
        kind = chance.choices(["read", "write", "create", "delete"], [4, 6, 1, 0.5])[0]
        if expected is None:
            kind = chance.choice(["read", "create"])
        if kind == "read":
            found = call("read", name, None, lambda: notes.read(name, fresh=True))
        elif kind == "create":
            found = call("create", name, None, lambda: notes.create(name, title="T"))
        elif kind == "delete":
            found = call("delete", name, expected, lambda: notes.delete(name, if_match=expected))
        else:
            text = f"{seed} {number} {chance.random()}"
            found = call("write", name, expected, lambda: notes.replace(name, text=text, if_match=expected))
        known[name] = found or expected

print("ready", flush=True)
sys.stdin.readline()
all = [threading.Thread(target=work, args=(random.Random(f"{seed} {n}"),)) for n in range(threads)]
for thread in all: thread.start()
for thread in all: thread.join()
"""


def race(folder: Path, url: str, *, count: int, threads: int) -> dict[str, list[Call]]:
    """Let three machines work on the same documents at once; every call by document."""
    machines = [Machine(folder / name, url, upstream=True) for name in ("one", "two", "three")]
    machines[0].environment.deploy(agent="tutor", memories=[NOTES])
    children = []
    for seed, machine in enumerate(machines):
        machine.environment.refresh()
        machine.store.close()
        children.append(
            subprocess.Popen(
                [sys.executable, "-c", _MACHINE, str(machine.folder), str(seed), str(count), str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=clean_environment(),
            )
        )
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    calls: dict[str, list[Call]] = defaultdict(list)
    for child in children:
        said, _ = child.communicate()
        assert child.returncode == 0
        for line in said.splitlines():
            call = json.loads(line)
            calls[call.pop("document")].append(Call(**call))
    for machine in machines:
        machine.environment.refresh()
        assert machine.tip == machines[0].tip
        machine.store.close()
    return calls


def holds(calls: dict[str, list[Call]]) -> None:
    assert any(call.answer == "done" and call.operation == "write" for one in calls.values() for call in one)
    assert any(call.answer == "stale" for one in calls.values() for call in one)
    for name, one in calls.items():
        assert stuck(one) == [], name


def test_saves_and_fresh_reads_of_three_machines_are_linearizable(tmp_path: Path) -> None:
    hub = bare(tmp_path / "hub.git")
    holds(race(tmp_path, str(hub), count=16, threads=1))
    assert git(hub, "rev-list", "--merges", "main") == ""


@pytest.mark.slow
def test_with_threads_over_http_too(tmp_path: Path) -> None:
    bare(tmp_path / "hub.git")
    with HttpHub(tmp_path) as server:
        holds(race(tmp_path, server.url("hub.git"), count=40, threads=4))
