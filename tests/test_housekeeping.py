"""Housekeeping: loose objects become few packs, beside whoever writes and reads, and nothing is lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import gitmem
from gitmem import Documents
from gitmem.git import housekeeping, upkeep
from tests.hazards import git_dir
from tests.support import clean_environment, fsck, git, killed_at
from tests.support import gitmem as run

TEXT = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz     \n", k=2_500))

COLLECT = """
import sys, gitmem
from gitmem.git import housekeeping
housekeeping._JOIN_FACTOR = 1_000
store = gitmem.open_store(sys.argv[1])
project = store.project("bot")
project.environment("development").collect()
project.control.collect()
"""
SAVE_FOREVER = """
import sys, gitmem
store = gitmem.open_store(sys.argv[1])
notes = store.project("bot").environment("development").documents("notes")
number = 0
while True:
    made = notes.create(f"{sys.argv[2]}-{number}", title="T")
    made = notes.replace(made.id, text=str(number), if_match=made.revision)
    print(made.id, made.revision, flush=True)
    number += 1
"""


def counted(folder: str | Path) -> dict[str, int]:
    """What `git count-objects -v` says."""
    lines = git(folder, "count-objects", "-v").splitlines()
    return {key: int(value) for key, _, value in (line.partition(": ") for line in lines)}


def objects(folder: str | Path) -> set[str]:
    """The names of all objects that the repository holds, reachable or not."""
    return set(git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split())


def packs(environment: gitmem.Environment) -> list[Path]:
    return sorted((git_dir(environment) / "objects/pack").glob("*.pack"))


def edited(notes: Documents, rounds: int) -> dict[str, gitmem.Document]:
    """Documents with `rounds` versions each, of about 2.7 kB, whose lines change here and there."""
    chance = random.Random(rounds)
    made = {i: notes.create(i, title=f"Title of {i}", text=TEXT) for i in ("a", "b", "c", "d")}
    for number in range(rounds):
        document = made[chance.choice("abcd")]
        lines = document.text.split("\n")
        lines[chance.randrange(len(lines))] = f"changed {number}"
        made[document.id] = notes.replace(document.id, text="\n".join(lines), if_match=document.revision)
    return made


# What it does


def test_gc_packs_all_that_main_reaches_and_keeps_every_object(
    environment: gitmem.Environment, notes: Documents
) -> None:
    documents = edited(notes, 40)
    before = objects(environment.folder)
    packed = environment.collect()
    assert packed == len(before) == counted(environment.folder)["in-pack"]
    assert counted(environment.folder) | {"size-pack": 0} == {
        "count": 0, "size": 0, "in-pack": packed, "packs": 1, "size-pack": 0, "prune-packable": 0, "garbage": 0,
        "size-garbage": 0,
    }  # fmt: skip
    assert objects(environment.folder) == before
    assert {i: notes.read(i) for i in documents} == documents
    assert environment.collect() == 0
    assert len(packs(environment)) == 1


def test_objects_that_nothing_refers_to_are_never_pruned(environment: gitmem.Environment, notes: Documents) -> None:
    notes.create("a", title="A")
    lost = git(environment.folder, "hash-object", "-w", "--stdin", stdin="nobody refers to this")
    side = git(environment.folder, "commit-tree", "-p", "main", "-m", "a side line", "main^{tree}")
    git(environment.folder, "update-ref", "refs/heads/side", side)
    environment.collect()
    assert counted(environment.folder)["count"] == 2
    assert git(environment.folder, "cat-file", "blob", lost) == "nobody refers to this"
    assert git(environment.folder, "log", "-1", "--format=%s", "side") == "a side line"


def test_a_save_takes_less_than_3_kB_once_it_is_packed(environment: gitmem.Environment, notes: Documents) -> None:
    saves = 300
    for outcome in notes.create_many(gitmem.NewDocument(id=f"d{n}", title="T", text="short") for n in range(300)):
        assert isinstance(outcome, gitmem.Document)
    environment.collect()
    before = _bytes_on_disk(environment)
    chance = random.Random(1)
    for number in range(saves):
        # Nothing in the texts repeats: what is saved is all new, and compresses only as text does.
        words = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz    \n", k=2_600))
        document = notes.read(f"d{number}")
        notes.replace(document.id, text=words, if_match=document.revision)
    environment.collect()
    assert counted(environment.folder)["count"] == 0
    assert (_bytes_on_disk(environment) - before) / saves < 3_000


def _bytes_on_disk(environment: gitmem.Environment) -> int:
    paths = (path for path in (git_dir(environment) / "objects").rglob("*") if path.is_file())
    return sum(path.stat().st_blocks * 512 for path in paths)


def test_gc_packs_the_control_repository_too(store: gitmem.Store, environment: gitmem.Environment) -> None:
    sessions = [environment.sessions.create(agent="tutor", memory={}, idempotency_key=str(n)) for n in range(20)]
    control = store.project("bot").control.folder
    assert counted(control)["packs"] == 0
    done = run("gc", "--store", store.folder, "--project", "bot")
    assert (done.returncode, done.stderr) == (0, "")
    assert (counted(control)["count"], counted(control)["packs"]) == (0, 1)
    assert [environment.sessions.get(each.id).id for each in sessions] == [each.id for each in sessions]
    again = environment.sessions.create(agent="tutor", memory={}, idempotency_key="7")
    assert (again.id, again.created) == (sessions[7].id, False)


def test_it_works_without_a_git_binary(store: gitmem.Store, environment: gitmem.Environment, notes: Documents) -> None:
    documents = edited(notes, 10)
    environment.close()
    done = run("gc", "--store", store.folder, "--project", "bot", env={"PATH": "/nowhere"})
    assert (done.returncode, done.stderr) == (0, "")
    assert counted(environment.folder)["count"] == 0
    assert {i: notes.read(i) for i in documents} == documents


def test_status_tells_the_size_and_what_is_due(
    store: gitmem.Store, environment: gitmem.Environment, notes: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited(notes, 120)
    environment.close()
    shown = run("status", "--store", store.folder, "--project", "bot").stdout
    assert "size  0 bytes in 0 packs, about " in shown
    assert "due" not in shown
    assert not environment.size().due
    monkeypatch.setattr(housekeeping, "PACK_AT", 100)
    assert environment.size().due
    environment.collect()
    assert not environment.size().due
    assert environment.size().pack_bytes == sum(path.stat().st_size for path in packs(environment))


# By itself, in the background


def test_a_process_that_saves_packs_beyond_a_threshold_in_the_background(
    environment: gitmem.Environment, notes: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "PACK_AT", 512)
    monkeypatch.setattr(upkeep, "_DELAY_SECONDS", 0.0)
    document = notes.create("a", title="A")
    while not packs(environment):
        document = notes.replace("a", text=document.revision, if_match=document.revision)
    oldest = notes.history("a").versions[-1]
    assert notes.read("a", at=oldest.revision).revision == oldest.revision
    assert notes.read("a") == document


def test_what_is_in_the_way_is_left_to_the_next_time(
    environment: gitmem.Environment, notes: Documents, store: gitmem.Store
) -> None:
    """A git gc beside us, told by its `gc.pid`; one that has died does not count."""
    notes.create("a", title="A")
    pid = git_dir(environment) / "gc.pid"
    pid.write_text(f"{os.getpid()} {os.uname().nodename}")
    with pytest.raises(gitmem.BusyError, match="git gc is packing"):
        environment.collect()
    done = run("gc", "--store", store.folder, "--project", "bot")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    pid.write_text("1 another-machine")
    with pytest.raises(gitmem.BusyError):
        environment.collect()
    os.utime(pid, (0, 0))
    assert environment.collect() > 0
    for left in (f"{_dead_process()} {os.uname().nodename}", "", "x y", f"{1 << 70} {os.uname().nodename}"):
        pid.write_text(left)
        assert environment.collect() == 0
    pid.unlink()


def _dead_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


# Beside others


def test_beside_writers_and_long_lived_readers_nothing_is_lost(
    store: gitmem.Store, environment: gitmem.Environment, notes: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packing, joining packs and git's own gc, while processes save and an old handle reads old revisions."""
    monkeypatch.setattr(housekeeping, "_JOIN_FACTOR", 1_000)
    documents = edited(notes, 20)
    old = [(i, version.revision) for i in documents for version in notes.history(i).versions]
    expected = {(i, revision): notes.read(i, at=revision) for i, revision in old}
    writers = [_writer(store, f"w{number}") for number in range(2)]
    wrong: list[object] = []
    over = threading.Event()

    def read_forever() -> None:
        with gitmem.open_store(store.folder) as other:
            theirs = other.project("bot").environment("development").documents("notes")
            while not over.is_set():
                try:
                    wrong.extend(key for key in old if theirs.read(key[0], at=key[1]) != expected[key])
                except Exception as error:
                    wrong.append(error)

    reader = threading.Thread(target=read_forever)
    reader.start()
    for number in range(12):
        for writer in writers:
            assert writer.stdout
            writer.stdout.readline()
        if number % 4 == 3:
            subprocess.run(["git", "-C", environment.folder, "gc", "-q"], env=clean_environment(), check=False)
        else:
            environment.collect()
    over.set()
    reader.join()
    saved = [line for writer in writers for line in _stopped(writer)]
    assert wrong == []
    assert saved
    for line in saved:
        document_id, revision = line.split()
        assert notes.read(document_id).revision == revision
    assert fsck(Path(environment.folder)) == ""


