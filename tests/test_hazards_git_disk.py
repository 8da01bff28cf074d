"""Hazard "the disk refuses": what was there stays, nothing half-written is left, and the next save works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import gitmem
from gitmem import doctor, failpoints
from tests.disks import MAY_MOUNT, SmallDisk, read_only
from tests.hazards import done, edited, file_of, folder, git_dir, refused, shown, status
from tests.support import clean_environment, fsck, git, python

LIMITED = """
import resource, sys, gitmem
store = gitmem.open_store(sys.argv[1])
notes = store.project("bot").environment("development").documents("notes")
before = notes.read("a")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    notes.replace("a", text="does not fit " * 200, if_match=before.revision)
except gitmem.StorageError as error:
    print(error)
assert notes.read("a") == before
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
notes.replace("a", text="fits again", if_match=before.revision)
store.close()
"""


@pytest.fixture
def a(environment: gitmem.Environment, notes: gitmem.Documents) -> gitmem.Document:
    """A document, saved by a command that has ended."""
    document = notes.create("a", title="A", text="one")
    environment.close()
    return document


def leftovers(place: Path) -> list[Path]:
    """Temporary files, locks and set-aside files below a folder."""
    found = [path for path in place.rglob("*") if path.name.endswith(".lock") or ".kept-" in path.name]
    return [*found, *place.rglob(".git/gitmem/tmp/*")]


def store_of(environment: gitmem.Environment) -> Path:
    return folder(environment).parents[1]


@pytest.mark.parametrize("largest", [0, 1, 100, 2000])
def test_a_short_write_leaves_the_old_document_and_no_half_file(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, largest: int
) -> None:
    ran = python(LIMITED, str(store_of(environment)), str(largest))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(ran.stdout.splitlines()) == 1
    assert leftovers(store_of(environment)) == []
    assert status(environment) == ""
    assert [(v.operation, v.bytes) for v in notes.history("a").versions] == [("replace", 10), ("create", 3)]


def test_a_command_that_may_write_nothing_says_so_and_changes_nothing(
    environment: gitmem.Environment, a: gitmem.Document
) -> None:
    command = [str(Path(sys.executable).with_name("gitmem")), "--store", str(store_of(environment)), "--project", "bot"]
    ran = subprocess.run(
        ["sh", "-c", 'ulimit -f 0; exec "$0" "$@"', *command, "edit", "notes", "a", "--text-stdin"],
        input=b"two",
        capture_output=True,
        env=clean_environment(),
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert len(ran.stderr.splitlines()) == 1
    assert leftovers(store_of(environment)) == []
    assert shown(environment, "a") == "one"
    edited(environment, "a", "two")
    assert shown(environment, "a") == "two"


def test_a_file_that_cannot_follow_does_not_fail_the_save(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    def full() -> None:
        raise OSError(28, os.strerror(28))

    failpoints.arm("before-projection", full)
    saved = notes.replace("a", text="two", if_match=a.revision)
    failpoints.disarm()
    assert notes.read("a") == saved
    environment.close()
    edited(environment, "a", "three")
    assert status(environment) == ""


READING = (("show", "notes", "a"), ("list", "notes"), ("log", "notes", "a"))
WRITING = (("create", "notes", "b", "--title", "B"), ("edit", "notes", "a", "--text-stdin"))


@pytest.mark.parametrize("derived", ["kept", "gone"])
def test_a_read_only_disk_takes_no_saves_and_gives_everything_to_read(
    environment: gitmem.Environment, a: gitmem.Document, derived: str
) -> None:
    if derived == "gone":
        shutil.rmtree(git_dir(environment) / "gitmem")
    with read_only(store_of(environment)):
        for reading in READING:
            done(environment, *reading)
        for writing in WRITING:
            line = refused(environment, *writing, stdin="two")
            assert "read-only" in line or "denied" in line
        assert shown(environment, "a") == "one"
    edited(environment, "a", "two")
    assert shown(environment, "a") == "two"
    assert leftovers(store_of(environment)) == []


def test_a_handle_that_is_open_when_the_disk_turns_read_only_goes_on_reading(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    notes.read("a")
    with read_only(store_of(environment)):
        with pytest.raises(gitmem.StorageError):
            notes.replace("a", text="two", if_match=a.revision)
        assert notes.read("a") == a
        environment.close()
    assert notes.replace("a", text="two", if_match=a.revision).text == "two"


if MAY_MOUNT:

    def test_a_disk_that_fills_up_at_any_file_of_a_save(tmp_path: Path) -> None:
        with closing(SmallDisk(tmp_path / "disk")) as disk:
            with gitmem.open_store(disk.folder / "store", create=True) as store:
                environment = store.project("bot").environment("development")
                environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="Notes.")])
                _fill(environment, disk)
            with gitmem.open_store(disk.folder / "store") as store:
                assert doctor.examine(store) == []
            assert fsck(git_dir(environment)) == ""

    def _refusal(notes: gitmem.Documents, current: gitmem.Document, text: str) -> str | None:
        try:
            notes.replace(current.id, text=text, if_match=current.revision)
        except gitmem.StorageError as error:
            return error.message
        return None

    def _fill(environment: gitmem.Environment, disk: SmallDisk) -> None:
        """Save with room for no file, for one, for two, until the save succeeds."""
        notes = environment.documents("notes")
        current = notes.create("a", title="A", text="one")
        environment.close()
        for room in range(100):
            tip = git(environment.folder, "rev-parse", "main")
            disk.leave_room_for(room)
            refusal = _refusal(notes, current, f"does not fit {room}")
            environment.close()
            disk.leave_room_for(1000)
            if refusal is None:
                break
            assert "full" in refusal
            assert git(environment.folder, "rev-parse", "main") == tip
            assert status(environment) == ""
            assert leftovers(disk.folder) == []
            assert notes.read("a") == current
            current = notes.replace("a", text=f"fits with room for {room}", if_match=current.revision)
        assert room > 3
        edited(environment, "a", "two")
        assert status(environment) == ""

    def test_a_full_disk_on_the_command_line(tmp_path: Path) -> None:
        with closing(SmallDisk(tmp_path / "disk")) as disk:
            with gitmem.open_store(disk.folder / "store", create=True) as store:
                environment = store.project("bot").environment("development")
                environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="Notes.")])
                environment.documents("notes").create("a", title="A", text="one")
            disk.leave_room_for(0)
            for command in WRITING:
                assert "full" in refused(environment, *command, stdin="two")
            assert shown(environment, "a") == "one"
            disk.leave_room_for(1000)
            assert status(environment) == ""
            edited(environment, "a", "two")
            assert shown(environment, "a") == "two"

    def test_a_repository_of_another_user_is_opened_all_the_same(
        environment: gitmem.Environment, a: gitmem.Document
    ) -> None:
        everything = [store_of(environment), *store_of(environment).rglob("*")]
        for path in everything:
            os.chown(path, 65534, 65534)
        edited(environment, "a", "two")
        assert shown(environment, "a") == "two"
        assert os.stat(file_of(environment, "a")).st_mode & 0o777 == 0o644
        for path in everything:
            if path.exists():
                os.chown(path, 0, 0)
