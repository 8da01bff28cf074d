"""Hazard "names": what the grammar does not allow is refused before any read or write, at every door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gitmem
from tests.hazards import done, edited, folder, refused, shown, status
from tests.support import git
from tests.support import gitmem as run

NO_DOCUMENT = [
    *("", ".", "..", "../b", "a/b", "/etc/passwd", "a\\b", "~", "*", "a ", " a", "a\n", "a\r", "a\0b", "a.b", "a:b"),
    *(".git", ".GIT", "git~1", ".git/config", "--output=x", "%2e%2e", "%00", "é", "ａ", "a\u200b", "\ud800", "x" * 129),
]
NO_RESOURCE = [*NO_DOCUMENT, "A", "a_b", "-a", "a-", "a--b", "-rf", "--output", "NOTES", "notes\n"]
NO_REVISION = [
    *(
        "",
        "HEAD",
        "main",
        "refs/heads/main",
        "..",
        "a" * 6,
        "a" * 41,
        "A" * 40,
        "g" * 40,
        "0x" + "a" * 38,
        "\0",
        "\ud800",
    ),
    *(
        "--output=x",
        "-n",
        "HEAD~1",
        "@{1}",
        "a" * 40 + "\n",
        " " + "a" * 40,
        "a" * 40 + "^",
        "a" * 40 + ":notes/a.json",
    ),
]
NO_CURSOR = ["", "x", "\0", "\ud800", "../..", "--output=x", "A" * 5000, "MDow", "é"]


@pytest.fixture
def a(environment: gitmem.Environment, notes: gitmem.Documents) -> gitmem.Document:
    """A document, saved by a command that has ended."""
    document = notes.create("a", title="A", text="one")
    environment.close()
    return document


@pytest.fixture(autouse=True)
def untouched(tmp_path: Path) -> Iterator[None]:
    """Ends each test with the certainty that nothing was made outside of the store."""
    yield
    assert [path.name for path in tmp_path.iterdir()] in ([], ["store"])


def tip(environment: gitmem.Environment) -> str:
    return git(environment.folder, "rev-parse", "main")


# Through the Python interface


@pytest.mark.parametrize("name", NO_DOCUMENT, ids=ascii)
def test_no_operation_takes_a_document_id_outside_the_grammar(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, name: str
) -> None:
    before = tip(environment)
    operations: list[Callable[[], object]] = [
        lambda: notes.read(name),
        lambda: notes.info(name),
        lambda: notes.create(name, title="T"),
        lambda: notes.replace(name, text="t", if_match=a.revision),
        lambda: notes.patch(name, title="T", if_match=a.revision),
        lambda: notes.delete(name, if_match=a.revision),
        lambda: notes.history(name),
        lambda: notes.diff(name),
        lambda: notes.restore(name, a.revision, if_match=a.revision),
    ]
    for operation in operations:
        with pytest.raises(gitmem.InvalidRequestError) as refusal:
            operation()
        assert len(refusal.value.message.splitlines()) == 1
    assert tip(environment) == before


@pytest.mark.parametrize("name", NO_RESOURCE, ids=ascii)
def test_resources_projects_agents_and_environments_follow_their_grammar(
    store: gitmem.Store, environment: gitmem.Environment, name: str
) -> None:
    operations: list[Callable[[], object]] = [
        lambda: environment.documents(name),
        lambda: gitmem.define_memory(id=name, description="D."),
        lambda: environment.deploy(agent=name, memories=[]),
        lambda: store.project(name),
        lambda: store.project("bot").environment(name),
    ]
    for operation in operations:
        with pytest.raises(gitmem.InvalidRequestError):
            operation()
    assert store.projects() == ["bot"]


@pytest.mark.parametrize("name", [None, 5, b"a", ["a"], {"a": 1}, True], ids=repr)
def test_what_is_no_text_is_no_name(environment: gitmem.Environment, notes: gitmem.Documents, name: Any) -> None:
    for operation in (notes.read, notes.history, environment.documents):
        with pytest.raises(gitmem.InvalidRequestError):
            operation(name)
    with pytest.raises(gitmem.InvalidRequestError):
        notes.create(name, title="T")


@pytest.mark.parametrize("revision", NO_REVISION, ids=ascii)
def test_a_revision_is_hex_digits_and_never_an_expression(
    notes: gitmem.Documents, a: gitmem.Document, revision: str
) -> None:
    operations: list[Callable[[], object]] = [
        lambda: notes.read("a", at=revision),
        lambda: notes.diff("a", revision),
        lambda: notes.diff("a", a.revision, revision),
        lambda: notes.restore("a", revision, if_match=a.revision),
    ]
    for operation in operations:
        with pytest.raises(gitmem.InvalidRequestError):
            operation()
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.replace("a", text="two", if_match=revision)
    assert notes.read("a") == a


@pytest.mark.parametrize("revision", [5, b"a" * 40, ["a" * 40]], ids=repr)
def test_what_is_no_text_is_no_revision(notes: gitmem.Documents, a: gitmem.Document, revision: Any) -> None:
    operations: list[Callable[[], object]] = [
        lambda: notes.read("a", at=revision),
        lambda: notes.diff("a", revision),
        lambda: notes.restore("a", revision, if_match=a.revision),
        lambda: notes.replace("a", text="two", if_match=revision),
    ]
    for operation in operations:
        with pytest.raises(gitmem.InvalidRequestError):
            operation()


def test_a_revision_of_another_document_is_not_found(notes: gitmem.Documents, a: gitmem.Document) -> None:
    b = notes.create("b", title="B")
    for revision in (b.revision, "0" * 40, "f" * 40):
        with pytest.raises(gitmem.NotFoundError):
            notes.read("a", at=revision)
    assert notes.read("a", at=a.revision[:7]) == a


@pytest.mark.parametrize("cursor", NO_CURSOR, ids=ascii)
def test_a_cursor_that_no_listing_gave_is_refused(notes: gitmem.Documents, a: gitmem.Document, cursor: str) -> None:
    for operation in (lambda: notes.list(cursor=cursor), lambda: notes.history("a", cursor=cursor)):
        with pytest.raises(gitmem.InvalidCursorError):
            operation()


# On the command line


@pytest.mark.parametrize(
    "name", ["../../../escaped", "/tmp/escaped", ".git", "a\n", "--output=x", "x" * 129], ids=ascii
)
def test_the_command_line_refuses_such_ids_before_it_looks(
    environment: gitmem.Environment, a: gitmem.Document, name: str
) -> None:
    before = tip(environment)
    refused(environment, "show", "notes", "--", name, status=2)
    refused(environment, "create", "notes", "--title", "T", "--", name, status=2)
    assert tip(environment) == before


def test_every_command_refuses_such_ids(environment: gitmem.Environment, a: gitmem.Document) -> None:
    for command in (
        ("edit", "notes", "..", "--text-stdin"),
        ("retitle", "notes", "..", "T"),
        ("freeze", "notes", ".."),
        ("remove", "notes", ".."),
        ("restore", "notes", "..", a.revision),
        ("log", "notes", ".."),
        ("diff", "notes", ".."),
        ("blame", "notes", ".."),
        ("path", "notes", ".."),
        ("show", "..", "a"),
        ("list", ".."),
        ("export", "--out", "exported", "--resource", ".."),
    ):
        refused(environment, *command, status=2)


@pytest.mark.parametrize("name", ["../other", ".git", "--project=x", ""])
def test_the_command_line_refuses_such_projects_and_agents(
    environment: gitmem.Environment, a: gitmem.Document, name: str
) -> None:
    store = str(folder(environment).parents[1])
    for args in (
        ["--store", store, f"--project={name}", "list", "notes"],
        ["--store", store, "--project", "bot", "deploy", f"--agent={name}"],
        ["init", f"{store}/new", f"--project={name}"],
    ):
        ran = run(*args)
        assert (ran.returncode, ran.stdout) == (2, ""), args
        assert len(ran.stderr.splitlines()) == 1
    assert not Path(store, "new").exists()


@pytest.mark.parametrize("revision", ["HEAD", "--output=x", ""])
def test_the_command_line_refuses_such_revisions(
    environment: gitmem.Environment, a: gitmem.Document, revision: str
) -> None:
    for command in (
        ("show", "notes", "a", f"--revision={revision}"),
        ("diff", "notes", "a", "--", revision),
        ("restore", "notes", "a", "--", revision),
    ):
        refused(environment, *command, status=2)
    assert shown(environment, "a") == "one"


# What the grammar does allow


def test_ids_that_look_like_options_or_devices_are_documents(
    environment: gitmem.Environment, notes: gitmem.Documents
) -> None:
    names = ["-rf", "--", "-", "_", "--help", "HEAD", "index", "CON", "nul", "x" * 128, "0", "-0", "resource"]
    for name in names:
        notes.create(name, title="T", text=f"text of {name}")
    environment.close()
    for name in ("-rf", "--", "--help"):
        assert shown(environment, name) == f"text of {name}"
        edited(environment, name, "another text")
        done(environment, "remove", "notes", "--", name)
    assert status(environment) == ""
    assert sorted(d.id for d in notes.list().documents) == sorted(set(names) - {"-rf", "--", "--help"})


def test_ids_that_differ_in_case_are_different_documents(
    environment: gitmem.Environment, notes: gitmem.Documents
) -> None:
    names = ["note", "Note", "NOTE", "nOTE"]
    created = {name: notes.create(name, title=name, text=f"text of {name}") for name in names}
    notes.delete("Note", if_match=created["Note"].revision)
    changed = notes.replace("NOTE", text="changed", if_match=created["NOTE"].revision)
    assert notes.read("note") == created["note"]
    assert notes.read("nOTE") == created["nOTE"]
    assert notes.read("NOTE") == changed
    with pytest.raises(gitmem.NotFoundError):
        notes.read("Note")
    environment.close()
    assert status(environment) == ""


@pytest.mark.parametrize("name", ["a.txt", "a.json.swp", ".a.json", "a.json~", "#a.json#", "b c.json", "é.json"])
def test_other_files_in_a_resource_are_no_documents(
    environment: gitmem.Environment, notes: gitmem.Documents, a: gitmem.Document, name: str
) -> None:
    path = folder(environment) / "notes" / name
    path.write_text('{"title": "T"}')
    notes.replace("a", text="two", if_match=a.revision)
    environment.close()
    git(environment.folder, "add", ".")
    git(environment.folder, "commit", "-qm", "by hand")
    assert [d.id for d in notes.list().documents] == ["a"]
    assert path.read_text() == '{"title": "T"}'
    path.unlink()
    git(environment.folder, "commit", "-qam", "gone")
