"""A document's history: its versions, what each changed, and bringing one back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gitmem.errors import GitmemError, NotFoundError, PreconditionFailedError
from gitmem.http.answers import Answer
from gitmem.http.page import diffs
from gitmem.http.page.conflicts import stale
from gitmem.http.page.rendering import render, see
from gitmem.http.page.visit import Visit
from gitmem.records import Document, Version

_SHORTEST_REVISION: Final = 7


def history(visit: Visit) -> Answer:
    """A page of a document's versions, of a deleted one's too."""
    found = visit.documents.history(visit.document_id, cursor=visit.query.get("cursor"))
    return render(
        visit,
        "history.html",
        place=visit.place,
        history=found,
        document=_live(visit),
        is_first="cursor" not in visit.query,
    )


def version(visit: Visit) -> Answer:
    """One version: what it changed, and the document as it then was."""
    documents, document_id, revision = visit.documents, visit.document_id, visit.path["revision"]
    newer, found, older = _around(visit, revision)
    return render(
        visit,
        "version.html",
        newer=newer,
        older=older,
        place=visit.place,
        version=found,
        then=None if found.operation == "delete" else documents.read(document_id, at=revision),
        changed=diffs.read(documents.diff(document_id, None, revision)),
        document=_live(visit),
    )


def confirm(visit: Visit) -> Answer:
    """Ask once before an earlier version is brought back, and show what that changes."""
    documents, document_id, revision = visit.documents, visit.document_id, visit.path["revision"]
    return _ask(visit, documents.read(document_id), _around(visit, revision)[1])


def restore(visit: Visit) -> Answer:
    """Bring an earlier version back."""
    documents, document_id, revision = visit.documents, visit.document_id, visit.path["revision"]
    try:
        documents.restore(document_id, revision, if_match=visit.form["revision"])
    except PreconditionFailedError as error:
        return stale(visit, error, what="Restore it anyway")
    return see(f"{visit.place.url}?done=restored")


def _ask(visit: Visit, now: Document, old: Version) -> Answer:
    then = visit.documents.read(visit.document_id, at=old.revision)
    changed = diffs.between(_restored(now), _restored(then))
    return render(visit, "restore.html", place=visit.place, document=now, version=old, changed=changed)


def _restored(document: Document) -> str:
    """What a restore brings back of a version: all but the policy."""
    return f"title: {document.title}\nsummary: {document.summary}\n\n{document.text}"


def _around(visit: Visit, revision: str) -> tuple[Version | None, Version, Version | None]:
    """The version at a revision between the one behind it and the one before. Raises NotFoundError."""
    newer = None
    versions = _versions(visit)
    for found in versions:
        if found.revision.startswith(revision) and len(revision) >= _SHORTEST_REVISION:
            return newer, found, next(versions, None)
        newer = found
    raise NotFoundError(f"{visit.document_id} has no version {ascii(revision)[:45]}. See its history.")


def _versions(visit: Visit) -> Iterator[Version]:
    """Every version, newest first."""
    page = visit.documents.history(visit.document_id)
    yield from page.versions
    while page.next_cursor is not None:
        page = visit.documents.history(visit.document_id, cursor=page.next_cursor)
        yield from page.versions


def _live(visit: Visit) -> Document | None:
    """The document as it is now; None where it was deleted or cannot be read."""
    try:
        return visit.documents.read(visit.document_id)
    except GitmemError:
        return None
