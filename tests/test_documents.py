"""The documents of a resource, operation by operation, as seed 000 promises them."""

from __future__ import annotations

from pathlib import Path

import pytest

import gitmem
from gitmem import Documents, ErrorCode
from tests.support import git
from tests.workshop import Calls, limited, listed, operations, tip

# Create


def test_create_gives_the_document_that_read_gives(timed: gitmem.Environment) -> None:
    notes = timed.documents("notes")
    made = notes.create("workshop", title="Workshop notes", text="Node.js 22: é", summary="Runtime.")
    assert made == notes.read("workshop")
    assert made.to_json() == {
        "id": "workshop",
        "title": "Workshop notes",
        "text": "Node.js 22: é",
        "summary": "Runtime.",
        "agentWrites": "enabled",
        "revision": tip(timed),
        "bytes": 14,
        "maxBytes": 8192,
        "updatedAt": "2026-09-10T12:00:00.000Z",
        "writer": {"kind": "owner"},
    }


def test_create_needs_only_a_title(notes: Documents) -> None:
    made = notes.create("workshop", title="Workshop")
    assert (made.text, made.summary, made.agent_writes, made.bytes) == ("", "", "enabled", 0)


def test_create_can_freeze(notes: Documents) -> None:
    assert notes.create("workshop", title="Workshop", agent_writes="disabled").agent_writes == "disabled"


def test_an_id_is_created_once(notes: Documents, environment: gitmem.Environment) -> None:
    first = notes.create("workshop", title="First")
    before = tip(environment)
    with pytest.raises(gitmem.PreconditionFailedError) as raised:
        notes.create("workshop", title="Second")
    assert raised.value.code == ErrorCode.PRECONDITION_FAILED
    assert raised.value.actual == first.revision
    assert (notes.read("workshop"), tip(environment)) == (first, before)


@pytest.mark.parametrize("document_id", ["a", "Z9", "-rf", "--output", "_", "a" * 128])
def test_ids_within_the_grammar_work(notes: Documents, document_id: str) -> None:
    made = notes.create(document_id, title="Title")
    assert notes.read(document_id) == made
    assert listed(notes) == [document_id]


@pytest.mark.parametrize(
    "document_id",
    ["", "a" * 129, ".", "..", ".git", "a/b", "../a", "a.b", "a b", "a\n", "a\0", "é", "\udc80", "٣", "/a", "a\\b"],
)
def test_ids_outside_the_grammar_are_refused_everywhere(
    notes: Documents, environment: gitmem.Environment, document_id: str
) -> None:
    before = tip(environment)
    calls: Calls = [
        lambda: notes.read(document_id),
        lambda: notes.history(document_id),
        lambda: notes.diff(document_id),
        lambda: notes.create(document_id, title="Title"),
        lambda: notes.replace(document_id, text="", if_match=before),
        lambda: notes.patch(document_id, title="Title", if_match=before),
        lambda: notes.restore(document_id, before, if_match=before),
        lambda: notes.delete(document_id, if_match=before),
    ]
    for call in calls:
        with pytest.raises(gitmem.InvalidRequestError) as raised:
            call()
        assert raised.value.code == ErrorCode.INVALID_REQUEST
        assert "\n" not in raised.value.message
    assert tip(environment) == before


def test_ids_that_differ_in_case_are_two_documents(notes: Documents) -> None:
    notes.create("workshop", title="Small")
    notes.create("Workshop", title="Large")
    assert (notes.read("workshop").title, notes.read("Workshop").title) == ("Small", "Large")


def test_a_resource_must_be_declared(environment: gitmem.Environment) -> None:
    drafts = environment.documents("drafts")
    before = tip(environment)
    calls: Calls = [
        lambda: drafts.list(),
        lambda: drafts.read("a"),
        lambda: drafts.history("a"),
        lambda: drafts.create("a", title="Title"),
        lambda: drafts.replace("a", text="", if_match=before),
        lambda: drafts.patch("a", title="Title", if_match=before),
        lambda: drafts.restore("a", before, if_match=before),
        lambda: drafts.delete("a", if_match=before),
    ]
    for call in calls:
        with pytest.raises(gitmem.NotFoundError) as raised:
            call()
        assert raised.value.code == ErrorCode.NOT_FOUND
    assert tip(environment) == before


