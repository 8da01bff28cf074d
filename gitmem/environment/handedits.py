"""What a file that differs from the tip is: an edit to adopt, one to leave alone, or nobody's."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gitmem.codec import Content
from gitmem.environment.catalog import Catalog
from gitmem.environment.form import Form
from gitmem.environment.layout import Name
from gitmem.environment.rows import Unprojected
from gitmem.environment.worktree import ABSENT, BLOCKED, File, WorkTree
from gitmem.errors import InvalidDocumentError
from gitmem.git.objects import Oid
from gitmem.git.trees import Entry, Path
from gitmem.limits import MAX_BYTES_DEFAULT
from gitmem.records import Memory

OLDER = "it was edited on top of an older version"


class Adopt(NamedTuple):
    """A person's edit: commit it. `content` is None for a deletion.

    `merged` says that the edit was made on top of an older version, and is joined here with what came since.
    """

    content: Content | None
    merged: bool = False


class PutBack:
    """The document as it is, in another form: put the tip's bytes back, commit nothing."""


class Leave(NamedTuple):
    """Neither commit nor overwrite; the reason is for a person. `older`: a newer version stands against it."""

    reason: str
    older: bool = False


class Lags:
    """Nobody's edit: gitmem itself has not brought the file to the tip yet."""


class Standing(NamedTuple):
    """What a file is held against: its repository's form, the tip's entry, the document's state, its declaration.

    `alive` is None for an id that was never used; `holds` says whether the document has that
    content; `gone` says why absent files of the resource count as lost, not as deleted. `join` takes
    the blob of an older version and an edit made on top of it: both joined with the newest, or why not.
    """

    form: Form
    entry: Entry | None
    lag: Unprojected | None
    alive: bool | None
    resource: Memory | None
    holds: Callable[[Content], bool]
    gone: Callable[[], str | None]
    join: Callable[[Oid | None, Content], Content | str]


def judge(name: Name, file: File, standing: Standing) -> Adopt | PutBack | Leave | Lags:
    """What to do about a file that is not the tip's. Adopting and status both ask here."""
    lag, tip = standing.lag, standing.entry.oid if standing.entry else None
    if lag and not file.odd and lag.base == file.oid:
        return Lags()
    older = lag is not None and lag.base != tip
    if older and (file.odd or file.data is None):
        return Leave(file.odd or OLDER, older=True)
    if file.odd:
        return Leave(file.odd)
    if file.data is None:
        return _removal(standing)
    try:
        content = standing.form.checked(file.data, name, _limit(name, standing))
    except InvalidDocumentError as error:
        return Leave(f"{OLDER}, and {error.message}" if older else error.message, older=older)
    if lag and older and not (content and standing.alive and standing.holds(content)):
        return _older(lag, content, standing)
    return _content(name, content, standing)


def _older(lag: Unprojected, content: Content | None, standing: Standing) -> Adopt | Leave:
    if content is None or not standing.alive:
        return Leave(OLDER, older=True)
    joined = standing.join(lag.base, content)
    return Leave(f"{OLDER}: {joined}", older=True) if isinstance(joined, str) else Adopt(joined, merged=True)


def _limit(name: Name, standing: Standing) -> int:
    undeclared = standing.form.declared and standing.resource is None
    return MAX_BYTES_DEFAULT if undeclared else standing.form.limit(name, standing.resource)


def _content(name: Name, content: Content | None, standing: Standing) -> Adopt | PutBack | Leave:
    if standing.alive is False and standing.form.reserving:
        return Leave("its id is reserved by a deletion") if content or not standing.entry else PutBack()
    if standing.resource is None and standing.form.declared:
        return Leave(f"there is no resource {name.resource}")
    if content is None and standing.alive is None:
        return Leave("it deletes a document that does not exist")
    if content and standing.alive and standing.holds(content):
        return PutBack()
    return Adopt(content)


def _removal(standing: Standing) -> Adopt | PutBack | Leave:
    if standing.alive is None:
        return Leave("what is committed there is no document; commit its removal with git")
    if not standing.alive:
        return PutBack()
    refusal = standing.gone()
    return Leave(refusal) if refusal else Adopt(None)


def stray(form: Form, worktree: WorkTree, name: Name, place: Path) -> tuple[Path, File] | None:
    """A file of a document that lies where it would at another depth, for a document that has none at its place."""
    for path in form.places(name):
        if path != place and (file := worktree.read(path)) not in (ABSENT, BLOCKED):
            return path, file
    return None


def lost(form: Form, worktree: WorkTree, catalog: Catalog, resource: str) -> str | None:
    """Why absent files of a resource, or of a folder, count as lost: too much of it is gone at once."""
    if form.declared and not worktree.has_resource(resource):
        return f"the folder of {resource}, or its declaration, has vanished"
    if not worktree.exists():
        return "the working tree is empty"
    documents = catalog.count(resource)
    there = worktree.files(resource) if form.declared else worktree.files_in(resource)
    gone = documents - sum(1 for _ in there)
    if gone > 10 and gone > documents // 2:
        return f"most files of {resource or 'the top folder'} are gone"
    return None
