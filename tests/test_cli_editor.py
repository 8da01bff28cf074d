"""`gitmem edit` in the person's editor, as real processes."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import Cli, prepared
from tests.support import clean_environment, gitmem

COMMAND = os.path.join(os.path.dirname(sys.executable), "gitmem")


class Editor:
    """Runs `gitmem edit notes a` with a shell script for an editor; "$1" is the file."""

    def __init__(self, run: Cli, folder: Path) -> None:
        self.run = run
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._script = folder / "an editor"

    def __call__(
        self, script: str, *arguments: str, command: str | None = None, document_id: str = "a"
    ) -> subprocess.CompletedProcess[str]:
        self._script.write_text(f"#!/bin/sh\n{script}\n")
        self._script.chmod(0o700)
        env = {"EDITOR": command or f"'{self._script}'", "TMPDIR": str(self.temporary), "STORE": str(self.run.folder)}
        return gitmem("edit", *arguments, "notes", "--", document_id, cwd=self.run.folder, env=env)

    def kept(self, done: subprocess.CompletedProcess[str]) -> str:
        """The text in the file that the one line on stderr names, which is all that is left."""
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
        found = re.search(r"Your text is kept in (\S+)$", done.stderr)
        assert found, done.stderr
        assert [path for path in self.temporary.rglob("*") if path.is_file()] == [Path(found[1])]
        return Path(found[1]).read_bytes().decode()

    def left_nothing(self) -> bool:
        return not list(self.temporary.iterdir())


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    run = prepared(tmp_path / "store")
    run.ok("create", "notes", "a", "--title", "A", "--summary", "S", "--text-stdin", stdin=b"one\n")
    return run


@pytest.fixture
def edit(run: Cli, tmp_path: Path) -> Editor:
    return Editor(run, tmp_path)


def text(run: Cli) -> str:
    found = run.json("show", "notes", "a")["text"]
    assert isinstance(found, str)
    return found


def test_the_current_text_is_opened_as_markdown_in_a_private_file(run: Cli, edit: Editor, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    done = edit(f'ls -l "$1" > "{seen}"; cat "$1" >> "{seen}"; echo two >> "$1"')
    assert (done.returncode, done.stderr) == (0, "")
    listing, content = seen.read_text().splitlines()
    assert listing.startswith("-rw-------")
    assert listing.endswith("/a.md")
    assert content == "one"
    assert text(run) == "one\ntwo\n"
    assert edit.left_nothing()


def test_the_editor_may_carry_arguments_and_visual_comes_first(run: Cli, edit: Editor, tmp_path: Path) -> None:
    script = tmp_path / "second"
    script.write_text('#!/bin/sh\nprintf "%s|" "$@" > "$3"\n')
    script.chmod(0o700)
    env = {"VISUAL": f"{script} --wait 'two words'", "EDITOR": "false", "TMPDIR": str(edit.temporary)}
    done = gitmem("edit", "notes", "a", "--json", cwd=run.folder, env=env)
    assert done.returncode == 0, done
    assert text(run).startswith("--wait|two words|/")


def test_a_summary_is_saved_with_the_edited_text(run: Cli, edit: Editor) -> None:
    assert edit('echo two > "$1"', "--summary", "New").returncode == 0
    found = run.json("show", "notes", "a")
    assert (found["text"], found["summary"]) == ("two\n", "New")


def test_an_unchanged_text_is_not_saved_and_says_so(run: Cli, edit: Editor) -> None:
    before = run.json("log", "notes", "a")
    done = edit("true")
    assert done.returncode == 0
    assert done.stdout.startswith("unchanged")
    assert "not changed" in done.stderr
    assert "--wait" in done.stderr
    assert run.json("log", "notes", "a") == before
    assert edit("true", "--summary", "New").returncode == 0
    assert run.json("show", "notes", "a")["summary"] == "New"
    assert edit.left_nothing()


@pytest.mark.parametrize(
    ("before", "written", "after"),
    [
        ("one", "one two\\n", "one two"),
        ("one", "one two\\n\\n", "one two\n"),
        ("", "one\\n", "one"),
        ("one\n", "one\\n\\n", "one\n\n"),
        ("one\n", "two", "two"),
        ("one\r\ntwo", "one\\r\\n2\\r\\n", "one\r\n2"),
        ("\ufeffone", "\\357\\273\\277two", "\ufefftwo"),
    ],
)
def test_line_ends_are_as_the_person_meant_them(
    run: Cli, edit: Editor, before: str, written: str, after: str
) -> None:  # fmt: skip
    run.ok("edit", "notes", "a", "--text-stdin", stdin=before.encode())
    assert edit(f"printf '{written}' > \"$1\"").returncode == 0
    assert text(run) == after


def test_an_added_final_line_end_alone_is_no_change(run: Cli, edit: Editor) -> None:
    run.ok("edit", "notes", "a", "--text-stdin", stdin=b"one")
    assert edit('echo >> "$1"').stdout.startswith("unchanged")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (': > "$1"', "--text-stdin </dev/null"),
        ('echo > "$1"', "--text-stdin </dev/null"),
        ("exit 3", "ended with status 3"),
        ("kill -9 $$", "ended with signal 9"),
        ('rm "$1"', "No such file"),
    ],
)
def test_nothing_is_saved_when_the_editor_fails_or_empties(run: Cli, edit: Editor, script: str, says: str) -> None:
    before = run.json("log", "notes", "a")
    done = edit(script)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert run.json("log", "notes", "a") == before
    assert edit.left_nothing()


@pytest.mark.parametrize("command", ["/nowhere/editor", "/etc/hostname", "'unbalanced"])
def test_an_editor_that_cannot_be_run_is_one_clear_line(run: Cli, edit: Editor, command: str) -> None:
    done = edit("true", command=command)
    assert done.returncode in (1, 2)
    assert done.stderr.count("\n") == 1
    assert command in done.stderr
    assert edit.left_nothing()


def test_a_text_written_before_the_editor_failed_is_kept(run: Cli, edit: Editor) -> None:
    assert edit.kept(edit('echo two > "$1"; exit 1')) == "two\n"
    assert text(run) == "one\n"


def test_a_conflict_saves_nothing_and_keeps_the_text(run: Cli, edit: Editor) -> None:
    other = f'echo other | {COMMAND} edit notes a --text-stdin --store "$STORE" >/dev/null'
    done = edit(f'{other}; echo mine >> "$1"')
    assert "has changed" in done.stderr
    assert edit.kept(done) == "one\nmine\n"
    assert text(run) == "other\n"


def test_a_deletion_meanwhile_keeps_the_text(run: Cli, edit: Editor) -> None:
    done = edit(f'{COMMAND} remove notes a --store "$STORE" >/dev/null; echo mine >> "$1"')
    assert edit.kept(done) == "one\nmine\n"


def test_somebody_elses_save_is_no_trouble_for_who_changed_nothing(run: Cli, edit: Editor) -> None:
    done = edit(f'echo other | {COMMAND} edit notes a --text-stdin --store "$STORE" >/dev/null')
    assert (done.returncode, text(run)) == (0, "other\n")
    assert edit.left_nothing()


def test_a_text_too_large_or_not_utf8_is_kept(run: Cli, edit: Editor, tmp_path: Path) -> None:
    done = edit('head -c 9000 /dev/zero | tr "\\0" x > "$1"')
    assert "the limit is 8192" in done.stderr
    assert len(edit.kept(done)) == 9000
    assert text(run) == "one\n"


def test_bytes_that_are_not_utf8_are_kept(run: Cli, edit: Editor) -> None:
    done = edit("printf 'gr\\374n' > \"$1\"")
    assert done.returncode == 2
    assert "not UTF-8" in done.stderr
    (kept,) = (path for path in edit.temporary.rglob("*") if path.is_file())
    assert kept.read_bytes() == b"gr\xfcn"
    assert str(kept) in done.stderr
    assert text(run) == "one\n"


def test_an_editor_that_renames_over_the_file_is_read_from_its_new_file(run: Cli, edit: Editor) -> None:
    assert edit('echo two > "$1.new"; mv "$1.new" "$1"; touch "$1~"').returncode == 0
    assert text(run) == "two\n"
    assert edit.left_nothing()


def test_what_the_editor_prints_is_not_part_of_the_result(run: Cli, edit: Editor) -> None:
    done = edit('echo noise; echo two > "$1"')
    assert done.stdout.startswith("edited notes/a at ")
    assert done.stderr == "noise\n"


def test_an_id_like_an_option_is_no_option_of_the_editor(run: Cli, edit: Editor) -> None:
    run.ok("create", "notes", "--title", "T", "--", "-rf")
    assert edit('test $# = 1 && echo two > "$1"', document_id="-rf").returncode == 0
    assert run.json("show", "notes", "--", "-rf")["text"] == "two"


def test_without_an_editor_and_a_terminal_nothing_hangs(run: Cli) -> None:
    done = gitmem("edit", "notes", "a", cwd=run.folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "set EDITOR" in done.stderr


def test_a_terminal_gets_an_editor_that_is_there(run: Cli, tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    editor = bin_folder / "sensible-editor"
    editor.write_text('#!/bin/sh\necho from the system > "$1"\n')
    editor.chmod(0o700)
    leader, follower = pty.openpty()
    env = clean_environment({"PATH": f"{bin_folder}:/bin:/usr/bin", "TERM": "xterm"})
    done = subprocess.run(
        [COMMAND, "edit", "notes", "a"], cwd=run.folder, stdin=follower, stdout=follower, stderr=subprocess.PIPE,
        env=env, check=False, timeout=60,
    )  # fmt: skip
    os.close(follower)
    os.close(leader)
    assert (done.returncode, done.stderr) == (0, b"")
    assert text(run) == "from the system\n"


def test_an_unknown_document_or_stale_revision_opens_no_editor(run: Cli, edit: Editor, tmp_path: Path) -> None:
    done = edit(f'touch "{tmp_path}/opened"', document_id="b")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    done = edit(f'touch "{tmp_path}/opened"', "--if-match", "stale")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert not (tmp_path / "opened").exists()
