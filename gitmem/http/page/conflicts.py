"""A change that was meant for a version that is no longer the newest: both are shown, neither is lost."""

from __future__ import annotations

from gitmem.errors import InvalidRequestError, NotFoundError, PreconditionFailedError
from gitmem.http.answers import Answer
from gitmem.http.page import diffs
from gitmem.http.page.rendering import render
from gitmem.http.page.visit import Visit
from gitmem.records import Document

_STATUS = 412


def stale(visit: Visit, error: PreconditionFailedError, *, what: str) -> Answer:
    """What has happened since, and the same change again, on the newest version; `what` names it."""
    newest = visit.documents.read(visit.document_id)
    seen = _seen(visit)
    changed = diffs.read(visit.documents.diff(visit.document_id, seen.revision, newest.revision)) if seen else []
    return render(
        visit,
        "stale.html",
        _STATUS,
        place=visit.place,
        document=newest,
        changed=changed,
        what=what,
        message=error.message,
        title=visit.form.get("title"),
    )


def side_by_side(visit: Visit, mine: str, summary: str) -> Answer:
    """The text that somebody typed beside the newest one, with a way to save it over that deliberately."""
    newest = visit.documents.read(visit.document_id)
    seen = _seen(visit)
    return render(
        visit,
        "conflict.html",
        _STATUS,
        place=visit.place,
        document=newest,
        mine=mine,
        summary=summary,
        meanwhile=diffs.read(visit.documents.diff(visit.document_id, seen.revision, newest.revision)) if seen else [],
        difference=diffs.between(newest.text, mine),
    )


def _seen(visit: Visit) -> Document | None:
    """The version that the form was made from, if the history still has it."""
    try:
        return visit.documents.read(visit.document_id, at=visit.form["revision"])
    except (NotFoundError, InvalidRequestError):
        return None
