"""Hazard "damaged objects and refs": the object is named, everything else stays readable, a re-save mends."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import gitmem
from tests.hazards import done, edited, file_of, git_dir, handwritten, refused, shown, status, subjects
from tests.support import git, git_fails

HOW = ["empty", "nul", "cut short", "gone"]


@pytest.fixture
def two(environment: gitmem.Environment, notes: gitmem.Documents) -> dict[str, gitmem.Document]:
    """Documents "a" and "b", saved by a command that has ended."""
    documents = {i: notes.create(i, title=i.upper(), text=f"text of {i}") for i in ("a", "b")}
    environment.close()
    return documents


def object_file(environment: gitmem.Environment, oid: str) -> Path:
    return git_dir(environment) / "objects" / oid[:2] / oid[2:]


def wreck(path: Path, how: str) -> None:
    """What a power loss leaves of a file."""
    whole = path.read_bytes()
    path.chmod(0o644)
    if how == "gone":
        path.unlink()
    else:
        half = whole[: len(whole) // 2]
        path.write_bytes({"empty": b"", "nul": bytes(len(whole)), "cut short": half, "garbage": b"x" * 50}[how])


@contextmanager
def wrecked(environment: gitmem.Environment, revision: str, how: str) -> Generator[str]:
    """Damage the loose object that a revision expression names, for the block; its name."""
    oid = git(environment.folder, "rev-parse", revision)
    path = object_file(environment, oid)
    whole = path.read_bytes()
    wreck(path, how)
    try:
        yield oid
    finally:
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(whole)


def forget_index(environment: gitmem.Environment) -> None:
    """Delete what gitmem has derived, as anybody may."""
    shutil.rmtree(git_dir(environment) / "gitmem")


# A document's content


@pytest.mark.parametrize("how", HOW)
def test_a_damaged_document_is_named_and_saving_the_same_text_mends_it(
    environment: gitmem.Environment, two: dict[str, gitmem.Document], how: str
) -> None:
    oid = git(environment.folder, "rev-parse", "main:notes/a.json")
    wreck(object_file(environment, oid), how)
    assert oid in refused(environment, "show", "notes", "a")
    answer = json.loads(refused(environment, "--json", "show", "notes", "a"))
    assert answer["error"]["code"] == "damaged"
    assert shown(environment, "b") == "text of b"
    assert "b" in done(environment, "list", "notes")
    edited(environment, "b", "more of b")

    edited(environment, "a", "text of a")
    assert shown(environment, "a") == "text of a"
    assert subjects(environment)[:2] == ["replace notes/b", "create notes/b"]
    assert git(environment.folder, "show", "main:notes/a.json") == file_of(environment, "a").read_text().rstrip("\n")


@pytest.mark.parametrize("how", HOW)
def test_a_damaged_document_takes_a_new_text_and_its_history_stays_readable(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document], how: str
) -> None:
    new = notes.replace("a", text="second", if_match=two["a"].revision)
    environment.close()
    with wrecked(environment, "main:notes/a.json", how):
        assert notes.read("a", at=two["a"].revision).text == "text of a"
        third = notes.replace("a", text="third", if_match=new.revision)
        assert notes.read("a") == third


def test_a_damaged_document_can_be_deleted(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    with wrecked(environment, "main:notes/a.json", "empty"):
        done(environment, "remove", "notes", "a")
        with pytest.raises(gitmem.NotFoundError):
            notes.read("a")


def test_a_hand_edit_replaces_a_damaged_document(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    with wrecked(environment, "main:notes/a.json", "nul"):
        file_of(environment, "a").write_text(handwritten("A", "by hand"))
        with pytest.raises(gitmem.PreconditionFailedError):
            notes.replace("a", text="stale", if_match=two["a"].revision)
        assert notes.read("a").text == "by hand"


@pytest.mark.parametrize("how", HOW)
def test_a_leftover_damaged_blob_does_not_spoil_a_save_of_the_same_bytes(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document], how: str
) -> None:
    data = file_of(environment, "a").read_text().replace("text of a", "not yet saved")
    oid = git(environment.folder, "hash-object", "-w", "--stdin", stdin=data)
    wreck(object_file(environment, oid), how)
    notes.replace("a", text="not yet saved", if_match=two["a"].revision)
    assert git(environment.folder, "cat-file", "blob", oid) == data.removesuffix("\n")


# Documents that people committed, declarations, and a lost index


def test_without_the_index_a_damaged_plain_commit_holds_up_only_its_document(
    environment: gitmem.Environment, two: dict[str, gitmem.Document]
) -> None:
    file_of(environment, "c").write_text(handwritten("C", "by hand"))
    git(environment.folder, "add", "notes/c.json")
    git(environment.folder, "commit", "-qm", "c by hand")
    with wrecked(environment, "main:notes/c.json", "empty") as oid:
        for _ in range(2):
            assert oid in refused(environment, "show", "notes", "c")
            assert shown(environment, "a") == "text of a"
            forget_index(environment)
        edited(environment, "a", "more")
    assert shown(environment, "c") == "by hand"


@pytest.mark.parametrize("what", ["main:plans/.resource.json", "main:plans"])
def test_a_damaged_resource_holds_up_no_other(
    environment: gitmem.Environment, two: dict[str, gitmem.Document], what: str
) -> None:
    declared = [
        gitmem.define_memory(id="notes", description="Workshop requirements and decisions."),
        gitmem.define_memory(id="plans", description="Plans.", provider=gitmem.document_memory(max_bytes=100)),
    ]
    environment.deploy(agent="tutor", memories=declared)
    environment.close()
    with wrecked(environment, what, "empty"):
        forget_index(environment)
        assert shown(environment, "a") == "text of a"
        edited(environment, "a", "more")
        assert shown(environment, "a") == "more"
    environment.deploy(agent="tutor", memories=declared)
    assert environment.inventory()[1].provider.max_bytes == 100


# Trees and commits


@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("main", "empty"),
        ("main", "gone"),
        ("main^{tree}", "nul"),
        ("main:notes", "cut short"),
        ("main:notes", "garbage"),
    ],
)
def test_a_damaged_tip_is_named_and_documents_stay_readable(
    environment: gitmem.Environment, two: dict[str, gitmem.Document], what: str, how: str
) -> None:
    with wrecked(environment, what, how) as oid:
        assert shown(environment, "a") == "text of a"
        assert oid in refused(environment, "edit", "notes", "a", "--text-stdin", stdin="two")
        assert oid in refused(environment, "create", "notes", "c", "--title", "C")
        assert shown(environment, "a") == "text of a"
    edited(environment, "a", "two")


def test_an_old_damaged_commit_does_not_stop_the_present(
    environment: gitmem.Environment, notes: gitmem.Documents, two: dict[str, gitmem.Document]
) -> None:
    with wrecked(environment, two["a"].revision, "nul"):
        edited(environment, "b", "two")
        assert notes.replace("a", text="two", if_match=two["a"].revision).text == "two"
        assert notes.read("a", at=two["a"].revision).text == "text of a"


def test_a_truncated_pack_is_damage_and_not_an_empty_store(
    environment: gitmem.Environment, two: dict[str, gitmem.Document]
) -> None:
    git(environment.folder, "gc", "-q")
    (pack,) = (git_dir(environment) / "objects/pack").glob("*.pack")
    whole = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(whole[: len(whole) // 2])
    tip = git(environment.folder, "rev-parse", "main")
    assert "damaged" in refused(environment, "show", "notes", "a")
    assert "damaged" in refused(environment, "create", "notes", "c", "--title", "C")
    forget_index(environment)
    assert "damaged" in refused(environment, "show", "notes", "a")
    assert git(environment.folder, "rev-parse", "main") == tip
    pack.write_bytes(whole)
    assert shown(environment, "a") == "text of a"


# The branch


@pytest.mark.parametrize(
    "content", [b"", bytes(41), b"0" * 20, b"ref: refs/heads/main\n"], ids=["empty", "nul", "short", "symbolic"]
)
def test_a_damaged_ref_is_reported_and_never_taken_for_a_new_repository(
    environment: gitmem.Environment, two: dict[str, gitmem.Document], content: bytes
) -> None:
    ref = git_dir(environment) / "refs/heads/main"
    tip = ref.read_bytes()
    ref.write_bytes(content)
    for command in (("list", "notes"), ("create", "notes", "c", "--title", "C")):
        assert "refs/heads/main" in refused(environment, *command)
    assert ref.read_bytes() == content
    ref.write_bytes(tip)
    assert shown(environment, "a") == "text of a"


def test_a_ref_that_names_a_missing_commit_is_damage(
    environment: gitmem.Environment, two: dict[str, gitmem.Document]
) -> None:
    ref = git_dir(environment) / "refs/heads/main"
    tip = ref.read_bytes()
    ref.write_text("1" * 40 + "\n")
    assert "1" * 40 in refused(environment, "show", "notes", "a")
    assert "1" * 40 in refused(environment, "create", "notes", "c", "--title", "C")
    ref.write_bytes(tip)


@pytest.mark.parametrize("how", ["loose", "packed"])
def test_a_lost_branch_is_reported_and_no_second_root_is_begun(
    environment: gitmem.Environment, two: dict[str, gitmem.Document], how: str
) -> None:
    tip = git(environment.folder, "rev-parse", "main")
    if how == "packed":
        git(environment.folder, "pack-refs", "--all")
        (git_dir(environment) / "packed-refs").write_bytes(b"")
    else:
        (git_dir(environment) / "refs/heads/main").unlink()
    for command in (("list", "notes"), ("create", "notes", "c", "--title", "C")):
        assert tip in refused(environment, *command)
    assert git_fails(environment.folder, "rev-parse", "--verify", "main")
    git(environment.folder, "update-ref", "refs/heads/main", tip)
    assert shown(environment, "a") == "text of a"


def test_packed_refs_alone_are_as_good(environment: gitmem.Environment, two: dict[str, gitmem.Document]) -> None:
    git(environment.folder, "pack-refs", "--all")
    assert not (git_dir(environment) / "refs/heads/main").exists()
    assert shown(environment, "a") == "text of a"
    edited(environment, "a", "two")
    assert shown(environment, "a") == "two"
    assert status(environment) == ""


# `.git/index` is a cache


@pytest.mark.parametrize("how", ["empty", "nul", "gone", "cut short"])
def test_a_damaged_git_index_is_made_again_from_the_tip(
    environment: gitmem.Environment, two: dict[str, gitmem.Document], how: str
) -> None:
    path = git_dir(environment) / "index"
    wreck(path, how)
    edited(environment, "a", "two")
    assert status(environment) == ""
    git(environment.folder, "commit", "--allow-empty", "-qm", "by hand")
    assert (shown(environment, "a"), shown(environment, "b")) == ("two", "text of b")


def test_a_read_is_enough_to_heal_a_lost_git_index(
    environment: gitmem.Environment, two: dict[str, gitmem.Document]
) -> None:
    os.unlink(git_dir(environment) / "index")
    assert shown(environment, "a") == "text of a"
    assert status(environment) == ""


# What gitmem has derived


@pytest.mark.parametrize("name", ["journal", "lock", "index.sqlite"])
@pytest.mark.parametrize("how", ["empty", "nul", "garbage", "gone"])
def test_damaged_derived_files_cost_nothing(
    environment: gitmem.Environment, two: dict[str, gitmem.Document], name: str, how: str
) -> None:
    wreck(git_dir(environment) / "gitmem" / name, how)
    edited(environment, "a", "two")
    assert (shown(environment, "a"), shown(environment, "b")) == ("two", "text of b")
    assert status(environment) == ""


@pytest.mark.parametrize("name", ["gitmem", "gitmem/lock", "gitmem/journal", "gitmem/tmp"])
def test_something_else_in_their_place_is_one_clear_error(
    environment: gitmem.Environment, two: dict[str, gitmem.Document], name: str
) -> None:
    path = git_dir(environment) / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.mkdir() if name in {"gitmem/lock", "gitmem/journal"} else path.write_text("x")
    assert str(path) in refused(environment, "edit", "notes", "a", "--text-stdin", stdin="two")
    path.rmdir() if path.is_dir() else path.unlink()
    edited(environment, "a", "two")
    assert shown(environment, "a") == "two"
