"""Power loss: what a traced gitmem had on the disk at any moment is enough for every acknowledged save.

Nothing is assumed about the order in which a file system writes what was not flushed: data, sizes and
names reach the disk or not, each by itself, a rename between two folders in two halves. Assumed is
only what POSIX and every disk promise: fsync and fdatasync cover a file's data and size, fsync of a
folder its names, syncfs everything; a name that is replaced within its folder stands for the old file
or for the new one; a sector of 512 bytes is the old one or the new one. So the strict replay, which
drops whatever no flush covers, is the file system with the weakest order there could be, and the
others (names without data, data without names, any part of both) are ext4, XFS, btrfs and FAT at
their worst moments.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Final

import pytest

from gitmem.git import journal
from tests.power.claims import Claims, acknowledgements, spoken
from tests.power.disk import Recording
from tests.power.survival import (
    PAGE,
    SECTOR,
    Some,
    Survival,
    Torn,
    data,
    everything,
    last_uncovered_write,
    moments,
    names,
    names_and_sizes,
    nothing,
    rebuilt,
)
from tests.power.trace import Call, traced

LONG_AGO: Final = 1_000_000_000
SURVIVALS: Final = ("nothing", "names", "names and sizes", "data", "some", "torn sector", "torn page")


class Traced:
    """The trace of one workload, which wrote a store in `root/store`."""

    def __init__(self, folder: Path, workload: str) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        self.calls = traced(["-m", "tests.power.workload", workload, str(self.root / "store")], folder=folder)
        self.recording = Recording(str(self.root), self.calls)
        self.moments = moments(self.recording)
        self.acknowledgements = acknowledgements(self.calls)
        self.journal = self.recording.find(str(self.root / "store/bot/development/.git/gitmem/journal"))

    def moment(self, random: Random) -> int:
        """Just after an acknowledgement, or anywhere."""
        return random.choice((random.choice(self.acknowledgements).begun, random.choice(self.moments)))

    def survival(self, name: str, moment: int, seed: int) -> Survival:
        torn = last_uncovered_write(self.recording, moment, self.journal)
        found: dict[str, Survival] = {
            "nothing": nothing,
            "names": names,
            "names and sizes": names_and_sizes,
            "data": data,
            "some": Some(seed),
            "torn sector": Torn(torn, SECTOR, seed),
            "torn page": Torn(torn, PAGE, seed),
        }
        return found[name]

    def leave(self, target: Path, survival: str, seed: int) -> Claims:
        """Lay out in `target` what a power loss at some moment leaves; what had been promised by then."""
        moment = self.moment(Random(seed))
        rebuilt(self.recording, moment, self.survival(survival, moment, seed), target)
        return Claims(self.calls, moment)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return Traced(tmp_path_factory.mktemp("mixed"), "mixed")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return Traced(tmp_path_factory.mktemp("many"), "many")


@pytest.fixture
def restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has started again since the trace was made."""
    monkeypatch.setattr(journal, "_boot", os.urandom(16))


def age(folder: Path) -> None:
    """Every file was written before the machine started."""
    for place, _, files in os.walk(folder):
        for name in files:
            os.utime(os.path.join(place, name), (LONG_AGO, LONG_AGO))


# Every acknowledged save is there


@pytest.mark.usefixtures("restarted")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("survival", SURVIVALS)
def test_every_acknowledged_save_survives(mixed: Traced, tmp_path: Path, survival: str, seed: int) -> None:
    claims = mixed.leave(tmp_path / "disk", survival, seed)
    age(tmp_path)
    claims.hold(tmp_path / "disk/store")


@pytest.mark.slow
@pytest.mark.usefixtures("restarted")
@pytest.mark.parametrize("seed", range(100, 150))
@pytest.mark.parametrize("survival", SURVIVALS)
def test_every_acknowledged_save_survives_at_many_moments(
    mixed: Traced, tmp_path: Path, survival: str, seed: int
) -> None:
    claims = mixed.leave(tmp_path / "disk", survival, seed)
    age(tmp_path)
    claims.hold(tmp_path / "disk/store")


@pytest.mark.slow
@pytest.mark.usefixtures("restarted")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("survival", SURVIVALS)
def test_bulk_writing_and_a_split_folder_survive(many: Traced, tmp_path: Path, survival: str, seed: int) -> None:
    claims = many.leave(tmp_path / "disk", survival, seed)
    age(tmp_path)
    claims.hold(tmp_path / "disk/store")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_disk_that_went_away_under_a_running_machine_keeps_every_acknowledged_save(
    mixed: Traced, tmp_path: Path, seed: int
) -> None:
    mixed.leave(tmp_path / "disk", "nothing", seed).hold(tmp_path / "disk/store")


