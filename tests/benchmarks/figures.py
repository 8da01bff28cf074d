"""What a run finds: samples in nanoseconds, and the few figures that are made of them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field


class Sample(list[int]):
    """Nanoseconds, one for each time that something was done."""

    @property
    def median(self) -> float:
        return statistics.median(self)

    @property
    def p99(self) -> float | None:
        """None below a hundred."""
        return statistics.quantiles(self, n=100)[98] if len(self) >= 100 else None


Samples = dict[str, Sample]


@dataclass(slots=True)
class AtSize:
    """What was measured with so many documents, by contestant."""

    documents: int
    saves: Samples
    reads: Samples
    pages: Samples
    first_page: int


@dataclass(slots=True)
class Shared:
    """Writers that share a store, in turn with one writer alone: cost of a save for each round, in ns."""

    alone: list[float] = field(default_factory=list)
    together: list[float] = field(default_factory=list)
    latencies: Sample = field(default_factory=Sample)

    @property
    def ratio(self) -> float:
        """The cost of a save together, as a part of its cost alone."""
        return statistics.median(self.together) / statistics.median(self.alone)


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes on disk that a save adds, before and after housekeeping, which took `seconds`."""

    loose: float
    packed: float
    seconds: float


@dataclass(slots=True)
class Results:
    """Everything that one run found; None or empty where something could not be measured."""

    sizes: list[AtSize] = field(default_factory=list)
    threads: Shared | None = None
    processes: Shared | None = None
    disk: Disk | None = None
    history: Samples = field(default_factory=dict)
    rebuild: dict[bool, float] = field(default_factory=dict)
    """Commits a second, with a git binary and without."""
    show: list[float] = field(default_factory=list)
    """The whole process as a multiple of the imports that it needs, run after run."""
    memory: dict[str, int] = field(default_factory=dict)
