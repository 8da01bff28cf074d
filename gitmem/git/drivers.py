"""Telling Git, in a repository's own settings, how documents are shown and merged."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from typing import Final

import pygit2

from gitmem.git.config import Config
from gitmem.git.files import rename_new, replace_cheaply, scratch_name, write_file

_NAME: Final = "gitmem"
_TEXTCONV: Final = f"diff.{_NAME}.textconv"
_DRIVER: Final = f"merge.{_NAME}.driver"
_ATTRIBUTES: Final = (
    b"# gitmem shows and merges documents so; what stands below counts more\n"
    b"*.json diff=gitmem merge=gitmem\n"
    b".resource.json !diff !merge\n"
)
_PLAIN_TEXT: Final = "git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B"


def install(git_dir: str, config: Config) -> None:
    """Let the repository's settings name this gitmem, unless they name one that is still there.

    The commands there work without PATH, and fall back to what git does by itself where this gitmem
    has gone. A setting or attribute that a person changed or took out stays so; a disk that
    takes no writes is left alone.
    """
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")
    if not sys.executable or "\n" in sys.executable + script:
        return
    wanted = {_TEXTCONV: _textconv(script), _DRIVER: _driver(script)}
    found = {key: config.text(key) for key in wanted}
    if found == wanted:
        return
    with suppress(OSError, pygit2.GitError, UnicodeError, ValueError):
        if not any(found.values()):
            _add_attributes(os.path.join(git_dir, "info"))
        file = pygit2.Config(os.path.join(git_dir, "config"))
        for key, value in wanted.items():
            if _is_stale(found[key], script):
                file[key] = value


def _textconv(script: str) -> str:
    """A file that gitmem cannot show is shown as it is."""
    return f'f() {{ {_started(script)} textconv "$1" 2>/dev/null || cat "$1"; }}; f'


def _driver(script: str) -> str:
    """What is no document, or no gitmem there to merge it, is merged as text; see gitmem.mergedriver."""
    ours = f"{_started(script).replace('%', '%%')} merge-driver %O %A %B %L %P"
    return f"{ours}; s=$?; if test $s -gt 1 && test $s -lt 128; then {_PLAIN_TEXT}; else exit $s; fi"


def _started(script: str) -> str:
    """Without site-packages and the person's Python settings: it needs neither, and starts faster."""
    return f"{shlex.quote(sys.executable)} -I -S {shlex.quote(script)}"


def _is_stale(found: str | None, script: str) -> bool:
    """Whether a command is missing, is this gitmem's in another form, or names one that has gone."""
    if not found:
        return True
    with suppress(ValueError):
        words = shlex.split(found.replace("%%", "%"))
        at = next((at for at, word in enumerate(words) if os.path.basename(word) == "__main__.py"), 0)
        named = (words[at - 3], words[at]) if at >= 3 else ()
        return bool(named) and (script in named or not all(map(os.path.exists, named)))
    return False


def _add_attributes(folder: str) -> None:
    path = os.path.join(folder, "attributes")
    temporary = f"{path}.{scratch_name()}"
    os.makedirs(folder, exist_ok=True)
    try:
        with open(path, "rb") as file:
            theirs = file.read()
    except FileNotFoundError:
        write_file(temporary, _ATTRIBUTES)
        with suppress(FileExistsError):
            rename_new(temporary, path)
        return
    if _ATTRIBUTES not in theirs:
        write_file(temporary, _ATTRIBUTES + theirs)
        replace_cheaply(temporary, path)
