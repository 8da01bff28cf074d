"""An environment with an upstream: a save is done when it is there, and of many machines exactly one wins."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import gitmem
from gitmem.errors import RemoteRefusedError, RemoteUnreachableError
from tests.cli import Cli
from tests.remotes.hub import HttpHub, bare, hook
from tests.remotes.machines import Machine
from tests.remotes.proxy import Proxy
from tests.remotes.test_sync import agree
from tests.support import git, killed_at, python
from tests.workshop import NOTES


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return bare(tmp_path / "hub.git")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """Makes machines, whose stores are closed at the end."""
    made: list[Machine] = []

    def make(name: str, url: str | Path, *, offline: bool = False, seconds: float = 20.0) -> Machine:
        settings = gitmem.Settings(upstream_seconds=seconds)
        made.append(Machine(tmp_path / name, str(url), upstream=True, offline=offline, settings=settings))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


@pytest.fixture
def trio(machine: Callable[..., Machine], hub: Path) -> list[Machine]:
    """Three machines with one upstream, and the resource "notes"."""
    machines = [machine(name, hub) for name in ("one", "two", "three")]
    machines[0].environment.deploy(agent="tutor", memories=[NOTES])
    return machines


class Arrival:
    """Runs something when a push has moved the hub's main, before the pusher is told."""

    def __init__(self, hub: Path) -> None:
        self._hub = hub
        self._pipe = hub / "arrived"
        self._thread: threading.Thread | None = None

    def then(self, act: Callable[[], None]) -> None:
        os.mkfifo(self._pipe)
        os.mkfifo(self._hub / "go-on")
        hook(self._hub, "post-receive", f"echo > {self._pipe}; cat {self._hub}/go-on")

        def wait() -> None:
            self._pipe.read_bytes()
            act()
            hook(self._hub, "post-receive", "")
            (self._hub / "go-on").write_bytes(b"")

        self._thread = threading.Thread(target=wait)
        self._thread.start()

    def over(self) -> None:
        if self._thread is not None:
            self._thread.join()


@pytest.fixture
def arrival(hub: Path) -> Iterator[Arrival]:
    made = Arrival(hub)
    yield made
    made.over()


def test_a_save_is_done_when_the_upstream_has_it(trio: list[Machine], hub: Path) -> None:
    one, two, three = trio
    written = one.write("workshop", "a")
    assert git(hub, "rev-parse", "main") == one.tip
    assert git(one.tree, "rev-parse", "origin/main") == one.tip
    assert two.notes.read("workshop", fresh=True) == written
    newer = two.notes.replace("workshop", text="b", if_match=written.revision)
    assert one.notes.read("workshop").text == "a"  # a local read, by choice
    assert one.notes.read("workshop", fresh=True) == newer
    with pytest.raises(gitmem.PreconditionFailedError) as stale:
        three.notes.replace("workshop", text="c", if_match=written.revision)
    assert stale.value.actual == newer.revision
    assert three.notes.replace("workshop", text="c", if_match=newer.revision).text == "c"
    for one_more in trio:
        one_more.environment.refresh()
    agree(*trio)
    assert git(hub, "rev-list", "--merges", "main") == ""


def test_answers_without_a_commit_are_those_of_the_upstream_too(trio: list[Machine]) -> None:
    one, two, _ = trio
    first = one.write("workshop", "a")
    with pytest.raises(gitmem.PreconditionFailedError, match="exists already"):
        two.notes.create("workshop", title="again")
    second = one.notes.replace("workshop", text="b", if_match=first.revision)
    # It changes nothing on what `two` has, but that is not what there is.
    with pytest.raises(gitmem.PreconditionFailedError):
        two.notes.replace("workshop", text="a", if_match=first.revision)
    one.notes.delete("workshop", if_match=second.revision)
    with pytest.raises(gitmem.NotFoundError):
        two.notes.replace("workshop", text="c", if_match=second.revision)


