"""The commands about memory files: who the member is, the editor, and what people read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import Cli, prepared
from tests.support import gitmem

ANNA = ("--member", "anna")
BOB = ("--member", "bob")


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    return prepared(tmp_path / "store")


def put(run: Cli, scope: str, path: str, text: str, *options: str) -> str:
    return run.ok("file", "put", "--scope", scope, path, "--text-stdin", *options, stdin=text.encode())


def edit(run: Cli, *arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return gitmem(*arguments, "--store", str(run.folder), env=env)


def editor(folder: Path, code: str) -> dict[str, str]:
    script = folder / "editor.py"
    script.write_text(f"import sys\npath = sys.argv[1]\n{code}\n")
    return {"EDITOR": f"{sys.executable} {script}"}


def test_who_the_member_is(run: Cli, tmp_path: Path) -> None:
    put(run, "personal", "note", "anna's", *ANNA)
    told = ["file", "show", "--scope", "personal", "note", "--store", str(run.folder)]
    assert gitmem(*told, *ANNA).stdout.endswith("\n\nanna's\n")
    assert gitmem(*told, env={"GITMEM_MEMBER": "anna"}).stdout.endswith("\n\nanna's\n")
    (tmp_path / ".gitconfig").write_text("[user]\nemail = anna\n")
    assert gitmem(*told, env={"HOME": str(tmp_path)}).stdout.endswith("\n\nanna's\n")
    assert gitmem(*told, *BOB, env={"HOME": str(tmp_path)}).stderr == "There is no personal memory file note.md.\n"
    nobody = gitmem(*told, env={"HOME": str(tmp_path / "store"), "XDG_CONFIG_HOME": str(tmp_path / "store")})
    assert (nobody.returncode, nobody.stdout, nobody.stderr.count("\n")) == (2, "", 1)
    assert "--member" in nobody.stderr
    error = run("file", "list", "--scope", "team", "--url", "http://127.0.0.1:1", *BOB, env={"GITMEM_STORE": None})
    assert error.status == 2
    assert "the key says who you are" in error.err


def test_what_people_read(run: Cli) -> None:
    assert put(run, "team", "Web-App", "ours\n", *ANNA).startswith("put team:/web-app.md at ")
    assert put(run, "team", "web-app", "ours\n", *BOB).startswith("unchanged: team:/web-app.md at ")
    put(run, "team", "MEMORY", "index\n", *ANNA)
    put(run, "personal", "memory", "mine\n", *BOB)
    shown = run.ok("file", "show", "--scope", "team", "web-app", *BOB)
    assert shown.startswith("team:/web-app.md\nrevision  ")
    assert " UTC by anna\n\nours\n" in shown
    first, second = run.ok("file", "list", "--scope", "team", *BOB).splitlines()
    assert (first.split()[0], second.split()[0]) == ("MEMORY.md", "web-app.md")
    assert run.ok("file", "log", "--scope", "team", "web-app", *BOB).split()[3:] == ["anna", "put", "5", "bytes"]
    context = run.ok("file", "context", *BOB)
    assert context.index("\n\nindex\n\npersonal:/MEMORY.md\n") < context.index("\n\nmine\n")
    assert run.ok("file", "disable", *BOB) == "personal memory is off\n"
    assert run.ok("file", "enable", *BOB) == "personal memory is on\n"
    assert run.ok("file", "remove", "--scope", "team", "Web-App", *ANNA) == "removed team:/web-app.md\n"
    assert run.ok("file", "list", "--scope", "personal", *ANNA) == ""


def test_a_file_is_edited_in_the_editor(run: Cli, tmp_path: Path) -> None:
    told = ("file", "edit", "--scope", "personal", "Web-App", *BOB)
    made = edit(run, *told, env=editor(tmp_path, "open(path, 'w').write('one')"))
    assert made.stdout.startswith("edited personal:/web-app.md at "), made
    appended = edit(run, *told, env=editor(tmp_path, "open(path, 'a').write(' two')"))
    assert appended.returncode == 0
    same = edit(run, *told, env=editor(tmp_path, ""))
    assert same.stdout == appended.stdout.replace("edited", "unchanged:")
    assert run.json("file", "show", "--scope", "personal", "web-app", *BOB)["content"] == "one two"
    emptied = edit(run, *told, env=editor(tmp_path, "open(path, 'w').close()"))
    assert emptied.returncode != 0
    failed = edit(run, *told, env=editor(tmp_path, "open(path, 'a').write('lost'); sys.exit(3)"))
    assert (failed.returncode, "ended with status 3" in failed.stderr) == (1, True)
    assert run.json("file", "show", "--scope", "personal", "web-app", *BOB)["content"] == "one two"
    assert run.refused(*told, status=2)["message"] == "There is no editor: set EDITOR, or use gitmem file put."


def test_a_file_changed_meanwhile_keeps_both_texts(run: Cli, tmp_path: Path) -> None:
    put(run, "personal", "note", "one", *BOB)
    beside = (
        "import subprocess; open(path, 'a').write(' mine'); subprocess.run([sys.executable, '-m', 'gitmem', 'file', "
        f"'put', '--store', {str(run.folder)!r}, '--scope', 'personal', 'note', '--member', 'bob', '--text-stdin'], "
        "input=b'theirs', check=True)"
    )
    done = edit(run, "file", "edit", "--scope", "personal", "note", *BOB, env=editor(tmp_path, beside))
    assert done.returncode == 1
    kept = Path(done.stderr.rpartition("Your text is kept in ")[2].strip())
    assert kept.read_text() == "one mine"
    assert run.json("file", "show", "--scope", "personal", "note", *BOB)["content"] == "theirs"


def test_revisions_are_given_by_their_beginning(run: Cli) -> None:
    first = put(run, "personal", "note", "one", *BOB).split()[-1]
    told = ("file", "put", "--scope", "personal", "note", *BOB, "--text-stdin", "--if-match")
    assert run(*told, first[:7], stdin=b"two").status == 0
    assert run(*told, first[:7], "--json", stdin=b"three").error["code"] == "revision_conflict"
    assert run.refused(*told, first, "--new", status=2)["code"] == "invalid_request"
    assert run.refused("file", "put", "--scope", "personal", "note", *BOB, status=2)["code"] == "invalid_request"
    assert run.refused("file", "put", "note", *BOB, status=2)["code"] == "invalid_request"
