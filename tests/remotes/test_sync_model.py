"""Random work on two clones: both end equal, nothing that either wrote is unreachable, and revisions agree."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import gitmem
from gitmem import doctor
from tests.remotes.hub import bare
from tests.remotes.machines import Machine
from tests.support import git
from tests.workshop import NOTES

_NAMES = ("a", "b", "c")
_ACTIONS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(("write", "write", "write", "retitle", "freeze", "delete", "hand", "sync", "resolve")),
        st.sampled_from(_NAMES),
        st.integers(0, 5),
    ),
    min_size=4,
    max_size=24,
)

# An example is seconds of real processes: hundreds of them to make one shorter would take too long.
_QUICKLY = settings(
    phases=(Phase.explicit, Phase.generate), deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@dataclass
class Clone:
    """A machine, and every version that was written there: document, revision, text (None: deleted)."""

    machine: Machine
    written: list[tuple[str, str, str]] = field(default_factory=list)

    def act(self, kind: str, name: str, line: int, serial: int) -> None:
        notes = self.machine.notes
        if kind == "sync":
            self.machine.environment.sync()
            return
        try:
            found = notes.read(name)
        except gitmem.NotFoundError:
            found = None
        try:
            if found is None:
                if kind in {"write", "hand"}:
                    self._keep(notes.create(name, title=name, text="\n".join(f"line {at}" for at in range(6))))
                return
            match kind:
                case "write":
                    lines = found.text.split("\n")
                    lines[min(line, len(lines) - 1)] = f"written {serial}"
                    self._keep(notes.replace(name, text="\n".join(lines), if_match=found.revision))
                case "retitle":
                    self._keep(notes.patch(name, title=f"title {serial}", if_match=found.revision))
                case "freeze":
                    policy = "enabled" if found.agent_writes == "disabled" else "disabled"
                    self._keep(notes.patch(name, agent_writes=policy, if_match=found.revision))  # type: ignore[arg-type]
                case "delete" if line == 0:
                    notes.delete(name, if_match=found.revision)
                case "hand":
                    path = self.machine.tree / "notes" / f"{name}.json"
                    path.write_text(path.read_text().replace(f"line {line}", f"by hand {serial}"))
                    self._keep(notes.patch(name, title=found.title, if_match=found.revision))
                case "resolve":
                    self._keep(self.machine.environment.resolve("notes", name, take="ours"))
        except (gitmem.PreconditionFailedError, gitmem.NotFoundError):
            pass  # reserved by a deletion, edited by hand, or not in conflict

    def _keep(self, document: gitmem.Document) -> None:
        self.written.append((document.id, document.revision, document.text))


def run(folder: Path, actions: list[tuple[int, str, str, int]]) -> None:
    hub = bare(folder / "hub.git")
    clones = [
        Clone(Machine(folder / name, str(hub), settings=gitmem.Settings(durable=False))) for name in ("one", "two")
    ]
    try:
        work(hub, clones, actions)
    finally:
        for clone in clones:
            clone.machine.store.close()


def work(hub: Path, clones: list[Clone], actions: list[tuple[int, str, str, int]]) -> None:
    one, two = clones
    one.machine.environment.deploy(agent="tutor", memories=[NOTES])
    one.machine.environment.sync()
    two.machine.environment.sync()
    for serial, (who, kind, name, line) in enumerate(actions):
        clones[who].act(kind, name, line, serial)
    for clone in (one, two, one):
        clone.machine.environment.sync()

    assert one.machine.tip == two.machine.tip == git(hub, "rev-parse", "main")
    assert one.machine.revisions() == two.machine.revisions()
    assert one.machine.texts() == two.machine.texts()
    assert one.machine.environment.conflicts() == two.machine.environment.conflicts()
    for clone in clones:
        for name, revision, text in one.written + two.written:
            git(clone.machine.tree, "merge-base", "--is-ancestor", revision, "main")
            assert clone.machine.notes.read(name, at=revision).text == text
            assert revision in {version.revision for version in clone.machine.notes.history(name).versions}
        assert not list(doctor.examine(clone.machine.environment))
        assert clone.machine.dirt() == ""


@settings(_QUICKLY, max_examples=3)
@given(_ACTIONS)
def test_two_clones_end_equal_and_lose_nothing(actions: list[tuple[int, str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), actions)


@pytest.mark.slow
@settings(_QUICKLY, max_examples=150)
@given(_ACTIONS)
def test_two_clones_end_equal_and_lose_nothing_again_and_again(actions: list[tuple[int, str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), actions)