def test_exactly_one_of_three_wins_a_revision(trio: list[Machine]) -> None:
    one, *_ = trio
    for round_number in range(4):
        seen = one.write("workshop", f"start {round_number}").revision

        def attempt(machine: Machine, seen: str = seen) -> str | None:
            try:
                return machine.notes.replace("workshop", text=str(machine.folder), if_match=seen).revision
            except gitmem.PreconditionFailedError:
                return None

        with ThreadPoolExecutor(3) as pool:
            won = [revision for revision in pool.map(attempt, trio) if revision]
        assert len(won) == 1
        assert {machine.notes.read("workshop", fresh=True).revision for machine in trio} == set(won)


def test_waiting_saves_share_a_push(machine: Callable[..., Machine], hub: Path, tmp_path: Path) -> None:
    with HttpHub(tmp_path) as server:
        one = machine("one", server.url("hub.git"))
        one.environment.deploy(agent="tutor", memories=[NOTES])
        before = len([line for line in server.log if "POST /hub.git/git-receive-pack" in line])
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda number: one.write(f"n{number}", "x"), range(32)))
        pushes = len([line for line in server.log if "POST /hub.git/git-receive-pack" in line]) - before
    assert pushes <= 16
    assert len(one.revisions()) == 32
    assert git(hub, "rev-parse", "main") == one.tip


def changes_nothing(one: Machine, kind: type[gitmem.GitmemError], word: str) -> None:
    """A save must say `word`, and leave no trace of it here."""
    before = git(one.tree, "for-each-ref"), git(one.tree, "count-objects", "-v"), one.revisions()
    with pytest.raises(kind, match=word):
        one.notes.create("lost", title="lost")
    assert (git(one.tree, "for-each-ref"), git(one.tree, "count-objects", "-v"), one.revisions()) == before
    assert not (one.tree / "notes" / "lost.json").exists()
    assert not (one.tree / ".git" / "gitmem" / "outgoing").exists()


def test_without_the_upstream_a_save_fails_and_changes_nothing(
    machine: Callable[..., Machine], hub: Path, tmp_path: Path
) -> None:
    with HttpHub(tmp_path) as server, Proxy(server.port) as proxy:
        one = machine("one", f"http://127.0.0.1:{proxy.port}/hub.git", seconds=1.5)
        one.environment.deploy(agent="tutor", memories=[NOTES])
        one.environment.close()
        proxy.hang_after = 0
        changes_nothing(one, RemoteUnreachableError, "origin")
        proxy.behave()
        proxy.break_after = 0
        changes_nothing(one, RemoteUnreachableError, "origin")
        with pytest.raises(RemoteUnreachableError):
            one.notes.list(fresh=True)
        assert one.notes.list().documents == ()
        proxy.behave()
        one.write("kept", "x")
    changes_nothing(one, RemoteUnreachableError, "cannot be reached")
    assert git(hub, "rev-parse", "main") == one.tip


def test_what_the_upstream_refuses_is_not_here_either(trio: list[Machine], hub: Path) -> None:
    hook(hub, "pre-receive", "echo no secrets >&2; exit 1")
    changes_nothing(trio[0], RemoteRefusedError, "no secrets")


def test_an_answer_that_was_lost_is_looked_for(
    machine: Callable[..., Machine], hub: Path, tmp_path: Path, arrival: Arrival
) -> None:
    with HttpHub(tmp_path) as server, Proxy(server.port) as proxy:
        one = machine("one", f"http://127.0.0.1:{proxy.port}/hub.git")
        one.environment.deploy(agent="tutor", memories=[NOTES])
        arrival.then(proxy.cut)
        assert one.notes.create("workshop", title="Arrived").revision == git(hub, "rev-parse", "main")


