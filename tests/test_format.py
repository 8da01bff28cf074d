"""The format on disk, byte by byte: what gitmem writes, and what it must always be able to read."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import gitmem
from gitmem import Documents
from tests.support import clean_environment, fsck, git
from tests.workshop import NOTES, ManualClock, listed

LONG = gitmem.document_memory(max_bytes=16_384)
FIXTURES = Path(__file__).parent.parent / "fixtures"

DOCUMENT = """{
  "title": "Workshop é",
  "summary": "S",
  "agentWrites": "enabled",
  "text": [
    "one",
    "\\ttwo\\"\\\\\u2028\\u0000",
    ""
  ]
}
"""

DECLARATION = """{
  "description": "Workshop requirements and decisions.",
  "provider": {
    "kind": "document",
    "maxBytes": 8192
  }
}
"""

COMMITS = [
    """tree adab95d150a9a5f920cd90967f71dc32605d35fc
author Olga Owner <olga@example.org> 1789041600 +0000
committer gitmem <gitmem@localhost> 1789041600 +0000

init

Gitmem-Writer: owner
Gitmem-Time: 2026-09-10T12:00:00.000Z
""",
    """tree c4e3108bc9505721dc0fcc4c21af71a26a2230e5
parent e75bebd6731cd47d726cfb4206f02eda2b7b37e2
author Olga Owner <olga@example.org> 1789041600 +0000
committer gitmem <gitmem@localhost> 1789041600 +0000

declare notes

Gitmem-Writer: owner
Gitmem-Time: 2026-09-10T12:00:00.000Z
""",
    """tree 9c48ffd09e42e0e1442e81eff8107c2a3b5b4c30
parent 6b779b5bb360b9bf5bbe4946b580da26c72836af
author Olga Owner <olga@example.org> 1789041601 +0000
committer gitmem <gitmem@localhost> 1789041601 +0000

create notes/workshop

Gitmem-Writer: owner
Gitmem-Time: 2026-09-10T12:00:01.234Z
""",
    """tree 16cee8043672c77f7dac5a3ed906de5e245150f1
parent 27eb74e5c5818d8e565a53e02418cbe2fa1cda51
author agent <ses_01@agent.localhost> 1789041601 +0000
committer gitmem <gitmem@localhost> 1789041601 +0000

replace notes/workshop

Gitmem-Writer: agent
Gitmem-Session: ses_01
Gitmem-Time: 2026-09-10T12:00:01.235Z
""",
    """tree eb6886e17abb53fdc2af75056b80d082a4226f3d
parent f7193922bc9f34bc85084ab640f8f83bf7dbc92e
author Olga Owner <olga@example.org> 1789041601 +0000
committer gitmem <gitmem@localhost> 1789041601 +0000

delete notes/workshop

