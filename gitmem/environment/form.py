"""What a repository of documents, and one of memory files, has of its own: names, places, bytes, limits."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from gitmem import codec
from gitmem.codec import Content
from gitmem.environment import layout
from gitmem.environment.layout import Name
from gitmem.errors import InvalidDocumentError, LimitExceededError
from gitmem.filepaths import DEPTHS, INDEX, is_normal
from gitmem.git.commits import DOCUMENT_NAMES, Commit, own_write_pattern
from gitmem.git.objects import Oid, object_id
from gitmem.git.trees import Entry, Path, Trees
from gitmem.limits import (
    MAX_BYTES_CEILING,
    check_summary,
    check_text,
    check_title,
    file_limit,
    is_document_id,
    is_resource_id,
)
from gitmem.records import Memory

ATTRIBUTES_FILE: Final = ".gitattributes"
SWITCH_FILE: Final = ".memory.json"
"""Whether the memory in a repository of files is on; it is where the file is missing."""

_SEGMENT: Final = r"[a-z0-9][a-z0-9._-]{0,127}"
_FILE_NAMES: Final = rf"(?:({_SEGMENT}(?:/{_SEGMENT}){{0,2}})/)?(MEMORY\.md|{_SEGMENT})"
_TOMBSTONE: Final = object_id("blob", codec.TOMBSTONE)


@dataclass(frozen=True, kw_only=True)
class Form:
    """What the environment asks of names, places and bytes.

    `declared`: only folders that hold a declaration count. `reserving`: a removed name is never
    used again, and its file stays as a tombstone. `marks` are gitmem's own files at the top.
    """

    declared: bool
    reserving: bool
    names: str
    marks: tuple[str, ...]
    is_name: Callable[[Name], bool]
    named_by: Callable[[Path], Name | None]
    places: Callable[[Name], tuple[Path, ...]]
    locate: Callable[[Trees, Oid, Name], tuple[Path, Entry | None]]
    split: Callable[[Trees, Oid, Path], dict[Path, Entry | None]]
    encode: Callable[[Content], bytes]
    decode: Callable[[bytes, str], Content | None]
    check: Callable[[Name, Content, int], object]
    limit: Callable[[Name, Memory | None], int]
    misplaced: Callable[[Path], str]

    @cached_property
    def own_writes(self) -> re.Pattern[bytes]:
        """What `own_write` looks for."""
        return own_write_pattern(self.names)

    @cached_property
    def _subject(self) -> re.Pattern[str]:
        return re.compile(rf"(?!reshard )([a-z]+) {self.names}\Z")

    def operation_of(self, commit: Commit) -> tuple[str, Name] | None:
        """The write that gitmem's own commit says it is; None for every other commit.

        gitmem's commits are taken at their word here, which spares a comparison of trees for each;
        doctor compares.
        """
        if not commit.own or len(commit.parents) > 1:
            return None
        found = self._subject.match(commit.subject)
        name = Name(found[2] or "", found[3]) if found else None
        return (found[1], name) if found and name and self.is_name(name) else None

    def checked(self, data: bytes, name: Name, max_bytes: int) -> Content | None:
        """What a person's file holds, within every limit; None for a tombstone. Raises InvalidDocumentError."""
        content = self.decode(data, name.id)
        if content is None:
            return None
        try:
            self.check(name, content, max_bytes)
        except LimitExceededError as error:
            raise InvalidDocumentError(error.message) from None
        return content

    def resource_named_by(self, path: Path) -> str | None:
        """The resource whose declaration `path` is."""
        return layout.resource_named_by(path) if self.declared else None

    def is_removed(self, entry: Entry | None) -> bool:
        """Whether an entry is what a removal leaves."""
        return entry is not None and entry.oid == _TOMBSTONE if self.reserving else entry is None

    def subjects(self, path: Path) -> frozenset[str]:
        """The subjects of the commits of gitmem's own that write a file that is no document."""
        if path == (ATTRIBUTES_FILE,):
            return frozenset(("init",))
        if path == (SWITCH_FILE,):
            return SWITCH_SUBJECTS
        return frozenset((f"declare {self.resource_named_by(path)}",))


SWITCH_SUBJECTS: Final = frozenset(("enable memory", "disable memory"))


def touches_no_document(commit: Commit) -> bool:
    """Whether gitmem's own commit only moves files, declares a resource, or turns memory off or on."""
    return (
        commit.own
        and len(commit.parents) <= 1
        and (commit.subject.startswith(("reshard ", "declare ", "init")) or commit.subject in SWITCH_SUBJECTS)
    )


# Documents


def _check_document(name: Name, content: Content, max_bytes: int) -> None:
    check_title(content.title)
    check_summary(content.summary)
    check_text(content.text, max_bytes)


def _misplaced_document(path: Path) -> str:
    document_id = path[-1].removesuffix(".json")
    if not is_document_id(document_id):
        return "No document can have this name, so that it is not read. Rename it with git mv."
    folders = "/".join((path[0], *layout.shards(document_id)))
    return f"It lies in a folder where no document is looked for. Move it to {path[0]} or below {folders}."


DOCUMENTS: Final = Form(
    declared=True,
    reserving=True,
    names=DOCUMENT_NAMES,
    marks=(ATTRIBUTES_FILE,),
    is_name=lambda name: is_resource_id(name.resource) and is_document_id(name.id),
    named_by=layout.named_by,
    places=layout.places,
    locate=layout.locate,
    split=layout.split,
    encode=codec.encode,
    decode=codec.decode,
    check=_check_document,
    limit=lambda name, memory: memory.provider.max_bytes if memory else MAX_BYTES_CEILING,
    misplaced=_misplaced_document,
)


# Memory files


def _file_named_by(depths: frozenset[int], path: Path) -> Name | None:
    if not path or not path[-1].endswith(".json"):
        return None
    folder, name = "/".join(path[:-1]), path[-1][:-5]
    return Name(folder, name) if is_normal(depths, folder, name) else None


def _file_path(name: Name) -> Path:
    return (*(name.resource.split("/") if name.resource else ()), f"{name.id}.json")


def _locate_file(trees: Trees, root: Oid, name: Name) -> tuple[Path, Entry | None]:
    path = _file_path(name)
    entry = trees.find(root, path)
    return path, None if entry and entry.is_folder else entry


def _check_file(name: Name, content: Content, max_bytes: int) -> None:
    if not content.text.strip() and name.id != INDEX:
        raise InvalidDocumentError("a note needs some text")
    check_text(content.text, max_bytes)


def _file_form(depths: frozenset[int]) -> Form:
    return Form(
        declared=False,
        reserving=False,
        names=_FILE_NAMES,
        marks=(ATTRIBUTES_FILE, SWITCH_FILE),
        is_name=lambda name: is_normal(depths, name.resource, name.id),
        named_by=partial(_file_named_by, depths),
        places=lambda name: (_file_path(name),),
        locate=_locate_file,
        split=lambda trees, root, folder: {},
        encode=codec.encode_file,
        decode=lambda data, name: codec.decode_file(data),
        check=_check_file,
        limit=lambda name, memory: file_limit(str(name)),
        misplaced=lambda path: "No memory file can have its place or name there. Rename it with git mv.",
    )


TEAM_FILES: Final = _file_form(DEPTHS["team"])
PERSONAL_FILES: Final = _file_form(DEPTHS["personal"])
