"""The client gives the same records and raises the same errors, with the same data, as the store itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import gitmem
from gitmem import GitmemError
from gitmem.client.client import RemoteEnvironment, RemoteProject
from tests.faces.conftest import Place
from tests.http.server import Server

AnyProject = gitmem.Project | RemoteProject
STALE = "0" * 40
WRITE = {"notes": {"scope": "document", "id": "a", "access": "read-write"}}
BOTH = WRITE | {"plans": {"scope": "collection"}}


class Walk:
    """Calls, and what became of each: with names in place of what two runs cannot have in common."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self._names: dict[str, str] = {}

    def __call__(self, call: Callable[[], Any]) -> Any:
        try:
            found = call()
        except GitmemError as error:
            self.seen.append(self._plain((type(error).__name__, error.code, error.message, error.data)))
            return None
        self.seen.append(self._plain((type(found).__name__.removeprefix("Remote"), found)))
        return found

    def _plain(self, value: Any) -> str:
        text = re.sub(r"<(?:Remote)?Session (\S+) of (\S+)>", r"<Session \1 of \2>", repr(value))
        text = re.sub(r"\b[0-9a-f]{12,40}\b|\b(?:dep|ses|evt)_\w+", self._named, text)
        return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)

    def _named(self, found: re.Match[str]) -> str:
        for known, name in self._names.items():
            if known.startswith(found[0]):
                return name
        return self._names.setdefault(found[0], f"#{len(self._names)}")


def documents(project: AnyProject, walk: Walk) -> None:
    notes = project.environment().documents("notes")
    made = notes.create("a", title="A", text="1\n")
    walk(lambda: made)
    walk(lambda: notes.create("a", title="A"))
    walk(lambda: notes.replace("a", text="2", if_match=STALE))
    walk(lambda: notes.replace("a", text="2", if_match="*"))
    walk(lambda: notes.replace("a", text="2", if_match=None))  # type: ignore[arg-type]
    walk(lambda: notes.replace("a", text="2", if_match=7))  # type: ignore[arg-type]
    walk(lambda: notes.replace("missing", text="2", if_match=made.revision))
    second = notes.replace("a", text="2", summary="two", if_match=made.revision)
    walk(lambda: second)
    walk(lambda: notes.replace("a", text="2", summary="two", if_match=second.revision))
    walk(lambda: notes.read("a", at=made.revision[:7]))
    for wrong in (STALE, "zz", "", 7):
        walk(lambda wrong=wrong: notes.read("a", at=wrong))
        walk(lambda wrong=wrong: notes.restore("a", wrong, if_match=second.revision))
        walk(lambda wrong=wrong: notes.diff("a", wrong))
    for wrong in ("", "a/b", "ä", 7, None):
        walk(lambda wrong=wrong: notes.read(wrong))
    walk(lambda: notes.create("b", title=""))
    walk(lambda: notes.create("b", title="t" * 241))
    walk(lambda: notes.create("b", title="B", summary="s" * 241))
    walk(lambda: notes.create("b", title="B", text="t" * 8193))
    walk(lambda: notes.create("b", title="B", text="\ud800"))
    walk(lambda: notes.create("b", title=7))  # type: ignore[arg-type]
    walk(lambda: notes.create("b", title="B", agent_writes="maybe"))  # type: ignore[arg-type]
    walk(lambda: notes.patch("a", if_match=second.revision))
    walk(lambda: notes.patch("a", title="", if_match=second.revision))
    third = notes.patch("a", title="Anew", agent_writes="disabled", if_match=second.revision)
    walk(lambda: third)
    walk(lambda: notes.info("a"))
    walk(lambda: notes.list(matching="ANE"))
    walk(lambda: notes.list(matching="nothing"))
    walk(lambda: notes.list(cursor="foreign"))
    walk(lambda: notes.history("a"))
    walk(lambda: notes.history("a", cursor="foreign"))
    walk(lambda: notes.history("missing"))
    walk(lambda: notes.diff("a"))
    walk(lambda: notes.diff("a", made.revision, second.revision))
    walk(lambda: notes.restore("a", made.revision, if_match=third.revision))
    walk(
        lambda: list(notes.create_many([gitmem.NewDocument(id="c", title="C"), gitmem.NewDocument(id="a", title="X")]))
    )
    walk(lambda: sorted(notes.ids()))
    walk(lambda: notes.delete("c", if_match=STALE))
    walk(lambda: notes.delete("c", if_match=notes.read("c").revision))
    walk(lambda: notes.read("c"))
    walk(lambda: notes.create("c", title="C"))
    walk(lambda: notes.diff("c"))
    walk(lambda: project.environment().documents("plans").list())
    walk(lambda: project.environment().documents("Plans"))
    walk(lambda: project.environment("staging"))


