"""Plain git shows documents as a person reads them: diff, log -p, show, blame."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gitmem
from gitmem.cli.main import cli
from gitmem.environment.engine import EnvironmentRepository
from gitmem.textconv import shown as converted
from tests.hazards import file_of, git_dir
from tests.support import clean_environment, git
from tests.support import gitmem as run


@pytest.fixture
def edited(environment: gitmem.Environment, notes: gitmem.Documents) -> gitmem.Document:
    """A document of three lines, whose second was changed; saved by a command that has ended."""
    made = notes.create("a", title="Wörk", summary="s", text="one\ntwo\nthree")
    document = notes.replace("a", text="one\nzwei\nthree", if_match=made.revision)
    environment.close()
    return document


def lines(output: str) -> list[str]:
    """A diff from its first hunk on."""
    return output[output.index("@@") :].splitlines()[1:]


CHANGED = ["title: Wörk", "summary: s", "agentWrites: enabled", "", "one", "two", "zwei", "three"]
MARKED = [*(f" {line}" for line in CHANGED[2:5]), "-two", "+zwei", " three"]


def test_a_change_is_shown_line_by_line_without_gitmem_on_the_path(
    environment: gitmem.Environment, edited: gitmem.Document
) -> None:
    for command in (("diff", "HEAD~1"), ("log", "-p", "-1"), ("show",)):
        for more in ({}, {"PATH": "/usr/bin:/bin"}, {"GIT_DIR": str(git_dir(environment)), "PYTHONPATH": "/nowhere"}):
            assert lines(git(environment.folder, *command, env=more)) == MARKED
    blamed = [line.split(") ", 1)[1] for line in git(environment.folder, "blame", "notes/a.json").splitlines()]
    assert blamed == [line for line in CHANGED if line != "two"]
    file_of(environment, "a").write_text('{"title": "By hand", "text": "one\\nzwei\\ndrei"}')
    assert {"-title: Wörk", "+title: By hand", "-three", "+drei"} <= set(lines(git(environment.folder, "diff")))
    git(environment.folder, "checkout", "notes/a.json")


def test_a_deletion_is_shown_as_one(
    environment: gitmem.Environment, notes: gitmem.Documents, edited: gitmem.Document
) -> None:
    notes.delete("a", if_match=edited.revision)
    environment.close()
    assert lines(git(environment.folder, "show"))[-1] == "+deleted"


def test_a_tree_without_files_and_a_linked_one_show_the_same(
    environment: gitmem.Environment, edited: gitmem.Document, tmp_path: Path
) -> None:
    git(environment.folder, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    assert lines(git(tmp_path / "linked", "show")) == MARKED
    git(environment.folder, "worktree", "remove", str(tmp_path / "linked"))
    with gitmem.open_store(tmp_path / "bare", create=True, settings=gitmem.Settings(worktree=False)) as store:
        bare = store.project("bot").environment("development")
        bare.deploy(agent="tutor", memories=[gitmem.define_memory(id="notes", description="Notes.")])
        bare.documents("notes").create("a", title="Bare")
        assert "+title: Bare" in lines(git(git_dir(bare), "show"))


def test_a_clone_shows_the_file(environment: gitmem.Environment, edited: gitmem.Document, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", environment.folder, "clone")
    assert {'-    "two",', '+    "zwei",'} < set(lines(git(tmp_path / "clone", "show")))
    assert git(tmp_path / "clone", "status", "--porcelain") == ""


FILES = {
    "not json": b"<<<<<<< broken",
    "not utf-8": b'{"title": "\xff"}',
    "a NUL": b"\0\0",
    "empty": b"",
    "a key twice": b'{"title": "a", "title": "b"}',
    "an unknown key": b'{"title": "a", "color": "b"}',
    "a number for text": b'{"title": "a", "text": 5}',
    "a list": b'["a"]',
    "no keys": b"{}",
    "a lone surrogate": b'{"title": "\\ud800"}',
    "not quite a tombstone": b'{"deleted": false}',
    "deep": b"[" * 100_000,
    "half a conflict": b"<<<<<<< ours\n{\n=======\n",
    "huge": b'{"title": "' + b"x" * 3_000_000 + b'"}',
}


@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
def test_what_is_no_document_is_shown_as_it_is(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data)
    command = [sys.executable, "-I", "-S", str(Path(gitmem.__file__).parent / "__main__.py"), "textconv"]
    done = subprocess.run([*command, str(tmp_path / "file")], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (data, b"")


@pytest.mark.parametrize(
    ("data", "reads"),
    [
        (b'{"deleted": true}\n', "deleted\n"),
        (b'{\r\n"title": "a",\r\n"text": "x\\ny"}\r\n', "title: a\n\nx\ny\n"),
        (b'{"text": ["a note", ""]}', "a note\n\n"),
        (b'{"text": ["\\u001b[2J", "a\\r", "\\u202ea\\u0000b"]}', "\\u001b[2J\na\\u000d\n\\u202ea\\u0000b\n"),
        (b'{"title": "a\\nsummary: b"}', "title: a\\nsummary: b\n"),
        (
            b'{"title": "a", "text": [\n<<<<<<< ours\n"x"\n=======\n"y"\n>>>>>>> theirs\n]}\n',
            "title: a\n\n<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n",
        ),
    ],
)  # fmt: skip
def test_a_file_reads_as_lines_that_command_no_terminal(data: bytes, reads: str) -> None:
    assert converted(data).decode() == reads


def test_the_command_prints_a_file(environment: gitmem.Environment, edited: gitmem.Document, tmp_path: Path) -> None:
    path = str(file_of(environment, "a"))
    done = run("textconv", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [line for line in CHANGED if line != "two"]
    done = run("textconv", str(tmp_path / "nothing"))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "textconv" in cli.list_commands(None)  # type: ignore[arg-type]


# What the repository's settings name


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A gitmem installed in a folder with an odd name."""
    place = tmp_path / "a 'b' $c \"d\" %O é"
    shutil.copytree(Path(gitmem.__file__).parent, place / "gitmem", ignore=shutil.ignore_patterns("__pycache__"))
    return place


