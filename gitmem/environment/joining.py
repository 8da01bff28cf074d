"""Joining another history to main, document by document and in memory: a step forward, or a merge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from gitmem.codec import Content
from gitmem.environment.draft import Draft
from gitmem.environment.history import FILE_MODES, Reader
from gitmem.environment.layout import Name, text_path
from gitmem.errors import InvalidDocumentError, RemoteHistoryError
from gitmem.git.ancestry import merge_base
from gitmem.git.commits import Clash
from gitmem.git.objects import Oid, object_id
from gitmem.git.repository import Repository
from gitmem.git.trees import EMPTY_TREE, FILE, Entry, Path
from gitmem.merging import merge_documents

_BOTH: Final = "both sides changed it; theirs stands, ours stays in the history"


@dataclass(slots=True)
class Joined:
    """What joining did. `refused` are incoming files that are no documents, or not to be had, each with why."""

    merged: bool = False
    documents: int = 0
    refused: dict[str, str] = field(default_factory=dict)


class Joining:
    """One attempt to join `theirs` to what a draft stands on."""

    def __init__(self, repository: Repository, draft: Draft, theirs: Oid, where: str) -> None:
        self._repository = repository
        self._trees = repository.trees
        self._draft = draft
        self._form = draft.form
        self._theirs = theirs
        self._where = where
        self._root = repository.commit(theirs).tree
        self._edits: dict[Path, Entry | None] = {}
        self._blobs: list[bytes] = []
        self._clashed: dict[Name, Oid] = {}
        self._done = Joined()

    def run(self) -> Joined:
        """Add to the draft what joining takes; nothing where main holds `theirs` already.

        Hand edits of documents that come in are adopted first. Raises RemoteHistoryError where the
        two histories have nothing to do with each other, or theirs holds a path that must not be
        written; DamagedError.
        """
        published = self._draft.published
        base = merge_base(self._repository, published, self._theirs) if published else None
        if base == self._theirs:
            return self._done
        if published and base is None:
            self._refuse_unrelated(published)
        before = self._repository.commit(base).tree if base else EMPTY_TREE
        names, others = self._changed(before, self._root)
        self._examine(names, others)
        for name in names if published else ():
            self._draft.get(name)
        if published is None or self._draft.head.tip == base:
            self._draft.forward(self._theirs)
        else:
            self._merge(before, names, others)
        self._done.documents = len(names)
        return self._done

    def _refuse_unrelated(self, published: Oid) -> None:
        """Two histories that both have documents are two memories; one with none yet just begins."""
        if self._has_documents(self._root) and self._has_documents(self._repository.commit(published).tree):
            raise RemoteHistoryError(
                f"The history of {self._where} has nothing to do with this one, and both hold documents. "
                "Nothing was changed. Export one and import it into the other, or choose another remote."
            )

    def _has_documents(self, root: Oid) -> bool:
        return any(self._form.named_by(path) for path, _ in self._trees.walk(root))

    def _changed(self, before: Oid, after: Oid) -> tuple[set[Name], set[Path]]:
        """The documents and the other files that differ between two trees; moves count as both."""
        names: set[Name] = set()
        others: set[Path] = set()
        for path, _, _ in self._trees.changes(before, after):
            name = self._form.named_by(path)
            if name:
                names.add(name)
            else:
                others.add(path)
        return names, others

    def _examine(self, names: Iterable[Name], others: Iterable[Path]) -> None:
        """Note what comes in and is not what it should be. It counts as it does in any commit: not at all."""
        for name in names:
            path, entry = self._form.locate(self._trees, self._root, name)
            self._content(name, path, entry)
        for path in others:
            if any(_is_unsafe(part) for part in path):
                raise RemoteHistoryError(
                    f"{self._where} holds {ascii(text_path(path))[:80]}, which must not be written. "
                    "Nothing was changed. Have whoever made that take it out."
                )
            entry = self._trees.find(self._root, path)
            if entry and entry.mode not in FILE_MODES:
                self._done.refused[text_path(path)] = "it is not an ordinary file"

    def _content(self, name: Name, path: Path, entry: Entry | None) -> Content | None:
        """What an entry of theirs holds; None where that is no live document, which is noted if it is none at all."""
        try:
            if entry and entry.mode not in FILE_MODES:
                raise InvalidDocumentError("it is not an ordinary file")
            return self._form.checked(self._read(entry), name, self._form.limit(name, None)) if entry else None
        except InvalidDocumentError as error:
            self._done.refused[text_path(path)] = error.message
            return None

    def _read(self, entry: Entry) -> bytes:
        return self._repository.objects.read(entry.oid, "blob")

    # Merging

    def _merge(self, before: Oid, names: set[Name], others: set[Path]) -> None:
        ours = self._draft.head.root
        our_names, our_others = self._changed(before, ours)
        for name in our_names:
            path, entry = self._form.locate(self._trees, self._root, name)
            _, mine = self._form.locate(self._trees, ours, name)
            _, old = self._form.locate(self._trees, before, name)
            if _oid(mine) in {_oid(old), _oid(entry)}:
                continue
            if _oid(entry) == _oid(old):
                self._edits[path] = mine
            else:
                self._settle(name, path, old, mine, entry)
        for path in our_others:
            mine, entry = self._trees.find(ours, path), self._trees.find(self._root, path)
            if path not in others:
                self._edits[path] = mine
            elif mine != entry:
                self._done.refused[text_path(path)] = _BOTH
        self._done.merged = True
        self._draft.merge(self._theirs, self._edits, self._blobs, f"merge {self._where}", self._named())

    def _settle(self, name: Name, path: Path, old: Entry | None, mine: Entry | None, entry: Entry | None) -> None:
        """Merge a document that both sides changed, each to something else."""
        stored = self._draft.get(name)
        refused = text_path(path) in self._done.refused
        if refused:
            self._edits[path] = mine
            return
        theirs = self._content(name, path, entry)
        if theirs is None:
            return  # their deletion wins
        if stored is None or stored.content is None:
            if stored is not None:
                self._edits[path] = mine  # so does ours
            return
        base = self._form.checked(self._read(old), name, self._form.limit(name, None)) if old else None
        merged = merge_documents(base, stored.content, theirs)
        if merged is None or len(merged.text.encode()) > self._limit(name):
            self._clashed[name] = stored.revision
        elif merged == stored.content:
            self._edits[path] = mine
        elif merged != theirs:
            data = self._form.encode(merged)
            self._blobs.append(data)
            self._edits[path] = Entry(FILE, object_id("blob", data))

    def _limit(self, name: Name) -> int:
        return self._form.limit(name, self._draft.find_resource(name.resource))

    def _named(self) -> list[Clash]:
        """The conflicts, each with both revisions."""
        theirs = Reader(self._repository, self._form).newest(self._theirs, set(self._clashed))
        return [Clash(*name, ours, theirs[name].commit) for name, ours in sorted(self._clashed.items())]


def _oid(entry: Entry | None) -> Oid | None:
    return entry.oid if entry else None


def _is_unsafe(part: str) -> bool:
    folded = part.lower()
    return folded in {"", ".", "..", ".git"} or folded.startswith("git~") or "/" in part or "\0" in part
