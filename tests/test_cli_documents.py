"""What an owner does with documents on the command line."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import gitmem
from gitmem.records import Writer
from tests.cli import Cli, prepared
from tests.support import git


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    return prepared(tmp_path / "store")


def saved_by_agent(run: Cli, document_id: str, text: str) -> None:
    with gitmem.open_store(run.folder) as store:
        notes = store.project("bot").environment().documents("notes")
        seen = notes.read(document_id).revision
        notes.replace(document_id, text=text, if_match=seen, writer=Writer(kind="agent", session_id="ses_1"))


def test_an_owner_reads_the_whole_story_with_plain_git(run: Cli) -> None:
    run.ok("create", "notes", "workshop", "--title", "Workshop")
    run.ok("edit", "notes", "workshop", "--text-stdin", "--summary", "Node.", stdin=b"Node.js 22.\n")
    run.ok("retitle", "notes", "workshop", "Workshop notes")
    run.ok("freeze", "notes", "workshop")
    run.ok("unfreeze", "notes", "workshop")
    run.ok("remove", "notes", "workshop")
    subjects = git(run.tree, "log", "--format=%s", "--", "notes/workshop.json").splitlines()
    assert subjects == [
        f"{operation} notes/workshop" for operation in ("delete", "unfreeze", "freeze", "retitle", "replace", "create")
    ]
    assert git(run.tree, "status", "--porcelain") == ""


def test_create_takes_every_field(run: Cli, tmp_path: Path) -> None:
    file = tmp_path / "text.md"
    file.write_bytes("Grüße\r\n\n".encode())
    made = run.json(
        "create", "notes", "a", "--title", "A", "--summary", "S", "--text-file", str(file), "--frozen"
    )  # fmt: skip
    assert made == run.json("show", "notes", "a")
    assert made | {"revision": "", "updatedAt": ""} == {
        "id": "a", "title": "A", "text": "Grüße\r\n\n", "summary": "S", "agentWrites": "disabled", "revision": "",
        "bytes": 10, "maxBytes": 8192, "updatedAt": "", "writer": {"kind": "owner"},
    }  # fmt: skip


def test_create_needs_an_id_never_used(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A")
    assert run.refused("create", "notes", "a", "--title", "A")["code"] == "precondition_failed"
    run.ok("remove", "notes", "a")
    assert run.refused("create", "notes", "a", "--title", "A")["code"] == "precondition_failed"


def test_list_follows_all_pages_newest_first(run: Cli) -> None:
    with gitmem.open_store(run.folder) as store:
        notes = store.project("bot").environment().documents("notes")
        for number in range(120):
            notes.create(f"n{number}", title=f"Number {number}")
    found = run.json("list", "notes")
    assert found.keys() == {"documents"}
    assert sorted(info["id"] for info in found["documents"]) == sorted(f"n{number}" for number in range(120))
    times = [info["updatedAt"] for info in found["documents"]]
    assert times == sorted(times, reverse=True)
    assert "text" not in found["documents"][0]
    assert len(run.ok("list", "notes").splitlines()) == 120


def test_an_empty_list_prints_nothing(run: Cli) -> None:
    assert run.ok("list", "notes") == ""
    assert run.json("list", "notes") == {"documents": []}


def test_show_is_a_header_and_the_text(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A", "--text-stdin", stdin=b"one\ntwo\n")
    header, _, text = run.ok("show", "notes", "a").partition("\n\n")
    assert header.startswith("notes/a: A\n")
    assert text == "one\ntwo\n"


def test_an_older_revision_can_be_shown_and_restored(run: Cli) -> None:
    first = run.json("create", "notes", "a", "--title", "A", "--summary", "S", "--text-stdin", stdin=b"old")
    run.ok("edit", "notes", "a", "--text-stdin", "--summary", "", stdin=b"new")
    run.ok("freeze", "notes", "a")
    assert run.json("show", "notes", "a", "--revision", first["revision"][:12])["text"] == "old"
    restored = run.json("restore", "notes", "a", first["revision"][:12])
    assert (restored["text"], restored["summary"], restored["agentWrites"]) == ("old", "S", "disabled")


def test_edit_keeps_a_summary_that_is_not_given(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A", "--summary", "S")
    assert run.json("edit", "notes", "a", "--text-stdin", stdin=b"x")["summary"] == "S"
    assert run.json("edit", "notes", "a", "--text-stdin", "--summary", "", stdin=b"x")["summary"] == ""


def test_a_summary_alone_needs_no_editor(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A", "--text-stdin", stdin=b"text")
    edited = run.json("edit", "notes", "a", "--summary", "S")
    assert (edited["summary"], edited["text"]) == ("S", "text")


def test_an_edit_that_changes_nothing_makes_no_commit(run: Cli) -> None:
    made = run.json("create", "notes", "a", "--title", "A", "--text-stdin", stdin=b"x")
    assert run.ok("edit", "notes", "a", "--text-stdin", stdin=b"x").startswith("unchanged")
    assert run.json("freeze", "notes", "a")["revision"] != made["revision"]
    frozen = run.json("show", "notes", "a")["revision"]
    assert run.json("freeze", "notes", "a")["revision"] == frozen
    assert git(run.tree, "rev-parse", "main") == frozen


def test_text_is_cleared_on_purpose_from_an_empty_stdin(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A", "--text-stdin", stdin=b"x")
    assert run.json("edit", "notes", "a", "--text-stdin")["text"] == ""


def test_a_given_revision_must_be_the_current_one(run: Cli) -> None:
    old = run.json("create", "notes", "a", "--title", "A")["revision"]
    new = run.json("retitle", "notes", "a", "B")["revision"]
    for arguments in (
        ("edit", "notes", "a", "--text-stdin"),
        ("retitle", "notes", "a", "C"),
        ("freeze", "notes", "a"),
        ("unfreeze", "notes", "a"),
        ("restore", "notes", "a", old),
        ("remove", "notes", "a"),
    ):
        for stale in (old, "nonsense", old[:12], ""):
            assert run.refused(*arguments, "--if-match", stale)["code"] == "precondition_failed"
    assert run.json("show", "notes", "a")["revision"] == new
    run.ok("freeze", "notes", "a", "--if-match", new[:12])
    run.ok("remove", "notes", "a", "--if-match", run.json("show", "notes", "a")["revision"])


def test_removed_documents_are_gone_but_for_their_history(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A")
    assert run.json("remove", "notes", "a") == {"resource": "notes", "id": "a", "deleted": True}
    assert run.json("list", "notes") == {"documents": []}
    for arguments in (
        ("show", "notes", "a"), ("edit", "notes", "a", "--text-stdin"), ("freeze", "notes", "a"),
        ("remove", "notes", "a"), ("retitle", "notes", "a", "B"), ("blame", "notes", "a"),
    ):  # fmt: skip
        assert run.refused(*arguments)["code"] == "not_found"
    versions = run.json("log", "notes", "a")["versions"]
    assert [version["operation"] for version in versions] == ["delete", "create"]
    assert run.json("show", "notes", "a", "--revision", versions[1]["revision"])["title"] == "A"


def test_log_follows_all_pages(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A")
    with gitmem.open_store(run.folder) as store:
        notes = store.project("bot").environment().documents("notes")
        seen = notes.read("a").revision
        for number in range(60):
            seen = notes.replace("a", text=str(number), if_match=seen).revision
    versions = run.json("log", "notes", "a")["versions"]
    assert len(versions) == 61
    assert versions[0].keys() == {"revision", "operation", "title", "bytes", "updatedAt", "writer", "message"}
    first = run.ok("log", "notes", "a").splitlines()[0]
    assert first.split() == [seen[:12], *first.split()[1:3], "owner", "replace", "A"]


def test_diff_shows_what_changed(run: Cli) -> None:
    first = run.json("create", "notes", "a", "--title", "A", "--text-stdin", stdin=b"one\n")["revision"]
    second = run.json("edit", "notes", "a", "--text-stdin", stdin=b"one\ntwo\n")["revision"]
    run.ok("retitle", "notes", "a", "B")
    assert "+two" in run.ok("diff", "notes", "a", first, second)
    latest = run.ok("diff", "notes", "a")
    assert "+title: B" in latest
    assert "two" not in [line[1:] for line in latest.splitlines() if line[0] in "+-"]
    assert run.json("diff", "notes", "a", first)["diff"].count("\n+") == 3
    assert run.ok("diff", "notes", "a", first, first) == ""


def test_blame_names_the_writer_of_each_line(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A", "--text-stdin", stdin=b"one\ntwo\n")
    saved_by_agent(run, "a", "one\ntwo and a half\nthree\n")
    run.ok("freeze", "notes", "a")
    lines = run.json("blame", "notes", "a")["lines"]
    assert [(line["text"], line["writer"]["kind"]) for line in lines] == [
        ("one", "owner"), ("two and a half", "agent"), ("three", "agent"),
    ]  # fmt: skip
    assert [line["line"] for line in lines] == [1, 2, 3]
    versions = run.json("log", "notes", "a")["versions"]
    assert [line["revision"] for line in lines] == [versions[at]["revision"] for at in (2, 1, 1)]
    assert run.ok("blame", "notes", "a").splitlines()[1].endswith("agent ses_1  two and a half")


def test_path_names_the_file_wherever_it_lies(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A")
    assert run.json("path") == {"path": str(run.tree)}
    assert run.ok("path", "notes") == f"{run.tree}/notes\n"
    assert run.ok("path", "notes", "a") == f"{run.tree}/notes/a.json\n"
    with gitmem.open_store(run.folder) as store:
        notes = store.project("bot").environment().documents("notes")
        for number in range(140):
            notes.create(f"n{number}", title="N")
    moved = run.ok("path", "notes", "a").removesuffix("\n")
    assert moved != f"{run.tree}/notes/a.json"
    assert '"title": "A"' in Path(moved).read_text()
    assert run.refused("path", "notes", "b")["code"] == "not_found"
    assert run.refused("path", "other")["code"] == "not_found"
    assert run.refused("path", "notes", "../a", status=2)["code"] == "invalid_request"


def test_a_store_without_a_working_tree_has_no_paths_but_everything_else(run: Cli, tmp_path: Path) -> None:
    bare = Cli(tmp_path / "bare")
    bare.folder.mkdir()
    toml = (run.folder / "gitmem.toml").read_text()
    (bare.folder / "gitmem.toml").write_text(f"worktree = false\n{toml}")
    bare.ok("init")
    bare.ok("deploy")
    bare.ok("create", "notes", "a", "--title", "A", "--text-stdin", stdin=b"x")
    assert bare.json("show", "notes", "a")["text"] == "x"
    assert "without a working tree" in bare.refused("path", "notes", "a")["message"]


@pytest.mark.parametrize("document_id", ["-rf", "--json", "--", "-", "_", "A" * 128])
def test_odd_but_legal_ids_work_after_two_dashes(run: Cli, document_id: str) -> None:
    run.ok("create", "--title", "Odd", "notes", "--", document_id)
    assert run.json("show", "notes", "--", document_id)["id"] == document_id
    run.ok("freeze", "--", "notes", document_id)
    assert os.path.exists(run.ok("path", "notes", "--", document_id).removesuffix("\n"))
    run.ok("remove", "notes", "--", document_id)


def test_a_hand_edit_is_adopted_before_a_command_changes_the_document(run: Cli) -> None:
    seen = run.json("create", "notes", "a", "--title", "A", "--text-stdin", stdin=b"one")["revision"]
    file = run.tree / "notes" / "a.json"
    file.write_text(file.read_text().replace("one", "by hand"))
    refused = run.refused("edit", "notes", "a", "--text-stdin", "--if-match", seen, stdin=b"two")
    assert refused["code"] == "precondition_failed"
    assert run.json("show", "notes", "a")["text"] == "by hand"
    assert [version["operation"] for version in run.json("log", "notes", "a")["versions"]] == ["edit", "create"]


def test_a_plain_commit_is_told_with_its_subject(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A")
    file = run.tree / "notes" / "a.json"
    file.write_text(file.read_text().replace('"A"', '"By hand"'))
    git(run.tree, "commit", "-q", "-am", "Say who wrote it")
    assert run.ok("log", "notes", "a").splitlines()[0].endswith("edit    By hand (Say who wrote it)")


def test_a_freeze_wins_against_a_writer_that_never_rests(run: Cli) -> None:
    run.ok("create", "notes", "a", "--title", "A")
    stopping = threading.Event()
    saved = threading.Event()

    def save() -> None:
        with gitmem.open_store(run.folder) as store:
            notes = store.project("bot").environment().documents("notes")
            number = 0
            while not stopping.is_set():
                with suppress(gitmem.PreconditionFailedError):
                    notes.replace("a", text=str(number), if_match=notes.read("a").revision)
                number += 1
                saved.set()

    writer = threading.Thread(target=save)
    writer.start()
    try:
        assert saved.wait(60)
        for _ in range(5):
            assert run.json("freeze", "notes", "a")["agentWrites"] == "disabled"
            assert run.json("unfreeze", "notes", "a")["agentWrites"] == "enabled"
    finally:
        stopping.set()
        writer.join()
    operations = [version["operation"] for version in run.json("log", "notes", "a")["versions"]]
    assert (operations.count("freeze"), operations.count("unfreeze")) == (5, 5)
