"""What a render shows of bound memory, and what keeps it from running."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem import ErrorCode, MemoryView, Render
from tests.agents import COLLECTION, NOTES, PLANS, READ, WRITE, Desk, refusal, save
from tests.support import git
from tests.workshop import ManualClock

BOTH = WRITE | {"plans": {"scope": "collection"}}


def view(desk: Desk, memory: dict[str, Any], resource: str = "notes") -> MemoryView:
    return desk.session(memory).render().use_memory(resource)


# Documents


def test_a_document_is_shown_whole_with_its_source(desk: Desk) -> None:
    shown = view(desk, WRITE)
    assert shown.to_json() == {
        "text": "Node.js 20.",
        "sources": [
            {
                "id": "workshop",
                "title": "Workshop notes",
                "revision": desk.document.revision,
                "updatedAt": desk.document.updated_at,
            }
        ],
        "writable": True,
    }


def test_an_empty_document_still_has_a_source(desk: Desk) -> None:
    desk.own_edit("")
    shown = view(desk, WRITE)
    assert (shown.text, [source.id for source in shown.sources]) == ("", ["workshop"])


def test_texts_are_shown_exactly(desk: Desk) -> None:
    text = "one\r\ntwo | three\u2028\t\x00 \ufeff\n"
    desk.own_edit(text)
    assert view(desk, WRITE).text == text


def test_writable_is_the_permission_at_recall(desk: Desk) -> None:
    session = desk.session(WRITE)
    assert not view(desk, READ).writable
    assert session.render().use_memory("notes").writable
    desk.freeze()
    before = session.render()
    assert not before.use_memory("notes").writable
    desk.unfreeze()
    # It reserves nothing and takes nothing away: the tool was there all along, and works now.
    assert [tool.name for tool in before.tools] == ["memory_save"]
    assert save(before, text="x") == {"status": "conflict", "text": "Node.js 20.", "summary": "Runtime."}
    assert save(session.render(["notes"]), text="x")["status"] == "saved"


def test_a_render_stays_as_it_is_and_the_next_one_reads_anew(desk: Desk) -> None:
    session = desk.session(WRITE)
    render = session.render()
    desk.own_edit("Node.js 22.")
    assert render.use_memory("notes").text == "Node.js 20."
    assert session.render().use_memory("notes").text == "Node.js 22."


def test_the_definition_selects_as_its_id_does(desk: Desk) -> None:
    render = desk.session(BOTH).render()
    assert render.use_memory(NOTES) == render.use_memory("notes")
    assert list(render.selected) == ["notes"]
    render.use_memory(PLANS)
    assert list(desk.session(BOTH).render([NOTES, "plans"]).selected) == list(render.selected)


# What blocks a render


@pytest.mark.parametrize("memory", ["other", "", "\ud800", None, 7, ["notes"], gitmem.define_memory(
    id="other", description="Not bound.")])  # fmt: skip
def test_an_unbound_hook_fails(desk: Desk, memory: Any) -> None:
    session = desk.session(WRITE)
    refusal(ErrorCode.INVALID_REQUEST, lambda: session.render().use_memory(memory), "does not bind", "notes")
    refusal(ErrorCode.INVALID_REQUEST, lambda: session.render([memory]), "does not bind")


def test_a_deleted_document_blocks_the_render_though_it_would_select_something_else(desk: Desk) -> None:
    session = desk.session(BOTH)
    desk.delete()
    refusal(ErrorCode.NOT_FOUND, lambda: session.render(["plans"]), "notes/workshop")


def test_an_ended_session_recalls_nothing(desk: Desk) -> None:
    session = desk.session(COLLECTION)
    session.end()
    refusal(ErrorCode.SESSION_CLOSED, session.render, session.id)


def test_damage_blocks_the_render_and_is_named(desk: Desk) -> None:
    other = desk.notes.create("other", title="Other", text="fine")
    session, beside = desk.session(WRITE), desk.session({"notes": {"scope": "document", "id": other.id}})
    desk.store.close()
    repository = Path(desk.environment.folder)
    blob = git(repository, "rev-parse", "main:notes/workshop.json")
    loose = repository / ".git/objects" / blob[:2] / blob[2:]
    stored = loose.read_bytes()
    loose.chmod(0o644)
    loose.write_bytes(b"")
    # Nor can it be mended from the journal or from the working tree.
    (repository / ".git/gitmem/journal").unlink()
    (repository / "notes/workshop.json").unlink()
    refusal(ErrorCode.DAMAGED, session.render, blob)
    assert beside.render().use_memory("notes").text == "fine"
    loose.write_bytes(stored)
    git(repository, "checkout", "notes/workshop.json")
    assert session.render().use_memory("notes").text == "Node.js 20."


# Collections


def line(document: gitmem.Document | gitmem.DocumentInfo, title: str, summary: str) -> str:
    return f"{document.id} | {title} | {summary} | {document.updated_at[:10]}"


def test_an_overview_has_one_line_a_document_newest_first(timed: gitmem.Environment, clock: ManualClock) -> None:
    notes = timed.documents("notes")
    notes.create("workshop", title="Workshop notes", summary="Node.js 22.", text="never shown")
    clock.move(24 * 3600 * 1000)
    notes.create("topic", title="Topic")
    gone = notes.create("gone", title="Gone")
    notes.delete("gone", if_match=gone.revision)
    shown = timed.sessions.create(agent="tutor", memory=COLLECTION).render().use_memory("notes")
    assert shown.text == "topic | Topic |  | 2026-09-11\nworkshop | Workshop notes | Node.js 22. | 2026-09-10"
    assert [(source.id, source.title) for source in shown.sources] == [
        ("topic", "Topic"),
        ("workshop", "Workshop notes"),
    ]
    assert [source.revision for source in shown.sources] == [notes.read(id).revision for id in ("topic", "workshop")]
    assert not shown.writable


def test_the_overview_of_nothing_is_empty(desk: Desk) -> None:
    shown = view(desk, BOTH, "plans")
    assert (shown.text, shown.sources, shown.writable) == ("", (), False)


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("a\nworkshop | forged | x | 2026-01-01", "a workshop ¦ forged ¦ x ¦ 2026-01-01"),
        ("a\r\n\t b", "a b"),
        ("a\x00\x1b[2Jb\x7f\x85c", "a [2Jb c"),
        ("a\u2028b\u2029c\u00a0d\u3000e", "a b c d e"),
        (" a ", " a "),
        ("||", "¦¦"),
    ],
)
def test_separators_in_a_field_are_harmless(desk: Desk, title: str, shown: str) -> None:
    document = desk.plans.create("p", title=title, summary=title)
    overview = view(desk, BOTH, "plans")
    assert overview.text == line(document, shown, shown)
    assert overview.sources[0].title == title


def test_an_overview_has_at_most_fifty_entries(desk: Desk) -> None:
    made = [desk.plans.create(f"p{number}", title="T") for number in range(51)]
    shown = view(desk, BOTH, "plans")
    assert len(shown.text.splitlines()) == len(shown.sources) == 50
    assert made[0].id not in {source.id for source in shown.sources}


def test_an_overview_has_whole_entries_within_16_kib(desk: Desk) -> None:
    # "|" takes one byte in a title and two once it is made harmless.
    for number in range(25):
        desk.plans.create(f"p{number:02}", title="|" * 240, summary="é" * 120)
    shown = view(desk, BOTH, "plans")
    lines = shown.text.split("\n")
    (size,) = {len(each.encode()) for each in lines}
    assert len(shown.text.encode()) <= 16 * 1024 < len(shown.text.encode()) + 1 + size
    assert len(shown.sources) == len(lines)


def test_an_overview_may_fill_16_kib_to_the_byte(desk: Desk) -> None:
    fixed = len("p00 |  |  | 2026-01-01") + len("¦".encode()) * 240
    for number, length in enumerate([681] * 23 + [16 * 1024 - 23 * 682]):
        desk.plans.create(f"p{number:02}", title="|" * 240, summary="x" * (length - fixed))
    shown = view(desk, BOTH, "plans")
    assert (len(shown.sources), len(shown.text.encode())) == (24, 16 * 1024)
    newest = desk.plans.read("p23")
    desk.plans.replace("p23", text="", summary=newest.summary + "x", if_match=newest.revision)
    assert len(view(desk, BOTH, "plans").sources) == 23


def test_views_hold_only_what_was_bound(desk: Desk) -> None:
    desk.notes.create("secret", title="Secret", text="hidden")
    render: Render = desk.session(BOTH).render(["notes", "plans"])
    assert "hidden" not in str({resource: shown.to_json() for resource, shown in render.selected.items()})
