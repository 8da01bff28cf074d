"""What a traced process did to the files below one folder, and which of it a flush had covered when.

A file's data and size are covered by fsync or fdatasync of that file, a name by fsync of the folder
that holds it, anything by syncfs. What no flush covers may have reached the disk or not, each piece
of it by itself; so a folder's entry and the file that it names are two things, and a rename between
two folders is two as well.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.power.trace import Call

_FLUSHES: Final = ("fsync", "fdatasync", "syncfs", "sync")
_HARMLESS: Final = ("sync_file_range",)
_EXCHANGE: Final = 2


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes at an offset of a file."""

    node: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Resize:
    """A file got this size."""

    node: int
    size: int


@dataclass(frozen=True, slots=True)
class Bind:
    """Names of one folder that changed together: the file or folder that each stands for, None for none."""

    node: int
    names: tuple[tuple[str, int | None], ...]


Operation = Write | Resize | Bind


@dataclass(frozen=True, slots=True)
class Step:
    """An operation, when it began and ended, and when a flush that covers it came back."""

    operation: Operation
    begun: int
    ended: int
    covered: int


@dataclass(slots=True)
class _File:
    size: int = 0


@dataclass(slots=True)
class _Folder:
    names: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Open:
    """An open file description: duplicated descriptors share it."""

    node: int
    at: int = 0