def opened_by(place: Path, environment: gitmem.Environment) -> None:
    """Read a document with the gitmem that lies in `place`."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import gitmem; assert gitmem.__file__.startswith(sys.argv[1])\n"
    )
    code += (
        "from gitmem.environment.engine import EnvironmentRepository as E; e = E(sys.argv[2]); e.resources(); e.close()"
    )
    command = [sys.executable, "-c", code, str(place), environment.folder]
    subprocess.run(command, check=True, env=clean_environment(), cwd="/")


def test_a_gitmem_that_has_moved_is_found_again_and_one_that_has_gone_is_done_without(
    environment: gitmem.Environment, edited: gitmem.Document, moved: Path
) -> None:
    config = git_dir(environment) / "config"
    as_it_was = config.read_bytes()
    opened_by(moved, environment)
    assert config.read_bytes() == as_it_was  # both are there: no quarrel
    git(environment.folder, "config", "--remove-section", "diff.gitmem")
    git(environment.folder, "config", "--remove-section", "merge.gitmem")
    opened_by(moved, environment)
    assert str(moved / "gitmem") in git(environment.folder, "config", "diff.gitmem.textconv").replace("'\"'\"'", "'")
    assert lines(git(environment.folder, "show")) == MARKED

    moved.rename(moved.parent / "gone")
    assert {'-    "two",', '+    "zwei",'} < set(lines(git(environment.folder, "show")))
    EnvironmentRepository(environment.folder).parts()
    assert lines(git(environment.folder, "show")) == MARKED
    assert sorted(config.read_text().splitlines()) == sorted(as_it_was.decode().splitlines())


def test_what_a_person_has_set_stays(environment: gitmem.Environment, edited: gitmem.Document) -> None:
    attributes = git_dir(environment) / "info" / "attributes"
    attributes.write_text("*.json -diff\n")
    git(environment.folder, "config", "diff.gitmem.textconv", "cat")
    git(environment.folder, "config", "merge.gitmem.driver", "false")
    EnvironmentRepository(environment.folder).parts()
    assert attributes.read_text() == "*.json -diff\n"
    assert git(environment.folder, "config", "diff.gitmem.textconv") == "cat"
    assert git(environment.folder, "config", "merge.gitmem.driver") == "false"


def test_a_repository_of_before_gets_the_views_and_keeps_its_persons_attributes(
    environment: gitmem.Environment, edited: gitmem.Document
) -> None:
    git(environment.folder, "config", "--remove-section", "diff.gitmem")
    git(environment.folder, "config", "--remove-section", "merge.gitmem")
    attributes = git_dir(environment) / "info" / "attributes"
    attributes.write_text("*.png binary\n")
    EnvironmentRepository(environment.folder).parts()
    assert attributes.read_text().endswith("\n*.png binary\n")
    assert lines(git(environment.folder, "show")) == MARKED


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to lose its rights")
def test_a_repository_that_takes_no_settings_is_read_all_the_same(
    environment: gitmem.Environment, notes: gitmem.Documents, edited: gitmem.Document
) -> None:
    git(environment.folder, "config", "--remove-section", "merge.gitmem")
    (git_dir(environment) / "config.lock").touch()
    assert notes.read("a") == edited
    (git_dir(environment) / "config.lock").unlink()