def _writer(store: gitmem.Store, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SAVE_FOREVER, store.folder, name],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment(),
    )  # fmt: skip


def _stopped(writer: subprocess.Popen[str]) -> list[str]:
    writer.kill()
    out, error = writer.communicate()
    assert error == ""
    return [line for line in out.splitlines() if len(line.split(" ")[-1]) == 40]


# Killed


@pytest.mark.parametrize("later", [0, 1, 25])
@pytest.mark.parametrize("failpoint", ["before-pack", "naming-pack", "after-pack", "dropping-pack"])
def test_killed_at_each_failpoint(
    failpoint: str, later: int, store: gitmem.Store, environment: gitmem.Environment, notes: Documents
) -> None:
    """Killed while it packs, or, for a second time round, while it joins packs."""
    documents = edited(notes, 20)
    environment.collect()
    documents |= {"e": notes.create("e", title="E")}
    before = objects(environment.folder)
    environment.close()
    killed_later(failpoint, later, store.folder)
    assert fsck(Path(environment.folder)) == ""
    assert objects(environment.folder) == before
    assert {i: notes.read(i) for i in documents} == documents
    environment.collect()
    left = counted(environment.folder)
    assert (left["count"], left["prune-packable"], left["garbage"]) == (0, 0, 0)
    assert objects(environment.folder) == before


