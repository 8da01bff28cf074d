"""Sessions among many processes and dying ones: one session a key, and no save after an end or a freeze."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest

from gitmem import PreconditionFailedError, Session
from tests.agents import NOTES, WRITE, Desk, save
from tests.support import clean_environment, git, killed_at

OPEN = """
import json, sys, gitmem
project = gitmem.open_store(sys.argv[1]).project("bot")
sessions = project.environment().sessions
memory = {"notes": {"scope": "document", "id": "workshop", "access": "read-write"}}
"""
CREATE = OPEN + 'print(sessions.create(agent="tutor", memory=memory, idempotency_key="k").id)\n'
SAVE_UNTIL_REFUSED = """
session = project.session(sys.argv[2])
number = 0
while True:
    number += 1
    try:
        result = session.render(["notes"]).call("memory_save", {"text": f"{sys.argv[3]} {number}"})
    except gitmem.GitmemError as error:
        print(error.code, flush=True)
        break
    if result.status == "saved":
        print(result.revision, flush=True)
    elif result.status == "rejected":
        print(result.reason, flush=True)
        break
"""
# Every place at which writing one commit may be cut short.
PUBLISHING = ("before-objects", "after-objects", "before-barrier", "after-barrier", "before-swap", "after-swap")


class Child:
    """A process that runs `OPEN` and then, once it is let go, `code`."""

    def __init__(self, code: str, *args: str) -> None:
        waiting = 'print("ready", flush=True)\nsys.stdin.readline()\n'
        self._process = subprocess.Popen(
            [sys.executable, "-c", OPEN + waiting + code, *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment(),
        )  # fmt: skip
        assert self.line() == "ready"

    def line(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout
        return self._process.stdout.readline().rstrip("\n")

    def go(self) -> None:
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> list[str]:
        """The rest of what it prints until it ends."""
        assert self._process.stdout
        with self._process:
            lines = self._process.stdout.read().splitlines()
        assert self._process.returncode == 0
        return lines


def together(children: list[Child]) -> list[list[str]]:
    for child in children:
        child.go()
    return [child.answer() for child in children]


# One session a key


def test_twenty_processes_with_one_key_make_one_session(desk: Desk) -> None:
    code = (
        'session = sessions.create(agent="tutor", memory=memory, idempotency_key="k")\n'
        "print(session.id, session.created)\n"
    )
    answers = [line.split() for (line,) in together([Child(code, desk.store.folder) for _ in range(20)])]
    assert len({session_id for session_id, _ in answers}) == 1
    assert Counter(created for _, created in answers) == {"True": 1, "False": 19}
    assert [session.id for session in desk.sessions.list()] == [answers[0][0]]


def test_threads_with_one_key_make_one_session(desk: Desk) -> None:
    made: list[Session] = []
    threads = [threading.Thread(target=lambda: made.append(desk.session(idempotency_key="k"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 16
    assert len({session.id for session in made}) == 1
    assert [session.created for session in made].count(True) == 1


def test_processes_with_one_key_for_different_things_get_one_session_or_a_conflict(desk: Desk) -> None:
    code = (
        'memory["notes"]["access"] = sys.argv[2]\n'
        "try:\n"
        '    print(sessions.create(agent="tutor", memory=memory, idempotency_key="k").id)\n'
        "except gitmem.ConflictError as error:\n"
        "    print(error.code)\n"
    )
    access = ["read", "read-write"] * 3
    answers = together([Child(code, desk.store.folder, each) for each in access])
    (session,) = desk.sessions.list()
    (state,) = session.inspect().memory
    expected = [session.id if each == state.access else "idempotency_conflict" for each in access]
    assert [line for (line,) in answers] == expected


def test_processes_that_start_on_one_document_make_it_once(desk: Desk) -> None:
    code = (
        "started = sessions.start_on_document(agent='tutor', resource='notes', document_id='topic',\n"
        "    document={'title': sys.argv[2]}, idempotency_key='topic/1')\n"
        "print(started.document.title, started.document.created, started.session.id, started.session.created)\n"
    )
    answers = together([Child(code, desk.store.folder, f"T{number}") for number in range(6)])
    told = [line.split() for (line,) in answers]
    assert {title for title, *_ in told} == {desk.notes.read("topic").title}
    assert Counter(created for _, created, _, _ in told) == {"True": 1, "False": 5}
    assert Counter(created for *_, created in told) == {"True": 1, "False": 5}
    assert {session_id for _, _, session_id, _ in told} == {session.id for session in desk.sessions.list()}


def test_no_session_is_lost_among_many_writers(desk: Desk) -> None:
    code = (
        "for number in range(10):\n"
        '    print(sessions.create(agent="tutor", memory=memory, idempotency_key=f"{sys.argv[2]} {number}").id)\n'
    )
    children = [Child(code, desk.store.folder, f"writer {number}") for number in range(4)]
    for child in children:
        child.go()
    for number in range(5):
        desk.environment.deploy(agent="critic", memories=[NOTES])
        desk.session({}, idempotency_key=f"own {number}")
    made = {line for child in children for line in child.answer()}
    assert len(made) == 40
    assert made < {session.id for session in desk.sessions}
    assert len(list(desk.sessions)) == 45


@pytest.mark.parametrize("failpoint", PUBLISHING)
def test_a_process_killed_while_it_creates_leaves_one_session_or_none(desk: Desk, failpoint: str) -> None:
    desk.store.close()
    killed_at(failpoint, CREATE, desk.store.folder)
    left = [session.id for session in desk.sessions]
    assert len(left) <= 1
    session = desk.session(idempotency_key="k")
    assert session.created == (not left)
    assert [each.id for each in desk.sessions] == [session.id]
    assert len(desk.records()) == 2


# Ends and freezes


def insist(desk: Desk, write: Callable[[str], object]) -> None:
    """Write on whatever revision is the newest, until nobody was faster."""
    while True:
        with suppress(PreconditionFailedError):
            write(desk.notes.read("workshop").revision)
            return


def commits(desk: Desk, which: str, session: Session) -> list[str]:
    """The commits in a range that a session made, oldest first."""
    log = git(
        desk.environment.folder, "log", "--reverse", "--format=%H %(trailers:key=Gitmem-Session,valueonly)", which
    )
    return [line.split()[0] for line in log.splitlines() if line.endswith(session.id)]


STOPS: dict[str, tuple[str, Callable[[Desk, Session], object]]] = {
    "end": ("session_closed", lambda desk, session: session.end()),
    "freeze": (
        "agent_writes_disabled",
        lambda desk, session: insist(
            desk, lambda seen: desk.notes.patch("workshop", agent_writes="disabled", if_match=seen)
        ),
    ),
    "delete": (
        "not_found",
        lambda desk, session: insist(desk, lambda seen: desk.notes.delete("workshop", if_match=seen)),
    ),
}


@pytest.mark.parametrize("stop", STOPS)
def test_once_an_end_a_freeze_or_a_deletion_returns_no_save_commits_in_any_process(desk: Desk, stop: str) -> None:
    reason, act = STOPS[stop]
    session = desk.session(WRITE)
    children = [Child(SAVE_UNTIL_REFUSED, desk.store.folder, session.id, str(number)) for number in range(3)]
    for child in children:
        child.go()
    told = [child.line() for child in children]
    act(desk, session)
    stopped_at = git(desk.environment.folder, "rev-parse", "main")
    answers = [child.answer() for child in children]
    assert {lines[-1] for lines in answers} == {reason}
    assert commits(desk, f"{stopped_at}..main", session) == []
    # What was acknowledged is there, and told as events in the order of the commits.
    made = commits(desk, stopped_at, session)
    told += [line for lines in answers for line in lines[:-1]]
    assert set(told) == set(made)
    assert [event.revision for event in session.events()] == made


SAVE_SLOWLY = """
from gitmem import failpoints
render = project.session(sys.argv[2]).render(["notes"])
failpoints.arm(sys.argv[3], lambda: (print("under way", flush=True), sys.stdin.readline()))
print(render.call("memory_save", {"text": "slow"}).status)
"""


@pytest.mark.parametrize("failpoint", ["before-objects", "before-swap"])
def test_an_end_waits_for_the_save_that_is_under_way(desk: Desk, failpoint: str) -> None:
    session = desk.session(WRITE)
    child = Child(SAVE_SLOWLY, desk.store.folder, session.id, failpoint)
    child.go()
    assert child.line() == "under way"
    tips: list[str] = []

    def end() -> None:
        session.end()
        tips.append(git(desk.environment.folder, "rev-parse", "main"))

    ending = threading.Thread(target=end)
    ending.start()
    ending.join(1)  # time enough for an end that would not wait
    child.go()
    assert child.answer() == ["saved"]
    ending.join()
    assert commits(desk, "main", session) == commits(desk, tips[0], session)
    assert len(session.events()) == 1


@pytest.mark.parametrize("failpoint", PUBLISHING)
def test_a_process_killed_while_it_ends_a_session_leaves_it_ended_or_active(desk: Desk, failpoint: str) -> None:
    session = desk.session(WRITE)
    desk.store.close()
    killed_at(failpoint, OPEN + "project.session(sys.argv[2]).end()\n", desk.store.folder, session.id)
    (state,) = session.inspect().memory
    assert state.writable is not session.ended
    if session.ended:
        assert failpoint != "before-barrier"
    else:
        assert save(session.render(["notes"]), text="Still here.")["status"] == "saved"
        assert session.end().status == "ended"
