"""Creating, editing, retitling, freezing and deleting a document, each on the version that was shown."""

from __future__ import annotations

from typing import Final

from gitmem.environment.layout import Name
from gitmem.errors import HTTP_STATUS, GitmemError, LimitExceededError, NotFoundError, PreconditionFailedError
from gitmem.http.answers import Answer
from gitmem.http.page import forms
from gitmem.http.page.browsing import description_of, resource_of
from gitmem.http.page.conflicts import side_by_side, stale
from gitmem.http.page.rendering import render, see
from gitmem.http.page.visit import Visit
from gitmem.limits import check_document_id
from gitmem.records import AgentWrites, Document

_POLICIES: Final[dict[str, tuple[AgentWrites, str, str]]] = {
    "freeze": ("disabled", "frozen", "Freeze it anyway"),
    "unfreeze": ("enabled", "unfrozen", "Let agents save it anyway"),
}


def new(visit: Visit) -> Answer:
    """The form for a new document."""
    return _new(visit, 200)


def create(visit: Visit) -> Answer:
    """Create a document."""
    form = visit.form
    policy: AgentWrites = "disabled" if form.get("frozen") else "enabled"
    try:
        made = visit.documents.create(
            form["id"], title=form["title"], text=form["text"], summary=form["summary"], agent_writes=policy
        )
    except GitmemError as error:
        return _new(visit, HTTP_STATUS[error.code], error)
    return see(f"{visit.place.of(visit.path['resource'], made.id).url}?done=created")


def edit(visit: Visit) -> Answer:
    """The form to edit a document's text and summary."""
    found = visit.documents.read(visit.document_id)
    return _edit(visit, found, found.text, found.summary)


def save(visit: Visit) -> Answer:
    """Save what was typed, on the version that it was typed into."""
    form, documents, document_id = visit.form, visit.documents, visit.document_id
    text, summary = form["text"], form["summary"]
    try:
        before = _before(visit)
        if before is not None:
            text, summary = forms.typed(text, before.text), forms.typed(summary, before.summary)
        documents.replace(document_id, text=text, summary=summary, if_match=form["revision"])
    except PreconditionFailedError:
        newest = documents.read(document_id)
        if (newest.text, newest.summary) != (text, summary):
            return side_by_side(visit, text, summary)
    except NotFoundError as error:
        if _was_deleted(visit):
            return _new(visit, HTTP_STATUS[error.code], error)
        raise
    except GitmemError as error:
        return _edit(visit, documents.read(document_id), text, summary, error)
    return see(f"{visit.place.url}?done=saved")


def title(visit: Visit) -> Answer:
    """The form for another title."""
    found = visit.documents.read(visit.document_id)
    return render(visit, "title.html", place=visit.place, document=found, title=found.title, error=None)


def retitle(visit: Visit) -> Answer:
    """Change the title."""
    form, documents, document_id = visit.form, visit.documents, visit.document_id
    wanted = form["title"]
    try:
        before = _before(visit)
        if before is not None:
            wanted = forms.typed_line(wanted, before.title)
        documents.patch(document_id, title=wanted, if_match=form["revision"])
    except PreconditionFailedError as error:
        return stale(visit, error, what="Change the title anyway")
    except NotFoundError:
        raise
    except GitmemError as error:
        found = documents.read(document_id)
        status = HTTP_STATUS[error.code]
        return render(visit, "title.html", status, place=visit.place, document=found, title=wanted, error=error.message)
    return see(f"{visit.place.url}?done=retitled")


def freeze(visit: Visit) -> Answer:
    """Keep agents from saving a document."""
    return _patch_policy(visit, "freeze")


def unfreeze(visit: Visit) -> Answer:
    """Let agents save it again."""
    return _patch_policy(visit, "unfreeze")


def confirm_delete(visit: Visit) -> Answer:
    """Ask once before a document is deleted."""
    return render(visit, "delete.html", place=visit.place, document=visit.documents.read(visit.document_id))


def delete(visit: Visit) -> Answer:
    """Delete a document."""
    try:
        visit.documents.delete(visit.document_id, if_match=visit.form["revision"])
    except PreconditionFailedError as error:
        return stale(visit, error, what="Delete it anyway")
    return see(f"{visit.place.of(visit.path['resource']).url}?done=deleted")


def _patch_policy(visit: Visit, change: str) -> Answer:
    policy, done, again = _POLICIES[change]
    try:
        visit.documents.patch(visit.document_id, agent_writes=policy, if_match=visit.form["revision"])
    except PreconditionFailedError as error:
        return stale(visit, error, what=again)
    return see(f"{visit.place.url}?done={done}")


def _new(visit: Visit, status: int, error: GitmemError | None = None) -> Answer:
    """The form for a new document; with an error it holds what was typed."""
    found = resource_of(visit)
    return render(
        visit,
        "new.html",
        status,
        place=visit.place.of(found.id),
        resource=found,
        description=description_of(visit.environment, found.id),
        form=visit.form,
        error=error.message if error else None,
        is_lost="document" in visit.path,
    )


def _edit(visit: Visit, found: Document, text: str, summary: str, error: GitmemError | None = None) -> Answer:
    """The form to edit; with an error it holds what was typed, on the version that it was typed into."""
    return render(
        visit,
        "edit.html",
        HTTP_STATUS[error.code] if error else 200,
        place=visit.place,
        document=found,
        revision=visit.form.get("revision") or found.revision,
        text=text,
        summary=summary,
        error=error.message if error else None,
        field=error.field if isinstance(error, LimitExceededError) else None,
        is_carried=forms.is_carried_whole(found.text) and forms.is_carried_whole(found.summary),
    )


def _before(visit: Visit) -> Document | None:
    """The version that the form showed, if there is such a one."""
    try:
        return visit.documents.read(visit.document_id, at=visit.form["revision"])
    except GitmemError:
        return None


def _was_deleted(visit: Visit) -> bool:
    row = visit.environment.find(Name(visit.path["resource"], check_document_id(visit.document_id)))
    return row is not None and row.dead
