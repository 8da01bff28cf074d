"""Names for deployments and sessions: unique, and sorted by the time they were made."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final

Random = Callable[[int], bytes]
"""Gives that many random bytes."""

system_random: Final[Random] = os.urandom
_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(prefix: str, milliseconds: int, random: Random = system_random) -> str:
    """`prefix`, an underscore and 26 digits: 48 bits of time, then 80 random ones (as in a ULID)."""
    number = (milliseconds & (1 << 48) - 1) << 80 | int.from_bytes(random(10))
    return f"{prefix}_" + "".join(_DIGITS[number >> shift & 31] for shift in range(125, -5, -5))


def is_id(prefix: str, value: object) -> bool:
    """Whether `value` could be a name that `new_id` made."""
    return isinstance(value, str) and re.fullmatch(f"{prefix}_[{_DIGITS}]{{26}}", value) is not None
