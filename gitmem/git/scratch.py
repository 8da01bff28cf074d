"""What a kill or a power loss left in the folder of temporary files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gitmem.git.torn import has_hole

_WORTHLESS: Final = (
    rb"\x78\x01"  # an object
    rb"|DIRC"  # an index
    rb"|gitmem brings "  # a lock on the index
    rb"|[0-9a-f]{40}\n\Z"  # a value of the ref
    rb"|\0*\Z"  # nothing yet
)


def sweep(folder: str, known: Callable[[bytes], bool]) -> list[str]:
    """Remove left-over temporary files; the paths of those that may hold a person's text, which stay.

    Needs the writer's lock: whatever lies there then belongs to nobody alive. A file that was taken
    out of the working tree in exchange for a new one is looked at only after, so that a kill in
    between leaves it here; it is worthless where `known` tells that Git has those bytes.
    """
    kept: list[str] = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name)
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                data = file.read()
        except OSError:
            kept.append(path)
            continue
        if re.match(_WORTHLESS, data) or has_hole(data) or known(data):
            with suppress(FileNotFoundError):
                os.unlink(path)
        else:
            kept.append(path)
    return kept
