"""Writers at once, in threads and in processes: one of those who saw the same revision wins, nothing is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

import gitmem
from gitmem import Documents
from gitmem.codec import Content
from gitmem.environment.draft import Draft
from gitmem.environment.layout import Name
from tests.support import clean_environment, git
from tests.workshop import operations, tip

OPEN = """
import sys, gitmem
store = gitmem.open_store(sys.argv[1])
notes = store.project("bot").environment("development").documents("notes")
print("ready", flush=True)
sys.stdin.readline()
"""

CONTENDERS = {
    "create": "notes.create('new', title=sys.argv[3])",
    "replace": "notes.replace('a', text=sys.argv[3], if_match=sys.argv[2])",
    "patch": "notes.patch('a', title=sys.argv[3], if_match=sys.argv[2])",
    "delete": "notes.delete('a', if_match=sys.argv[2])",
    "restore": "notes.restore('a', sys.argv[4], if_match=sys.argv[2])",
}
REFUSED = "(gitmem.PreconditionFailedError, gitmem.NotFoundError)"


def started_together(code: str, arguments: list[list[str]]) -> list[str]:
    """Run the code in one process for each list of arguments, let go at the same moment; what each printed last."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN + code, *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment(),
        )
        for args in arguments
    ]  # fmt: skip
    for child in children:
        assert child.stdout
        assert child.stdout.readline() == "ready\n", child.communicate()[1]
    for child in children:
        assert child.stdin
        child.stdin.write("\n")
        child.stdin.flush()
    answers = [child.communicate() for child in children]
    assert [child.returncode for child in children] == [0] * len(children), [error for _, error in answers]
    return [out.strip() for out, _ in answers]


@pytest.mark.parametrize("operation", CONTENDERS)
def test_of_processes_with_one_revision_exactly_one_wins(
    operation: str, store: gitmem.Store, environment: gitmem.Environment, notes: Documents
) -> None:
    first = notes.create("a", title="A", text="first")
    seen = notes.replace("a", text="second", if_match=first.revision)
    before = tip(environment)
    code = f"""
try:
    {CONTENDERS[operation]}
    print("won")
except {REFUSED} as error:
    print(error.code)
"""
    answers = started_together(
        code, [[store.folder, seen.revision, f"writer {number}", first.revision] for number in range(6)]
    )
    losers = {"not_found"} if operation == "delete" else {"precondition_failed"}
    assert Counter(answers)["won"] == 1
    assert set(answers) == {"won"} | losers
    assert git(environment.folder, "rev-list", "--count", f"{before}..main") == "1"


def test_four_processes_on_different_documents_lose_nothing(
    store: gitmem.Store, environment: gitmem.Environment, notes: Documents
) -> None:
    code = """
for number in range(25):
    made = notes.create(f"{sys.argv[2]}-{number}", title="T")
    notes.replace(made.id, text=f"{sys.argv[2]} {number}", if_match=made.revision)
"""
    before = tip(environment)
    started_together(code, [[store.folder, f"p{number}"] for number in range(4)])
    for process in range(4):
        for number in range(25):
            assert notes.read(f"p{process}-{number}").text == f"p{process} {number}"
            assert operations(notes, f"p{process}-{number}") == ["replace", "create"]
    subjects = git(environment.folder, "log", "--format=%s", f"{before}..main").splitlines()
    assert len([subject for subject in subjects if not subject.startswith("reshard ")]) == 200


def test_threads_share_a_flush_and_each_gets_its_own_answer(environment: gitmem.Environment, notes: Documents) -> None:
    before = tip(environment)
    answers: dict[int, str] = {}
    together = threading.Barrier(16)

    def write(number: int) -> None:
        together.wait()
        # Every fourth thread asks for an id that its neighbour takes too.
        document_id = f"d{number - number % 4 // 3}"
        try:
            answers[number] = notes.create(document_id, title=str(number)).title
        except gitmem.PreconditionFailedError as error:
            answers[number] = error.code

    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = {number for number, answer in answers.items() if answer == str(number)}
    refused = {number for number, answer in answers.items() if answer == "precondition_failed"}
    assert len(won) == 12
    assert len(refused) == 4
    assert git(environment.folder, "rev-list", "--count", f"{before}..main") == "12"
    assert {notes.read(f"d{number}").title for number in range(16) if number % 4 != 3} == {str(n) for n in won}


def test_a_document_that_the_same_batch_moves_is_not_taken_for_deleted(
    environment: gitmem.Environment, notes: Documents
) -> None:
    for _ in notes.create_many(gitmem.NewDocument(id=f"d{number}", title="T") for number in range(128)):
        pass

    def change(draft: Draft) -> bool:
        draft.put(Name("notes", "one-more"), Content("T", "", "enabled", ""), "create")
        found = draft.get(Name("notes", "d0"))
        return found is not None and found.alive

    assert environment.save(change)
    assert "reshard notes" in git(environment.folder, "log", "-1", "--format=%s")
    assert notes.read("d0").title == "T"


def test_plain_commits_beside_a_writer_lose_nothing(store: gitmem.Store, environment: gitmem.Environment) -> None:
    code = """
for number in range(40):
    notes.create(f"saved-{number}", title="T")
    print(number, flush=True)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", OPEN + code, store.folder],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment(),
    )  # fmt: skip
    assert child.stdin
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    child.stdin.write("\n")
    child.stdin.flush()
    committed = [commit_beside(environment.folder) for _ in range(10)]
    child.communicate()
    assert child.returncode == 0
    log = git(environment.folder, "log", "--format=%H %s", "main")
    assert all(commit in log for commit in committed if commit)
    notes = environment.documents("notes")
    assert all(notes.read(f"saved-{number}").title == "T" for number in range(40))


def commit_beside(folder: str) -> str | None:
    """Let a person move main without touching the working tree; the commit, or None where main moved first."""
    old = git(folder, "rev-parse", "main")
    commit = git(folder, "commit-tree", "-p", old, "-m", "a person's", f"{old}^{{tree}}")
    try:
        git(folder, "update-ref", "refs/heads/main", commit, old)
    except AssertionError:
        return None
    return commit


def test_two_stores_in_one_process_see_each_other(tmp_path: Path, store: gitmem.Store, notes: Documents) -> None:
    made = notes.create("a", title="A")
    with gitmem.open_store(store.folder) as other:
        theirs = other.project("bot").environment("development").documents("notes")
        changed = theirs.replace("a", text="theirs", if_match=made.revision)
        assert notes.read("a") == changed
        with pytest.raises(gitmem.PreconditionFailedError) as caught:
            notes.replace("a", text="mine", if_match=made.revision)
        assert caught.value.actual == changed.revision
