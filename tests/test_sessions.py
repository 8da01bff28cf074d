"""Sessions from outside: admission, idempotency keys, listing, inspection, end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem import ErrorCode, Session
from tests.agents import COLLECTION, NOTES, PLANS, READ, WRITE, Desk, refusal, save
from tests.support import git, python
from tests.workshop import ManualClock

INVALID = ErrorCode.INVALID_REQUEST


# Creating


def test_a_session_is_bound_and_keeps_its_deployment(desk: Desk) -> None:
    session = desk.session(WRITE | {"plans": {"scope": "collection"}})
    assert session.created
    assert (session.agent_id, session.alias, session.deployment) == ("tutor", "development", desk.deployment)
    desk.environment.deploy(agent="tutor", memories=[NOTES])
    again = desk.sessions.get(session.id)
    assert again.deployment.id == desk.deployment.id
    assert not again.created
    info = again.inspect().to_json()
    assert info == {
        "id": session.id,
        "agentId": "tutor",
        "alias": "development",
        "deploymentId": desk.deployment.id,
        "status": "active",
        "createdAt": session.created_at,
        "endedAt": None,
        "source": None,
        "memory": [
            {"resource": "notes", "scope": "document", "id": "workshop", "access": "read-write", "writable": True},
            {"resource": "plans", "scope": "collection", "access": "read", "writable": False},
        ],
    }


def test_access_defaults_to_read(desk: Desk) -> None:
    (state,) = desk.session(READ).inspect().memory
    assert (state.access, state.writable) == ("read", False)


def test_a_session_needs_no_memory(desk: Desk) -> None:
    session = desk.session({})
    assert session.inspect().memory == ()
    assert list(session.render().tools) == []


def test_each_change_of_a_session_is_one_commit_without_texts_and_without_keys(desk: Desk) -> None:
    before = int(git(desk.control, "rev-list", "--count", "main"))
    session = desk.session(idempotency_key="topic/workshop/1")
    assert int(git(desk.control, "rev-list", "--count", "main")) == before + 1
    changed = git(desk.control, "show", "--format=", "--name-only", "main").splitlines()
    assert sorted(path.split("/")[0] for path in changed) == ["keys", "sessions"]
    session.end()
    assert int(git(desk.control, "rev-list", "--count", "main")) == before + 2
    story = git(desk.control, "log", "-p", "main")
    assert "topic/workshop/1" not in story
    assert "Node.js" not in story


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        (["notes"], "memory must map"),
        ({"Notes": {"scope": "collection"}}, "'Notes'"),
        ({"\ud800": {"scope": "collection"}}, "\\ud800"),
        ({1: {"scope": "collection"}}, "1"),
        ({"notes": "workshop"}, "memory.notes"),
        ({"notes": {}}, "scope must be"),
        ({"notes": {"scope": "everything"}}, "'everything'"),
        ({"notes": {"scope": ["document"]}}, "scope must be"),
        ({"notes": {"scope": "document"}}, "memory.notes"),
        ({"notes": {"scope": "document", "id": None}}, "None"),
        ({"notes": {"scope": "document", "id": "../workshop"}}, "'../workshop'"),
        ({"notes": {"scope": "document", "id": "\ud800"}}, "\\ud800"),
        ({"notes": {"scope": "document", "id": "a" * 129}}, "memory.notes"),
        ({"notes": {"scope": "document", "id": "workshop", "access": "write"}}, "'write'"),
        ({"notes": {"scope": "document", "id": "workshop", "access": None}}, "None"),
        ({"notes": {"scope": "document", "id": "workshop", "mode": "read"}}, "'mode'"),
        ({"notes": {"scope": "document", "id": "missing"}}, "missing"),
        ({"notes": {"scope": "document", "id": "gone"}}, "deleted"),
        ({"notes": {"scope": "collection", "id": "workshop"}}, "collection has no id"),
        ({"notes": {"scope": "collection", "access": "read-write"}}, "only be read"),
        ({"other": {"scope": "collection"}}, "memory.other"),
        (WRITE | {"plans": {"scope": "document", "id": "missing"}}, "memory.plans"),
    ],
)
def test_a_refused_binding_fails_the_whole_admission_and_is_named(desk: Desk, memory: Any, words: str) -> None:
    gone = desk.notes.create("gone", title="Gone")
    desk.notes.delete("gone", if_match=gone.revision)
    before = desk.records()
    refusal(INVALID, lambda: desk.session(memory, idempotency_key="k"), words)
    assert desk.records() == before
    assert desk.session(idempotency_key="k").created


def test_a_session_has_at_most_eight_bindings(desk: Desk) -> None:
    nine = [gitmem.define_memory(id=f"r{number}", description="One of many.") for number in range(9)]
    desk.environment.deploy(agent="tutor", memories=nine)
    memory = {declared.id: {"scope": "collection"} for declared in nine}
    refusal(INVALID, lambda: desk.session(memory), "8", "9")
    del memory["r8"]
    assert len(desk.session(memory).inspect().memory) == 8


def test_resources_must_be_declared_by_the_agents_own_active_deployment(desk: Desk) -> None:
    collection = {"plans": {"scope": "collection"}}
    assert desk.session(collection).created
    refusal(INVALID, lambda: desk.session(collection, agent="critic"), "memory.plans", "critic")
    desk.environment.deploy(agent="tutor", memories=[NOTES])
    refusal(INVALID, lambda: desk.session(collection), "memory.plans")


def test_environments_are_separate(desk: Desk) -> None:
    refusal(ErrorCode.NOT_FOUND, lambda: desk.production.sessions.create(agent="tutor", memory={}), "not deployed")
    desk.production.deploy(agent="tutor", memories=[NOTES])
    refusal(INVALID, lambda: desk.production.sessions.create(agent="tutor", memory=WRITE), "memory.notes")


def test_an_agent_must_be_named_and_deployed(desk: Desk) -> None:
    refusal(INVALID, lambda: desk.session(agent=None), "agent")
    refusal(INVALID, lambda: desk.session(agent="Tutor"), "'Tutor'")
    refusal(ErrorCode.NOT_FOUND, lambda: desk.session(agent="nobody"), "nobody")


def test_a_session_may_be_pinned_to_a_deployment(desk: Desk) -> None:
    desk.environment.deploy(agent="tutor", memories=[NOTES])
    pinned = desk.session({"plans": {"scope": "collection"}}, agent=None, deployment=desk.deployment.id)
    assert (pinned.agent_id, pinned.deployment.id) == ("tutor", desk.deployment.id)
    refusal(INVALID, lambda: desk.session(deployment=desk.deployment.id), "agent")
    other = desk.production.deploy(agent="tutor", memories=[NOTES])
    refusal(INVALID, lambda: desk.session(agent=None, deployment=other.id), "production")
    for unknown in ("dep_1", "../x", "\ud800", other.id[:-1] + "!"):
        refusal(ErrorCode.NOT_FOUND, lambda id=unknown: desk.session(agent=None, deployment=id))


def test_a_source_is_kept(desk: Desk) -> None:
    session = desk.session(source="import of May")
    assert desk.sessions.get(session.id).inspect().source == "import of May"
    refusal(ErrorCode.MEMORY_LIMIT_EXCEEDED, lambda: desk.session(source="é" * 121), "240")
    refusal(INVALID, lambda: desk.session(source="\ud800"))


# Idempotency keys


def test_the_same_key_and_request_give_the_same_session(desk: Desk) -> None:
    first = desk.session(WRITE | {"plans": {"scope": "collection"}}, idempotency_key="k")
    # Other order, defaults spelled out: the same bindings.
    again = desk.session({"plans": {"scope": "collection", "access": "read"}} | WRITE, idempotency_key="k")
    assert (first.created, again.created) == (True, False)
    assert again.id == first.id


def test_a_key_outlives_a_redeploy_a_deletion_an_end_and_the_process(desk: Desk) -> None:
    first = desk.session(idempotency_key="k")
    desk.environment.deploy(agent="tutor", memories=[PLANS])
    desk.delete()
    first.end()
    assert desk.session(idempotency_key="k").id == first.id
    code = (
        "import sys, gitmem, json\n"
        "env = gitmem.open_store(sys.argv[1]).project('bot').environment()\n"
        "session = env.sessions.create(agent='tutor', memory=json.loads(sys.argv[2]), idempotency_key='k')\n"
        "print(session.id, session.created)\n"
    )
    done = python(code, desk.store.folder, json.dumps(WRITE))
    assert done.stdout.split() == [first.id, "False"], done.stderr


@pytest.mark.parametrize(
    ("request_", "difference"),
    [
        ({"agent": "critic"}, "agent"),
        ({"memory": READ}, "bindings"),
        ({"memory": COLLECTION}, "bindings"),
        ({"memory": {}}, "bindings"),
        ({"memory": WRITE | {"plans": {"scope": "collection"}}}, "bindings"),
    ],
)
def test_the_same_key_for_anything_else_conflicts(desk: Desk, request_: dict[str, Any], difference: str) -> None:
    first = desk.session(idempotency_key="k")
    with pytest.raises(gitmem.ConflictError) as caught:
        desk.session(**({"memory": WRITE, "idempotency_key": "k"} | request_))
    assert caught.value.code is ErrorCode.IDEMPOTENCY_CONFLICT
    assert first.id in caught.value.message
    assert difference in caught.value.message
    assert desk.session(idempotency_key="k").id == first.id


def test_keys_hold_for_the_whole_project_and_no_further(desk: Desk) -> None:
    desk.production.deploy(agent="tutor", memories=[NOTES])
    desk.production.documents("notes").create("workshop", title="Workshop")
    desk.session(idempotency_key="k")
    with pytest.raises(gitmem.ConflictError, match="environment"):
        desk.production.sessions.create(agent="tutor", memory=WRITE, idempotency_key="k")
    other = desk.store.project("other").environment()
    other.deploy(agent="tutor", memories=[NOTES])
    assert other.sessions.create(agent="tutor", memory={}, idempotency_key="k").created


def test_a_pinned_key_needs_the_same_deployment(desk: Desk) -> None:
    newer = desk.environment.deploy(agent="tutor", memories=[NOTES])
    pinned = desk.session(agent=None, deployment=desk.deployment.id, idempotency_key="k")
    assert desk.session(agent=None, deployment=desk.deployment.id, idempotency_key="k").id == pinned.id
    with pytest.raises(gitmem.ConflictError, match="deployment"):
        desk.session(agent=None, deployment=newer.id, idempotency_key="k")
    assert desk.session(idempotency_key="k").id == pinned.id  # the same agent


@pytest.mark.parametrize("key", ["", "a\nb", "a\0b", "\x85", "é" * 513, "\ud800", 7, b"k"])
def test_a_key_is_a_line_of_text(desk: Desk, key: Any) -> None:
    refusal(INVALID, lambda: desk.session(idempotency_key=key))


def test_keys_of_any_text_are_told_apart(desk: Desk) -> None:
    keys = ["k", "K", "k ", "é", "e\u0301", "../k", "k/1", "é" * 512]
    assert len({desk.session(idempotency_key=key).id for key in keys}) == len(keys)
    assert all(not desk.session(idempotency_key=key).created for key in keys)


# Starting on a document


def started(desk: Desk, **options: Any) -> gitmem.Started[gitmem.Session]:
    return desk.sessions.start_on_document(
        **(
            {
                "agent": "tutor",
                "resource": "notes",
                "document_id": "topic",
                "document": {"title": "Topic"},
                "idempotency_key": "topic/1",
            }
            | options
        )
    )


def test_a_session_is_started_on_a_new_document(desk: Desk) -> None:
    first = started(desk, document={"title": "Topic", "text": "One.", "summary": "S", "agentWrites": "enabled"})
    assert (first.document.created, first.session.created) == (True, True)
    assert (first.document.title, first.document.text, first.document.summary) == ("Topic", "One.", "S")
    again = started(desk)
    assert (again.document.created, again.session.created) == (False, False)
    assert (again.document.text, again.session.id) == ("One.", first.session.id)
    (state,) = again.session.inspect().memory
    assert (state.id, state.access, state.writable) == ("topic", "read-write", True)


def test_an_existing_document_is_left_as_it_is(desk: Desk) -> None:
    # What would be created is not even looked at.
    done = started(desk, document_id="workshop", document={"text": "never"})
    assert not done.document.created
    assert done.document.revision == desk.document.revision


def test_a_deleted_id_is_reserved_and_fails_before_any_session(desk: Desk) -> None:
    desk.delete()
    before = desk.records()
    refusal(ErrorCode.NOT_FOUND, lambda: started(desk, document_id="workshop"), "deleted")
    assert desk.records() == before


def test_the_key_of_a_start_is_derived(desk: Desk) -> None:
    by_helper = started(desk, document_id="workshop", idempotency_key="k").session
    assert desk.session(idempotency_key="k").id != by_helper.id
    longest = started(desk, document_id="workshop", idempotency_key="é" * 512).session
    assert started(desk, document_id="workshop", idempotency_key="é" * 512).session.id == longest.id


def test_a_used_key_is_reported_as_reused_and_the_document_stays(desk: Desk) -> None:
    started(desk)
    refusal(ErrorCode.IDEMPOTENCY_KEY_REUSED, lambda: started(desk, document_id="other"))
    assert desk.notes.read("other").title == "Topic"
    refusal(ErrorCode.IDEMPOTENCY_KEY_REUSED, lambda: started(desk, agent="critic"))
    refusal(ErrorCode.IDEMPOTENCY_KEY_REUSED, lambda: started(desk, access="read"))


def test_access_and_further_bindings_are_passed_on(desk: Desk) -> None:
    done = started(desk, access="read", memory={"plans": {"scope": "collection"}}, source="a test")
    assert [(state.resource, state.access) for state in done.session.inspect().memory] == [
        ("notes", "read"),
        ("plans", "read"),
    ]
    assert done.session.inspect().source == "a test"
    refusal(INVALID, lambda: started(desk, memory=COLLECTION), "notes")


@pytest.mark.parametrize(
    "options",
    [
        {"document": {}},
        {"document": {"title": ""}},
        {"document": {"title": "T", "id": "x"}},
        {"document": "T"},
        {"document_id": "a/b"},
        {"access": "write"},
        {"agent": "Tutor"},
        {"idempotency_key": ""},
        {"memory": {"plans": {}}},
    ],
)
def test_a_malformed_start_makes_nothing(desk: Desk, options: dict[str, Any]) -> None:
    before = desk.records()
    refusal(INVALID, lambda: started(desk, **options))
    assert desk.records() == before
    assert [info.id for info in desk.notes.list().documents] == ["workshop"]


# Finding


@pytest.mark.parametrize("session_id", ["", "ses_1", "../x", "\ud800", "ses_" + "0" * 26, "dep_" + "0" * 26, 7])
def test_an_unknown_session_is_not_found(desk: Desk, session_id: Any) -> None:
    refusal(ErrorCode.NOT_FOUND, lambda: desk.sessions.get(session_id))
    refusal(ErrorCode.NOT_FOUND, lambda: desk.project.session(session_id))


def test_a_session_is_found_in_its_own_environment_only(desk: Desk) -> None:
    session = desk.session()
    refusal(ErrorCode.NOT_FOUND, lambda: desk.production.sessions.get(session.id))
    assert desk.project.session(session.id).alias == "development"


def test_nothing_is_found_where_nothing_was_made(store: gitmem.Store) -> None:
    environment = store.project("empty").environment()
    assert list(environment.sessions.list()) == []
    refusal(ErrorCode.NOT_FOUND, lambda: environment.sessions.get("ses_" + "0" * 26))
    refusal(ErrorCode.NOT_FOUND, lambda: environment.sessions.create(agent="tutor"))
    assert not Path(store.folder, "empty").exists()


def ids(sessions: Any) -> list[str]:
    return [session.id for session in sessions]


def test_sessions_are_listed_newest_first_in_pages(tmp_path: Path, clock: ManualClock) -> None:
    settings = gitmem.Settings(clock=clock, durable=False)
    with gitmem.open_store(tmp_path / "store", create=True, settings=settings) as store:
        desk = Desk(store)
        desk.production.deploy(agent="tutor", memories=[NOTES])
        made = []
        for _ in range(101):
            clock.move(1)
            made.append(desk.session({}))
        desk.production.sessions.create(agent="tutor")
        first = desk.sessions.list()
        second = desk.sessions.list(cursor=first.next_cursor)
        third = desk.sessions.list(cursor=second.next_cursor)
        assert [len(page) for page in (first, second, third)] == [50, 50, 1]
        assert third.next_cursor is None
        assert ids([*first, *second, *third]) == ids(desk.sessions) == ids(made[::-1])
        assert first.next_cursor
        for cursor in ("x", first.next_cursor + "x", desk.notes.list().next_cursor or "", "\ud800"):
            refusal(ErrorCode.INVALID_CURSOR, lambda cursor=cursor: desk.sessions.list(cursor=cursor))
        refusal(ErrorCode.INVALID_CURSOR, lambda: desk.production.sessions.list(cursor=first.next_cursor))


def remove_index(desk: Desk) -> None:
    desk.store.close()
    for path in (desk.control / "gitmem").glob("sessions.sqlite*"):
        path.unlink()


def spoil_index(desk: Desk) -> None:
    desk.store.close()
    (desk.control / "gitmem/sessions.sqlite").write_bytes(b"not a database, and longer than its header" * 100)


def hide_index(desk: Desk) -> None:
    desk.store.close()
    (desk.control / "gitmem/sessions.sqlite").unlink()
    (desk.control / "gitmem/sessions.sqlite").mkdir()


@pytest.mark.parametrize("spoil", [remove_index, spoil_index, hide_index])
def test_the_list_needs_no_index(desk: Desk, spoil: Any) -> None:
    made = [desk.session({}) for _ in range(3)]
    made[0].end()
    expected = ids(desk.sessions.list())
    spoil(desk)
    assert ids(desk.sessions.list()) == expected
    newer = desk.session({})
    assert ids(desk.sessions.list()) == [newer.id, *expected]
    assert [session.id for session in desk.sessions.list() if session.ended] == [made[0].id]


def test_the_list_follows_a_control_repository_that_was_set_back(desk: Desk) -> None:
    kept, lost = desk.session({}), desk.session({})
    assert set(ids(desk.sessions.list())) == {kept.id, lost.id}
    git(desk.control, "update-ref", "refs/heads/main", "main~1")
    assert ids(desk.sessions.list()) == [kept.id]
    refusal(ErrorCode.NOT_FOUND, lambda: desk.sessions.get(lost.id))
    refusal(ErrorCode.NOT_FOUND, lost.inspect)


def test_another_process_sees_sessions_at_once(desk: Desk) -> None:
    session = desk.session()
    desk.sessions.list()
    code = (
        "import sys, gitmem\n"
        "sessions = gitmem.open_store(sys.argv[1]).project('bot').environment().sessions\n"
        "print(*(session.id for session in sessions.list()))\n"
        "sessions.get(sys.argv[2]).end()\n"
        "sessions.create(agent='tutor')\n"
    )
    assert python(code, desk.store.folder, session.id).stdout.split() == [session.id]
    assert session.ended
    assert len(desk.sessions.list()) == 2


def test_a_forked_process_starts_sessions_of_its_own(desk: Desk) -> None:
    desk.session({})
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            for _ in range(5):
                desk.session({})
            status = 0
        finally:
            os._exit(status)
    for _ in range(5):
        desk.session({})
    assert os.waitpid(pid, 0)[1] == 0
    assert len(desk.sessions.list()) == 11


# Inspection and end


def writable(session: Session) -> bool:
    (state,) = session.inspect().memory
    return state.writable


def test_writable_is_what_a_save_could_do_now(desk: Desk) -> None:
    session, reader, collection = desk.session(), desk.session(READ), desk.session(COLLECTION)
    assert [writable(each) for each in (session, reader, collection)] == [True, False, False]
    desk.freeze()
    assert not writable(session)
    desk.unfreeze()
    assert writable(session)
    desk.delete()
    assert not writable(session)


def test_end_is_final(desk: Desk) -> None:
    session = desk.session()
    ended = session.end()
    assert (ended.status, session.ended) == ("ended", True)
    assert not writable(session)
    tip = git(desk.control, "rev-parse", "main")
    assert session.end() == ended
    assert git(desk.control, "rev-parse", "main") == tip
    desk.freeze()
    desk.unfreeze()
    assert not writable(session)
    info = desk.sessions.get(session.id).inspect().to_json()
    assert (info["status"], info["endedAt"]) == ("ended", ended.ended_at)


def test_retiring_a_resource_leaves_sessions_as_they_are(desk: Desk) -> None:
    session = desk.session()
    desk.environment.deploy(agent="tutor", memories=[PLANS])
    render = session.render(["notes"])
    assert NOTES.description in render.tools[0].description
    assert save(render, text="Still here.")["status"] == "saved"


@pytest.mark.findings("control")
def test_doctor_names_a_record_that_names_nothing(desk: Desk) -> None:
    session = desk.session({}, idempotency_key="k")
    desk.store.close()
    path = next(path for path in desk.records() if session.id in path)
    index = {"GIT_INDEX_FILE": str(desk.control / "index.test")}
    git(desk.control, "read-tree", "main", env=index)
    git(desk.control, "--work-tree=.", "update-index", "--force-remove", path, env=index)
    tree = git(desk.control, "write-tree", env=index)
    git(desk.control, "update-ref", "refs/heads/main", git(desk.control, "commit-tree", tree, "-p", "main", "-m", "x"))
    Path(index["GIT_INDEX_FILE"]).unlink()


@pytest.mark.findings("objects")
def test_a_damaged_record_is_named_and_the_others_stay(desk: Desk) -> None:
    lost, kept = desk.session({}), desk.session({})
    desk.store.close()
    path = next(path for path in desk.records() if lost.id in path)
    blob = git(desk.control, "rev-parse", f"main:{path}")
    for derived in (desk.control / "gitmem").glob("journal"):
        derived.unlink()
    loose = desk.control / "objects" / blob[:2] / blob[2:]
    loose.chmod(0o644)
    loose.write_bytes(b"")
    refusal(ErrorCode.DAMAGED, lambda: desk.sessions.get(lost.id), blob)
    assert desk.sessions.get(kept.id).inspect().status == "active"
