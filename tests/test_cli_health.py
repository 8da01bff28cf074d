"""status, doctor and gc on the command line; what they look for is tested with the library."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import gitmem
from tests.cli import Cli, prepared
from tests.support import git


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    run = prepared(tmp_path / "store")
    run.ok("create", "notes", "a", "--title", "A", "--text-stdin", stdin=b"one\n")
    return run


def test_status_of_a_clean_tree_names_no_file(run: Cli) -> None:
    found = run.json("status")
    assert (found["branch"], found["onMain"], found["documents"], found["files"]) == ("main", True, 1, [])
    assert found["size"].keys() == {"looseObjects", "packs", "packBytes", "due"}
    assert run.ok("status").startswith(f"{run.tree} is on main: 1 document\n")


def test_status_names_hand_edits_and_changes_nothing(run: Cli) -> None:
    run.ok("create", "notes", "b", "--title", "B")
    (run.tree / "notes" / "a.json").write_text('{"text": "by hand"}')
    (run.tree / "notes" / "b.json").write_text("{")
    before = git(run.tree, "rev-parse", "main")
    files = {file["path"]: file for file in run.json("status")["files"]}
    assert (files["notes/a.json"]["state"], files["notes/a.json"]["change"]) == ("unadopted", "edited")
    assert (files["notes/b.json"]["state"], files["notes/b.json"]["document"]) == ("invalid", "notes/b")
    lines = run.ok("status").splitlines()
    assert lines[-2].split() == ["unadopted", "notes/a.json", "edited"]
    assert lines[-1].startswith("invalid    notes/b.json  the file is not JSON")
    assert git(run.tree, "rev-parse", "main") == before
    git(run.tree, "checkout", "--", ".")


def test_status_says_what_stands_in_the_way(run: Cli) -> None:
    git(run.tree, "checkout", "-q", "-b", "side")
    (run.tree / ".git" / "MERGE_HEAD").write_text(git(run.tree, "rev-parse", "main") + "\n")
    shown = run.ok("status")
    assert "is on side; gitmem writes main" in shown
    assert "A merge is under way" in shown
    assert (run.json("status")["onMain"], run.json("status")["operation"]) == (False, "merge")
    (run.tree / ".git" / "MERGE_HEAD").unlink()
    git(run.tree, "checkout", "-q", "main")


def test_status_before_the_first_deployment(run: Cli) -> None:
    found = run.json("status", "--environment", "production") | {"branch": ""}
    assert found.pop("controlSize")["looseObjects"] >= 0
    assert found == {
        "branch": "", "onMain": True, "operation": None, "lock": None, "indexCurrent": True, "documents": 0,
        "files": [], "size": None,
    }  # fmt: skip
    assert run.ok("gc", "--environment", "production").splitlines()[1].startswith("control.git  ")


def test_doctor_is_content_with_a_healthy_store(run: Cli) -> None:
    assert run.ok("doctor") == "healthy\n"
    assert run.json("doctor") == {"findings": []}
    assert run.json("doctor", "--repair") == {"findings": [], "repaired": []}


def test_doctor_names_what_it_finds_and_ends_with_1(run: Cli) -> None:
    run.ok("deploy", "--environment", "production")
    run.ok("init", "--project", "second")
    blob = git(run.tree, "rev-parse", "main:notes/a.json")
    (found,) = (run.tree / ".git" / "objects" / blob[:2]).glob(blob[2:])
    found.chmod(0o600)
    whole = found.read_bytes()
    found.write_bytes(b"")
    done = run("doctor", "--json")
    assert (done.status, done.err) == (1, "")
    findings = {finding["check"]: finding for finding in done.json["findings"]}
    assert findings["objects"].keys() == {"check", "subject", "message"}
    assert blob in findings["objects"]["subject"]
    shown = run("doctor")
    assert shown.status == 1
    assert shown.out.startswith("found  objects  ")
    assert "healthy" not in shown.out
    assert run("doctor", "--environment", "production").out == "healthy\n"
    assert run("doctor", "--project", "second").status == 0
    assert run("doctor", "--project", "bot").status == 1
    found.write_bytes(whole)


def test_doctor_mends_what_loses_nothing(run: Cli) -> None:
    index = sqlite3.connect(run.tree / ".git" / "gitmem" / "index.sqlite")
    with closing(index), index:
        index.execute("UPDATE documents SET updated = updated + 1")
    assert "found  index  bot/development: notes/a: " in run("doctor").out
    done = run("doctor", "--repair", "--json")
    assert done.status == 0
    assert done.json["findings"] == []
    assert done.json["repaired"]
    assert run.ok("doctor") == "healthy\n"


def test_gc_packs_and_loses_nothing(run: Cli) -> None:
    with gitmem.open_store(run.folder) as store:
        notes = store.project("bot").environment().documents("notes")
        for number in range(30):
            notes.create(f"n{number}", title="N")
    done = run.json("gc")
    assert done["packed"] > 90
    assert (done["size"]["looseObjects"], done["size"]["packs"]) == (0, 1)
    assert done["size"]["packBytes"] > 0
    assert (done["controlSize"]["looseObjects"], done["controlSize"]["packs"]) == (0, 1)
    lines = run.ok("gc").splitlines()
    assert [line.split("  ")[0] for line in lines] == ["packed 0 objects", "size", "control.git"]
    assert len(run.json("list", "notes")["documents"]) == 31
    assert run.json("show", "notes", "a")["text"] == "one\n"
