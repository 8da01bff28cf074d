"""Merging documents: what both sides wrote is there, or it is a conflict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.codec import Content
from gitmem.merging import merge_documents, merge_lines

BASE = Content("Title", "Summary", "enabled", "1\n2\n3\n4\n5")


def with_(**fields: str) -> Content:
    return Content(**({"title": "Title", "summary": "Summary", "agent_writes": "enabled", "text": BASE.text} | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        ("1!\n2\n3\n4\n5", "1\n2\n3\n4\n5!", "1!\n2\n3\n4\n5!"),
        ("0\n1\n2\n3\n4\n5", "1\n2\n3\n4\n5\n6", "0\n1\n2\n3\n4\n5\n6"),
        ("1\n3\n4\n5", "1\n2\n3\n4\n5\n6", "1\n3\n4\n5\n6"),
        ("1\n2\nx\n4\n5", "1\n2\nx\n4\n5", "1\n2\nx\n4\n5"),
        ("1\n2\nx\n4\n5", "1\n2\ny\n4\n5", None),
        ("1\n2\nx\n4\n5", "1\n2\n4\n5", None),
        ("1\n2!\n3\n4\n5", "1\n2\n3!\n4\n5", None),
        ("1\n2\n3\n4\n5\nours", "1\n2\n3\n4\n5\ntheirs", None),
        ("", "1\n2\n3\n4\n5!", None),
    ],
)
def test_text_merges_by_lines(ours: str, theirs: str, merged: str | None) -> None:
    for left, right in ((ours, theirs), (theirs, ours)):
        found = merge_documents(BASE, with_(text=left), with_(text=right))
        assert (found.text if found else None) == merged


def test_fields_merge_each_for_itself() -> None:
    ours, theirs = with_(title="New", text="1!\n2\n3\n4\n5"), with_(summary="Newer", agent_writes="disabled")
    assert merge_documents(BASE, ours, theirs) == Content("New", "Newer", "disabled", "1!\n2\n3\n4\n5")
    assert merge_documents(BASE, with_(title="a"), with_(title="b")) is None
    assert merge_documents(BASE, with_(title="a"), with_(title="a", summary="s")) == with_(title="a", summary="s")


def test_an_id_taken_twice_merges_only_where_it_is_the_same() -> None:
    assert merge_documents(None, BASE, BASE) == BASE
    assert merge_documents(None, BASE, with_(title="Other")) is None


_LINES = st.lists(st.sampled_from("abc"), max_size=8)
_PLACES = st.sets(st.integers(0, 11), max_size=4)


@given(_LINES, _LINES, _LINES)
def test_the_sides_are_equal_and_what_one_left_alone_is_the_others(
    base: list[str], ours: list[str], theirs: list[str]
) -> None:
    assert merge_lines(base, ours, theirs) == merge_lines(base, theirs, ours)
    assert merge_lines(base, ours, base) == ours
    assert merge_lines(base, ours, ours) == ours


@given(_PLACES, _PLACES)
def test_changes_that_do_not_touch_are_all_there_and_others_are_a_conflict(ours: set[int], theirs: set[int]) -> None:
    base = [f"line {number}" for number in range(12)]
    mine = [f"ours {number}" if number in ours else line for number, line in enumerate(base)]
    other = [f"theirs {number}" if number in theirs else line for number, line in enumerate(base)]
    merged = merge_lines(base, mine, other)
    if any(abs(left - right) <= 1 for left in ours for right in theirs):
        assert merged is None
    else:
        assert merged == [f"theirs {number}" if number in theirs else line for number, line in enumerate(mine)]


def test_a_repetitive_text_ends_soon() -> None:
    """Sixteen thousand empty lines would be a quarter of a billion pairs."""
    base = [""] * 16_000
    assert merge_lines(base, ["x", *base], [*base, "y"]) == ["x", *base, "y"]
    assert merge_lines(base, ["x", *base[::2], "y"], base) == ["x", *base[::2], "y"]
