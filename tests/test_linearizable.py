"""What processes see of one document is linearizable, whatever goes on in the repository meanwhile."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest

import gitmem
from tests.hazards import git_dir
from tests.linearizability import Answer, Call, Operation, stuck
from tests.support import clean_environment, fsck, git

WRITER = """
import json, random, sys, time
import gitmem

folder, seed, count, names, history = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split(), sys.argv[5]
chance = random.Random(seed)
store = gitmem.open_store(folder)
notes = store.project("bot").environment("development").documents("notes")
lives = {name: 0 for name in names}
known = {}

def call(operation, document_id, expected, act):
    began = time.monotonic_ns()
    try:
        document = act()
        answer = {"answer": "done"} | ({"revision": document.revision, "text": document.text, "title": document.title}
                                       if document else {})
    except gitmem.PreconditionFailedError:
        answer = {"answer": "stale"}
    except gitmem.NotFoundError:
        answer = {"answer": "missing"}
    except gitmem.StorageError as error:
        # The folder of temporary files was deleted at that moment: whether it landed is not known.
        assert "/gitmem/tmp/" in str(error), error
        answer = {"answer": "none"}
    ended = time.monotonic_ns() if answer["answer"] != "none" else None
    print(json.dumps({"document": document_id, "operation": operation, "began": began, "ended": ended,
                      "expected": expected} | answer), file=told)
    return answer

told = open(history, "w")
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    name = chance.choice(names)
    document_id = f"{name}-{lives[name]}"
    expected = known.get(document_id)
    text = f"{seed} {number}"
    kind = chance.choices(["read", "replace", "patch", "create", "delete", "guess"], [6, 6, 3, 2, 0.4, 1])[0]
    if kind == "guess":
        expected, kind = chance.choice(list(known.values()) or [None]), "replace"
    if kind == "create" or expected is None:
        answer = call("create", document_id, None, lambda: notes.create(document_id, title="T", text=text))
    elif kind == "read":
        answer = call("read", document_id, None, lambda: notes.read(document_id))
    elif kind == "delete":
        answer = call("delete", document_id, expected, lambda: notes.delete(document_id, if_match=expected))
    elif kind == "patch":
        answer = call("write", document_id, expected, lambda: notes.patch(document_id, title=text, if_match=expected))
    else:
        answer = call("write", document_id, expected, lambda: notes.replace(document_id, text=text, if_match=expected))
    if answer["answer"] != "done":
        answer = call("read", document_id, None, lambda: notes.read(document_id))
    if "revision" in answer:
        known[document_id] = answer["revision"]
    elif answer["answer"] == "missing" or kind == "delete":
        lives[name] += 1
