"""The declarations that a Python file makes."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout

from gitmem.errors import InvalidRequestError
from gitmem.records import Memory


def declared_in(path: str) -> list[Memory]:
    """Run the file and return every Memory among its globals, in their order.

    What it prints goes to stderr. Raises InvalidRequestError where it cannot be run or declares nothing.
    """
    if not os.path.isfile(path):
        raise InvalidRequestError(f"There is no file {path}.")
    try:
        with _importing_from(os.path.dirname(os.path.abspath(path))), redirect_stdout(sys.stderr):
            found = runpy.run_path(path)
    except (Exception, SystemExit) as error:
        raise InvalidRequestError(f"{path} failed: {type(error).__name__}: {error}.") from error
    memories = list(dict.fromkeys(value for value in found.values() if isinstance(value, Memory)))
    if not memories:
        raise InvalidRequestError(f"{path} declares no memory: assign gitmem.define_memory(...) to a name in it.")
    return memories


@contextmanager
def _importing_from(folder: str) -> Generator[None, None, None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