def sessions(project: AnyProject, walk: Walk) -> None:
    environment: gitmem.Environment | RemoteEnvironment = project.environment()
    notes = gitmem.define_memory(id="notes", description="Decisions.")
    plans = gitmem.define_memory(id="plans", description="What comes next.")
    first = environment.deploy(agent="tutor", memories=[notes])
    walk(lambda: first)
    walk(lambda: environment.deploy(agent="tutor", memories=[notes, plans]))
    walk(lambda: environment.deploy(agent="no agent", memories=[]))
    walk(environment.inventory)
    walk(lambda: list(environment.deployments().items()))
    made = environment.documents("notes").create("a", title="A", text="1")
    environment.documents("plans").create("p", title="P", text="plan")
    create = environment.sessions.create
    for wrong in ({"notes": {"scope": "document", "id": "missing"}}, {"no": {"scope": "collection"}}, {"x y": {}}):
        walk(lambda wrong=wrong: create(agent="tutor", memory=wrong))
    walk(lambda: create(agent="nobody"))
    walk(lambda: create(agent="no body"))
    walk(create)
    walk(lambda: create(deployment="nothing"))
    walk(lambda: create(deployment=first.id, memory={"plans": {"scope": "collection"}}))
    pinned = create(deployment=first.id, memory=WRITE, idempotency_key="pinned é", source="a test")
    walk(lambda: pinned.deployment == first)
    walk(pinned.inspect)
    walk(lambda: create(deployment=first.id, memory=WRITE, idempotency_key="pinned é").created)
    walk(lambda: create(agent="tutor", memory=WRITE, idempotency_key="pinned é"))
    walk(lambda: create(agent="tutor", memory=WRITE, idempotency_key="a\nb"))
    walk(lambda: create(agent="tutor", memory=WRITE, source="s" * 241))
    session = create(agent="tutor", memory=BOTH)
    walk(lambda: (session.bindings, session.agent_id, session.alias, session.created, session.ended, session))
    tools(project, walk, session)
    walk(lambda: session.events())
    walk(lambda: session.events(after=1))
    walk(lambda: session.events(after=-1))
    walk(lambda: session.wait(0, timeout=0))
    walk(lambda: session.wait(9, timeout=0.1))
    render = session.render(["notes"])
    walk(session.end)
    walk(lambda: session.ended)
    walk(lambda: session.wait(9))
    walk(session.render)
    walk(lambda: render.call("memory_save", {"text": "late"}))
    walk(lambda: render.call("memory_save", {"memory": "plans", "text": "late"}))
    walk(lambda: [found.status for found in (each.inspect() for each in environment.sessions)])
    walk(lambda: environment.sessions.list(cursor="foreign"))
    walk(lambda: environment.sessions.get("nothing"))
    walk(lambda: project.environment("production").sessions.get(session.id))
    walk(lambda: project.session(session.id))
    starts(environment, walk, made.revision)


