"""Conflicts that merges left: listing them, and settling one by taking a side or a text of one's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from gitmem.codec import Content
from gitmem.environment.draft import Draft
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.layout import Name
from gitmem.environment.rows import RESOLVE, Clashed
from gitmem.errors import InvalidRequestError, NotFoundError
from gitmem.git.objects import Oid
from gitmem.limits import check_document_id, check_resource_id, check_text
from gitmem.records import Document, Revision
from gitmem.views import document_shown

Side = Literal["ours", "theirs"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentConflict:
    """A document that was changed on two sides and could not be merged.

    `ours` is the revision on the side of whoever merged, `theirs` the remote's, which the document
    holds; both stay readable. `merge` is the commit that joined them.
    """

    resource: str
    id: str
    ours: Revision
    theirs: Revision
    merge: str

    def to_json(self) -> dict[str, Any]:
        return {
            "resource": self.resource,
            "id": self.id,
            "ours": self.ours,
            "theirs": self.theirs,
            "merge": self.merge,
        }


def conflicts(environment: EnvironmentRepository) -> list[DocumentConflict]:
    """Every conflict that nobody has settled, by document. The same in every clone of the same history."""
    return [
        DocumentConflict(
            resource=clash.name.resource,
            id=clash.name.id,
            ours=Revision(clash.ours.hex()),
            theirs=Revision(clash.theirs.hex()),
            merge=clash.merge.hex(),
        )
        for clash in environment.clashes()
    ]


def resolve(
    environment: EnvironmentRepository, resource: str, document_id: str, *, take: Side | None, text: str | None
) -> Document:
    """Settle a document's conflict: take title, summary and text of a side, or a new text.

    With several conflicts on one document, `take` means the newest; all of them are settled.
    Raises NotFoundError where there is none; LimitExceededError.
    """
    name = Name(check_resource_id(resource), check_document_id(document_id))
    if (take is None) == (text is None):
        raise InvalidRequestError("Say how to settle it: ours, theirs, or a text; one of them.")

    def change(draft: Draft) -> Document:
        memory = draft.resource(resource)
        found = draft.get(name)
        open_ones = environment.parts().catalog.conflicts(name)[1]
        if found is None or found.content is None or not open_ones:
            raise NotFoundError(f"There is no conflict about {name}. See gitmem conflicts.")
        new = found.content
        if text is not None:
            new = replace(new, text=text)
        elif take is not None:
            side = _content(environment, name, _revision(_newest(environment, open_ones), take))
            new = replace(new, title=side.title, summary=side.summary, text=side.text)
        check_text(new.text, memory.provider.max_bytes)
        if new == found.content:
            draft.settle(name)
            return document_shown(name, memory, found)
        return document_shown(name, memory, draft.put(name, new, RESOLVE))

    return environment.save(change)


def _newest(environment: EnvironmentRepository, open_ones: list[Clashed]) -> Clashed:
    repository = environment.parts().repository
    return max(open_ones, key=lambda clash: repository.commit(clash.merge).updated)


def _revision(clash: Clashed, take: Side) -> Oid:
    return clash.ours if take == "ours" else clash.theirs


def _content(environment: EnvironmentRepository, name: Name, revision: Oid) -> Content:
    found = environment.content(name, environment.parts().reader.blob_at(revision, name))
    if found is None:
        raise NotFoundError(f"{name} was deleted on that side. Take the other one, or give a text.")
    return found