def killed_later(failpoint: str, later: int, folder: str) -> None:
    """Kill a packing when it reaches `failpoint` for the `later`-th time, or where it never does, let it end."""
    arm = (
        "import itertools, os, signal\nfrom gitmem import failpoints\ncount = itertools.count()\n"
        f"def stop():\n    if next(count) == {later}: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"failpoints.arm({failpoint!r}, stop)\n"
    )
    ran = subprocess.run([sys.executable, "-c", arm + COLLECT, folder], env=clean_environment(), check=False)
    assert ran.returncode in ({-9} if later == 0 else {-9, 0})


def test_duplicates_that_a_kill_left_are_dropped_not_packed_again(
    store: gitmem.Store, environment: gitmem.Environment, notes: Documents
) -> None:
    edited(notes, 10)
    environment.close()
    killed_at("after-pack", COLLECT, store.folder)
    (pack,) = packs(environment)
    assert counted(environment.folder)["prune-packable"] == counted(environment.folder)["count"] > 0
    assert environment.collect() == 0
    assert packs(environment) == [pack]
    assert counted(environment.folder)["count"] == 0


# Damage


def test_a_loose_object_stays_where_its_packed_twin_is_damaged(
    store: gitmem.Store, environment: gitmem.Environment, notes: Documents
) -> None:
    documents = edited(notes, 10)
    environment.close()
    killed_at("after-pack", COLLECT, store.folder)
    (pack,) = packs(environment)
    whole = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(whole[:200] + bytes(400) + whole[600:])
    before = counted(environment.folder)["count"]
    environment.collect()
    assert 0 < counted(environment.folder)["count"] < before
    assert {i: notes.read(i) for i in documents} == documents
    pack.write_bytes(whole)


def test_one_damaged_object_does_not_keep_the_others_from_being_packed(
    environment: gitmem.Environment, notes: Documents
) -> None:
    made = notes.create("a", title="A")
    old = made.revision
    for number in range(5):
        made = notes.replace("a", text=str(number), if_match=made.revision)
    environment.close()
    for name in (old, git(environment.folder, "rev-parse", f"{old}~1^{{tree}}")):
        path = git_dir(environment) / "objects" / name[:2] / name[2:]
        whole = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(b"")
        before = counted(environment.folder)["count"]
        environment.collect()
        assert path.read_bytes() == b""
        assert counted(environment.folder)["count"] < before
        path.write_bytes(whole)
        notes.create(f"after-{name[:8]}", title="T")


@pytest.mark.parametrize("how", ["cut short", "emptied", "spoiled"])
def test_a_damaged_index_of_a_pack_does_not_make_gc_fail(
    environment: gitmem.Environment, notes: Documents, how: str
) -> None:
    documents = edited(notes, 5)
    environment.collect()
    (index,) = (git_dir(environment) / "objects/pack").glob("*.idx")
    whole = index.read_bytes()
    spoilt = {"cut short": whole[:1100], "emptied": b"", "spoiled": whole[:1000] + b"\xff" * 40 + whole[1040:]}
    index.chmod(0o644)
    index.write_bytes(spoilt[how])
    environment.collect()
    assert index.read_bytes() == spoilt[how]
    index.write_bytes(whole)
    assert {i: notes.read(i) for i in documents} == documents
