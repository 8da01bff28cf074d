"""What a power loss leaves of a file that was written and not flushed."""

from __future__ import annotations

from typing import Final

_HOLE: Final = bytes(4)


def is_part(data: bytes, whole: bytes) -> bool:
    """Whether `data` is `whole`, cut short or with NUL bytes for what never reached the disk."""
    return len(data) <= len(whole) and all(a in (0, b) for a, b in zip(data, whole, strict=False))


def has_hole(data: bytes) -> bool:
    """Whether some of a file of text never reached the disk: no text in any encoding has such NUL bytes."""
    return _HOLE in data