def test_an_environment_that_was_never_written_has_nothing(store: gitmem.Store) -> None:
    production = store.project("bot").environment("production")
    with pytest.raises(gitmem.NotFoundError):
        production.documents("notes").read("a")
    assert not Path(production.folder).exists()


# Replace


def test_replace_keeps_an_omitted_summary_and_clears_an_empty_one(notes: Documents) -> None:
    made = notes.create("workshop", title="Title", text="one", summary="Kept")
    kept = notes.replace("workshop", text="two", if_match=made.revision)
    assert (kept.text, kept.summary, kept.title) == ("two", "Kept", "Title")
    assert notes.replace("workshop", text="two", summary="", if_match=kept.revision).summary == ""


def test_a_replace_that_changes_nothing_makes_no_commit(notes: Documents, environment: gitmem.Environment) -> None:
    made = notes.create("workshop", title="Title", text="one", summary="Kept")
    before = tip(environment)
    assert notes.replace("workshop", text="one", if_match=made.revision) == made
    assert notes.replace("workshop", text="one", summary="Kept", if_match=made.revision) == made
    assert tip(environment) == before


def test_a_replace_by_an_agent_names_its_session(notes: Documents, environment: gitmem.Environment) -> None:
    made = notes.create("workshop", title="Title")
    agent = gitmem.Writer(kind="agent", session_id="ses_1")
    saved = notes.replace("workshop", text="one", if_match=made.revision, writer=agent)
    assert saved.writer.to_json() == {"kind": "agent", "sessionId": "ses_1"}
    assert notes.read("workshop").writer == notes.list().documents[0].writer == agent
    assert [version.writer for version in notes.history("workshop").versions] == [agent, gitmem.Writer()]
    assert git(environment.folder, "log", "-1", "--format=%an <%ae>") == "agent <ses_1@agent.localhost>"


def test_a_stale_replace_is_refused_with_both_revisions(notes: Documents, environment: gitmem.Environment) -> None:
    first = notes.create("workshop", title="Title", text="one")
    second = notes.replace("workshop", text="two", if_match=first.revision)
    before = tip(environment)
    for text in ("three", "two"):
        with pytest.raises(gitmem.PreconditionFailedError) as raised:
            notes.replace("workshop", text=text, if_match=first.revision)
        assert (raised.value.expected, raised.value.actual) == (first.revision, second.revision)
    assert (notes.read("workshop"), tip(environment)) == (second, before)


@pytest.mark.parametrize(
    "spoil", [lambda r: r[:12], lambda r: r.upper(), lambda r: f'"{r}"', lambda r: "", lambda r: "*"]
)
def test_only_the_whole_revision_matches(notes: Documents, spoil: object) -> None:
    assert callable(spoil)
    made = notes.create("workshop", title="Title é")
    wrong = spoil(made.revision)
    if wrong == made.revision:
        wrong = "A" * 40
    calls: Calls = [
        lambda: notes.replace("workshop", text="new", if_match=wrong),
        lambda: notes.patch("workshop", title="New", if_match=wrong),
        lambda: notes.restore("workshop", made.revision, if_match=wrong),
        lambda: notes.delete("workshop", if_match=wrong),
    ]
    for call in calls:
        with pytest.raises(gitmem.PreconditionFailedError):
            call()
    assert notes.read("workshop") == made


