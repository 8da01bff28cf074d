"""Export and import."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gitmem
from tests.cli import TOML, Cli, prepared
from tests.support import clean_environment, git

COMMAND = os.path.join(os.path.dirname(sys.executable), "gitmem")


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    run = prepared(tmp_path / "store")
    text = "# Grüße\r\n\n\x1b\u2028 end".encode()
    run.ok("create", "notes", "a", "--title", "A", "--summary", "S", "--frozen", "--text-stdin", stdin=text)
    run.ok("create", "notes", "--title", "B\nb", "--", "-rf")
    return run


@pytest.fixture
def other(tmp_path: Path) -> Cli:
    """A second store, empty."""
    return prepared(tmp_path / "other")


def content(run: Cli, document_id: str) -> dict[str, object]:
    found = run.json("show", "notes", "--", document_id)
    return {key: found[key] for key in ("id", "title", "text", "summary", "agentWrites")}


def test_an_export_is_one_document_object_a_file(run: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out" / "memory"
    assert run.json("export", "--out", str(out)) == {"out": str(out), "documents": 2, "leftOut": []}
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*")) == ["notes", "notes/-rf.json", "notes/a.json"]
    for document_id in ("a", "-rf"):
        exported = json.loads((out / "notes" / f"{document_id}.json").read_bytes())
        assert exported == run.json("show", "notes", "--", document_id)


def test_retired_resources_are_exported_and_a_choice_is_kept_to(run: Cli, tmp_path: Path) -> None:
    facts = '\n[memory.facts]\ndescription = "Facts."\n'
    (run.folder / "gitmem.toml").write_text(TOML + facts)
    run.ok("deploy")
    run.ok("create", "facts", "f", "--title", "F")
    (run.folder / "gitmem.toml").write_text(TOML)
    run.ok("deploy")
    run.ok("export", "--out", str(tmp_path / "all"))
    assert (tmp_path / "all" / "facts" / "f.json").exists()
    run.ok("export", "--out", str(tmp_path / "one"), "--resource", "facts", "--resource", "facts")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["facts"]
    error = run.refused("export", "--out", str(tmp_path / "none"), "--resource", "facts", "--resource", "nope")
    assert error["code"] == "not_found"
    assert not (tmp_path / "none").exists()


def test_an_export_replaces_older_files_and_leaves_others(run: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run.ok("export", "--out", str(out))
    (out / "notes" / "mine.txt").write_text("mine")
    run.ok("retitle", "notes", "a", "New")
    run.ok("export", "--out", str(out))
    assert json.loads((out / "notes" / "a.json").read_bytes())["title"] == "New"
    assert sorted(path.name for path in (out / "notes").iterdir()) == ["-rf.json", "a.json", "mine.txt"]


def test_an_export_follows_no_link_out_of_its_folder(run: Cli, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes").symlink_to(outside)
    assert "is a link or a file" in run.refused("export", "--out", str(out))["message"]
    assert not list(outside.iterdir())
    (out / "notes").unlink()
    (out / "notes").mkdir()
    (outside / "victim").write_text("victim")
    (out / "notes" / "a.json").symlink_to(outside / "victim")
    run.ok("export", "--out", str(out))
    assert (outside / "victim").read_text() == "victim"
    assert json.loads((out / "notes" / "a.json").read_bytes())["id"] == "a"


def test_where_an_export_cannot_go_is_one_clear_line(run: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        assert run.refused("export", "--out", str(out))["code"] == "storage_failed"
    out = tmp_path / "out"
    (out / "notes" / "a.json").mkdir(parents=True)
    assert "a.json" in run.refused("export", "--out", str(out))["message"]
    assert not [path for path in out.rglob("*") if path.name.endswith(".tmp")]


def test_an_import_of_an_export_gives_the_same_documents(run: Cli, other: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run.ok("export", "--out", str(out))
    assert other.json("import", str(out)) == {"created": 2, "unchanged": 0, "leftOut": []}
    for document_id in ("a", "-rf"):
        assert content(other, document_id) == content(run, document_id)
    subjects = git(other.tree, "log", "--format=%s", "-2").splitlines()
    assert sorted(subjects) == ["create notes/-rf", "create notes/a"]
    before = git(other.tree, "rev-parse", "main")
    assert other.json("import", str(out)) == {"created": 0, "unchanged": 2, "leftOut": []}
    assert git(other.tree, "rev-parse", "main") == before


def test_what_differs_is_reported_and_left_alone_and_the_rest_goes_on(run: Cli, other: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run.ok("create", "notes", "z", "--title", "Z")
    run.ok("export", "--out", str(out))
    other.ok("create", "notes", "a", "--title", "Mine")
    other.ok("create", "notes", "--title", "X", "--", "-rf")
    other.ok("remove", "notes", "--", "-rf")
    done = other("import", str(out))
    assert (done.status, done.out) == (1, "created 1 document; 0 were there already; 2 left out\n")
    deleted, differs = sorted(done.err.splitlines())
    assert deleted.startswith(f"{out}/notes/-rf.json: notes/-rf was deleted")
    assert differs.startswith(f"{out}/notes/a.json: notes/a exists with other content")
    assert other.json("show", "notes", "a")["title"] == "Mine"
    assert other.json("show", "notes", "z")["title"] == "Z"
    machine = other("import", str(out), "--json")
    assert machine.status == 1
    assert (machine.json["created"], machine.json["unchanged"]) == (0, 1)
    assert {found["code"] for found in machine.json["leftOut"]} == {"precondition_failed"}
    assert machine.error["code"] == "precondition_failed"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{}", "no id"),
        (b"[]", "not a JSON object"),
        (b"{", "not a JSON object"),
        (b'\xff{"id": "bad"}', "not a JSON object"),
        (b'{"id": "bad", "id": "bad"}', "not a JSON object"),
        (b"[" * 100_000, "not a JSON object"),
        (b'{"id": "else"}', "holds the document 'else'"),
        (b'{"id": "bad", "title": "T", "text": 5, "summary": "", "agentWrites": "enabled"}', "text must be"),
        (b'{"id": "bad", "title": null, "text": "", "summary": "", "agentWrites": "enabled"}', "title must be"),
        (b'{"id": "bad", "title": "T", "text": "", "summary": "", "agentWrites": []}', "agentWrites must be"),
        (b'{"id": "bad", "title": "", "text": "", "summary": "", "agentWrites": "enabled"}', "title is empty"),
        (b'{"id": "bad", "title": "T", "text": "\\ud800", "summary": "", "agentWrites": "enabled"}', "lone surrogate"),
        (b" " * 600_000, "more than any document"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_document_is_left_out(other: Cli, tmp_path: Path, data: bytes, says: str) -> None:
    folder = tmp_path / "in" / "notes"
    folder.mkdir(parents=True)
    (folder / "bad.json").write_bytes(data)
    good = {"id": "good", "title": "G", "text": "", "summary": "", "agentWrites": "enabled"}
    (folder / "good.json").write_text(json.dumps(good))
    done = other("import", str(tmp_path / "in"))
    assert done.status == 1
    assert says in done.err
    assert done.err.count("\n") == 1
    assert [info["id"] for info in other.json("list", "notes")["documents"]] == ["good"]


def test_files_that_are_not_ordinary_are_left_out(other: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "notes"
    folder.mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_text('{"id": "link", "title": "T", "text": "", "summary": "", "agentWrites": "enabled"}')
    (folder / "link.json").symlink_to(secret)
    os.mkfifo(folder / "pipe.json")
    (folder / "folder.json").mkdir()
    (folder / "..json").write_text("")
    (folder / "b d.json").write_text('{"id": "b d"}')
    (tmp_path / "in" / "linked").symlink_to(folder)
    done = other("import", str(tmp_path / "in"), "--json")
    assert {(Path(found["subject"]).name, found["message"].partition(".")[0]) for found in done.json["leftOut"]} == {
        ("link.json", "It is a symbolic link, which is not followed"),
        ("pipe.json", "It is not an ordinary file"),
        ("folder.json", "It is not an ordinary file"),
        ("b d.json", "It is not an exported document: it has no title"),
    }
    assert other.json("list", "notes") == {"documents": []}


def test_an_undeclared_resource_is_reported_once(run: Cli, other: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run.ok("export", "--out", str(out))
    (out / "notes").rename(out / "facts")
    done = other("import", str(out))
    assert done.status == 1
    assert done.err == f"{out}/facts: There is no resource facts here. Declare it and deploy, then import again.\n"


def test_a_folder_that_is_no_export_is_one_clear_line(other: Cli, tmp_path: Path) -> None:
    assert other.refused("import", str(tmp_path / "nowhere"))["code"] == "storage_failed"
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.md").write_text("text")
    assert "--resource" in other.refused("import", str(folder), status=2)["message"]
    assert other.refused("import", str(folder), "--resource", "facts")["code"] == "not_found"


def test_a_folder_of_texts_becomes_documents(other: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "deep.md").write_text("not taken")
    (folder / "My plan.md").write_bytes(b"\xef\xbb\xbfintro\r\n# The plan\r\n")
    (folder / "list.TXT").write_text("no heading")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    assert other.json("import", str(folder), "--resource", "notes")["created"] == 2
    assert content(other, "My-plan") == {
        "id": "My-plan", "title": "The plan", "text": "\ufeffintro\r\n# The plan\r\n", "summary": "",
        "agentWrites": "enabled",
    }  # fmt: skip
    assert other.json("show", "notes", "list")["title"] == "list"
    assert other.json("import", str(folder), "--resource", "notes") == {"created": 0, "unchanged": 2, "leftOut": []}


def test_texts_that_cannot_be_taken_are_left_out(other: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a b.md").write_text("first")
    (folder / "a-b.txt").write_text("second")
    (folder / "latin.md").write_bytes(b"gr\xfcn")
    (folder / "long.md").write_bytes(b"x" * 9000)
    (folder / "ok.md").write_text("ok")
    done = other("import", str(folder), "--resource", "notes")
    assert (done.status, done.out) == (1, "created 2 documents; 0 were there already; 3 left out\n")
    errors = dict(line.split(": ", 1) for line in done.err.splitlines())
    assert errors[f"{folder}/a-b.txt"].startswith(f"Its id would be a-b, as that of {folder}/a b.md.")
    assert "not UTF-8" in errors[f"{folder}/latin.md"]
    assert "the limit is 8192" in errors[f"{folder}/long.md"]


def test_an_import_that_was_killed_goes_on_where_it_stopped(other: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(600):
        (folder / f"n{number}.md").write_text(f"# Number {number}\n")
    running = subprocess.Popen(
        [COMMAND, "import", str(folder), "--resource", "notes"], cwd=other.folder, env=clean_environment()
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(list((other.tree / "notes").rglob("n*.json"))) < 10 and time.monotonic() < deadline:
        pass
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    before = len(other.json("list", "notes")["documents"])
    assert 0 < before < 600
    done = other.json("import", str(folder), "--resource", "notes")
    assert (done["created"] + done["unchanged"], done["unchanged"]) == (600, before)
    with gitmem.open_store(other.folder) as store:
        notes = store.project("bot").environment().documents("notes")
        assert all(notes.read(f"n{number}").title == f"Number {number}" for number in range(600))
