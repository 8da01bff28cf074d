"""What goes in and out of the process: bytes, pipes, full disks, terminals, signals."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gitmem.cli.output import ProgressLine
from tests.cli import Cli, prepared
from tests.support import clean_environment, git, gitmem

COMMAND = os.path.join(os.path.dirname(sys.executable), "gitmem")


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    run = prepared(tmp_path / "store")
    run.ok("create", "notes", "a", "--title", "A", "--text-stdin", stdin=b"one\n")
    return run


def shell(run: Cli, script: str) -> subprocess.CompletedProcess[bytes]:
    """Run a shell script in the store; `gitmem` is the installed command."""
    env = clean_environment({"PATH": f"{os.path.dirname(COMMAND)}:/usr/bin:/bin"})
    return subprocess.run(
        ["bash", "-c", script], cwd=run.folder, capture_output=True, env=env, check=False, timeout=120
    )  # fmt: skip


def on_terminal(run: Cli, *arguments: str) -> bytes:
    """What a command writes to a terminal that is its stdout."""
    leader, follower = pty.openpty()
    env = clean_environment({"TERM": "xterm"})
    done = subprocess.Popen(
        [COMMAND, *arguments], cwd=run.folder, stdin=follower, stdout=follower, stderr=follower, env=env
    )  # fmt: skip
    os.close(follower)
    chunks = []
    while True:
        try:
            chunks.append(os.read(leader, 65536))
        except OSError:
            break
        if not chunks[-1]:
            break
    os.close(leader)
    assert done.wait() == 0, chunks
    return b"".join(chunks)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"no end", b"a\r\nb\r", b"\xef\xbb\xbfbom", "U+2028 \u2028, NUL \0, \x85 \U0001f600".encode(),
        b"\x1b[31mred", b'"quotes" \\ and tabs\t',
    ],
)  # fmt: skip
def test_text_comes_back_as_the_bytes_that_went_in(run: Cli, tmp_path: Path, data: bytes) -> None:
    assert run.json("edit", "notes", "a", "--text-stdin", stdin=data)["text"].encode() == data
    file = tmp_path / "text"
    file.write_bytes(data)
    made = run.json("create", "notes", "b", "--title", "B", "--text-file", str(file))
    assert (made["text"].encode(), made["bytes"]) == (data, len(data))
    assert run.json("show", "notes", "b") == made


def test_a_process_takes_and_gives_bytes_as_they_are(run: Cli) -> None:
    data = "\ufeffU+2028 \u2028, \x85 and \x1b[31m\r\nend"
    assert gitmem("edit", "notes", "a", "--text-stdin", cwd=run.folder, stdin=data.encode()).returncode == 0
    assert gitmem("show", "notes", "a", cwd=run.folder).stdout.partition("\n\n")[2] == f"{data}\n"
    assert json.loads(gitmem("show", "notes", "a", "--json", cwd=run.folder).stdout)["text"] == data


@pytest.mark.parametrize("data", [b"\xff", b"\xfe\xffA", b"\xed\xa0\x80", b"gr\xfcn", b"ok \xc3"])
def test_bytes_that_are_not_utf8_are_refused(run: Cli, tmp_path: Path, data: bytes) -> None:
    before = git(run.tree, "rev-parse", "main")
    assert "not UTF-8" in run.refused("edit", "notes", "a", "--text-stdin", stdin=data, status=2)["message"]
    file = tmp_path / "text"
    file.write_bytes(data)
    error = run.refused("create", "notes", "b", "--title", "B", "--text-file", str(file), status=2)
    assert str(file) in error["message"]
    assert git(run.tree, "rev-parse", "main") == before


def test_stdin_is_utf8_whatever_the_locale_says(run: Cli) -> None:
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "latin-1"}
    done = gitmem("edit", "notes", "a", "--text-stdin", "--json", cwd=run.folder, stdin="ü\n".encode(), env=env)
    assert json.loads(done.stdout)["text"] == "ü\n"
    assert gitmem("show", "notes", "a", cwd=run.folder, env=env).stdout.endswith("\n\nü\n")


def test_a_text_file_may_be_a_pipe(run: Cli) -> None:
    done = shell(run, "gitmem edit notes a --text-file <(echo piped)")
    assert done.returncode == 0, done.stderr
    assert run.json("show", "notes", "a")["text"] == "piped\n"


def test_an_endless_source_is_refused(run: Cli) -> None:
    done = shell(run, "gitmem edit notes a --text-stdin < /dev/zero; gitmem edit notes a --text-file /dev/zero")
    assert done.stderr.count(b"the limit is 16384") == 2
    assert run.json("show", "notes", "a")["text"] == "one\n"


@pytest.mark.parametrize("source", ["absent", ".", "secret"])
def test_an_unreadable_file_is_one_clear_line(run: Cli, tmp_path: Path, source: str) -> None:
    (tmp_path / "secret").mkdir()
    error = run.refused("edit", "notes", "a", "--text-file", str(tmp_path / source))
    assert error["code"] == "storage_failed"
    assert str(tmp_path) in error["message"]


def test_two_sources_of_text_are_one_too_many(run: Cli) -> None:
    run.refused("edit", "notes", "a", "--text-stdin", "--text-file", "x", status=2)


@pytest.mark.parametrize("arguments", ["list notes", "list notes --json", "show --help", "show notes a"])
def test_a_closed_pipe_ends_quietly_with_status_1(run: Cli, arguments: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [COMMAND, *arguments.split()], cwd=run.folder, stdout=writer, stderr=subprocess.PIPE, env=clean_environment(),
        check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(
    "arguments", ["show notes a", "list notes --json", "log notes a", "blame notes a", "path", "--help", "--version",
                  "show --help", "freeze notes a"],
)  # fmt: skip
def test_a_full_stdout_is_one_clear_line(run: Cli, arguments: str) -> None:
    done = shell(run, f"gitmem {arguments} >/dev/full")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"Cannot " in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_closed_stdout_is_one_clear_line_and_touches_no_file(run: Cli) -> None:
    done = shell(
        run, "gitmem show notes a >&-; gitmem retitle notes a B >&- 2>&-; gitmem edit notes a --text-stdin <&-"
    )
    assert done.stderr == b"Cannot write the output: stdout is closed.\nCannot read stdin: it is closed.\n"
    assert run.json("show", "notes", "a")["title"] == "B"
    assert git(run.tree, "status", "--porcelain") == ""


def test_a_full_or_closed_stderr_changes_no_status(run: Cli) -> None:
    done = shell(
        run, "gitmem show notes nope 2>/dev/full; echo $?; gitmem show notes nope 2>&-; echo $?; gitmem x 2>&-; echo $?"
    )
    assert done.stdout == b"1\n1\n2\n"


def test_a_terminal_is_not_commanded_by_stored_text(run: Cli) -> None:
    evil = "a\x1b]0;owned\x07b\x9b31mc\rd\x7fe\u202ef\tg\nh"
    run.ok("create", "notes", "evil", "--title", evil, "--summary", evil, "--text-stdin", stdin=evil.encode())
    for arguments in (
        ("show", "notes", "evil"), ("list", "notes"), ("log", "notes", "evil"), ("diff", "notes", "evil"),
        ("blame", "notes", "evil"), ("show", "notes", "evil", "--json"), ("list", "notes", "--json"),
    ):  # fmt: skip
        seen = on_terminal(run, *arguments).replace(b"\r\n", b"\n").decode()
        assert not set(seen) & set("\x1b\x07\x9b\r\x7f\u202e"), arguments
        assert "owned" in seen
    assert run.ok("show", "notes", "evil").endswith(f"\n\n{evil}\n")
    assert run.json("show", "notes", "evil")["title"] == evil


def test_a_title_with_line_breaks_stays_on_its_line(run: Cli) -> None:
    run.ok("retitle", "notes", "a", "one\ntwo\u2028three\tfour")
    (line,) = run.ok("list", "notes").splitlines()
    assert line.endswith("one\\ntwo\\u2028three\\tfour")
    assert len(run.ok("log", "notes", "a").splitlines()) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        "create notes b --title X", "edit notes a --summary X", "show notes X", "list X", "X",
        "show notes a --revision X", "list notes --project X", "list notes --store X",
        "retitle notes a B --if-match X", "init --project X", "edit notes a --text-file X",
        "export --out . --resource X", "import X", "deploy --module X", "deploy --agent X",
    ],
)  # fmt: skip
def test_arguments_that_are_not_utf8_are_one_clear_line(run: Cli, arguments: str) -> None:
    # This is how Python reads the byte FF in its arguments.
    words = [word.replace("X", "\udcff") for word in arguments.split()]
    for done in (run(*words), run(*words, "--json")):
        assert done.status in (1, 2)
        assert (done.out, done.err.count("\n")) == ("", 1)
        assert "unexpectedly" not in done.err
    assert done.error["message"]
    assert len(run.json("log", "notes", "a")["versions"]) == 1


def test_a_process_refuses_arguments_that_are_not_utf8(run: Cli) -> None:
    done = shell(run, r"gitmem create notes b --title $'\xff'")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"title holds a lone surrogate, which is not text. Remove it.\n"


def test_a_path_that_is_not_utf8_is_printed_as_it_is(tmp_path: Path, run: Cli) -> None:
    done = shell(run, r"mkdir $'\xff' && cd $'\xff' && gitmem init --project odd && gitmem path && gitmem path --json")
    folder = os.fsencode(run.folder) + b"/\xff/odd/development"
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[2] == folder
    assert json.loads(done.stdout.split(b"\n", 3)[3])["path"] == os.fsdecode(folder)


def test_an_interrupt_ends_with_130_and_no_traceback(run: Cli) -> None:
    waiting = subprocess.Popen(
        [COMMAND, "edit", "notes", "a", "--text-stdin"], cwd=run.folder, env=clean_environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert waiting.stdin is not None
    # More than a pipe holds: when the last byte is taken, the command is reading.
    waiting.stdin.write(b"x" * 200_000)
    waiting.stdin.flush()
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(60) == 130
    out, err = waiting.communicate()
    assert out == b""
    assert b"Traceback" not in err
    assert run.json("show", "notes", "a")["text"] == "one\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_work_is_shown_on_a_terminal_and_taken_away_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = ProgressLine(lambda: now)
    progress("indexing", 1, None)
    assert terminal.getvalue() == ""
    now = 1.0
    progress("indexing", 20_000, 100_000)
    progress("indexing", 20_001, 100_000)
    progress.clear()
    assert terminal.getvalue() == "\r\x1b[Kindexing 20,000 of 100,000\r\x1b[K"
    progress.clear()
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    now = 2.0
    progress("indexing", 30_000, 100_000)
    progress.clear()
    assert pipe.getvalue() == ""
