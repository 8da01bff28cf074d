"""A text in the person's editor."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from gitmem.cli.output import is_terminal, note
from gitmem.cli.textinput import read_text
from gitmem.errors import GitmemError, InvalidRequestError, StorageError
from gitmem.git.files import storage, write_file

_FALLBACKS: Final = ("sensible-editor", "nano", "vim", "vi")
_AT_ONCE_SECONDS: Final = 0.5


def editor_command() -> list[str] | None:
    """$VISUAL or $EDITOR with its arguments; whatever there is where a person sits; or None.

    Raises InvalidRequestError for one that cannot be taken apart.
    """
    for variable in ("VISUAL", "EDITOR"):
        value = os.environ.get(variable, "")
        try:
            command = shlex.split(value)
        except ValueError as error:
            raise InvalidRequestError(f"{variable} is not a command: {error}: {value}.") from None
        if command:
            return command
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        for name in _FALLBACKS:
            if found := shutil.which(name):
                return [found]
    return None


class Draft:
    """A text in a private file."""

    def __init__(self, path: str, before: str) -> None:
        self.path = path
        self._before = before

    def edited_with(self, editor: list[str]) -> str:
        """What the file holds after the editor. Raises GitmemError where nothing should be saved."""
        started = time.monotonic()
        _run([*editor, self.path])
        text = self._as_meant(self.read())
        if text == self._before:
            wait = "" if time.monotonic() - started > _AT_ONCE_SECONDS else (
                " If the editor is still open, it needs an option that makes gitmem wait for it, such as code --wait."
            )  # fmt: skip
            note(f"The text was not changed.{wait}")
        elif not text.strip() and self._before.strip():
            raise InvalidRequestError(
                "The text was emptied; nothing is saved. To clear it on purpose: --text-stdin </dev/null."
            )
        return text

    def read(self) -> str:
        """What the file holds now."""
        return read_text(self.path)

    def is_worth_keeping(self) -> bool:
        """Whether the file holds words that are nowhere else."""
        try:
            text = self.read()
        except GitmemError:
            return os.path.exists(self.path)
        return text != self._before and bool(text.strip())

    def _as_meant(self, text: str) -> str:
        """Without the line end that editors add to a last line that had none."""
        if self._before.endswith("\n") or not text.endswith("\n"):
            return text
        ending = "\r\n" if "\r\n" in self._before and text.endswith("\r\n") else "\n"
        return text.removesuffix(ending)


@contextmanager
def draft_of(name: str, text: str) -> Generator[Draft, None, None]:
    """A draft of a text, in a file of that name.

    When the block fails, changed text stays in its file and the error says where.
    """
    with storage("make a file for the editor"):
        folder = tempfile.mkdtemp(prefix="gitmem-")
        draft = Draft(os.path.join(folder, name), text)
        write_file(draft.path, text.encode(), mode=0o600)
    try:
        yield draft
    except BaseException as error:
        if not draft.is_worth_keeping():
            shutil.rmtree(folder, ignore_errors=True)
        elif isinstance(error, GitmemError):
            error.message += f" Your text is kept in {draft.path}"
        else:
            note(f"Your text is kept in {draft.path}")
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str]) -> None:
    # Ctrl-C belongs to the editor; a handler, unlike SIG_IGN, is not passed on to it.
    interrupt = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        # Nothing but the result may come out of our stdout.
        output = None if is_terminal(sys.stdout) else sys.stderr
        status = subprocess.run(command, stdout=output, check=False).returncode
    except OSError as error:
        raise StorageError(f"Cannot run the editor {command[0]}: {error.strerror}. Nothing is saved.") from None
    finally:
        signal.signal(signal.SIGINT, interrupt)
    if status:
        ended = f"status {status}" if status > 0 else f"signal {-status}"
        raise StorageError(f"The editor {command[0]} ended with {ended}. Nothing is saved.")
