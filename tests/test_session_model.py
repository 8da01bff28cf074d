"""Sessions, renders and saves against a plain model: two agents and an owner, two handles, lost indexes between."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import gitmem
from gitmem import ErrorCode, GitmemError, Render, Session, Toolbox, doctor
from tests.agents import NOTES, PLANS
from tests.workshop import ManualClock

DOCUMENTS = {"notes": ("a", "b"), "plans": ("c",)}
BINDINGS: list[dict[str, Any]] = [
    {"notes": {"scope": "document", "id": "a", "access": "read-write"}},
    {"notes": {"scope": "document", "id": "b", "access": "read"}},
    {"notes": {"scope": "collection", "access": "read"}},
    {
        "notes": {"scope": "document", "id": "a", "access": "read-write"},
        "plans": {"scope": "document", "id": "c", "access": "read-write"},
    },
    {
        "notes": {"scope": "collection", "access": "read"},
        "plans": {"scope": "document", "id": "c", "access": "read-write"},
    },
]

handles = st.integers(0, 1)
agents = st.sampled_from(["tutor", "critic"])
which = st.integers(0, 1_000)
documents = st.sampled_from([("notes", "a"), ("notes", "b"), ("plans", "c")])
texts = st.sampled_from(["", "one", "two", "é" * 6, "é" * 30])
summaries = st.none() | st.sampled_from(["", "summary", "é" * 121])


@dataclass
class Doc:
    """A document in the model."""

    revision: str
    text: str = ""
    summary: str = ""
    frozen: bool = False
    dead: bool = False


@dataclass
class Model:
    """A session in the model: what it is bound to, whether it ended, and what it saved."""

    session_id: str
    agent: str
    memory: dict[str, Any]
    key: str | None
    ended: bool = False
    saved: list[tuple[str, str, str, int]] = field(default_factory=list)


@dataclass
class Shown:
    """A render in the model: the revision shown of each selected resource."""

    session: Model
    revisions: dict[str, str | None]
    real: Render
    token: str


class Machine(RuleBasedStateMachine):
    work: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = self.work / "store"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.clock = ManualClock()
        self.stores = [self.opened(), self.opened()]
        environment = self.environment(0)
        self.limit = 8_192
        for agent in ("tutor", "critic"):
            environment.deploy(agent=agent, memories=[NOTES, PLANS])
        self.docs = {
            (resource, name): Doc(environment.documents(resource).create(name, title=name).revision)
            for resource, names in DOCUMENTS.items()
            for name in names
        }
        self.models: list[Model] = []
        self.renders: list[Shown] = []
        for memory in BINDINGS[:1] + BINDINGS[3:4]:
            self.create(0, "tutor", memory, None)

    def opened(self) -> gitmem.Store:
        return gitmem.open_store(self.folder, create=True, settings=gitmem.Settings(clock=self.clock, durable=False))

    def environment(self, handle: int) -> gitmem.Environment:
        return self.stores[handle].project("bot").environment()

    def session(self, handle: int, model: Model) -> Session:
        return self.environment(handle).sessions.get(model.session_id)

    # The owner

    @rule(handle=handles, document=documents, text=texts)
    def edit(self, handle: int, document: tuple[str, str], text: str) -> None:
        doc = self.docs[document]
        if not doc.dead and len(text.encode()) <= self.limit:
            found = self.environment(handle).documents(document[0])
            doc.revision = found.replace(document[1], text=text, if_match=doc.revision).revision
            doc.text = text

    @rule(handle=handles, document=documents, frozen=st.booleans())
    def set_frozen(self, handle: int, document: tuple[str, str], frozen: bool) -> None:
        doc = self.docs[document]
        if not doc.dead:
            found = self.environment(handle).documents(document[0])
            policy: Any = "disabled" if frozen else "enabled"
            doc.revision = found.patch(document[1], agent_writes=policy, if_match=doc.revision).revision
            doc.frozen = frozen

    @rule(handle=handles, document=documents, really=which)
    def delete(self, handle: int, document: tuple[str, str], really: int) -> None:
        doc = self.docs[document]
        if not doc.dead and really % 4 == 0:
            self.environment(handle).documents(document[0]).delete(document[1], if_match=doc.revision)
            doc.dead = True

    @rule(handle=handles, limit=st.sampled_from([10, 8_192]))
    def deploy(self, handle: int, limit: int) -> None:
        provider = gitmem.document_memory(max_bytes=limit)
        memories = [
            gitmem.define_memory(id=declared.id, description=declared.description, provider=provider)
            for declared in (NOTES, PLANS)
        ]
        self.environment(handle).deploy(agent="tutor", memories=memories)
        self.limit = limit

    # Sessions

    @rule(handle=handles, agent=agents, memory=st.sampled_from(BINDINGS), key=st.none() | st.sampled_from("xyz"))
    def create(self, handle: int, agent: str, memory: dict[str, Any], key: str | None) -> None:
        self.clock.move(1)
        known = next((model for model in self.models if key is not None and model.key == key), None)
        refusal = None
        if known:
            refusal = ErrorCode.IDEMPOTENCY_CONFLICT if (known.agent, known.memory) != (agent, memory) else None
        elif self.recall_fails(memory):
            refusal = ErrorCode.INVALID_REQUEST
        sessions = self.environment(handle).sessions
        if refusal:
            fails(refusal, lambda: sessions.create(agent=agent, memory=memory, idempotency_key=key))
            return
        session = sessions.create(agent=agent, memory=memory, idempotency_key=key)
        assert session.created == (known is None)
        if known:
            assert session.id == known.session_id
        else:
            self.models.append(Model(session.id, agent, memory, key))

    def recall_fails(self, memory: dict[str, Any]) -> bool:
        return any(binding["scope"] == "document" and self.docs[resource, binding["id"]].dead
                   for resource, binding in memory.items())  # fmt: skip

    @rule(handle=handles, at=which, really=which)
    def end(self, handle: int, at: int, really: int) -> None:
        if really % 3 == 0:
            model = self.models[at % len(self.models)]
            self.session(handle, model).end()
            model.ended = True

    @rule(handle=handles, at=which, select=st.lists(st.sampled_from(["notes", "plans"]), unique=True))
    def render(self, handle: int, at: int, select: list[str]) -> None:
        model = self.models[at % len(self.models)]
        select = [resource for resource in select if resource in model.memory]
        bound = {
            resource: None if binding["scope"] == "collection" else self.docs[resource, binding["id"]]
            for resource, binding in model.memory.items()
        }
        session = self.session(handle, model)
        if model.ended or self.recall_fails(model.memory):
            fails(ErrorCode.SESSION_CLOSED if model.ended else ErrorCode.NOT_FOUND, lambda: session.render(select))
            return
        render = session.render(select)
        for resource, view in render.selected.items():
            doc = bound[resource]
            if doc is None:
                lines = [line.split(" | ")[0] for line in view.text.splitlines()]
                assert sorted(lines) == [name for name in DOCUMENTS[resource] if not self.docs[resource, name].dead]
                assert not view.writable
            else:
                assert not doc.dead
                assert (view.text, view.sources[0].revision) == (doc.text, doc.revision)
                assert view.writable == (model.memory[resource]["access"] == "read-write" and not doc.frozen)
        revisions = {resource: doc.revision if doc else None for resource, doc in bound.items() if resource in select}
        self.renders.append(Shown(model, revisions, render, render.token()))

    # The model's calls

    @precondition(lambda self: self.renders)
    @rule(
        handle=handles, at=which, back=st.integers(0, 3), memory=st.none() | st.sampled_from(["notes", "plans"]),
        text=texts, summary=summaries,
    )  # fmt: skip
    def save(self, handle: int, at: int, back: int, memory: str | None, text: str, summary: str | None) -> None:
        shown = self.renders[-(back if back else at) % len(self.renders)]
        self.clock.move(1)
        arguments = {"text": text} | ({"memory": memory} if memory else {})
        arguments |= {"summary": summary} if summary is not None else {}
        # The render itself, or the same one as another process takes it up.
        real: Render | Toolbox = shown.real if at % 2 else self.session(handle, shown.session).render_from(shown.token)
        writable = [r for r in shown.revisions if shown.session.memory[r]["access"] == "read-write"]
        if memory is None and len(writable) > 1:
            with pytest.raises(gitmem.ToolArgumentError):
                real.call("memory_save", arguments)
            return
        assert real.call("memory_save", arguments).to_json() == self.expected(shown, memory, writable, text, summary)

    @rule(
        handle=handles, at=which, text=texts, summary=summaries,
        meanwhile=st.sampled_from(["nothing", "nothing", "nothing", "end", "freeze", "edit"]),
    )  # fmt: skip
    def turn(self, handle: int, at: int, text: str, summary: str | None, meanwhile: str) -> None:
        """A model turn that saves on what it was just shown, and what happens while the model thinks."""
        model = self.models[at % len(self.models)]
        before = len(self.renders)
        self.render(handle, at, list(model.memory))
        if len(self.renders) == before:
            return
        target = min(model.memory)
        document = (target, model.memory[target].get("id", "a"))
        if meanwhile == "end":
            self.end(handle, at, 0)
        elif meanwhile == "freeze":
            self.set_frozen(handle, document, True)
        elif meanwhile == "edit":
            self.edit(handle, document, "meanwhile")
        self.save(1 - handle, at, 1, target, text, summary)

    def expected(
        self, shown: Shown, memory: str | None, writable: list[str], text: str, summary: str | None
    ) -> dict[str, Any]:
        target = memory or (writable[0] if writable else None)
        if target not in shown.revisions and (target or not shown.revisions):
            return {"status": "rejected", "reason": "not_bound", "bound": writable}
        if target not in writable:
            return {"status": "rejected", "reason": "read_only", "bound": writable}
        assert target
        document_id = shown.session.memory[target]["id"]
        doc = self.docs[target, document_id]
        for reason, holds in (
            ("session_closed", shown.session.ended), ("not_found", doc.dead), ("agent_writes_disabled", doc.frozen)
        ):  # fmt: skip
            if holds:
                return {"status": "rejected", "reason": reason}
        for name, value, limit in (("text", text, self.limit), ("summary", summary or "", 240)):
            if (size := len(value.encode())) > limit:
                return {"status": "rejected", "reason": "too_large", "field": name, "bytes": size, "maxBytes": limit}
        if doc.revision != shown.revisions[target]:
            return {"status": "conflict", "text": doc.text, "summary": doc.summary}
        new = doc.summary if summary is None else summary
        size = len(text.encode())
        if (text, new) != (doc.text, doc.summary):
            doc.revision = self.environment(0).documents(target).read(document_id).revision
            doc.text, doc.summary = text, new
            shown.session.saved.append((target, document_id, doc.revision, size))
        return {"status": "saved", "revision": doc.revision, "bytes": size}

    @precondition(lambda self: self.renders)
    @rule(handle=handles, at=which, document_id=st.sampled_from("abc"))
    def look(self, handle: int, at: int, document_id: str) -> None:
        shown = self.renders[at % len(self.renders)]
        offered = [r for r in shown.revisions if shown.session.memory[r]["scope"] == "collection"]
        if not offered or shown.session.ended:
            code = ErrorCode.SESSION_CLOSED if offered else ErrorCode.INVALID_REQUEST
            fails(code, lambda: shown.real.call("memory_read", {"id": document_id}))
            fails(code, lambda: shown.real.call("memory_list", {}))
            return
        (resource,) = offered
        read = shown.real.call("memory_read", {"id": document_id}).to_json()
        listed = shown.real.call("memory_list", {}).to_json()
        doc = self.docs.get((resource, document_id))
        if doc is None or doc.dead:
            assert read == {"status": "rejected", "reason": "not_found"}
        else:
            assert (read["text"], read["summary"], read["revision"]) == (doc.text, doc.summary, doc.revision)
        live = {name for name in DOCUMENTS[resource] if not self.docs[resource, name].dead}
        assert {entry["id"] for entry in listed["documents"]} == live

    # What may happen at any time

    @rule(handle=handles)
    def reopen(self, handle: int) -> None:
        self.stores[handle].close()
        self.stores[handle] = self.opened()

    @rule()
    def lose_indexes(self) -> None:
        for store in self.stores:
            store.close()
        shutil.rmtree(self.folder / "bot/development/.git/gitmem", ignore_errors=True)
        for path in (self.folder / "bot/control.git/gitmem").glob("sessions.sqlite*"):
            path.unlink()

    @invariant()
    def sessions_agree(self) -> None:
        for handle in (0, 1):
            listed = list(self.environment(handle).sessions)
            assert [session.id for session in listed] == [model.session_id for model in reversed(self.models)]
            for session, model in zip(listed, reversed(self.models), strict=True):
                info = session.inspect()
                assert (info.agent_id, info.status) == (model.agent, "ended" if model.ended else "active")
                assert {state.resource: state.writable for state in info.memory} == {
                    resource: self.writable(model, resource) for resource in model.memory
                }
                told = [(e.seq, e.resource, e.document_id, e.revision, e.bytes) for e in session.events()]
                assert told == [(number, *saved) for number, saved in enumerate(model.saved, 1)]

    def writable(self, model: Model, resource: str) -> bool:
        binding = model.memory[resource]
        if model.ended or binding["access"] == "read":
            return False
        doc = self.docs[resource, binding["id"]]
        return not doc.dead and not doc.frozen

    def teardown(self) -> None:
        try:
            found = doctor.examine(self.stores[0])
            assert not found, found
        finally:
            for store in self.stores:
                store.close()


def fails(code: ErrorCode, call: Callable[[], object]) -> None:
    with pytest.raises(GitmemError) as caught:
        call()
    assert caught.value.code is code


def run(work: Path, **options: Any) -> None:
    case = type("Case", (Machine,), {"work": work})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(case, settings=settings(deadline=None, suppress_health_check=checks, **options))


def test_sessions_agree_with_the_model(tmp_path: Path) -> None:
    run(tmp_path, max_examples=20, stateful_step_count=50, derandomize=True)


@pytest.mark.slow
def test_sessions_agree_with_the_model_for_long(tmp_path: Path) -> None:
    run(tmp_path, max_examples=150, stateful_step_count=80)
