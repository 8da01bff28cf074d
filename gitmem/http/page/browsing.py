"""From the start to a document: projects, environments, resources, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from gitmem.environment.layout import Name
from gitmem.errors import NotFoundError
from gitmem.http.answers import Answer
from gitmem.http.page import diffs
from gitmem.http.page.places import Place
from gitmem.http.page.rendering import render
from gitmem.http.page.visit import Visit
from gitmem.limits import check_document_id
from gitmem.records import Resource
from gitmem.store import ENVIRONMENTS, Environment, Project

_NEWEST_VERSIONS = 6
_LONGEST_FILTER = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """An environment, as the start shows it."""

    place: Place
    resources: int
    retired: int
    documents: int
    agents: tuple[str, ...]


def home(visit: Visit) -> Answer:
    """Every project that the visitor may see."""
    caller = visit.caller
    only = caller.project if caller is not None else None
    projects = [visit.serving.project(only)] if only is not None else visit.serving.projects()
    return render(visit, "home.html", projects=[(project.id, _summaries(project)) for project in projects])


def environment(visit: Visit) -> Answer:
    """An environment: its resources, retired ones too, and its newest sessions."""
    found = visit.environment
    return render(
        visit,
        "environment.html",
        place=visit.place,
        others=[place for place in _places(visit.project) if place != visit.place],
        resources=found.inventory(),
        descriptions={memory.id: memory.description for memory, _ in found.resources()},
        agents=sorted(found.deployments()),
        sessions=[session.inspect() for session in islice(found.sessions, 5)],
    )


def resource(visit: Visit) -> Answer:
    """A page of a resource's documents."""
    matching = visit.query.get("filter", "").strip()[:_LONGEST_FILTER]
    page = visit.documents.list(cursor=visit.query.get("cursor"), matching=matching)
    found = resource_of(visit)
    return render(
        visit,
        "resource.html",
        place=visit.place,
        resource=found,
        description=description_of(visit.environment, found.id),
        page=page,
        matching=matching,
        is_first="cursor" not in visit.query,
    )


def document(visit: Visit) -> Answer:
    """A document, whole, with its newest versions and what the last one changed."""
    documents, document_id = visit.documents, visit.document_id
    try:
        found = documents.read(document_id)
    except NotFoundError as error:
        return _gone(visit, error)
    history = documents.history(document_id)
    return render(
        visit,
        "document.html",
        place=visit.place,
        document=found,
        versions=history.versions[:_NEWEST_VERSIONS],
        more=len(history.versions) > _NEWEST_VERSIONS,
        changed=diffs.read(documents.diff(document_id)),
    )


def _gone(visit: Visit, error: NotFoundError) -> Answer:
    """A document that is not there; the way to the history of one that was."""
    name = Name(visit.path["resource"], check_document_id(visit.document_id))
    was_there = visit.environment.find(name) is not None
    return render(visit, "gone.html", 404, place=visit.place, message=error.message, was_there=was_there)


def resource_of(visit: Visit) -> Resource:
    """The resource that the path names. Raises NotFoundError."""
    wanted = visit.path["resource"]
    for found in visit.environment.inventory():
        if found.id == wanted:
            return found
    raise NotFoundError(f"There is no resource {wanted} here.")


def description_of(environment: Environment, resource_id: str) -> str:
    """What a resource was declared to be for."""
    memory = environment.resource(resource_id)
    return memory.description if memory is not None else ""


def _places(project: Project) -> list[Place]:
    return [Place(project=project.id, environment=name) for name in ENVIRONMENTS]


def _summaries(project: Project) -> list[Summary]:
    return [_summary(project, place) for place in _places(project)]


def _summary(project: Project, place: Place) -> Summary:
    found = project.environment(place.environment)
    resources = found.inventory()
    return Summary(
        place=place,
        resources=len(resources),
        retired=sum(not one.declared for one in resources),
        documents=sum(one.documents for one in resources),
        agents=tuple(sorted(found.deployments())),
    )
