"""A process killed while it saves: what it acknowledged is there, the rest whole or not at all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gitmem
from gitmem import failpoints
from gitmem.codec import Content, decode
from tests.support import clean_environment, fsck, git

SAVE_FOREVER = """
import os, signal, sys, threading
import gitmem
from gitmem import failpoints

folder, name, failpoint, skip, threads = sys.argv[1:]
store = gitmem.open_store(folder)
notes = store.project("bot").environment("development").documents("notes")
left = [int(skip)]

def stop():
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)

if failpoint:
    failpoints.arm(failpoint, stop)

def work(worker):
    number = 0
    while True:
        document = notes.create(f"{name}-{worker}-{number}", title="T")
        os.write(1, f"{document.id} {document.revision}\\n".encode())
        document = notes.replace(document.id, text="x" * 2000, if_match=document.revision)
        os.write(1, f"{document.id} {document.revision}\\n".encode())
        number += 1

for worker in range(int(threads)):
    threading.Thread(target=work, args=(worker,)).start()
"""

# Packing happens only in large repositories, and pushes only with an upstream: tests of their own kill those.
SAVING = [name for name in failpoints.NAMES if not name.endswith(("-pack", "-push"))]


def started(folder: str, name: str, *, failpoint: str = "", skip: int = 0, threads: int = 1) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SAVE_FOREVER, folder, name, failpoint, str(skip), str(threads)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment(),
    )  # fmt: skip


def acknowledged(child: subprocess.Popen[str]) -> dict[str, list[str]]:
    """The revisions of each document that a killed child had acknowledged, oldest first."""
    out, error = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL, error
    found: dict[str, list[str]] = {}
    for line in out.splitlines():
        if len(words := line.split()) == 2 and len(words[1]) == 40:
            found.setdefault(words[0], []).append(words[1])
    return found


def files_at_tip(folder: str) -> Iterator[tuple[str, bytes]]:
    """Each document's id and bytes, as git reads them from main."""
    listed = [line.split(None, 3) for line in git(folder, "ls-tree", "-r", "main", "notes/").splitlines()]
    rest = git(folder, "cat-file", "--batch", stdin="".join(f"{oid}\n" for _, _, oid, _ in listed)).encode() + b"\n"
    for _, _, oid, path in listed:
        head, _, rest = rest.partition(b"\n")
        size = int(head.split()[2])
        assert head.split()[0].decode() == oid
        if not path.endswith("/.resource.json"):
            yield Path(path).stem, rest[:size]
        rest = rest[size + 1 :]


def check(folder: str, promised: dict[str, list[str]]) -> None:
    """Open the store after a kill: nothing acknowledged is missing, and all is well again."""
    with gitmem.open_store(folder) as store:
        environment = store.project("bot").environment("development")
        notes = environment.documents("notes")
        for document_id, revisions in promised.items():
            history = [version.revision for version in notes.history(document_id).versions][::-1]
            assert history[: len(revisions)] == revisions
            assert len(history) <= len(revisions) + 1
        for document_id, data in files_at_tip(environment.folder):
            assert isinstance(decode(data, document_id), Content)
        again = notes.create(f"after-{len(git(environment.folder, 'rev-list', 'main'))}", title="Again")
        assert notes.read(again.id) == again
    assert fsck(Path(environment.folder)) == ""
    assert git(environment.folder, "status", "--porcelain") == ""


@pytest.mark.parametrize("threads", [1, 6])
@pytest.mark.parametrize("failpoint", SAVING)
def test_killed_at_each_failpoint(
    failpoint: str, threads: int, store: gitmem.Store, environment: gitmem.Environment
) -> None:
    child = started(store.folder, "k", failpoint=failpoint, skip=3, threads=threads)
    check(store.folder, acknowledged(child))


def kill_at_random(folder: str, seed: int) -> None:
    chance = random.Random(seed)
    child = started(folder, f"k{seed}", threads=chance.choice([1, 1, 4]))
    assert child.stdout
    # The moment is counted in answers, not in seconds: it falls anywhere within the save after the last of them.
    lines = [child.stdout.readline() for _ in range(chance.randrange(1, 30))]
    for _ in range(chance.randrange(3000)):
        os.getpid()
    child.kill()
    rest = acknowledged(child)
    promised: dict[str, list[str]] = {}
    for line in lines:
        document_id, revision = line.split()
        promised.setdefault(document_id, []).append(revision)
    for document_id, revisions in rest.items():
        promised.setdefault(document_id, []).extend(revisions)
    check(folder, promised)


def test_killed_at_random(store: gitmem.Store, environment: gitmem.Environment) -> None:
    for seed in range(50):
        kill_at_random(store.folder, seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 2000, 50))
def test_killed_at_random_a_thousand_times(start: int, store: gitmem.Store, environment: gitmem.Environment) -> None:
    for seed in range(start, start + 50):
        kill_at_random(store.folder, seed)
