"""Sync beside others: a running server and its savers, a kill in the middle, sessions, and `sync --watch`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import gitmem
from tests.cli import Cli
from tests.http.server import Server
from tests.remotes.hub import PASSWORD, USER, HttpHub, SshHub, bare
from tests.remotes.machines import Machine, pair
from tests.remotes.test_sync import agree
from tests.support import clean_environment, git, killed_at
from tests.workshop import NOTES


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return bare(tmp_path / "hub.git")


@pytest.fixture
def machines(tmp_path: Path, hub: Path) -> Iterator[tuple[Machine, Machine]]:
    one, two = pair(tmp_path, hub)
    yield one, two
    one.store.close()
    two.store.close()


@pytest.mark.slow
def test_sync_beside_a_running_server_and_its_savers(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    one, two = machines
    over = threading.Event()
    saved: list[str] = []

    def save() -> None:
        for number in range(150):
            saved.append(one.notes.create(f"here{number}", title="x").revision)
            if over.is_set():
                return

    saver = threading.Thread(target=save)
    with Server(one.folder, log=tmp_path / "log") as server:
        saver.start()
        for number in range(3):
            two.write(f"there{number}", "x")
            two.environment.sync()
            Cli(one.folder).ok("sync", "--project", "bot")
        over.set()
        saver.join()
        Cli(one.folder).ok("sync", "--project", "bot")
        assert one.notes.read("there2").text == "x"
        assert server.process.poll() is None
    two.environment.sync()
    agree(one, two)
    assert set(saved) <= set(one.revisions().values())


@pytest.mark.parametrize(
    "failpoint",
    [
        "after-swap",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("before-swap", "before-stage")),
    ],
)
def test_a_sync_that_is_killed_loses_nothing_and_adopts_nothing(
    machines: tuple[Machine, Machine], failpoint: str
) -> None:
    one, two = machines
    one.write("workshop", "1")
    one.environment.sync()
    two.environment.sync()
    (one.tree / "notes" / "workshop.json").write_text('{"title": "By hand", "text": ["2"]}')
    git(one.tree, "commit", "-q", "-a", "-m", "by hand")
    git(one.tree, "push", "-q", "origin", "main")
    two.write("other", "x")
    two.environment.close()
    killed_at(
        failpoint,
        "import gitmem, sys\ngitmem.open_store(sys.argv[1]).project('bot').environment().sync()",
        str(two.folder),
    )
    # The file still holds what was there before: nobody's edit, although a person made the commit.
    two.environment.status()
    two.environment.sync()
    assert two.notes.read("workshop").text == "2"
    one.environment.sync()
    assert one.notes.read("workshop").title == "By hand"
    agree(one, two)


@pytest.mark.slow
def test_events_of_sessions_stay_in_order(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.write("workshop", "1")
    one.environment.sync()
    two.environment.sync()
    two.environment.deploy(agent="tutor", memories=[NOTES])
    session = two.environment.sessions.create(
        agent="tutor",
        memory={"notes": {"scope": "document", "id": "workshop", "access": "read-write"}},
        idempotency_key="k",
    )
    for number in range(3):
        one.write(f"other{number}", "x")
        one.environment.sync()
        render = session.render()
        render.use_memory(NOTES)
        render.call("memory_save", {"memory": "notes", "text": f"by the agent {number}"})
        two.environment.sync()
    events = [(event.seq, event.revision) for event in session.events()]
    assert [seq for seq, _ in events] == [1, 2, 3]
    two.environment.close()
    for path in (two.tree / ".git" / "gitmem").glob("index.sqlite*"):
        path.unlink()
    assert [(event.seq, event.revision) for event in session.events()] == events


def test_watching_syncs_again_and_again(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    command = [os.path.join(os.path.dirname(sys.executable), "gitmem"), "sync", "--watch", "--every", "0.1", "--json"]
    with subprocess.Popen(
        command, cwd=two.folder, stdout=subprocess.PIPE, text=True, env=clean_environment({"GITMEM_PROJECT": "bot"})
    ) as watching:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["received"] == 0
        one.write("workshop", "seen")
        one.environment.sync()
        while json.loads(watching.stdout.readline())["received"] == 0:
            pass
        watching.send_signal(signal.SIGINT)
        watching.communicate()
    assert watching.returncode == 130
    assert two.notes.read("workshop").text == "seen"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["http", "ssh"])
def test_over_a_network_with_credentials(tmp_path: Path, hub: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("GITMEM_REMOTE_USERNAME", USER)
    monkeypatch.setenv("GITMEM_REMOTE_PASSWORD", PASSWORD)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with HttpHub(tmp_path, authenticates=True) as server, SshHub(tmp_path / "ssh") as sshd:
        monkeypatch.setenv("HOME", str(sshd.home))
        url = server.url("hub.git") if kind == "http" else sshd.url(hub)
        one, two = Machine(tmp_path / "one", url), Machine(tmp_path / "two", url)
        one.environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="Notes.")])
        one.environment.sync()
        two.environment.sync()
        one.write("mine", "x")
        two.write("theirs", "y")
        one.environment.sync()
        two.environment.sync()
        one.environment.sync()
        agree(one, two)
        assert len(one.revisions()) == 2
        assert PASSWORD not in (one.tree / ".git" / "config").read_text()
        one.store.close()
        two.store.close()
