"""Listing a resource: its order, its pages, its cursors, and clocks that go back."""

from __future__ import annotations

from pathlib import Path

import pytest

import gitmem
from gitmem import Documents, ErrorCode
from tests.workshop import NOTES, ManualClock, filled, listed

# Listing and its cursors


def test_the_newest_update_comes_first(timed: gitmem.Environment, clock: ManualClock) -> None:
    notes = timed.documents("notes")
    made = {}
    for document_id in ("b", "c", "a"):
        made[document_id] = notes.create(document_id, title=document_id)
        clock.move(1)
    assert listed(notes) == ["a", "c", "b"]
    notes.replace("b", text="new", if_match=made["b"].revision)
    assert listed(notes) == ["b", "a", "c"]
    notes.patch("c", title="new", if_match=made["c"].revision)
    assert listed(notes) == ["b", "c", "a"]


def test_a_listing_shows_everything_but_the_text(notes: Documents) -> None:
    made = notes.create("workshop", title="Title", text="text", summary="summary", agent_writes="disabled")
    expected = made.to_json()
    del expected["text"]
    assert notes.list().to_json() == {"documents": [expected], "nextCursor": None}


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (50, [50]), (51, [50, 1]), (100, [50, 50])])
def test_pages_hold_50_documents(notes: Documents, count: int, sizes: list[int]) -> None:
    filled(notes, count)
    found, cursor = [], None
    while True:
        page = notes.list(cursor=cursor)
        found.append(len(page.documents))
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == sizes


def test_saves_of_one_millisecond_are_paged_by_id_without_skip_or_repeat(timed: gitmem.Environment) -> None:
    notes = timed.documents("notes")
    ids = sorted(f"{letter}{number}" for letter in "Za_-" for number in range(30))
    for document_id in reversed(ids):
        notes.create(document_id, title=document_id)
    assert len({entry.updated_at for entry in notes.list().documents}) == 1
    assert listed(notes) == ids


def test_what_changes_between_pages_moves_to_the_front(timed: gitmem.Environment, clock: ManualClock) -> None:
    notes = timed.documents("notes")
    made = filled(notes, 60)
    clock.move(1)
    first = notes.list()
    assert first.next_cursor
    notes.replace("d055", text="new", if_match=made[55].revision)
    notes.delete("d056", if_match=made[56].revision)
    rest = notes.list(cursor=first.next_cursor)
    assert [entry.id for entry in rest.documents] == [f"d{n:03}" for n in range(50, 60) if n not in (55, 56)]


def test_a_cursor_outlives_its_handle(tmp_path: Path) -> None:
    with gitmem.open_store(tmp_path / "s", create=True) as store:
        environment = store.project("bot").environment()
        environment.deploy(agent="tutor", memories=[NOTES])
        filled(environment.documents("notes"), 51)
        cursor = environment.documents("notes").list().next_cursor
    with gitmem.open_store(tmp_path / "s") as store:
        rest = store.project("bot").environment().documents("notes").list(cursor=cursor)
    assert len(rest.documents) == 1


def refused_cursor(notes: Documents, cursor: str) -> None:
    with pytest.raises(gitmem.InvalidCursorError) as raised:
        notes.list(cursor=cursor)
    assert raised.value.code == ErrorCode.INVALID_CURSOR


def test_a_listing_can_be_narrowed_by_id_or_title_in_any_case(environment: gitmem.Environment) -> None:
    notes = environment.documents("notes")
    for number in range(60):
        notes.create(f"topic-{number}", title="ÉTUDE of it" if number % 30 == 7 else f"100%_{number}")
    assert [found.id for found in notes.list(matching="étude").documents] == ["topic-37", "topic-7"]
    assert [found.id for found in notes.list(matching="PIC-59").documents] == ["topic-59"]
    assert notes.list(matching="%").documents[0].id == "topic-59"
    assert notes.list(matching="_5").next_cursor is None
    assert len(notes.list(matching="_5").documents) == 11
    assert notes.list(matching="nothing of it").documents == ()
    first = notes.list(matching="topic")
    second = notes.list(matching="topic", cursor=first.next_cursor)
    assert (len(first.documents), len(second.documents), second.next_cursor) == (50, 10, None)
    refused_cursor(notes, str(first.next_cursor))
    # An index made anew knows no titles until they are read.
    environment.close()
    Path(environment.folder, ".git", "gitmem", "index.sqlite").unlink()
    assert [found.id for found in notes.list(matching="étude").documents] == ["topic-37", "topic-7"]