@pytest.mark.parametrize("seed", [1])
def test_a_process_that_was_only_killed_leaves_everything(mixed: Traced, tmp_path: Path, seed: int) -> None:
    moment = mixed.moment(Random(seed))
    rebuilt(mixed.recording, moment, everything, tmp_path / "disk")
    Claims(mixed.calls, moment).hold(tmp_path / "disk/store")


# What a flush costs


def test_a_single_writer_pays_one_flush_a_save(tmp_path_factory: pytest.TempPathFactory) -> None:
    traced = Traced(tmp_path_factory.mktemp("alone"), "alone")
    saver = traced.acknowledgements[0].thread
    spans = list(zip(traced.acknowledgements[1:], traced.acknowledgements[2:], strict=False))
    assert len(spans) > 20
    for before, after in spans:
        assert len(flushes_between(traced.recording, before, after, saver)) == 1


def test_eight_writers_share_their_flushes(tmp_path_factory: pytest.TempPathFactory) -> None:
    traced = Traced(tmp_path_factory.mktemp("together"), "together")
    savers = {call.thread for call in traced.acknowledgements[1:]}
    assert len(savers) == 8
    first, *saves = traced.acknowledgements
    shared = [flush for flush in traced.recording.flushes if flush.thread in savers and flush.begun > first.begun]
    assert 0 < len(shared) < len(saves)


def flushes_between(recording: Recording, before: Call, after: Call, thread: int) -> list[Call]:
    return [f for f in recording.flushes if f.thread == thread and before.begun < f.begun < after.begun]


# The replay itself


def left_by(folder: Path, code: str, survival: Survival = nothing) -> dict[str, bytes]:
    """The files that a power loss leaves when the child has said that it is done."""
    (folder / "root").mkdir()
    script = f"import os\nroot = {str(folder / 'root')!r}\n{code}\nos.write(1, b'done')\n"
    calls = traced(["-c", script], folder=folder)
    recording = Recording(str(folder / "root"), calls)
    rebuilt(recording, spoken(calls)[-1].begun, survival, folder / "disk")
    return {path.name: path.read_bytes() for path in (folder / "disk").rglob("*") if path.is_file()}


WRITE = """
file = os.open(root + "/new", os.O_CREAT | os.O_WRONLY)
os.write(file, b"x" * 5000)
"""
RENAME = "os.rename(root + '/new', root + '/file')\n"
FOLDER = "os.fsync(os.open(root, os.O_RDONLY))\n"


@pytest.mark.parametrize(
    ("code", "survival", "left"),
    [
        (WRITE + RENAME, nothing, {}),
        (WRITE + RENAME, names, {"file": b""}),
        (WRITE + RENAME, names_and_sizes, {"file": bytes(5000)}),
        (WRITE + RENAME, everything, {"file": b"x" * 5000}),
        (WRITE + "os.fsync(file)\n" + RENAME, nothing, {}),
        (WRITE + FOLDER + RENAME, nothing, {"new": b""}),
        (WRITE + RENAME + FOLDER, nothing, {"file": b""}),
        (WRITE + "os.fdatasync(file)\n" + RENAME + FOLDER, nothing, {"file": b"x" * 5000}),
        (WRITE + "os.fsync(file)\nos.write(file, b'y')\n" + RENAME + FOLDER, nothing, {"file": b"x" * 5000}),
        (WRITE + "os.fsync(file)\n" + FOLDER + "os.unlink(root + '/new')\n", nothing, {"new": b"x" * 5000}),
        (WRITE + "os.mkdir(root + '/f')\nos.rename(root + '/new', root + '/f/file')\n" + FOLDER, nothing, {}),
        (WRITE + RENAME + "os.sync()\n", nothing, {"file": b"x" * 5000}),
    ],
)
def test_the_replay_drops_what_no_flush_covers(
    tmp_path: Path, code: str, survival: Survival, left: dict[str, bytes]
) -> None:
    assert left_by(tmp_path, code, survival) == left


@pytest.mark.usefixtures("restarted")
def test_a_save_without_its_flush_would_be_found_out(mixed: Traced, tmp_path: Path) -> None:
    # The same trace without the flush of the journal, at the first save that it leaves uncovered.
    recording = Recording(str(mixed.root), [call for call in mixed.calls if call.name != "fdatasync"])
    said = (call.begun for call in mixed.acknowledgements[2:])
    moment = next(at for at in said if last_uncovered_write(recording, at, mixed.journal))
    rebuilt(recording, moment, nothing, tmp_path / "disk")
    age(tmp_path)
    with pytest.raises(AssertionError, match="promised"):
        Claims(mixed.calls, moment).hold(tmp_path / "disk/store")
