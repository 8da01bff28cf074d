"""All hand edits of a working tree: adopting them at once, and giving one up."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gitmem.clock import to_rfc3339
from gitmem.environment.comparison import compared, differs
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.layout import Name, text_path
from gitmem.environment.opened import Opened
from gitmem.environment.status import FileStatus, status
from gitmem.errors import BusyError, NotFoundError
from gitmem.git.files import storage, sync_path
from gitmem.git.trees import Path

if TYPE_CHECKING:
    from gitmem.environment.draft import Draft

KEPT: Final = "gitmem-discarded"
"""Where edits that were given up lie, below `.git`: by document, named by their time."""

_AT_ONCE: Final = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Adopted:
    """A hand edit that became an owner's commit."""

    document: str
    operation: str
    revision: str

    def to_json(self) -> dict[str, Any]:
        return {"document": self.document, "operation": self.operation, "revision": self.revision}


@dataclass(frozen=True, kw_only=True, slots=True)
class Adoption:
    """What was adopted, in the order of the commits, and what is left, as a status shows it."""

    adopted: tuple[Adopted, ...]
    left: tuple[FileStatus, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "adopted": [found.to_json() for found in self.adopted],
            "left": [file.to_json() for file in self.left],
        }


def adopt(environment: EnvironmentRepository, *, deletions: bool = False) -> Adoption:
    """Commit every hand edit, one owner's commit each; what cannot be committed is left alone.

    `deletions`: also where so much is gone that it looks like a loss. Raises BusyError while the
    working tree does not stand for main, or a merge and the like is under way.
    """
    if not environment.exists:
        return Adoption(adopted=(), left=())
    parts = environment.parts()
    if parts.worktree is None:
        return Adoption(adopted=(), left=())
    if (reason := unready(parts)) is not None:
        raise BusyError(f"Nothing was adopted: {reason}.")
    adopted: list[Adopted] = []
    names = _edited(environment)
    for at in range(0, len(names), _AT_ONCE):
        adopted += adopt_all(environment, names[at : at + _AT_ONCE], deletions=deletions)[0]
    if deletions:
        # A declaration cannot be deleted: a resource is retired by deploying without it.
        environment.save(lambda draft: draft.put_back_marks())
    return Adoption(adopted=tuple(adopted), left=status(environment).files)


def adopt_all(
    environment: EnvironmentRepository, names: Iterable[Name], *, deletions: bool = False
) -> tuple[list[Adopted], dict[str, str]]:
    """Commit the hand edits of some documents; and each path that was left alone, with the reason."""

    def change(draft: Draft) -> tuple[list[Adopted], dict[str, str]]:
        before = len(draft.events)
        for name in names:
            draft.adopt(name, deletions=deletions)
        adopted = [
            Adopted(document=str(event.name), operation=event.operation, revision=event.commit.hex())
            for event in draft.events[before:]
        ]
        return adopted, dict(draft.left_alone)

    return environment.save(change)


def unready(parts: Opened) -> str | None:
    """Why hand edits have to wait: HEAD is not main, or git is in the middle of something."""
    repository = parts.repository
    operation = repository.operation_in_progress()
    if operation:
        return f"a {operation} is under way; finish or abort it"
    if not repository.head_is_main():
        return f"the working tree is on {repository.branch() or 'no branch'}; check out main"
    return None


def _edited(environment: EnvironmentRepository) -> list[Name]:
    """The documents whose files are not the tip's: those that are there first, so that a rename loses no text."""
    environment.count()  # brings the index up
    parts = environment.parts()
    tip = parts.repository.tip()
    if tip is None or parts.worktree is None:
        return []
    here: list[tuple[bool, Path, Name]] = []
    root = parts.repository.commit(tip).tree
    for path, entry, file in compared(parts.form, parts.repository.trees, root, parts.worktree):
        name = parts.form.named_by(path) if differs(entry, file) else None
        if name:
            here.append((file.absent, path, name))
    return [name for _, _, name in sorted(here)]


# Giving up


@dataclass(frozen=True, kw_only=True, slots=True)
class Discarded:
    """A hand edit that was given up: where its bytes lie now; None where the edit was a removal."""

    document: str
    kept: str | None

    def to_json(self) -> dict[str, Any]:
        return {"document": self.document, "kept": self.kept}


def discard(environment: EnvironmentRepository, name: Name) -> Discarded:
    """Give up the hand edit of a document: move what lies at its path away, and put the newest version there.

    Raises NotFoundError where there is none; BusyError while a merge and the like is under way.
    """
    nothing = NotFoundError(f"There is no hand edit of {name} to give up. See gitmem status.")
    if not environment.exists:
        raise nothing
    environment.count()  # so that there is somebody to wake who looks after what is left to do
    parts = environment.parts()
    worktree, repository = parts.worktree, parts.repository
    if worktree is None:
        raise nothing
    with parts.locked():
        if (reason := unready(parts)) is not None:
            raise BusyError(f"Nothing was given up: {reason}.")
        head = parts.bring_up()
        path, entry = parts.form.locate(repository.trees, head.root, name)
        file = worktree.read(path)
        if not differs(entry, file):
            raise nothing
        with storage(f"set {worktree.absolute(path)} aside"):
            kept = None if file.absent else _set_aside(parts, path)
        with parts.catalog.transaction() as connection:
            parts.catalog.set_unprojected(connection, text_path(path), None)
        parts.projection.heal()
    return Discarded(document=str(name), kept=kept)


def _set_aside(parts: Opened, path: Path) -> str:
    assert parts.worktree is not None
    folder = os.path.join(parts.repository.git_dir, KEPT, *path[:-1])
    os.makedirs(folder, exist_ok=True)
    plain = kept = os.path.join(folder, f"{path[-1]}.{to_rfc3339(parts.settings.clock()).replace(':', '')}")
    number = 1
    while os.path.lexists(kept):
        kept, number = f"{plain}-{number}", number + 1
    parts.worktree.take_out(path, kept)
    sync_path(folder)
    return kept