told.close()
store.close()
"""


# The checker itself


def did(
    operation: Operation, began: int, ended: int | None, answer: Answer = "done", *,
    expected: str | None = None, revision: str | None = None,
) -> Call:  # fmt: skip
    return Call(
        operation=operation, began=began, ended=ended, answer=answer, expected=expected, revision=revision
    )  # fmt: skip


CREATED = did("create", 0, 1, revision="r1")
REPLACED = did("write", 2, 5, expected="r1", revision="r2")


@pytest.mark.parametrize(
    "calls",
    [
        [CREATED, REPLACED, did("read", 3, 4, revision="r1")],
        [CREATED, REPLACED, did("read", 3, 4, revision="r2")],
        [CREATED, REPLACED, did("write", 3, 6, "stale", expected="r1")],
        [CREATED, REPLACED, did("write", 5, 7, expected="r2", revision="r3"), did("read", 8, 9, revision="r3")],
        [CREATED, did("delete", 2, 6, expected="r1"), did("read", 3, 4, revision="r1"), did("read", 5, 7, "missing")],
        [CREATED, did("delete", 2, 3, expected="r1"), did("create", 4, 5, "stale"), did("write", 4, 5, "missing")],
        [did("read", 0, 1, "missing"), did("create", 0, 3, revision="r1"), did("create", 1, 2, "stale")],
        [CREATED, did("write", 2, None, "none", expected="r1", revision="r2"), did("read", 3, 4, revision="r1")],
        [CREATED, did("write", 2, 3, expected="r1", revision="r1"), did("read", 4, 5, revision="r1")],
    ],
)
def test_the_checker_takes_what_can_have_happened_in_an_order(calls: list[Call]) -> None:
    assert stuck(calls) == []
    assert stuck(calls[::-1]) == []


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param([CREATED, REPLACED, did("read", 6, 7, revision="r1")], id="a stale read after the answer"),
        pytest.param([CREATED, REPLACED, did("write", 2, 5, expected="r1", revision="x")], id="two winners"),
        pytest.param([CREATED, did("read", 2, 3, "missing")], id="a document that is not seen"),
        pytest.param([CREATED, did("create", 2, 3, revision="r9")], id="created twice"),
        pytest.param([CREATED, REPLACED, did("write", 6, 7, "stale", expected="r2")], id="refused without a reason"),
        pytest.param(
            [CREATED, REPLACED, did("read", 2, 3, revision="r2"), did("read", 4, 5, revision="r1")],
            id="two reads that see time go back",
        ),
        pytest.param(
            [CREATED, did("delete", 2, 3, expected="r1"), did("create", 4, 5, revision="r2")], id="alive again"
        ),
        pytest.param([CREATED, did("read", 2, 3, revision="other")], id="a revision from nowhere"),
        pytest.param([did("create", 5, 6, revision="r1"), did("read", 1, 2, revision="r1")], id="from the future"),
    ],
)
def test_the_checker_refuses_what_no_order_explains(calls: list[Call]) -> None:
    assert stuck(calls)
    assert stuck([*calls, did("create", 100, None, "none", revision="never")])


def test_the_checker_names_where_it_went_wrong() -> None:
    wrong = did("read", 6, 7, revision="r1")
    assert stuck([CREATED, REPLACED, wrong, did("read", 8, 9, revision="r2")]) == [wrong]


def test_the_checker_is_quick_with_many_calls_at_once() -> None:
    calls = [CREATED]
    for number in range(1, 400):
        begin = number * 10
        calls.append(did("write", begin, begin + 15, expected=f"r{number}", revision=f"r{number + 1}"))
        calls += [did("write", begin, begin + 14, "stale", expected=f"r{max(number - 1, 0)}") for _ in range(6)]
    assert stuck(calls) == []
    assert stuck([*calls, did("read", 4_100, 4_101, revision="r399")])


# Histories of real processes


def writers(store: gitmem.Store, seed: int, processes: int, count: int, names: str) -> list[subprocess.Popen[str]]:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, store.folder, f"{seed}.{number}", str(count), names, history(store, number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment(),
        )
        for number in range(processes)
    ]  # fmt: skip
    for child in children:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin
        child.stdin.write("\n")
        child.stdin.flush()
    return children


def disturb(environment: gitmem.Environment, chance: random.Random) -> None:
    """Do one of the things that anybody may do to a repository at any time."""
    derived = git_dir(environment) / "gitmem"
    match chance.randrange(6):
        case 0:
            environment.collect()
        case 1:
            for path in derived.glob("index.sqlite*"):
                path.unlink(missing_ok=True)
        case 2:
            away = derived.with_name(f"away-{chance.random()}")
            with suppress(FileNotFoundError):
                derived.rename(away)
            shutil.rmtree(away, ignore_errors=True)
        case 3:
            subprocess.run(
                ["git", "-C", environment.folder, "gc", "-q"], env=clean_environment(), capture_output=True, check=False
            )
        case 4:
            git(environment.folder, "log", "-3", "--format=%s", "main")
        case 5:
            git(environment.folder, "cat-file", "-p", "main:notes")


def history(store: gitmem.Store, number: int) -> str:
    """Where a process writes down what it did and saw."""
    return f"{store.folder}.{number}"


def recorded(store: gitmem.Store, children: list[subprocess.Popen[str]]) -> Iterator[dict[str, Any]]:
    errors = [child.communicate()[1] for child in children]
    assert [child.returncode for child in children] == [0] * len(children), errors
    for number in range(len(children)):
        yield from map(json.loads, Path(history(store, number)).read_text().splitlines())


def check(environment: gitmem.Environment, found: list[dict[str, Any]]) -> None:
    """The calls on each document fit into one order, and a revision always had the same content."""
    by_document: dict[str, list[Call]] = defaultdict(list)
    contents: dict[str, tuple[str, str]] = {}
    for each in found:
        operation: Literal["create", "write", "delete", "read"] = each["operation"]
        by_document[each["document"]].append(
            did(operation, each["began"], each["ended"], each["answer"], expected=each["expected"],
                revision=each.get("revision"))
        )  # fmt: skip
        if "text" in each:
            content = (each["title"], each["text"])
            assert contents.setdefault(each["revision"], content) == content
    assert len(by_document) > 1
    for document_id, calls in by_document.items():
        assert stuck(calls) == [], document_id
    won = [each for each in found if each["answer"] == "done" and each["operation"] in ("create", "write")]
    assert {each["revision"] for each in won} <= set(git(environment.folder, "rev-list", "main").split())
    assert fsck(Path(environment.folder)) == ""


def run(store: gitmem.Store, environment: gitmem.Environment, seed: int, processes: int, count: int) -> None:
    chance = random.Random(seed)
    children = writers(store, seed, processes, count, "a b c")
    try:
        while any(child.poll() is None for child in children):
            disturb(environment, chance)
        check(environment, list(recorded(store, children)))
    finally:
        for child in children:
            child.kill()
            child.communicate()


def test_processes_beside_housekeeping_and_lost_indexes(store: gitmem.Store, environment: gitmem.Environment) -> None:
    run(store, environment, seed=1, processes=4, count=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_many_processes_for_long(seed: int, store: gitmem.Store, environment: gitmem.Environment) -> None:
    run(store, environment, seed, processes=8, count=300)
