"""System calls of a child process, as strace saw them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support import clean_environment

_CALLS: Final = (
    "open,openat,creat,close,dup,dup2,dup3,fcntl,lseek,write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,"
    "rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,ftruncate,truncate,"
    "fallocate,fsync,fdatasync,syncfs,sync,sync_file_range"
)
_WHOLE = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+)")
_BEGUN = re.compile(r"(\d+) +(\w+)\((.*?),? *<unfinished \.\.\.>")
_ENDED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (-?\d+)")
_ARGUMENT = re.compile(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*')


@dataclass(frozen=True, slots=True)
class Call:
    """A call that succeeded: `begun` and `ended` count the lines of the trace."""

    begun: int
    ended: int
    thread: int
    name: str
    arguments: tuple[str, ...]
    result: int

    def number(self, at: int) -> int:
        """An argument that is a number; AT_FDCWD is -1."""
        text = self.arguments[at]
        return -1 if text == "AT_FDCWD" else int(text.partition("|")[0], 0)

    def data(self, at: int) -> bytes:
        """An argument that is a string."""
        text = self.arguments[at]
        assert text.endswith('"'), f"{self.name}: {text[:80]} was cut short"
        return bytes.fromhex(text[1:-1].replace("\\x", ""))


def traced(arguments: list[str], *, folder: Path) -> list[Call]:
    """Run Python with `arguments` under strace; its calls in the order in which they ended.

    The child is one process: its threads share their file descriptors.
    """
    if shutil.which("strace") is None:
        pytest.fail("strace is missing, and without it nothing shows what a power loss leaves: apt-get install strace")
    log = folder / "trace"
    command = ["strace", "-f", "--seccomp-bpf", "-qq", "-xx", "-s", "16777216", "-e", f"trace={_CALLS}", "-o", str(log)]
    done = subprocess.run(
        [*command, sys.executable, *arguments], capture_output=True, text=True, env=clean_environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    with open(log, encoding="ascii") as lines:
        return list(_calls(lines))


def _calls(lines: Iterator[str]) -> Iterator[Call]:
    begun: dict[int, tuple[int, str]] = {}
    for number, line in enumerate(lines):
        if found := _BEGUN.match(line):
            begun[int(found[1])] = number, found[3]
            continue
        start, head = number, ""
        if found := _ENDED.match(line):
            start, head = begun.pop(int(found[1]))
        else:
            found = _WHOLE.match(line)
        if found and int(found[4]) >= 0:
            arguments = (head and head + ", ") + found[3].lstrip(", ")
            yield Call(start, number, int(found[1]), found[2], tuple(_ARGUMENT.findall(arguments)), int(found[4]))