def test_an_answer_that_stays_lost_says_so_and_the_save_is_found(
    machine: Callable[..., Machine], hub: Path, tmp_path: Path, arrival: Arrival
) -> None:
    with HttpHub(tmp_path) as server, Proxy(server.port) as proxy:
        one = machine("one", f"http://127.0.0.1:{proxy.port}/hub.git")
        one.environment.deploy(agent="tutor", memories=[NOTES])

        def go_away() -> None:
            proxy.break_after = 0
            proxy.cut()

        arrival.then(go_away)
        with pytest.raises(RemoteUnreachableError, match="may have arrived"):
            one.notes.create("workshop", title="Arrived")
        proxy.behave()
        assert "workshop" not in one.revisions()
        assert one.notes.read("workshop", fresh=True).title == "Arrived"
        assert git(hub, "rev-parse", "main") == one.tip


@pytest.mark.slow
def test_offline_saves_are_made_here_and_go_out_later(machine: Callable[..., Machine], hub: Path) -> None:
    one, two = machine("one", hub, offline=True), machine("two", hub)
    one.environment.deploy(agent="tutor", memories=[NOTES])
    two.environment.refresh()
    hub.rename(hub.with_name("away.git"))
    with pytest.raises(RemoteRefusedError, match="does not exist"):
        one.write("offline", "x")  # a wrong place is not a remote that is away
    hub.with_name("away.git").rename(hub)
    one.write("online", "x")
    assert two.notes.read("online", fresh=True).text == "x"


def test_offline_over_a_network_that_is_away(machine: Callable[..., Machine], hub: Path, tmp_path: Path) -> None:
    with HttpHub(tmp_path) as server, Proxy(server.port) as proxy:
        one = machine("one", f"http://127.0.0.1:{proxy.port}/hub.git", offline=True, seconds=2.0)
        two = machine("two", server.url("hub.git"))
        one.environment.deploy(agent="tutor", memories=[NOTES])
        two.environment.refresh()
        proxy.break_after = 0
        assert one.write("offline", "x").text == "x"
        assert git(hub, "rev-parse", "main") != one.tip
        two.write("meanwhile", "y")
        proxy.behave()
        one.environment.sync()
        one.write("after", "z")
        assert {document.id for document in two.notes.list(fresh=True).documents} == {"offline", "meanwhile", "after"}
    agree(one, two)


@pytest.mark.parametrize(
    "failpoint",
    [
        "before-barrier",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("before-push", "after-push", "before-swap", "after-swap")
        ),
    ],
)
def test_a_machine_killed_in_between_is_brought_up(
    machine: Callable[..., Machine], hub: Path, failpoint: str, tmp_path: Path
) -> None:
    one = machine("one", hub)
    one.environment.deploy(agent="tutor", memories=[NOTES])
    one.environment.close()
    killed_at(
        failpoint,
        "import gitmem, sys\nstore = gitmem.open_store(sys.argv[1])\n"
        "store.project('bot').environment().documents('notes').create('workshop', title='Killed')",
        str(one.folder),
    )
    arrived = failpoint != "before-push"
    one.environment.refresh()
    assert ("workshop" in one.revisions()) is arrived
    one.write("next", "x")
    assert git(hub, "rev-parse", "main") == one.tip
    two = machine("two", hub)
    two.environment.refresh()
    agree(one, two)


def test_a_disk_that_fails_here_does_not_undo_what_is_there(trio: list[Machine], hub: Path) -> None:
    one, *_ = trio
    one.environment.close()
    code = (
        "import errno, sys\nimport gitmem\nfrom gitmem import failpoints\n"
        "def full():\n    raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "failpoints.arm('before-objects', full)\n"
        "notes = gitmem.open_store(sys.argv[1]).project('bot').environment().documents('notes')\n"
        "print(notes.create('workshop', title='There').revision)\n"
    )
    done = python(code, str(one.folder))
    assert done.stdout.strip() == git(hub, "rev-parse", "main"), done.stderr
    assert one.notes.read("workshop", fresh=True).revision == done.stdout.strip()


