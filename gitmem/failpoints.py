"""Named places at the durability boundaries where a test may stop or fail the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

NAMES: Final = (
    "before-objects",
    "after-objects",
    "before-barrier",
    "after-barrier",
    "before-push",
    "after-push",
    "before-swap",
    "after-swap",
    "before-index",
    "after-index",
    "before-projection",
    "after-projection",
    "before-stage",
    "after-stage",
    "before-checkpoint",
    "after-checkpoint",
    "before-pack",
    "naming-pack",
    "after-pack",
    "dropping-pack",
)

_armed: dict[str, Callable[[], None]] = {}


def reach(name: str) -> None:
    """Run what a test armed at `name`; nothing otherwise."""
    if _armed and name in _armed:
        _armed[name]()


def arm(name: str, action: Callable[[], None]) -> None:
    """Run `action` whenever `name` is reached. Raises ValueError for a name that does not exist."""
    if name not in NAMES:
        raise ValueError(f"no failpoint {name}")
    _armed[name] = action


def disarm() -> None:
    """Forget every action."""
    _armed.clear()
