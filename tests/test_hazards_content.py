"""Hazard "content": exact round trips, clear refusals, and hand edits that are adopted or left alone, never lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem import failpoints
from tests.hazards import done, edited, file_of, folder, git_dir, handwritten, refused, shown, status
from tests.support import git
from tests.support import gitmem as run


@pytest.fixture
def a(environment: gitmem.Environment, notes: gitmem.Documents) -> gitmem.Document:
    """A document, saved by a command that has ended."""
    document = notes.create("a", title="A", text="one")
    environment.close()
    return document


Arm = Callable[[str, Callable[[], object]], None]


@pytest.fixture
def armed() -> Iterator[Arm]:
    """Do something once, when a failpoint is reached."""

    def arm(name: str, action: Callable[[], object]) -> None:
        def once() -> None:
            failpoints.disarm()
            action()

        failpoints.arm(name, once)

    yield arm
    failpoints.disarm()


# Texts

TEXTS = {
    "empty": "",
    "no final newline": "a",
    "newlines": "\n\n",
    "carriage returns": "a\r\nb\rc\r",
    "nul": "a\0b",
    "separators": "\u2028x\u2029\x85\x0b\x0c",
    "bom": "\ufeffa",
    "control characters": "\x7f\x1b[31m\x01\t",
    "beyond the first plane": "𝒳\U0010ffff\uffff",
    "combined": "e\u0301 é",
    "quotes": "\"\\/'</script>${x}{{y}}",
    "conflict markers": "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> side\n",
    "like a tombstone": '{"deleted": true}',
    "the largest": "é" * 4096,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_comes_back_exactly(environment: gitmem.Environment, notes: gitmem.Documents, text: str) -> None:
    created = notes.create("a", title="T", text=text)
    assert notes.read("a") == created
    assert (created.text, created.bytes) == (text, len(text.encode()))
    assert notes.replace("a", text=text, if_match=created.revision) == created
    environment.close()
    for path in (git_dir(environment) / "gitmem").glob("index*"):
        path.unlink()
    assert notes.read("a") == created
    environment.close()
    assert status(environment) == ""


@pytest.mark.parametrize("name", ["carriage returns", "nul", "separators", "bom", "control characters"])
def test_the_command_line_changes_no_byte_of_a_text(environment: gitmem.Environment, tmp_path: Path, name: str) -> None:
    (tmp_path / "text").write_bytes(TEXTS[name].encode())
    done(environment, "create", "notes", "a", "--title", "T", "--text-file", str(tmp_path / "text"))
    assert shown(environment, "a") == TEXTS[name]
    done(environment, "edit", "notes", "a", "--text-stdin", stdin=TEXTS[name] + "!")
    assert shown(environment, "a") == TEXTS[name] + "!"


@pytest.mark.parametrize("data", [b"\xff\xfea\0", b"caf\xe9", b"\xed\xa0\x80", b"\xc0\x80", b"a\xf5"], ids=repr)
def test_what_is_not_utf_8_is_refused_on_stdin_and_in_a_file(
    environment: gitmem.Environment, a: gitmem.Document, tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "text").write_bytes(data)
    for args in (["--text-file", str(tmp_path / "text")], ["--text-stdin"]):
        ran = run("--store", str(folder(environment).parents[1]), "--project", "bot", "edit", "notes", "a", *args,
                  stdin=data)  # fmt: skip
        assert ran.returncode in (1, 2)
        assert (ran.stdout, len(ran.stderr.splitlines())) == ("", 1)
        assert "UTF-8" in ran.stderr
    assert shown(environment, "a") == "one"


@pytest.mark.parametrize("field", ["title", "text", "summary"])
@pytest.mark.parametrize("value", ["a\ud800b", "\udfff"], ids=ascii)
def test_a_lone_surrogate_is_refused(notes: gitmem.Documents, field: str, value: str) -> None:
    fields: dict[str, Any] = {"title": "T", field: value}
    with pytest.raises(gitmem.InvalidRequestError, match="surrogate"):
        notes.create("a", **fields)


# Files that people wrote

VALID: dict[str, tuple[bytes, tuple[str, str]]] = {
    "no final newline": (b'{"title": "T", "text": "t"}', ("T", "t")),
    "crlf": (b'{\r\n"title": "T",\r\n"text": ["x\\r", "y"]\r\n}\r\n', ("T", "x\r\ny")),
    "nothing given": (b"{}", ("a", "")),
    "lines": (b'{"text": ["x", "y", ""]}', ("a", "x\ny\n")),
    "newline within a line": (b'{"text": ["x\\ny"]}', ("a", "x\ny")),
    "separators": ('{"text": "x\u2028y\u2029z"}'.encode(), ("a", "x\u2028y\u2029z")),
    "escaped nul": (b'{"text": "x\\u0000y"}', ("a", "x\0y")),
    "surrogate pair": (b'{"title": "\\ud83d\\ude00"}', ("😀", "")),
    "conflict markers as text": (b'{"text": ["<<<<<<< HEAD", ">>>>>>> x"]}', ("a", "<<<<<<< HEAD\n>>>>>>> x")),
    "the largest": (json.dumps({"text": "x" * 8192}).encode(), ("a", "x" * 8192)),
}

INVALID: dict[str, bytes] = {
    "empty": b"",
    "blank": b"  \n",
    "half": b'{"title": "T", "te',
    "bom": b'\xef\xbb\xbf{"title": "T"}',
    "utf-16": '{"title": "T"}'.encode("utf-16"),
    "latin-1": '{"title": "é"}'.encode("latin-1"),
    "nan": b'{"text": NaN}',
    "infinity": b'{"text": -Infinity}',
    "duplicate key": b'{"title": "T", "title": "U"}',
    "huge number": b'{"title": ' + b"9" * 5000 + b"}",
    "huge exponent": b'{"title": 1e999}',
    "deep array": b"[" * 100_000,
    "deep object": b'{"a":' * 50_000,
    "lone surrogate": b'{"title": "\\ud800"}',
    "raw nul": b'{"title": "T\0"}',
    "raw tab": b'{"title": "a\tb"}',
    "not an object": b'["title"]',
    "null": b"null",
    "unknown key": b'{"title": "T", "tags": []}',
    "key in another case": b'{"Title": "T"}',
    "empty title": b'{"title": ""}',
    "long title": json.dumps({"title": "x" * 241}).encode(),
    "long text": json.dumps({"text": "x" * 8193}).encode(),
    "no lines": b'{"text": []}',
    "a number among lines": b'{"text": ["a", 5]}',
    "another policy": b'{"agentWrites": "maybe"}',
    "null summary": b'{"summary": null}',
    "half a tombstone": b'{"deleted": false}',
    "a tombstone and more": b'{"deleted": true, "title": "T"}',
    "a tombstone by number": b'{"deleted": 1}',
    "conflict markers": b'<<<<<<< HEAD\n{"title": "A"}\n=======\n{"title": "B"}\n>>>>>>> side\n',
    "comment": b'{"title": "T"} // x',
    "trailing comma": b'{"title": "T",}',
    "huge": b" " * 600_000,
}


@pytest.mark.parametrize("name", VALID)
def test_a_valid_hand_edit_is_adopted_before_the_save(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, name: str
) -> None:
    data, (title, text) = VALID[name]
    file_of(environment, "a").write_bytes(data)
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.replace("a", text="two", if_match=a.revision)
    edit = notes.read("a")
    assert (edit.title, edit.text, edit.writer.kind) == (title, text, "owner")
    assert [v.operation for v in notes.history("a").versions] == ["edit", "create"]
    environment.close()
    assert status(environment) == ""
    assert json.loads(file_of(environment, "a").read_bytes())["title"] == title


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_hand_edit_is_left_alone_and_the_last_good_version_served(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, name: str
) -> None:
    path = file_of(environment, "a")
    path.write_bytes(INVALID[name])
    assert notes.read("a") == a
    two = notes.replace("a", text="two", if_match=a.revision)
    assert notes.read("a") == two
    environment.close()
    assert path.read_bytes() == INVALID[name]
    assert [v.operation for v in notes.history("a").versions] == ["replace", "create"]
    (file,) = environment.status().files
    assert (file.path, file.document) == ("notes/a.json", "notes/a")
    environment.close()
    path.unlink()
    git(environment.folder, "checkout", "notes/a.json")


@pytest.mark.parametrize("name", sorted(INVALID.keys() - {"long text"}))
def test_an_invalid_file_that_was_committed_is_no_version(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, name: str
) -> None:
    for document_id in ("a", "b"):
        file_of(environment, document_id).write_bytes(INVALID[name])
    git(environment.folder, "add", ".")
    git(environment.folder, "commit", "-qm", "by hand")
    for _ in range(2):
        assert notes.read("a") == a
        assert [d.id for d in notes.list().documents] == ["a"]
        with pytest.raises(gitmem.NotFoundError):
            notes.read("b")
        assert [v.operation for v in notes.history("a").versions] == ["create"]
        environment.close()
        for path in (git_dir(environment) / "gitmem").glob("index*"):
            path.unlink()
    assert {file.path for file in environment.status().files} == {"notes/a.json", "notes/b.json"}
    environment.close()
    git(environment.folder, "revert", "--no-edit", "HEAD")
    assert notes.read("a").text == "one"


def test_hand_edits_on_the_command_line(environment: gitmem.Environment, a: gitmem.Document) -> None:
    file_of(environment, "a").write_text(handwritten("By hand", "mine"))
    assert "notes/a" in done(environment, "status")
    assert "has changed" in refused(environment, "edit", "notes", "a", "--text-stdin", stdin="not knowing of it")
    assert shown(environment, "a") == "mine"
    file_of(environment, "a").write_text("{")
    assert "notes/a" in done(environment, "status")
    edited(environment, "a", "two")
    assert shown(environment, "a") == "two"
    assert file_of(environment, "a").read_text() == "{"
    git(environment.folder, "checkout", "notes/a.json")


def test_the_same_document_in_other_bytes_is_no_edit(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    path = file_of(environment, "a")
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert notes.replace("a", text="two", if_match=a.revision).text == "two"
    assert [v.operation for v in notes.history("a").versions] == ["replace", "create"]
    environment.close()
    assert status(environment) == ""


# File modes


def test_a_changed_file_mode_makes_no_version_and_is_put_back(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    path = file_of(environment, "a")
    path.chmod(0o755)
    assert notes.replace("a", text="one", if_match=a.revision) == a
    notes.replace("a", text="two", if_match=a.revision)
    environment.close()
    assert [v.operation for v in notes.history("a").versions] == ["replace", "create"]
    assert status(environment) == ""
    assert not os.stat(path).st_mode & 0o111


def test_a_committed_file_mode_makes_no_version(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document
) -> None:
    file_of(environment, "a").chmod(0o755)
    git(environment.folder, "commit", "-qam", "executable")
    assert notes.read("a") == a
    assert [v.operation for v in notes.history("a").versions] == ["create"]
    edited(environment, "a", "two")
    assert status(environment) == ""
    assert git(environment.folder, "ls-tree", "main:notes", "a.json").startswith("100644")


# An edit that arrives while a save is under way


def rename_over(path: Path) -> None:
    path.with_suffix(".swp").write_text(handwritten("By hand", "mine"))
    path.with_suffix(".swp").rename(path)


ARRIVING: dict[str, Callable[[Path], object]] = {
    "a valid one": lambda path: path.write_text(handwritten("By hand", "mine")),
    "half of one": lambda path: path.write_text('{"title": "By ha'),
    "by renaming": rename_over,
}


@pytest.mark.parametrize("moment", ["before-objects", "before-swap", "after-swap", "before-projection"])
@pytest.mark.parametrize("kind", ARRIVING)
def test_an_edit_in_the_middle_of_a_save_is_never_overwritten(
    environment: gitmem.Environment,
    notes: gitmem.Documents,
    a: gitmem.Document,
    armed: Arm,
    moment: str,
    kind: str,
) -> None:
    path = file_of(environment, "a")
    armed(moment, lambda: ARRIVING[kind](path))
    two = notes.replace("a", text="two", if_match=a.revision)
    edit = path.read_bytes()
    assert b"By ha" in edit
    notes.replace("a", text="three", if_match=two.revision)
    environment.close()
    assert path.read_bytes() == edit
    assert notes.read("a").text == "three"
    assert [file.path for file in environment.status().files] == ["notes/a.json"]
    environment.close()
    git(environment.folder, "checkout", "notes/a.json")


@pytest.mark.parametrize("moment", ["after-projection", "before-stage", "after-stage"])
def test_an_edit_on_top_of_what_was_just_saved_is_adopted(
    environment: gitmem.Environment,
    notes: gitmem.Documents,
    a: gitmem.Document,
    armed: Arm,
    moment: str,
) -> None:
    armed(moment, lambda: rename_over(file_of(environment, "a")))
    two = notes.replace("a", text="two", if_match=a.revision)
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.replace("a", text="three", if_match=two.revision)
    assert notes.read("a").text == "mine"
    assert [v.operation for v in notes.history("a").versions] == ["edit", "replace", "create"]
    environment.close()
    assert status(environment) == ""


def test_a_new_file_where_a_document_is_being_created_is_not_overwritten(
    environment: gitmem.Environment,
    notes: gitmem.Documents,
    armed: Arm,
) -> None:
    path = file_of(environment, "b")
    armed("before-projection", lambda: path.write_text(handwritten("By hand", "mine")))
    notes.create("b", title="B", text="ours")
    environment.close()
    assert path.read_text() == handwritten("By hand", "mine")
    assert notes.read("b").text == "ours"
    assert [file.path for file in environment.status().files] == ["notes/b.json"]
    environment.close()
    git(environment.folder, "checkout", "notes/b.json")
