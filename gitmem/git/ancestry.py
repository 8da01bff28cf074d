"""How two commits are related."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from gitmem.git.objects import Oid
from gitmem.git.repository import Repository

_LEFT: Final = 1
_RIGHT: Final = 2
_BOTH: Final = _LEFT | _RIGHT
_BELOW: Final = 4


def merge_base(repository: Repository, left: Oid, right: Oid) -> Oid | None:
    """The newest commit that both reach; None where their histories are unrelated. Raises DamagedError.

    Walks no further than it must. Where several would do, one of them is chosen.
    """
    marks = {left: _LEFT}
    marks[right] = marks.get(right, 0) | _RIGHT
    boundary = repository.boundary()
    heap: list[tuple[int, Oid]] = []
    for oid in marks:
        heappush(heap, (-repository.commit(oid).updated, oid))
    found: dict[Oid, None] = {}
    while any(not marks[oid] & _BELOW for _, oid in heap):
        _, oid = heappop(heap)
        mark = marks[oid]
        if mark & _BOTH == _BOTH:
            if not mark & _BELOW:
                found[oid] = None
            mark |= _BELOW
        for parent in repository.commit(oid).parents if oid not in boundary else ():
            known = marks.get(parent, 0)
            if known | mark != known:
                marks[parent] = known | mark
                heappush(heap, (-repository.commit(parent).updated, parent))
    # A clock that went back can let an older one be found first; what lies below another is none.
    return next((oid for oid in found if not marks[oid] & _BELOW), None)


def is_ancestor(repository: Repository, older: Oid, newer: Oid) -> bool:
    """Whether `newer` is `older`, or was made on top of it. Raises DamagedError."""
    return older == newer or merge_base(repository, older, newer) == older