@pytest.mark.slow
def test_what_a_person_commits_goes_out_with_the_next_save(trio: list[Machine], hub: Path) -> None:
    one, two, _ = trio
    two.environment.refresh()
    (one.tree / "notes" / "byhand.json").write_text('{"title": "By hand"}')
    git(one.tree, "add", ".")
    git(one.tree, "commit", "-q", "-m", "by hand")
    two.write("other", "x")
    one.write("mine", "y")
    assert {"byhand", "other", "mine"} == {document.id for document in two.notes.list(fresh=True).documents}
    agree(one, two)


@pytest.mark.slow
def test_main_taken_back_does_not_take_the_upstream_back(trio: list[Machine], hub: Path) -> None:
    one, *_ = trio
    one.write("workshop", "a")
    git(one.tree, "reset", "-q", "--hard", "main~1")
    one.write("other", "x")
    assert set(one.revisions()) == {"workshop", "other"}
    assert git(hub, "rev-parse", "main") == one.tip


def test_a_new_upstream_gets_everything(environment: gitmem.Environment, notes: gitmem.Documents, hub: Path) -> None:
    notes.create("before", title="x")
    environment.remotes.add("origin", str(hub), upstream=True)
    notes.create("after", title="y")
    assert git(hub, "rev-parse", "main") == git(environment.folder, "rev-parse", "main")


@pytest.mark.slow
def test_three_processes_race_through_one_upstream(trio: list[Machine], hub: Path) -> None:
    one, *_ = trio
    one.write("counter", "0")
    code = (
        "import gitmem, sys\nnotes = gitmem.open_store(sys.argv[1]).project('bot').environment().documents('notes')\n"
        "done = 0\n"
        "while done < 6:\n"
        "    seen = notes.read('counter', fresh=True)\n"
        "    try:\n"
        "        notes.replace('counter', text=str(int(seen.text) + 1), if_match=seen.revision)\n"
        "        done += 1\n"
        "    except gitmem.PreconditionFailedError:\n"
        "        pass\n"
    )
    for machine in trio:
        machine.environment.close()
    failures: list[str] = []

    def run(machine: Machine) -> None:
        ended = python(code, str(machine.folder))
        if ended.returncode:
            failures.append(ended.stderr)

    threads = [threading.Thread(target=run, args=(machine,)) for machine in trio]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [machine.notes.read("counter", fresh=True).text for machine in trio] == ["18"] * 3
    agree(*trio)
    assert git(hub, "rev-list", "--count", "main", "--", "notes/counter.json") == "19"


def test_the_commands_read_fresh_where_they_are_told_to(trio: list[Machine]) -> None:
    one, two, _ = trio
    two.environment.refresh()
    one.write("workshop", "a")
    (two.folder / "gitmem.toml").write_text('project = "bot"\n')
    run = Cli(two.folder)
    assert run("show", "notes", "workshop").status == 1
    assert run.ok("list", "notes") == ""
    assert "workshop" in run.ok("list", "notes", "--fresh")
    one.write("workshop", "b")
    assert run.ok("show", "notes", "workshop", "--fresh").endswith("\nb\n")
    assert len(run.json("log", "notes", "workshop", "--fresh")["versions"]) == 2


def test_commands_that_write_start_from_what_there_is(trio: list[Machine]) -> None:
    one, two, _ = trio
    two.environment.refresh()
    one.write("workshop", "a")
    (two.folder / "gitmem.toml").write_text('project = "bot"\n')
    run = Cli(two.folder)
    run.ok("retitle", "notes", "workshop", "From two")
    one.environment.refresh()
    one.write("workshop", "b")
    run.ok("freeze", "notes", "workshop")
    found = one.notes.read("workshop", fresh=True)
    assert (found.title, found.text, found.agent_writes) == ("From two", "b", "disabled")
