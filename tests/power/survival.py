"""The folder that a power loss leaves: which of the uncovered operations reached the disk, and their sum."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Final

from tests.power.disk import Bind, Operation, Recording, Resize, Write

PAGE: Final = 4096
SECTOR: Final = 512

Survival = Callable[[Operation], Iterable[Operation]]
"""What of an operation that no flush had covered reached the disk. Asked in the order of the trace."""


def nothing(operation: Operation) -> Iterable[Operation]:
    """The strict disk: what no flush covers is lost."""
    return ()


def everything(operation: Operation) -> Iterable[Operation]:
    """The disk of a machine that only stopped."""
    return (operation,)


def names(operation: Operation) -> Iterable[Operation]:
    """Every name, but no data and no size: files that are empty or cut short."""
    return (operation,) if isinstance(operation, Bind) else ()


def names_and_sizes(operation: Operation) -> Iterable[Operation]:
    """Every name and size, but no data: files of NUL bytes."""
    if isinstance(operation, Write):
        return (Write(operation.node, operation.offset, bytes(len(operation.data))),)
    return (operation,)


def data(operation: Operation) -> Iterable[Operation]:
    """All data and no name."""
    return () if isinstance(operation, Bind) else (operation,)


class Some:
    """A random part of the operations, and of each write some of its pages."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._share = self._random.choice((0.1, 0.5, 0.9))

    def __call__(self, operation: Operation) -> Iterable[Operation]:
        return [piece for piece in pieces(operation, PAGE) if self._random.random() < self._share]


class Torn:
    """Some blocks of one write; of everything else, nothing."""

    def __init__(self, write: Operation | None, block: int, seed: int) -> None:
        self._write = write
        self._block = block
        self._random = Random(seed)

    def __call__(self, operation: Operation) -> Iterable[Operation]:
        if operation is not self._write:
            return ()
        return [piece for piece in pieces(operation, self._block) if self._random.random() < 0.5]


def pieces(operation: Operation, block: int) -> Iterator[Operation]:
    """A write as one operation for each block of the disk that it touches; any other as it is."""
    if not isinstance(operation, Write):
        yield operation
        return
    at, end = operation.offset, operation.offset + len(operation.data)
    while at < end:
        until = min(end, (at // block + 1) * block)
        yield Write(operation.node, at, operation.data[at - operation.offset : until - operation.offset])
        at = until


def moments(recording: Recording) -> list[int]:
    """Every moment of a trace at which something changes."""
    return sorted({step.begun for step in recording.steps} | {flush.ended for flush in recording.flushes})


def last_uncovered_write(recording: Recording, moment: int, node: int | None) -> Operation | None:
    """The last write to a file that a power loss at `moment` may tear."""
    found = None
    for step in recording.steps:
        if step.begun <= moment < step.covered and isinstance(step.operation, Write) and step.operation.node == node:
            found = step.operation
    return found


def rebuilt(recording: Recording, moment: int, survival: Survival, target: Path) -> None:
    """Lay out in `target` what the disk holds after a power loss at `moment`."""
    files: dict[int, bytearray] = {}
    folders: dict[int, dict[str, int]] = {0: {}}
    for step in recording.steps:
        if step.begun <= moment:
            for operation in survival(step.operation) if step.covered > moment else (step.operation,):
                _apply(operation, files, folders)
    _lay_out(recording, 0, files, folders, str(target))


def _apply(operation: Operation, files: dict[int, bytearray], folders: dict[int, dict[str, int]]) -> None:
    if isinstance(operation, Bind):
        here = folders.setdefault(operation.node, {})
        for name, node in operation.names:
            if node is None:
                here.pop(name, None)
            else:
                here[name] = node
        return
    file = files.setdefault(operation.node, bytearray())
    end = operation.size if isinstance(operation, Resize) else operation.offset + len(operation.data)
    if len(file) < end:
        file.extend(bytes(end - len(file)))
    if isinstance(operation, Resize):
        del file[operation.size :]
    else:
        file[operation.offset : end] = operation.data


def _lay_out(
    recording: Recording, node: int, files: dict[int, bytearray], folders: dict[int, dict[str, int]], path: str
) -> None:
    if not recording.is_folder(node):
        with open(path, "xb") as file:
            file.write(files.get(node, b""))
        return
    os.mkdir(path)
    for name, below in folders.get(node, {}).items():
        _lay_out(recording, below, files, folders, os.path.join(path, name))