Gitmem-Writer: owner
Gitmem-Time: 2026-09-10T12:00:01.235Z
""",
]


def raw(folder: str, name: str) -> str:
    """The bytes of an object, as text."""
    done = subprocess.run(
        ["git", "-C", folder, "cat-file", "-p", name], capture_output=True, env=clean_environment(), check=True
    )
    return done.stdout.decode()


@pytest.fixture
def written(tmp_path: Path) -> Iterator[gitmem.Environment]:
    """An environment of a known owner at a known time, after each kind of commit."""
    repository = tmp_path / "s/bot/development"
    repository.mkdir(parents=True)
    git(repository, "init", "-q", "-b", "main")
    git(repository, "config", "user.name", "Olga Owner")
    git(repository, "config", "user.email", "olga@example.org")
    clock = ManualClock()
    with gitmem.open_store(tmp_path / "s", create=True, settings=gitmem.Settings(clock=clock)) as store:
        environment = store.project("bot").environment()
        environment.deploy(agent="tutor", memories=[NOTES])
        notes = environment.documents("notes")
        clock.move(1234)
        made = notes.create("workshop", title="Workshop é", text='one\n\ttwo"\\\u2028\0\n', summary="S")
        clock.move(1)
        agent = gitmem.Writer(kind="agent", session_id="ses_01")
        saved = notes.replace("workshop", text="x", if_match=made.revision, writer=agent)
        notes.delete("workshop", if_match=saved.revision)
        yield environment


def test_the_bytes_of_commits(written: gitmem.Environment) -> None:
    revisions = git(written.folder, "rev-list", "--reverse", "main").split()
    assert [raw(written.folder, revision) for revision in revisions] == COMMITS
    assert revisions[-1] == "60ac65fa59bf58ba0a051250bb862a1ba1386d51"


def test_the_bytes_of_files(written: gitmem.Environment) -> None:
    assert raw(written.folder, "main~2:notes/workshop.json") == DOCUMENT
    assert raw(written.folder, "main:notes/workshop.json") == '{"deleted": true}\n'
    assert raw(written.folder, "main:notes/.resource.json") == DECLARATION
    assert raw(written.folder, "main:.gitattributes") == "* -text -filter -ident\n"
    assert git(written.folder, "ls-tree", "-r", "--format=%(objectmode) %(path)", "main").splitlines() == [
        "100644 .gitattributes",
        "100644 notes/.resource.json",
        "100644 notes/workshop.json",
    ]
    for path in ("notes/workshop.json", "notes/.resource.json", ".gitattributes"):
        assert (Path(written.folder) / path).read_text() == raw(written.folder, f"main:{path}")


def test_a_resharding_commit_only_moves_files(notes: Documents, environment: gitmem.Environment) -> None:
    for number in range(129):
        notes.create(f"d{number}", title=f"Title {number}")
    folder = environment.folder
    assert git(folder, "log", "-2", "--format=%s|%cn") == "reshard notes|gitmem\ncreate notes/d128|gitmem"
    changes = git(folder, "diff-tree", "-r", "-M100%", "--no-commit-id", "--name-status", "main").splitlines()
    assert len(changes) == 129
    for change in changes:
        status, old, new = change.split("\t")
        assert (status, old) == ("R100", f"notes/{Path(new).name}")
    # The folder is named by the first byte of the id's SHA-256.
    assert "notes/0a/d0.json" in git(folder, "ls-files").splitlines()


# What people lay out


def by_hand(folder: Path, files: dict[str, str]) -> None:
    """Commit files with plain Git."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "by hand", env={"GIT_COMMITTER_DATE": "1600000000 +0200"})


@pytest.fixture
def handmade(tmp_path: Path) -> Iterator[gitmem.Environment]:
    """300 documents in a flat folder, and a few in every form that a person may write."""
    folder = tmp_path / "hand/bot/development"
    files = {"notes/.resource.json": '{"description": "By hand.", "provider": {"kind": "document", "maxBytes": 100}}'}
    files |= {f"notes/d{number:03}.json": f'{{"title": "Title {number}"}}' for number in range(300)}
    files |= {
        "notes/empty.json": "{}",
        "notes/string.json": '{"text": "one\\ntwo\\n"}',
        "notes/lines.json": '{"text": ["one", "two", ""], "agentWrites": "disabled"}',
        "notes/order.json": '\n{"summary":"S",\r\n"text":"é","title":"T"}   ',
        "notes/long.json": json.dumps({"text": "a" * 101}),
        "notes/gone.json": '{"deleted":true}',
        "README.md": "What a person writes beside is left alone.\n",
    }
    by_hand(folder, files)
    with gitmem.open_store(tmp_path / "hand", create=True) as store:
        yield store.project("bot").environment()


