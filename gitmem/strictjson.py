"""Strict JSON: what two parsers could read as two things is refused."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def loads(data: bytes) -> Any:
    """What UTF-8 without BOM says, without duplicate keys and NaN; ValueError otherwise."""
    try:
        return json.loads(
            data.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_int=_small_int
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _small_int(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("a number is too large")
    return int(digits)
