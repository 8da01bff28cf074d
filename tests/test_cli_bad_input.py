"""Bad input: one clear line, exit 1 or 2, and nothing is changed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import Cli, prepared
from tests.support import git

BAD_DOCUMENT_IDS = [
    "", ".", "..", "../a", "a/b", "/etc/passwd", ".git", "a.json", "a b", "a\n", "a\0", "ä", "a" * 129, "\udcff", "C:",
    "a\u202eb", "%61", "*",
]  # fmt: skip
BAD_RESOURCE_IDS = [
    "", ".", "..", ".git", "notes/..", "Notes", "a--b", "-a", "a-", "a_b", "notes\n", "notes\0", "é", "a" * 129,
    "\udcff",
]  # fmt: skip
BAD_REVISIONS = ["", "HEAD", "main", "--output=x", "0" * 41, "A" * 40, "abc", "abcdef\n", "\udcff", "HEAD~1", "0" * 6]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    run = prepared(tmp_path_factory.mktemp("bad") / "store")
    run.ok("create", "notes", "a", "--title", "A", "--text-stdin", stdin=b"one\n")
    return run


@pytest.fixture
def run(made: Cli) -> Iterator[Cli]:
    """A store that the test must leave as it is."""
    before = git(made.tree, "rev-parse", "main")
    yield made
    assert made.ok("doctor") == "healthy\n"
    assert git(made.tree, "rev-parse", "main") == before
    assert git(made.tree, "status", "--porcelain") == ""
    assert sorted(path.name for path in made.folder.iterdir()) == ["bot", "gitmem.toml"]


def commands(resource: str, document_id: str) -> list[tuple[str, ...]]:
    where = ("--", resource, document_id)
    return [
        ("show", *where), ("create", "--title", "T", *where), ("edit", "--text-stdin", *where), ("freeze", *where),
        ("unfreeze", *where), ("retitle", *where, "T"), ("remove", *where), ("log", *where), ("diff", *where),
        ("blame", *where), ("path", *where), ("restore", *where, "0" * 40),
    ]  # fmt: skip


@pytest.mark.parametrize("document_id", BAD_DOCUMENT_IDS)
def test_document_ids_outside_the_grammar(run: Cli, document_id: str) -> None:
    for arguments in commands("notes", document_id):
        error = run.refused(*arguments, status=2)
        assert error["code"] == "invalid_request"
        assert "is not a document id" in error["message"]


@pytest.mark.parametrize("resource", BAD_RESOURCE_IDS)
def test_resource_ids_outside_the_grammar(run: Cli, tmp_path: Path, resource: str) -> None:
    others = [
        ("list", "--", resource), ("path", "--", resource), ("import", str(tmp_path), f"--resource={resource}"),
        ("export", f"--out={tmp_path}", f"--resource={resource}"),
    ]  # fmt: skip
    for arguments in commands(resource, "a") + others:
        error = run.refused(*arguments, status=2)
        assert error["code"] == "invalid_request"
        assert "is not a resource id" in error["message"]
    assert not list(tmp_path.iterdir())


def test_an_unknown_resource(run: Cli) -> None:
    for arguments in [*commands("nothing", "a"), ("list", "nothing")]:
        error = run.refused(*arguments)
        assert error["code"] == "not_found"
        assert "no resource nothing" in error["message"]


@pytest.mark.parametrize("revision", BAD_REVISIONS)
def test_revisions_that_are_none(run: Cli, revision: str) -> None:
    good = git(run.tree, "rev-parse", "main")
    for arguments in (
        ("show", "notes", "a", f"--revision={revision}"), ("restore", "--", "notes", "a", revision),
        ("diff", "--", "notes", "a", revision), ("diff", "--", "notes", "a", good, revision),
    ):  # fmt: skip
        assert "is not a revision" in run.refused(*arguments, status=2)["message"]


def test_a_revision_of_something_else(run: Cli) -> None:
    foreign = git(run.tree, "rev-list", "--max-parents=0", "main")
    for revision in (foreign, "0" * 40):
        assert run.refused("show", "notes", "a", "--revision", revision)["code"] == "not_found"
        assert run.refused("restore", "notes", "a", revision)["code"] == "not_found"


@pytest.mark.parametrize(
    ("arguments", "stdin", "field", "size"),
    [
        (("create", "notes", "b", "--title", "ä" * 121), b"", "title", 242),
        (("create", "notes", "b", "--title", "T", "--summary", "x" * 241), b"", "summary", 241),
        (("create", "notes", "b", "--title", "T", "--text-stdin"), b"x" * 8193, "text", 8193),
        (("retitle", "notes", "a", "x" * 241), b"", "title", 241),
        (("edit", "notes", "a", "--text-stdin"), "€".encode() * 2731, "text", 8193),
        (("edit", "notes", "a", "--text-stdin", "--summary", "x" * 241), b"", "summary", 241),
    ],
)  # fmt: skip
def test_fields_over_their_limit(run: Cli, arguments: tuple[str, ...], stdin: bytes, field: str, size: int) -> None:
    error = run.refused(*arguments, stdin=stdin)
    assert error["code"] == "memory_limit_exceeded"
    assert error["message"].startswith(f"{field} has {size} bytes; the limit is ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "notes", "b", "--title", ""),
        ("retitle", "notes", "a", ""),
        ("create", "notes", "b", "--title", "\udcff"),
        ("retitle", "notes", "a", "\ud800"),
        ("edit", "notes", "a", "--text-stdin", "--summary", "x\udc00"),
    ],
)  # fmt: skip
def test_fields_that_are_no_text(run: Cli, arguments: tuple[str, ...]) -> None:
    assert run.refused(*arguments, status=2)["code"] == "invalid_request"


def test_exactly_at_the_limits(tmp_path: Path) -> None:
    run = prepared(tmp_path / "store")
    run.ok(
        "create", "notes", "a" * 128, "--title", "x" * 240, "--summary", "x" * 240, "--text-stdin", stdin=b"x" * 8192
    )
    run.ok("retitle", "notes", "a" * 128, "é" * 120)


def test_a_damaged_object_is_named_and_the_rest_stays_readable(tmp_path: Path) -> None:
    run = prepared(tmp_path / "store")
    run.ok("create", "notes", "good", "--title", "Good")
    run.ok("create", "notes", "bad", "--title", "Bad", "--text-stdin", stdin=b"lost")
    blob = git(run.tree, "rev-parse", "main:notes/bad.json")
    (found,) = (run.tree / ".git" / "objects" / blob[:2]).glob(blob[2:])
    found.chmod(0o600)
    whole = found.read_bytes()
    found.write_bytes(zlib.compress(b"blob 0\0"))
    error = run.refused("show", "notes", "bad")
    assert error["code"] == "damaged"
    assert blob in error["message"]
    assert run.json("show", "notes", "good")["title"] == "Good"
    out = tmp_path / "out"
    done = run("export", "--out", str(out))
    assert done.status == 1
    assert "exported 1 document" in done.out
    assert done.err.startswith("notes/bad: ")
    assert [path.name for path in out.rglob("*.json")] == ["good.json"]
    found.write_bytes(whole)
