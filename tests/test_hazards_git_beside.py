"""Hazard "others at work": gc, plain git and other gitmem processes beside us, and clocks that go wrong."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import gitmem
from tests.hazards import edited, file_of, folder, git_dir, shown, status, subjects
from tests.support import clean_environment, git

SAVE_MANY = """
import sys, gitmem
store = gitmem.open_store(sys.argv[1])
notes = store.project("bot").environment("development").documents("notes")
for number in range(int(sys.argv[3])):
    notes.create(f"{sys.argv[2]}-{number}", title="T")
store.close()
"""
SAVE_ONCE = """
import sys, gitmem
store = gitmem.open_store(sys.argv[1])
notes = store.project("bot").environment("development").documents("notes")
print("ready", flush=True)
sys.stdin.readline()
try:
    notes.replace("a", text=sys.argv[2], if_match=sys.argv[3])
    print("won")
except gitmem.PreconditionFailedError:
    print("lost")
store.close()
"""


def store_of(environment: gitmem.Environment) -> str:
    return str(folder(environment).parents[1])


def child(code: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    )


@contextmanager
def meanwhile(work: Callable[[], object]) -> Generator[list[BaseException]]:
    """Do `work` over and over in another thread until the block ends; what it raised."""
    over = threading.Event()
    raised: list[BaseException] = []

    def run() -> None:
        while not over.is_set():
            try:
                work()
            except BaseException as error:
                raised.append(error)
                return

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield raised
    finally:
        over.set()
        thread.join()


# Housekeeping


@pytest.mark.parametrize(
    "housekeeping",
    [["gc", "-q"], ["repack", "-adq"], ["prune-packed", "-q"], ["pack-refs", "--all"]],
    ids=lambda command: command[0],
)
def test_housekeeping_beside_a_writer_and_a_reader_raises_nothing(
    environment: gitmem.Environment, notes: gitmem.Documents, housekeeping: list[str]
) -> None:
    for number in range(10):
        notes.create(f"d{number}", title="T", text="begin")
    saved: list[gitmem.Document] = []

    def write() -> None:
        document = notes.read(f"d{len(saved) % 10}")
        saved.append(notes.replace(document.id, text=f"text {len(saved)}", if_match=document.revision))

    with gitmem.open_store(store_of(environment)) as store:
        others = store.project("bot").environment("development").documents("notes")

        def read() -> None:
            for document in others.list().documents:
                assert others.read(document.id).title == "T"
            others.history("d1")

        with meanwhile(write) as refused, meanwhile(read) as unread:
            for _ in range(6):
                subprocess.run(
                    ["git", "-C", environment.folder, *housekeeping],
                    env=clean_environment(),
                    capture_output=True,
                    check=False,
                )
        assert (refused, unread) == ([], [])
    newest = {document.id: document for document in saved}
    assert {document_id: notes.read(document_id) for document_id in newest} == newest
    environment.close()
    assert status(environment) == ""
    assert len(subjects(environment)) == 2 + 10 + len(saved)


def test_everything_packed_and_a_handle_from_before(environment: gitmem.Environment, notes: gitmem.Documents) -> None:
    first = notes.create("a", title="A", text="one")
    git(environment.folder, "gc", "-q", "--prune=now")
    assert notes.read("a") == first
    second = notes.replace("a", text="two", if_match=first.revision)
    git(environment.folder, "gc", "-q", "--prune=now")
    assert notes.read("a") == second
    assert notes.read("a", at=first.revision) == first


# Other processes


def test_of_four_processes_with_one_revision_one_wins(environment: gitmem.Environment, notes: gitmem.Documents) -> None:
    a = notes.create("a", title="A", text="one")
    environment.close()
    writers = [child(SAVE_ONCE, store_of(environment), f"by {number}", a.revision) for number in range(4)]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    answers = [_go(writer) for writer in writers]
    assert sorted(answers) == ["lost", "lost", "lost", "won"]
    assert notes.read("a").text == f"by {answers.index('won')}"
    assert [v.operation for v in notes.history("a").versions] == ["replace", "create"]


def _go(writer: subprocess.Popen[str]) -> str:
    return writer.communicate("go\n")[0].strip()


def test_processes_that_save_different_documents_lose_nothing(
    environment: gitmem.Environment, notes: gitmem.Documents
) -> None:
    environment.close()
    writers = [child(SAVE_MANY, store_of(environment), f"w{number}", "40") for number in range(4)]
    assert [writer.communicate()[0] for writer in writers] == [""] * 4
    assert [writer.returncode for writer in writers] == [0, 0, 0, 0]
    assert environment.resources()[0][1] == 160
    environment.close()
    assert status(environment) == ""
    assert sum(subject.startswith("create notes/") for subject in subjects(environment)) == 160


def test_a_plain_commit_between_two_saves_of_an_open_handle_is_kept(
    environment: gitmem.Environment, notes: gitmem.Documents
) -> None:
    a = notes.create("a", title="A", text="one")
    file_of(environment, "b").write_text('{"title": "B", "text": "by hand"}')
    (folder(environment) / "README").write_text("read me\n")
    environment.close()
    git(environment.folder, "add", ".")
    git(environment.folder, "commit", "-qm", "by hand")
    notes.replace("a", text="two", if_match=a.revision)
    assert notes.read("b").text == "by hand"
    assert git(environment.folder, "show", "main:README") == "read me"
    environment.close()
    assert status(environment) == ""


def test_derived_files_may_go_at_any_time(environment: gitmem.Environment, notes: gitmem.Documents) -> None:
    a = notes.create("a", title="A", text="one")
    for path in (git_dir(environment) / "gitmem").glob("index*"):
        path.unlink()
    assert notes.read("a") == a
    b = notes.replace("a", text="two", if_match=a.revision)
    environment.close()
    subprocess.run(["rm", "-r", str(git_dir(environment) / "gitmem")], check=True)
    assert notes.read("a") == b
    edited(environment, "a", "three")
    assert shown(environment, "a") == "three"
    assert status(environment) == ""


# Clocks


@pytest.mark.parametrize("step", [0, -60_000, 1], ids=["stands", "goes back", "a millisecond a save"])
def test_order_follows_the_commits_whatever_the_clock_does(tmp_path: Path, step: int) -> None:
    times = iter(range(1_790_000_000_000, 0, step)) if step < 0 else None
    now = [1_790_000_000_000]

    def clock() -> int:
        if times is not None:
            return next(times)
        now[0] += step
        return now[0]

    with gitmem.open_store(tmp_path / "store", create=True, settings=gitmem.Settings(clock=clock)) as store:
        environment = store.project("bot").environment("development")
        environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="Notes.")])
        notes = environment.documents("notes")
        revisions = [notes.create("a", title="A").revision]
        for number in range(60):
            revisions.append(notes.replace("a", text=str(number), if_match=revisions[-1]).revision)
            notes.create(f"d{number:02}", title="T")
        assert _history(notes) == revisions[::-1]
        listed = _listed(notes)
        assert len(listed) == len({document.id for document in listed}) == 61
        assert listed == sorted(listed, key=lambda d: (_descending(d.updated_at), d.id))
        for path in (git_dir(environment) / "gitmem").glob("index*"):
            path.unlink()
        environment.close()
        assert _history(notes) == revisions[::-1]
        assert _listed(notes) == listed


def _descending(updated_at: str) -> list[int]:
    return [-ord(letter) for letter in updated_at]


def _history(notes: gitmem.Documents) -> list[str]:
    page = notes.history("a")
    found = [version.revision for version in page.versions]
    while page.next_cursor:
        page = notes.history("a", cursor=page.next_cursor)
        found += [version.revision for version in page.versions]
    return list(found)


def _listed(notes: gitmem.Documents) -> list[gitmem.DocumentInfo]:
    page = notes.list()
    found = list(page.documents)
    while page.next_cursor:
        page = notes.list(cursor=page.next_cursor)
        found += page.documents
    return found
