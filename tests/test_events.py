"""Events: every committed save of a session, once, in order, whatever becomes of indexes and branches."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from gitmem import ErrorCode, Session
from tests.agents import WRITE, Desk, refusal, save
from tests.support import git, killed_at, python


def saved(session: Session, text: str) -> str:
    done = save(session.render(["notes"]), text=text)
    assert done["status"] == "saved"
    return str(done["revision"])


def told(session: Session) -> list[tuple[int, str]]:
    return [(event.seq, event.revision) for event in session.events()]


def test_a_save_is_an_event(desk: Desk) -> None:
    session = desk.session(WRITE)
    assert session.events() == []
    revision = saved(session, "Node.js 22. é")
    (event,) = session.events()
    assert event.to_json() == {
        "id": f"evt_{revision}",
        "seq": 1,
        "type": "memory.saved",
        "data": {"resource": "notes", "documentId": "workshop", "revision": revision, "bytes": 14},
    }


def test_events_are_the_sessions_own_in_the_order_of_commits(desk: Desk) -> None:
    one, two = desk.session(WRITE), desk.session(WRITE)
    desk.own_edit("by the owner")
    ones = [saved(one, "1"), saved(one, "11")]
    twos = [saved(two, "2")]
    ones.append(saved(one, "1"))
    save(one.render(["notes"]), text="1")  # changes nothing: no commit, no event
    desk.freeze()
    save(one.render(["notes"]), text="refused")
    assert told(one) == list(enumerate(ones, 1))
    assert told(two) == list(enumerate(twos, 1))
    assert [event.seq for event in one.events(after=1)] == [2, 3]
    assert one.events(after=3) == one.events(after=10**30) == []
    assert [event.bytes for event in one.events()] == [1, 2, 1]


@pytest.mark.parametrize("after", [-1, 1.5, "1", None, True])
def test_after_is_the_number_of_an_event(desk: Desk, after: Any) -> None:
    refusal(ErrorCode.INVALID_REQUEST, lambda: desk.session(WRITE).events(after=after), "after")


def test_events_outlive_the_end_the_document_and_the_index(desk: Desk) -> None:
    session = desk.session(WRITE)
    revisions = [saved(session, str(number)) for number in range(3)]
    desk.delete()
    session.end()
    desk.store.close()
    shutil.rmtree(Path(desk.environment.folder) / ".git/gitmem")
    assert told(session) == list(enumerate(revisions, 1))


def test_a_save_whose_process_died_before_it_could_tell_is_an_event(desk: Desk) -> None:
    session = desk.session(WRITE)
    code = (
        "import sys, gitmem\n"
        "session = gitmem.open_store(sys.argv[1]).project('bot').session(sys.argv[2])\n"
        "session.render(['notes']).call('memory_save', {'text': 'last words'})\n"
    )
    killed_at("after-swap", code, desk.store.folder, session.id)
    (event,) = session.events()
    assert event.revision == git(desk.environment.folder, "rev-parse", "main")


def test_a_rebase_of_the_saves_takes_them_from_the_session(desk: Desk) -> None:
    session = desk.session(WRITE)
    saved(session, "1")
    kept = saved(session, "2")
    desk.environment.close()
    # A person's own copies of gitmem's commits are the person's commits.
    git(desk.environment.folder, "-c", "core.editor=true", "rebase", "-q", "--force-rebase", "HEAD~2")
    assert session.events() == []
    assert desk.notes.read("workshop").writer.kind == "owner"
    assert kept not in git(desk.environment.folder, "log", "--format=%H").split()


def test_saves_that_come_back_through_a_merge_keep_their_numbers(desk: Desk) -> None:
    """Others merge what a session has saved, and main moves on to their merge: the saves are on its second side."""
    session = desk.session(WRITE)
    first = saved(session, "1")
    desk.environment.close()
    folder = desk.environment.folder
    git(folder, "branch", "theirs")
    revisions = [first, *(saved(session, f"2 {number}") for number in range(3))]
    before = told(session)
    assert before == list(enumerate(revisions, 1))
    desk.environment.close()
    git(folder, "checkout", "-q", "theirs")
    git(folder, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    git(folder, "merge", "-q", "--no-ff", "-m", "take them up", "main")
    git(folder, "branch", "-f", "main", "theirs")
    git(folder, "checkout", "-q", "main")
    assert told(session) == before
    revisions.append(saved(session, "3"))
    assert told(session) == list(enumerate(revisions, 1))
    desk.environment.close()
    shutil.rmtree(Path(folder) / ".git/gitmem")
    assert told(session) == list(enumerate(revisions, 1))


def test_saves_of_a_branch_that_is_merged_are_events_whatever_the_merge_kept(desk: Desk) -> None:
    session = desk.session(WRITE)
    desk.environment.close()
    folder = desk.environment.folder
    base = git(folder, "rev-parse", "main")
    revisions = [saved(session, "lost 1"), saved(session, "lost 2")]
    desk.environment.close()
    git(folder, "branch", "side", "main")
    git(folder, "reset", "-q", "--hard", base)
    assert session.events() == []
    ours = saved(session, "kept")
    desk.environment.close()
    git(folder, "merge", "-q", "-s", "ours", "-m", "merge", "side")
    assert desk.notes.read("workshop").text == "kept"
    assert told(session) == list(enumerate([ours, *revisions], 1))
    desk.environment.close()
    shutil.rmtree(Path(folder) / ".git/gitmem")
    assert told(session) == list(enumerate([ours, *revisions], 1))


# Waiting


def test_waiting_returns_at_once_what_is_there(desk: Desk) -> None:
    session = desk.session(WRITE)
    revision = saved(session, "1")
    assert [event.revision for event in session.wait(timeout=60)] == [revision]


def test_waiting_gives_up_in_time(desk: Desk) -> None:
    session = desk.session(WRITE)
    assert session.wait(timeout=0) == session.wait(timeout=0.2) == []


def test_waiting_ends_with_the_session(desk: Desk) -> None:
    session = desk.session(WRITE)
    saved(session, "1")
    waiting = Waiting(session, after=1)
    session.end()
    assert waiting.answer() == []


def test_waiting_wakes_for_a_save_of_another_process(desk: Desk) -> None:
    session = desk.session(WRITE)
    waiting = Waiting(session, after=0)
    desk.own_edit("of somebody else")
    code = (
        "import sys, gitmem\n"
        "session = gitmem.open_store(sys.argv[1]).project('bot').session(sys.argv[2])\n"
        "session.render(['notes']).call('memory_save', {'text': 'news'})\n"
    )
    assert python(code, desk.store.folder, session.id).returncode == 0
    assert waiting.answer() == [1]


class Waiting:
    """A thread that waits for events of a session."""

    def __init__(self, session: Session, after: int) -> None:
        self._found: list[int] = []
        self._thread = threading.Thread(target=self._wait, args=(session, after))
        self._thread.start()

    def _wait(self, session: Session, after: int) -> None:
        self._found = [event.seq for event in session.wait(after, timeout=120)]

    def answer(self) -> list[int]:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self._found