def tools(project: AnyProject, walk: Walk, session: Any) -> None:
    notes = project.environment().documents("notes")
    render = session.render()
    walk(lambda: (render.selected, list(render.tools)))
    walk(lambda: render.call("memory_save", {"text": "x"}))
    walk(lambda: render.use_memory("nothing"))
    walk(lambda: render.use_memory("plans"))
    walk(lambda: list(render.tools))
    walk(lambda: render.call("memory_list", {}))
    walk(lambda: render.call("memory_list", {"cursor": "foreign"}))
    walk(lambda: render.call("memory_read", {"id": "p"}))
    walk(lambda: render.call("memory_read", {"id": "missing"}))
    walk(lambda: render.call("memory_read", {"id": "no id"}))
    walk(lambda: render.call("memory_save", {"text": "x"}))
    # Somebody writes: what the render showed stays what it shows.
    notes.replace("a", text="by the owner", if_match=notes.read("a").revision)
    walk(lambda: render.use_memory(gitmem.define_memory(id="notes", description="Decisions.")))
    walk(lambda: (render.selected, render.tools.anthropic()))
    walk(lambda: render.call("memory_save", {"text": "x"}))
    walk(lambda: render.call("memory_save", {"memory": "notes", "text": "x"}))
    for wrong in ({}, {"text": 7}, {"text": "x", "more": "y"}, [], None, {"text": "\ud800"}):
        walk(lambda wrong=wrong: render.call("memory_save", wrong))
    walk(lambda: render.call("no_tool", {}))
    fresh = session.render([gitmem.define_memory(id="notes", description="Decisions.")])
    walk(lambda: fresh.call("memory_list", {}))
    walk(lambda: fresh.call("memory_save", {"text": "t" * 8193}))
    walk(lambda: fresh.call("memory_save", {"text": "t", "summary": "s" * 241}))
    walk(lambda: fresh.call("memory_save", {"text": "saved", "summary": "s"}))
    walk(lambda: fresh.call("memory_save", {"text": "again"}))
    walk(lambda: notes.read("a"))
    again = session.render(["notes"])
    notes.patch("a", agent_writes="disabled", if_match=notes.read("a").revision)
    walk(lambda: session.render_from(again.token()).call("memory_save", {"text": "frozen"}))
    walk(lambda: list(session.render_from(again.token()).tools))
    for wrong in ("", "forged", 7):
        walk(lambda wrong=wrong: session.render_from(wrong))
    walk(lambda: session.render(["nothing"]))


def starts(environment: Any, walk: Walk, revision: str) -> None:
    def start(**changed: Any) -> Any:
        wanted = {"resource": "notes", "document_id": "topic", "document": {"title": "Topic"}, "idempotency_key": "k"}
        return environment.sessions.start_on_document(agent="tutor", **(wanted | changed))

    walk(lambda: start().document)
    walk(lambda: (start().document.created, start().session.created, start().session.inspect()))
    walk(lambda: start(document_id="other"))
    walk(lambda: start(access="read"))
    walk(lambda: start(document={}, document_id="new", idempotency_key="l"))
    walk(lambda: start(document={"title": "T", "x": "y"}, document_id="new", idempotency_key="l"))
    walk(lambda: start(document="T", document_id="new", idempotency_key="l"))
    walk(lambda: start(memory=WRITE))
    walk(lambda: start(idempotency_key=""))
    walk(lambda: start(memory={"plans": {"scope": "collection"}}, idempotency_key="m").session.inspect())


@pytest.mark.parametrize("steps", [documents, sessions])
def test_the_client_answers_as_the_store_does(
    place: Place, served: Server, steps: Callable[[AnyProject, Walk], None]
) -> None:
    here, there = Walk(), Walk()
    with gitmem.open_store(place.folder) as store:
        steps(store.project(place.new_project()), here)
    with gitmem.Client(served.url, place.key) as client:
        steps(client.project(place.new_project()), there)
    assert len(here.seen) > 40
    assert there.seen == here.seen


def test_a_session_started_here_is_found_there(place: Place, served: Server) -> None:
    project = place.new_project()
    wanted: dict[str, Any] = {
        "agent": "tutor", "resource": "notes", "document_id": "a", "document": {"title": "A"},
        "idempotency_key": "topic/é",
    }  # fmt: skip
    with gitmem.open_store(place.folder) as store, gitmem.Client(served.url, place.key) as client:
        started = store.project(project).environment().sessions.start_on_document(**wanted)
        again = client.project(project).environment().sessions.start_on_document(**wanted)
        assert (again.session.id, again.session.created) == (started.session.id, False)
        # A render that one made is good for the other.
        token = started.session.render(["notes"]).token()
        assert again.session.render_from(token).call("memory_save", {"text": "x"}).status == "saved"
        (event,) = started.session.events()
        assert again.session.wait() == [event]


def test_a_project_that_does_not_exist_is_not_found(place: Place, served: Server) -> None:
    with gitmem.Client(served.url, place.key) as client:
        environment = client.project("nobody").environment()
        for call in (environment.inventory, environment.documents("notes").list, environment.sessions.list):
            with pytest.raises(gitmem.ProjectNotFoundError):
                call()
