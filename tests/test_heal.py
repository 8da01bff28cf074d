"""What a killed process or a lost index left lagging is brought to the tip; what a person put there stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import gitmem
from gitmem.environment.engine import EnvironmentRepository
from tests.support import git, killed_at

OPEN = """
import sys
import gitmem
environment = gitmem.open_store(sys.argv[1], settings=gitmem.Settings(durable=False)).project("bot").environment()
notes = environment.documents("notes")
"""
REPLACE = OPEN + 'notes.replace("workshop", text="new", if_match=notes.read("workshop").revision)\n'
CREATE = OPEN + 'notes.create("topic", title="Topic", text="new")\n'
DELETE = OPEN + 'notes.delete("workshop", if_match=notes.read("workshop").revision)\n'
DECLARE = OPEN + (
    'environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="plans", description="Plans.")])\n'
)
KILLED_BEFORE_THE_TREE_FOLLOWS = ("after-swap", "before-projection", "before-stage", "after-stage", "before-index")


class Place:
    """A closed store with one document, "workshop", whose text is "old"."""

    def __init__(self, environment: gitmem.Environment) -> None:
        self.environment = environment
        self.folder = Path(environment.folder)
        self.store = self.folder.parent.parent
        self.file = self.folder / "notes/workshop.json"
        environment.documents("notes").create("workshop", title="Workshop", text="old")
        environment.close()

    def kill(self, failpoint: str, code: str, first: str = "") -> None:
        killed_at(failpoint, code, str(self.store), first=first)

    def lose_index(self) -> None:
        shutil.rmtree(self.folder / ".git/gitmem")

    def read(self, document_id: str = "workshop") -> gitmem.Document:
        return self.environment.documents("notes").read(document_id)

    def come_to_rest(self) -> None:
        """What the end of any command does."""
        self.environment.inventory()
        self.environment.close()

    def changes(self) -> str:
        return git(self.folder, "status", "--porcelain")

    def flat(self, document_id: str) -> Path:
        return self.folder / f"notes/{document_id}.json"

    def write(self, text: str, document_id: str = "workshop") -> None:
        self.flat(document_id).write_text(json.dumps({"title": "Mine", "text": text}))


@pytest.fixture
def place(environment: gitmem.Environment) -> Place:
    return Place(environment)


@pytest.mark.parametrize("code", [REPLACE, CREATE, DELETE, DECLARE], ids=["replace", "create", "delete", "declare"])
@pytest.mark.parametrize("failpoint", KILLED_BEFORE_THE_TREE_FOLLOWS)
@pytest.mark.parametrize("lost", [False, True], ids=["index kept", "index lost"])
def test_a_killed_saves_file_follows(place: Place, failpoint: str, code: str, lost: bool) -> None:
    place.kill(failpoint, code)
    commits = git(place.folder, "rev-list", "main")
    if lost:
        place.lose_index()
    place.come_to_rest()
    assert place.changes() == ""
    assert git(place.folder, "rev-list", "main") == commits
    assert git(place.folder, "diff", "HEAD") == ""


def test_a_save_after_the_loss_does_not_take_the_older_file_for_an_edit(place: Place) -> None:
    place.kill("before-projection", REPLACE)
    place.lose_index()
    saved = place.read()
    notes = place.environment.documents("notes")
    assert saved.text == "new"
    assert notes.replace("workshop", text="newest", if_match=saved.revision).text == "newest"
    subjects = git(place.folder, "log", "--format=%s", "--", "notes/workshop.json").splitlines()
    assert subjects == ["replace notes/workshop", "replace notes/workshop", "create notes/workshop"]
    place.come_to_rest()
    assert place.changes() == ""


@pytest.mark.parametrize("lost", [False, True], ids=["index kept", "index lost"])
def test_a_killed_reshard_is_carried_on_with_what_a_person_wrote_meanwhile(place: Place, lost: bool) -> None:
    fill = OPEN + 'for i in range(127):\n    notes.create(f"n{i}", title="x")\n'
    place.kill("before-projection", 'notes.create("last", title="x")', first=fill)
    assert git(place.folder, "log", "-1", "--format=%s") == "reshard notes"
    place.write("edited meanwhile", "n7")
    if lost:
        place.lose_index()
    place.come_to_rest()
    assert not place.flat("n7").exists()
    (changed,) = place.changes().splitlines()
    assert changed.startswith(" M notes/")
    assert changed.endswith("/n7.json")
    with pytest.raises(gitmem.PreconditionFailedError):
        place.environment.documents("notes").replace("n7", text="agent", if_match=place.read("n7").revision)
    assert place.read("n7").text == "edited meanwhile"
    place.come_to_rest()
    assert place.changes() == ""


@pytest.mark.parametrize("lost", [False, True], ids=["index kept", "index lost"])
def test_an_edit_on_top_of_the_older_version_stays_and_is_not_committed(place: Place, lost: bool) -> None:
    place.kill("before-projection", REPLACE)
    place.write("mine")
    if lost:
        place.lose_index()
    place.come_to_rest()
    assert json.loads(place.file.read_text())["text"] == "mine"
    notes = place.environment.documents("notes")
    saved = notes.replace("workshop", text="newest", if_match=place.read().revision)
    place.come_to_rest()
    assert json.loads(place.file.read_text())["text"] == "mine"
    assert place.read() == saved
    assert place.changes() == " M notes/workshop.json"
    git(place.folder, "checkout", "notes/workshop.json")
    place.come_to_rest()


def test_an_edit_made_after_giving_up_the_first_is_adopted(place: Place) -> None:
    place.kill("before-projection", REPLACE)
    place.write("mine")
    place.come_to_rest()
    git(place.folder, "checkout", "notes/workshop.json")
    notes = place.environment.documents("notes")
    notes.create("other", title="Other")
    place.environment.close()
    place.write("mine again")
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.replace("workshop", text="x", if_match=place.read().revision)
    assert place.read().text == "mine again"


def test_a_persons_edits_outlive_the_loss_of_the_index(place: Place) -> None:
    notes = place.environment.documents("notes")
    for document_id in ("staged", "plain", "removed"):
        notes.create(document_id, title="T", text="old")
    place.environment.close()
    place.write("staged text", "staged")
    git(place.folder, "add", "notes/staged.json")
    place.write("plain text", "plain")
    place.flat("removed").unlink()
    before = place.changes()
    place.lose_index()
    place.come_to_rest()
    assert place.changes() == before == " M notes/plain.json\n D notes/removed.json\nM  notes/staged.json"
    for document_id in ("staged", "plain"):
        with pytest.raises(gitmem.PreconditionFailedError):
            notes.patch(document_id, title="x", if_match=place.read(document_id).revision)
        assert place.read(document_id).text == f"{document_id} text"
    with pytest.raises(gitmem.NotFoundError):
        notes.patch("removed", title="x", if_match=place.read("removed").revision)
    place.come_to_rest()
    assert place.changes() == ""


def test_a_clone_made_without_a_checkout_gets_its_files(place: Place, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--no-checkout", str(place.folder), "copy")
    copy = EnvironmentRepository(str(tmp_path / "copy"))
    copy.resources()
    copy.close()
    assert (tmp_path / "copy/notes/workshop.json").read_bytes() == place.file.read_bytes()
    assert git(tmp_path / "copy", "status", "--porcelain") == ""


def test_another_branch_is_left_alone_until_main_is_back(place: Place) -> None:
    place.kill("before-projection", REPLACE)
    (place.folder / ".git/index.lock").unlink()
    git(place.folder, "symbolic-ref", "HEAD", "refs/heads/other")
    place.lose_index()
    place.come_to_rest()
    assert json.loads(place.file.read_text())["text"] == ["old"]
    git(place.folder, "symbolic-ref", "HEAD", "refs/heads/main")
    place.come_to_rest()
    assert json.loads(place.file.read_text())["text"] == ["new"]
    assert place.changes() == ""


def test_a_revert_under_way_is_not_taken_for_an_older_version(place: Place) -> None:
    notes = place.environment.documents("notes")
    notes.replace("workshop", text="new", if_match=place.read().revision)
    place.environment.close()
    git(place.folder, "revert", "--no-commit", "HEAD")
    place.lose_index()
    place.come_to_rest()
    assert place.changes() == "M  notes/workshop.json"
    git(place.folder, "commit", "--quiet", "-m", "back to the old text")
    place.come_to_rest()
    assert place.read().text == "old"
    assert place.changes() == ""


@pytest.mark.findings("objects")
def test_a_damaged_folder_elsewhere_holds_nothing_up(place: Place) -> None:
    place.environment.deploy(agent="tutor", memories=[gitmem.define_memory(id="plans", description="Plans.")])
    place.environment.close()
    place.kill("before-projection", REPLACE)
    plans = git(place.folder, "rev-parse", "main:plans")
    (place.folder / f".git/objects/{plans[:2]}/{plans[2:]}").unlink()
    place.lose_index()
    notes = place.environment.documents("notes")
    assert notes.replace("workshop", text="newest", if_match=place.read().revision).text == "newest"
    place.come_to_rest()
    assert json.loads(place.file.read_text())["text"] == ["newest"]