class Recording:
    """The operations below `root`, which was there before, empty and flushed."""

    def __init__(self, root: str, calls: Iterable[Call]) -> None:
        self._root = root
        self._nodes: list[_File | _Folder] = [_Folder()]
        self._open: dict[int, _Open] = {}
        self._done: list[tuple[Operation, int, int]] = []
        self._flushed: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
        self.flushes: list[Call] = []
        for call in sorted(calls, key=lambda call: call.begun if call.name == "close" else call.ended):
            self._take(call)
        self.steps = [
            Step(operation, begun, ended, self._covered(operation.node, ended))
            for operation, begun, ended in self._done
        ]

    def is_folder(self, node: int) -> bool:
        return isinstance(self._nodes[node], _Folder)

    def find(self, path: str) -> int | None:
        """What stands at a path below the root at the end of the trace."""
        return self._find(-1, path.encode())

    def _covered(self, node: int, ended: int) -> int:
        """When the first flush that began after `ended` came back; the end of time where there was none."""
        found = [1 << 62]
        for key in (node, None):
            flushes = self._flushed[key]
            at = bisect_left(flushes, (ended, 0))
            found += [back for _, back in flushes[at:]]
        return min(found)

    # Reading calls

    def _take(self, call: Call) -> None:
        if call.name in _FLUSHES:
            self._flush(call)
            return
        handler = getattr(self, f"_on_{call.name}", None)
        if handler:
            for operation in handler(call) or ():
                self._done.append((operation, call.begun, call.ended))
        elif call.name not in _HARMLESS:
            self._refuse(call)

    def _refuse(self, call: Call) -> None:
        """A call whose effect is not understood must not touch what is recorded."""
        known = [number for number in call.arguments[:3] if number.isdigit() and int(number) in self._open]
        paths = [text for text in call.arguments if text.startswith('"')]
        inside = any(bytes.fromhex(text[1:-1].replace("\\x", "")).startswith(self._root.encode()) for text in paths)
        assert not known, f"{call.name}{call.arguments} is not understood"
        assert not inside, f"{call.name}{call.arguments} is not understood"

    def _flush(self, call: Call) -> None:
        node: int | None = None
        if call.name in ("fsync", "fdatasync"):
            if call.number(0) not in self._open:
                return
            node = self._open[call.number(0)].node
        self.flushes.append(call)
        self._flushed[node].append((call.begun, call.ended))
        self._flushed[node].sort()

    def _place(self, folder: int, path: bytes) -> tuple[int, str] | None:
        """The folder and the name in it that a path means; None outside of the root."""
        if path.startswith(b"/"):
            if not path.startswith(self._root.encode() + b"/"):
                return None
            node, parts = 0, path[len(self._root) + 1 :].split(b"/")
        else:
            if folder not in self._open:
                return None
            node, parts = self._open[folder].node, path.split(b"/")
        for part in parts[:-1]:
            here = self._nodes[node]
            if not isinstance(here, _Folder) or os.fsdecode(part) not in here.names:
                return None
            node = here.names[os.fsdecode(part)]
        return (node, os.fsdecode(parts[-1])) if isinstance(self._nodes[node], _Folder) else None

    def _names(self, folder: int) -> dict[str, int]:
        found = self._nodes[folder]
        assert isinstance(found, _Folder)
        return found.names

    def _find(self, folder: int, path: bytes) -> int | None:
        if path == self._root.encode():
            return 0
        place = self._place(folder, path)
        return self._names(place[0]).get(place[1]) if place else None

    def _bind(self, folder: int, *names: tuple[str, int | None]) -> Bind:
        here = self._names(folder)
        for name, node in names:
            if node is None:
                del here[name]
            else:
                here[name] = node
        return Bind(folder, names)

    def _made(self, node: _File | _Folder) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    # Opening and closing

    def _on_openat(self, call: Call) -> Iterator[Operation]:
        folder, path = call.number(0), call.data(1)
        flags = call.arguments[2]
        node = self._find(folder, path)
        if node is None:
            place = self._place(folder, path)
            if place is None or "O_CREAT" not in flags:
                self._open.pop(call.result, None)
                return
            node = self._made(_File())
            yield self._bind(place[0], (place[1], node))
        file = self._nodes[node]
        if "O_TRUNC" in flags and isinstance(file, _File) and file.size:
            file.size = 0
            yield Resize(node, 0)
        self._open[call.result] = _Open(node)

    def _on_close(self, call: Call) -> None:
        self._open.pop(call.number(0), None)

    def _on_dup(self, call: Call) -> None:
        self._open.pop(call.result, None)
        if call.number(0) in self._open:
            self._open[call.result] = self._open[call.number(0)]

    _on_dup2 = _on_dup3 = _on_dup

    def _on_fcntl(self, call: Call) -> None:
        if call.arguments[1].startswith("F_DUPFD"):
            self._on_dup(call)

    # Data

    def _on_lseek(self, call: Call) -> None:
        if call.number(0) in self._open:
            self._open[call.number(0)].at = call.result

    def _on_write(self, call: Call) -> Iterator[Operation]:
        opened = self._open.get(call.number(0))
        if opened:
            yield self._write(opened.node, opened.at, call.data(1)[: call.result])
            opened.at += call.result

    def _on_pwrite64(self, call: Call) -> Iterator[Operation]:
        opened = self._open.get(call.number(0))
        if opened:
            yield self._write(opened.node, call.number(3), call.data(1)[: call.result])

    def _write(self, node: int, offset: int, data: bytes) -> Write:
        file = self._nodes[node]
        assert isinstance(file, _File)
        file.size = max(file.size, offset + len(data))
        return Write(node, offset, data)

    def _on_ftruncate(self, call: Call) -> Iterator[Operation]:
        opened = self._open.get(call.number(0))
        if opened:
            file = self._nodes[opened.node]
            assert isinstance(file, _File)
            file.size = call.number(1)
            yield Resize(opened.node, file.size)

    def _on_fallocate(self, call: Call) -> Iterator[Operation]:
        opened = self._open.get(call.number(0))
        if opened:
            assert call.number(1) == 0, call
            file = self._nodes[opened.node]
            assert isinstance(file, _File)
            file.size = max(file.size, call.number(2) + call.number(3))
            yield Resize(opened.node, file.size)

    # Names

    def _on_mkdir(self, call: Call) -> Iterator[Operation]:
        return self._mkdir(-1, call.data(0))

    def _on_mkdirat(self, call: Call) -> Iterator[Operation]:
        return self._mkdir(call.number(0), call.data(1))

    def _mkdir(self, folder: int, path: bytes) -> Iterator[Operation]:
        place = self._place(folder, path)
        if place:
            yield self._bind(place[0], (place[1], self._made(_Folder())))

    def _on_unlink(self, call: Call) -> Iterator[Operation]:
        return self._unlink(-1, call.data(0))

    _on_rmdir = _on_unlink

    def _on_unlinkat(self, call: Call) -> Iterator[Operation]:
        return self._unlink(call.number(0), call.data(1))

    def _unlink(self, folder: int, path: bytes) -> Iterator[Operation]:
        place = self._place(folder, path)
        if place:
            yield self._bind(place[0], (place[1], None))

    def _on_linkat(self, call: Call) -> Iterator[Operation]:
        return self._link((call.number(0), call.data(1)), (call.number(2), call.data(3)))

    def _on_link(self, call: Call) -> Iterator[Operation]:
        return self._link((-1, call.data(0)), (-1, call.data(1)))

    def _link(self, old: tuple[int, bytes], new: tuple[int, bytes]) -> Iterator[Operation]:
        node, place = self._find(*old), self._place(*new)
        if place:
            assert node is not None, "a link to a file outside"
            yield self._bind(place[0], (place[1], node))

    def _on_rename(self, call: Call) -> Iterator[Operation]:
        return self._rename((-1, call.data(0)), (-1, call.data(1)), exchange=False)

    def _on_renameat(self, call: Call) -> Iterator[Operation]:
        return self._rename((call.number(0), call.data(1)), (call.number(2), call.data(3)), exchange=False)

    def _on_renameat2(self, call: Call) -> Iterator[Operation]:
        exchange = "RENAME_EXCHANGE" in call.arguments[4]
        return self._rename((call.number(0), call.data(1)), (call.number(2), call.data(3)), exchange=exchange)

    def _rename(self, old: tuple[int, bytes], new: tuple[int, bytes], *, exchange: bool) -> Iterator[Operation]:
        source, target = self._place(*old), self._place(*new)
        if source is None and target is None:
            return
        assert source, "a rename into the root"
        assert target, "a rename out of the root"
        moved = self._names(source[0])[source[1]]
        left = self._names(target[0])[target[1]] if exchange else None
        if source[0] == target[0]:
            yield self._bind(source[0], (source[1], left), (target[1], moved))
        else:
            yield self._bind(target[0], (target[1], moved))
            yield self._bind(source[0], (source[1], left))