def test_every_mutation_needs_a_revision(notes: Documents) -> None:
    made = notes.create("workshop", title="Title")
    calls: Calls = [
        lambda: notes.replace("workshop", text="new", if_match=None),  # type: ignore[arg-type]
        lambda: notes.patch("workshop", title="New", if_match=None),  # type: ignore[arg-type]
        lambda: notes.restore("workshop", made.revision, if_match=None),  # type: ignore[arg-type]
        lambda: notes.delete("workshop", if_match=None),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(gitmem.PreconditionRequiredError) as raised:
            call()
        assert raised.value.code == ErrorCode.PRECONDITION_REQUIRED
    assert notes.read("workshop") == made


def test_mutations_of_a_document_that_never_was(notes: Documents, environment: gitmem.Environment) -> None:
    before = tip(environment)
    calls: Calls = [
        lambda: notes.read("nothing"),
        lambda: notes.history("nothing"),
        lambda: notes.diff("nothing"),
        lambda: notes.replace("nothing", text="new", if_match=before),
        lambda: notes.patch("nothing", title="New", if_match=before),
        lambda: notes.restore("nothing", before, if_match=before),
        lambda: notes.delete("nothing", if_match=before),
    ]
    for call in calls:
        with pytest.raises(gitmem.NotFoundError):
            call()
    assert tip(environment) == before


# Patch


def test_patch_changes_title_and_policy_and_nothing_else(notes: Documents) -> None:
    made = notes.create("workshop", title="Title", text="one", summary="Kept")
    retitled = notes.patch("workshop", title="New", if_match=made.revision)
    frozen = notes.patch("workshop", agent_writes="disabled", if_match=retitled.revision)
    both = notes.patch("workshop", title="Both", agent_writes="enabled", if_match=frozen.revision)
    frozen_again = notes.patch("workshop", agent_writes="disabled", if_match=both.revision)
    thawed = notes.patch("workshop", agent_writes="enabled", if_match=frozen_again.revision)
    assert (retitled.title, frozen.agent_writes, both.title, both.agent_writes) == (
        "New",
        "disabled",
        "Both",
        "enabled",
    )
    assert (thawed.text, thawed.summary) == ("one", "Kept")
    assert operations(notes, "workshop") == ["unfreeze", "freeze", "patch", "freeze", "retitle", "create"]


def test_a_patch_that_changes_nothing_makes_no_commit(notes: Documents, environment: gitmem.Environment) -> None:
    made = notes.create("workshop", title="Title")
    before = tip(environment)
    assert notes.patch("workshop", title="Title", agent_writes="enabled", if_match=made.revision) == made
    assert tip(environment) == before


def test_a_patch_must_ask_for_something_that_exists(notes: Documents) -> None:
    made = notes.create("workshop", title="Title")
    with pytest.raises(gitmem.InvalidRequestError):
        notes.patch("workshop", if_match=made.revision)
    with pytest.raises(gitmem.InvalidRequestError):
        notes.patch("workshop", agent_writes="off", if_match=made.revision)  # type: ignore[arg-type]
    assert notes.read("workshop") == made


def test_a_frozen_document_takes_owner_edits(notes: Documents) -> None:
    made = notes.create("workshop", title="Title", agent_writes="disabled")
    assert notes.replace("workshop", text="new", if_match=made.revision).agent_writes == "disabled"


# Delete


def test_a_deleted_id_is_reserved_for_ever(notes: Documents, environment: gitmem.Environment) -> None:
    made = notes.create("topic", title="Secret title", text="secret text", summary="secret summary")
    notes.delete("topic", if_match=made.revision)
    deleted = tip(environment)
    with pytest.raises(gitmem.PreconditionFailedError) as raised:
        notes.create("topic", title="Again")
    assert raised.value.actual is None
    calls: Calls = [
        lambda: notes.read("topic"),
        lambda: notes.read("topic", at=deleted),
        lambda: notes.replace("topic", text="new", if_match=deleted),
        lambda: notes.patch("topic", title="New", if_match=deleted),
        lambda: notes.restore("topic", made.revision, if_match=deleted),
        lambda: notes.delete("topic", if_match=deleted),
    ]
    for call in calls:
        with pytest.raises(gitmem.NotFoundError):
            call()
    assert listed(notes) == []
    assert environment.inventory()[0].documents == 0
    assert tip(environment) == deleted
    assert git(environment.folder, "show", "main:notes/topic.json") == '{"deleted": true}'
    assert (Path(environment.folder) / "notes/topic.json").read_bytes() == b'{"deleted": true}\n'


def test_a_deleted_document_keeps_its_history(notes: Documents, environment: gitmem.Environment) -> None:
    made = notes.create("topic", title="Title", text="one")
    notes.delete("topic", if_match=made.revision)
    versions = notes.history("topic").versions
    assert [(v.operation, v.title, v.bytes, v.revision) for v in versions] == [
        ("delete", "", 0, tip(environment)),
        ("create", "Title", 3, made.revision),
    ]
    assert notes.read("topic", at=made.revision) == made


def test_a_stale_delete_is_refused(notes: Documents) -> None:
    first = notes.create("topic", title="Title")
    second = notes.replace("topic", text="new", if_match=first.revision)
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.delete("topic", if_match=first.revision)
    assert notes.read("topic") == second


# Restore


def test_restore_brings_back_text_title_and_summary_but_not_the_policy(notes: Documents) -> None:
    first = notes.create("workshop", title="First", text="one", summary="1")
    second = notes.patch("workshop", title="Second", agent_writes="disabled", if_match=first.revision)
    third = notes.replace("workshop", text="three", summary="3", if_match=second.revision)
    restored = notes.restore("workshop", first.revision, if_match=third.revision)
    assert (restored.title, restored.text, restored.summary) == ("First", "one", "1")
    assert restored.agent_writes == "disabled"
    assert restored.revision not in {first.revision, second.revision, third.revision}
    assert operations(notes, "workshop") == ["restore", "replace", "patch", "create"]


def test_restoring_what_is_there_makes_no_commit(notes: Documents, environment: gitmem.Environment) -> None:
    first = notes.create("workshop", title="Title", text="one")
    second = notes.patch("workshop", agent_writes="disabled", if_match=first.revision)
    before = tip(environment)
    assert notes.restore("workshop", first.revision, if_match=second.revision) == second
    assert tip(environment) == before


def test_restore_takes_an_abbreviated_revision(notes: Documents) -> None:
    first = notes.create("workshop", title="Title", text="one")
    second = notes.replace("workshop", text="two", if_match=first.revision)
    assert notes.restore("workshop", first.revision[:7], if_match=second.revision).text == "one"


def test_a_restored_text_must_fit_todays_limit(environment: gitmem.Environment) -> None:
    notes = limited(environment, 100)
    first = notes.create("workshop", title="Title", text="a" * 100)
    second = notes.replace("workshop", text="a", if_match=first.revision)
    notes = limited(environment, 99)
    with pytest.raises(gitmem.LimitExceededError) as raised:
        notes.restore("workshop", first.revision, if_match=second.revision)
    assert (raised.value.field, raised.value.bytes, raised.value.max_bytes) == ("text", 100, 99)
    assert notes.read("workshop").revision == second.revision


def test_restore_needs_a_revision_of_that_document(notes: Documents) -> None:
    made = notes.create("workshop", title="Title")
    other = notes.create("other", title="Other")
    for revision in (other.revision, "0" * 40):
        with pytest.raises(gitmem.NotFoundError):
            notes.restore("workshop", revision, if_match=made.revision)
    assert notes.read("workshop") == made


def test_a_stale_restore_is_refused(notes: Documents) -> None:
    first = notes.create("workshop", title="Title", text="one")
    second = notes.replace("workshop", text="two", if_match=first.revision)
    with pytest.raises(gitmem.PreconditionFailedError):
        notes.restore("workshop", first.revision, if_match=first.revision)
    assert notes.read("workshop") == second
