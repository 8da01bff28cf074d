"""Conflicts: other documents go on, both versions stay readable in every clone, and somebody settles them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import gitmem
from tests.cli import Cli
from tests.remotes.hub import bare
from tests.remotes.machines import Machine, pair
from tests.remotes.test_sync import agree
from tests.support import git


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    """Two machines that both wrote the first line of notes/workshop; `two` has merged, `one` has it."""
    one, two = pair(tmp_path, bare(tmp_path / "hub.git"))
    one.write("workshop", "first")
    one.environment.sync()
    two.environment.sync()
    one.write("workshop", "of one")
    two.write("workshop", "of two")
    two.write("other", "goes on")
    one.environment.sync()
    assert [conflict.id for conflict in two.environment.sync().conflicts] == ["workshop"]
    one.environment.sync()
    yield one, two
    one.store.close()
    two.store.close()


def test_a_conflict_stops_nothing_else_and_both_versions_stay(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    agree(one, two)
    assert one.notes.read("other").text == "goes on"
    found = one.environment.conflicts()
    assert found == two.environment.conflicts()
    (conflict,) = found
    for machine in machines:
        assert machine.notes.read("workshop").revision == conflict.theirs
        assert machine.notes.read("workshop", at=conflict.theirs).text == "of one"
        assert machine.notes.read("workshop", at=conflict.ours).text == "of two"
        versions = {version.revision for version in machine.notes.history("workshop").versions}
        assert versions > {conflict.ours, conflict.theirs}


@pytest.mark.slow
def test_conflicts_are_the_same_after_a_rebuild(machines: tuple[Machine, Machine]) -> None:
    one, _ = machines
    found = one.environment.conflicts()
    one.environment.close()
    for path in (one.tree / ".git" / "gitmem").glob("index.sqlite*"):
        path.unlink()
    assert one.environment.conflicts() == found


@pytest.mark.parametrize(("take", "text"), [("ours", "of two"), ("theirs", "of one")])
def test_taking_a_side_settles_it_everywhere(machines: tuple[Machine, Machine], take: str, text: str) -> None:
    one, two = machines
    run = Cli(one.folder)
    (one.folder / "gitmem.toml").write_text('project = "bot"\n')
    assert run("sync").status == 3
    assert "conflict  notes/workshop  ours " in run.ok("conflicts")
    assert run.ok("resolve", "notes", "workshop", f"--{take}").startswith("settled notes/workshop  ")
    assert run.json("conflicts") == {"conflicts": []}
    assert run("sync").status == 0
    assert two.environment.sync().conflicts == ()
    assert two.notes.read("workshop").text == text
    agree(one, two)
    two.environment.close()
    for path in (two.tree / ".git" / "gitmem").glob("index.sqlite*"):
        path.unlink()
    assert two.environment.conflicts() == []


@pytest.mark.slow
def test_a_text_of_ones_own_settles_it(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    one, two = machines
    (tmp_path / "text").write_text("of both")
    (two.folder / "gitmem.toml").write_text('project = "bot"\n')
    Cli(two.folder).ok("resolve", "notes", "workshop", "--text-file", str(tmp_path / "text"))
    two.environment.sync()
    one.environment.sync()
    assert one.notes.read("workshop").text == "of both"
    assert one.environment.conflicts() == []
    assert git(one.tree, "log", "-1", "--format=%s", "--first-parent") == "resolve notes/workshop"
    agree(one, two)


@pytest.mark.slow
def test_a_later_save_does_not_hide_a_conflict(machines: tuple[Machine, Machine]) -> None:
    one, _ = machines
    one.write("workshop", "later")
    assert [conflict.id for conflict in one.environment.conflicts()] == ["workshop"]


@pytest.mark.slow
def test_both_sides_settle_it_differently(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.environment.resolve("notes", "workshop", text="as one says")
    two.environment.resolve("notes", "workshop", text="as two says")
    one.environment.sync()
    (again,) = two.environment.sync().conflicts
    assert two.notes.read("workshop", at=again.ours).text == "as two says"
    one.environment.sync()
    assert one.environment.conflicts() == [again]
    agree(one, two)


@pytest.mark.slow
def test_a_deleted_document_has_no_conflict(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.notes.delete("workshop", if_match=one.notes.read("workshop").revision)
    one.environment.sync()
    assert two.environment.sync().conflicts == ()


def test_the_same_id_made_on_two_sides(tmp_path: Path) -> None:
    one, two = pair(tmp_path, bare(tmp_path / "hub.git"))
    first, second = one.write("same", "of one"), two.write("same", "of two")
    one.notes.create("equal", title="equal", text="x")
    two.notes.create("equal", title="equal", text="x")
    one.environment.sync()
    (conflict,) = two.environment.sync().conflicts
    assert (conflict.id, conflict.ours, conflict.theirs) == ("same", second.revision, first.revision)
    one.environment.sync()
    agree(one, two)
    assert one.notes.read("same", at=second.revision).text == "of two"
    one.store.close()
    two.store.close()


def test_wrong_ways_to_settle(machines: tuple[Machine, Machine]) -> None:
    one, _ = machines
    with pytest.raises(gitmem.NotFoundError, match="no conflict about notes/other"):
        one.environment.resolve("notes", "other", take="ours")
    with pytest.raises(gitmem.LimitExceededError):
        one.environment.resolve("notes", "workshop", text="x" * 20_000)
    with pytest.raises(gitmem.InvalidRequestError, match="one of them"):
        one.environment.resolve("notes", "workshop")
    assert len(one.environment.conflicts()) == 1