def test_damaged_cursors_are_refused(notes: Documents) -> None:
    filled(notes, 51)
    cursor = notes.list().next_cursor
    assert cursor
    for at in range(len(cursor)):
        refused_cursor(notes, cursor[:at])
        refused_cursor(notes, cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :])
    for other in ("", "x", "é", cursor + "A", cursor + "=", cursor + "\n", " " + cursor, "\udc80", "A" * 10_000):
        refused_cursor(notes, other)


def test_a_cursor_belongs_to_one_listing(
    notes: Documents, environment: gitmem.Environment, store: gitmem.Store
) -> None:
    filled(notes, 51)
    cursor = notes.list().next_cursor
    assert cursor
    drafts = gitmem.define_memory(id="drafts", description="Drafts.")
    environment.deploy(agent="tutor", memories=[NOTES, drafts])
    refused_cursor(environment.documents("drafts"), cursor)
    for project, name in (("bot", "production"), ("rob", "development")):
        other = store.project(project).environment(name)
        other.deploy(agent="tutor", memories=[NOTES])
        refused_cursor(other.documents("notes"), cursor)
    with pytest.raises(gitmem.InvalidCursorError):
        notes.history("d000", cursor=cursor)


def test_cursors_of_long_names_are_not_mixed_up(store: gitmem.Store) -> None:
    names = ["a" * 127 + last for last in "bc"]
    memories = [gitmem.define_memory(id=name, description="Long.") for name in names]
    places = [
        store.project(project).environment(name)
        for project, name in ((names[0], "development"), (names[0], "production"), ("b" + names[0][1:], "development"))
    ]
    for place in places:
        place.deploy(agent="tutor", memories=memories)
    filled(places[0].documents(names[0]), 51)
    cursor = places[0].documents(names[0]).list().next_cursor
    assert cursor
    refused_cursor(places[0].documents(names[1]), cursor)
    refused_cursor(places[1].documents(names[0]), cursor)
    refused_cursor(places[2].documents(names[0]), cursor)


def test_a_history_cursor_belongs_to_one_document(notes: Documents) -> None:
    long = "d" * 127
    for document_id in (long + "1", long + "2"):
        made = notes.create(document_id, title="Title")
        for number in range(50):
            made = notes.replace(document_id, text=str(number), if_match=made.revision)
    cursor = notes.history(long + "1").next_cursor
    assert cursor
    assert len(notes.history(long + "1", cursor=cursor).versions) == 1
    with pytest.raises(gitmem.InvalidCursorError):
        notes.history(long + "2", cursor=cursor)
    with pytest.raises(gitmem.InvalidCursorError):
        notes.list(cursor=cursor)


# Time


def test_a_clock_that_goes_back_a_little_does_not_reorder(timed: gitmem.Environment, clock: ManualClock) -> None:
    notes = timed.documents("notes")
    for document_id in ("a", "b", "c"):
        notes.create(document_id, title=document_id)
        clock.move(-1000)
    clock.move(4000)
    notes.create("d", title="d")
    assert listed(notes) == ["d", "a", "b", "c"]
    times = [entry.updated_at for entry in notes.list().documents]
    assert times == ["2026-09-10T12:00:01.000Z"] + ["2026-09-10T12:00:00.000Z"] * 3


def test_paging_skips_and_repeats_nothing_over_a_clock_that_was_put_right(
    timed: gitmem.Environment, clock: ManualClock
) -> None:
    notes = timed.documents("notes")
    clock.move(10 * 365 * 24 * 3600 * 1000)
    filled(notes, 60)
    clock.move(-10 * 365 * 24 * 3600 * 1000)
    for number in range(60, 120):
        notes.create(f"d{number:03}", title=str(number))
        clock.move(1)
    ids = listed(notes)
    assert ids == [f"d{number:03}" for number in [*range(60), *range(119, 59, -1)]]
    assert notes.read("d119").updated_at == "2026-09-10T12:00:00.059Z"
    (Path(timed.folder) / ".git/gitmem/index.sqlite").unlink()
    assert listed(notes) == ids