def test_a_repository_made_by_hand_opens(handmade: gitmem.Environment) -> None:
    notes = handmade.documents("notes")
    revision = git(handmade.folder, "rev-parse", "main")
    assert listed(notes) == sorted([f"d{n:03}" for n in range(300)] + ["empty", "string", "lines", "order", "long"])
    assert notes.read("string").to_json() == {
        "id": "string",
        "title": "string",
        "text": "one\ntwo\n",
        "summary": "",
        "agentWrites": "enabled",
        "revision": revision,
        "bytes": 8,
        "maxBytes": 100,
        "updatedAt": "2020-09-13T12:26:40.000Z",
        "writer": {"kind": "owner"},
    }
    assert (notes.read("lines").text, notes.read("lines").agent_writes) == ("one\ntwo\n", "disabled")
    assert (notes.read("order").title, notes.read("order").text, notes.read("order").summary) == ("T", "é", "S")
    assert (notes.read("empty").title, notes.read("empty").text) == ("empty", "")
    assert notes.read("long").bytes == 101
    with pytest.raises(gitmem.NotFoundError):
        notes.read("gone")
    assert [(version.operation, version.message) for version in notes.history("string").versions] == [
        ("create", "by hand")
    ]


def test_its_first_save_splits_the_folder_and_changes_no_revision(handmade: gitmem.Environment) -> None:
    notes = handmade.documents("notes")
    before = {document_id: notes.read(document_id) for document_id in listed(notes)}
    notes.create("new", title="New")
    assert git(handmade.folder, "log", "-2", "--format=%s") == "reshard notes\ncreate notes/new"
    paths = git(handmade.folder, "ls-tree", "-r", "--name-only", "main", "notes/").splitlines()
    assert all(path.count("/") == 2 for path in paths if not path.endswith(".resource.json"))
    assert {document_id: notes.read(document_id) for document_id in before} == before
    (Path(handmade.folder) / ".git/gitmem/index.sqlite").unlink()
    assert {document_id: notes.read(document_id) for document_id in before} == before
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.create("gone", title="Reserved")
    assert (Path(handmade.folder) / "README.md").exists()


def test_saving_gives_a_file_its_one_form(handmade: gitmem.Environment) -> None:
    notes = handmade.documents("notes")
    notes.patch("string", title="New", if_match=notes.read("string").revision)
    expected = '{"title": "New", "summary": "", "agentWrites": "enabled", "text": ["one", "two", ""]}'
    file = next(Path(handmade.folder).rglob("string.json"))
    assert file.read_text() == json.dumps(json.loads(expected), indent=2) + "\n"


def test_documents_are_found_at_any_depth(tmp_path: Path) -> None:
    # sha256("one") starts with 76 92, sha256("two") with 3f c4.
    files = {"notes/flat.json": "{}", "notes/76/one.json": "{}", "notes/3f/c4/two.json": "{}"}
    by_hand(tmp_path / "deep/bot/development", {"notes/.resource.json": DECLARATION} | files)
    with gitmem.open_store(tmp_path / "deep", create=True) as store:
        notes = store.project("bot").environment().documents("notes")
        assert listed(notes) == ["flat", "one", "two"]
        for document_id in ("flat", "one", "two"):
            notes.replace(document_id, text="new", if_match=notes.read(document_id).revision)
        paths = git(tmp_path / "deep/bot/development", "ls-files", "notes/*").splitlines()
        assert set(paths) == files.keys() | {"notes/.resource.json"}


@pytest.mark.findings("layout")
def test_a_document_in_a_wrong_folder_is_none(tmp_path: Path) -> None:
    by_hand(tmp_path / "s/bot/development", {"notes/.resource.json": DECLARATION, "notes/00/one.json": "{}"})
    with gitmem.open_store(tmp_path / "s", create=True) as store:
        assert listed(store.project("bot").environment().documents("notes")) == []


# Clones and fixtures


def test_two_clones_agree_on_every_revision(notes: Documents, environment: gitmem.Environment, tmp_path: Path) -> None:
    made = [notes.create(f"d{number}", title="Title") for number in range(129)]
    notes.delete("d7", if_match=made[7].revision)
    (Path(environment.folder) / "notes").joinpath("hand.json").write_text("{}")
    git(environment.folder, "add", "-A")
    git(environment.folder, "commit", "-q", "-m", "by hand")
    git(tmp_path, "clone", "-q", environment.folder, str(tmp_path / "clone/bot/development"))
    with gitmem.open_store(tmp_path / "clone", create=True) as store:
        theirs = store.project("bot").environment().documents("notes")
        assert [theirs.read(document_id) for document_id in listed(theirs)] == [
            notes.read(document_id) for document_id in listed(notes)
        ]
        assert theirs.history("d7") == notes.history("d7")
        assert theirs.create("new", title="New").revision


def test_a_shallow_clone_opens(notes: Documents, environment: gitmem.Environment, tmp_path: Path) -> None:
    first = notes.create("a", title="First")
    second = notes.replace("a", text="two", if_match=first.revision)
    notes.create("b", title="Other")
    source = f"file://{environment.folder}"
    git(tmp_path, "clone", "-q", "--depth", "1", source, str(tmp_path / "clone/bot/development"))
    with gitmem.open_store(tmp_path / "clone", create=True) as store:
        theirs = store.project("bot").environment().documents("notes")
        read = theirs.read("a")
        assert (read.text, theirs.read("b").title) == ("two", "Other")
        assert read.revision != second.revision  # what is not there cannot be named
        assert theirs.replace("a", text="three", if_match=read.revision).text == "three"


def test_format_1_always_opens(tmp_path: Path) -> None:
    """The fixture holds what version 0.1.0 wrote, and what people committed between, as a fast-import stream."""
    project = tmp_path / "old/bot"
    for name, bare in (("development", False), ("control.git", True)):
        (project / name).mkdir(parents=True)
        git(project / name, "init", "-q", "-b", "main", *(["--bare"] if bare else []))
        git(project / name, "fast-import", "--quiet", stdin=(FIXTURES / f"format-1/{name}.stream").read_text())
    git(project / "development", "reset", "-q", "--hard")
    answers = json.loads((FIXTURES / "format-1/answers.json").read_text())
    with gitmem.open_store(tmp_path / "old", create=True) as store:
        environment = store.project("bot").environment()
        assert answers_of(environment) == answers
        notes = environment.documents("notes")
        assert notes.replace("merged", text="new", if_match=notes.read("merged").revision).text == "new"


def answers_of(environment: gitmem.Environment) -> dict[str, object]:
    """Everything that an environment tells of itself; of the many alike only one each."""
    found: dict[str, object] = {
        "inventory": [resource.to_json() for resource in environment.inventory()],
        "deployments": {agent: deployment.to_json() for agent, deployment in environment.deployments().items()},
    }
    for resource in environment.inventory():
        documents = environment.documents(resource.id)
        ids = listed(documents)
        found[resource.id] = ids
        gone = ["retired", "removed", "moved"] if resource.id == "notes" else []
        for document_id in [document_id for document_id in ids if document_id == "n000" or document_id[0] != "n"]:
            found[f"{resource.id}/{document_id}"] = documents.read(document_id).to_json()
            gone.append(document_id)
        for document_id in gone:
            found[f"{resource.id}/{document_id} history"] = documents.history(document_id).to_json()
    return found


@pytest.mark.parametrize("stored_bytes", [65_534, 65_535, 65_536, 131_069, 131_070, 131_071])
def test_an_object_of_any_size_is_one_that_git_reads(environment: gitmem.Environment, stored_bytes: int) -> None:
    # A stored block of a zlib stream holds 65,535 bytes (RFC 1951, 3.2.4); these objects end about there.
    environment.deploy(
        agent="tutor", memories=[gitmem.define_memory(id="long", description="Long notes.", provider=LONG)]
    )
    notes = environment.documents("long")
    repository = Path(environment.folder)
    text = "\n" * (stored_bytes // 8 - 13)  # an empty line takes eight bytes in the file
    probe = notes.create("probe", title="T", text=text)
    size = int(git(repository, "cat-file", "-s", f"{probe.revision}:long/probe.json"))
    more = stored_bytes - size - len(f"blob {stored_bytes}\0")
    saved = notes.create("exact", title="T", text=text + "x" * more)
    assert int(git(repository, "cat-file", "-s", f"{saved.revision}:long/exact.json")) == size + more
    assert not fsck(repository)
