"""The same targets with hypothesis: inputs that look like the real thing, and any others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmem import codec, cursor
from gitmem.codec import Content
from gitmem.errors import GitmemError, InvalidCursorError, InvalidDocumentError
from gitmem.git.commits import Person, own_write, parse, render
from gitmem.git.objects import object_id
from gitmem.http import conditions
from gitmem.ids import is_id, new_id
from gitmem.records import Writer
from tests.fuzz.targets import SEEDS, TARGETS, check_one_line

ANY_TEXT = st.text(st.characters(codec="utf-8"))
CONTENT = st.builds(
    Content, ANY_TEXT.filter(bool), ANY_TEXT, st.sampled_from(["enabled", "disabled"]), ANY_TEXT
)  # fmt: skip
FIELDS = st.sampled_from(["title", "summary", "agentWrites", "text", "deleted", "other"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["enabled", "disabled"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
ALMOST_DOCUMENTS = st.dictionaries(FIELDS, VALUES, max_size=5).map(json.dumps).map(str.encode)


@pytest.mark.parametrize("target", TARGETS)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_bytes_and_spoilt_examples(target: str, data: st.DataObject) -> None:
    example = data.draw(st.sampled_from(SEEDS[target]))
    at = data.draw(st.integers(0, len(example)))
    until = data.draw(st.integers(at, len(example)))
    TARGETS[target](example[:at] + data.draw(st.binary(max_size=40)) + example[until:])


@pytest.mark.parametrize("target", TARGETS)
def test_the_examples_themselves_and_nothing_at_all(target: str) -> None:
    for example in (*SEEDS[target], b""):
        TARGETS[target](example)


# Documents


@given(CONTENT)
def test_what_is_written_is_read_again(content: Content) -> None:
    assert codec.decode(codec.encode(content), "id") == content


@given(ALMOST_DOCUMENTS)
@settings(max_examples=300)
def test_anything_like_a_document(data: bytes) -> None:
    TARGETS["document"](data)


@given(CONTENT, CONTENT)
def test_documents_that_differ_have_bytes_that_differ(one: Content, other: Content) -> None:
    assert (codec.encode(one) == codec.encode(other)) == (one == other)


@given(CONTENT, st.integers(0), st.sampled_from([b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xef\xbb\xbf"]))
def test_what_is_not_utf8_or_begins_with_a_mark_is_refused(content: Content, at: int, bad: bytes) -> None:
    data = codec.encode(content)
    with pytest.raises(InvalidDocumentError):
        codec.decode((b"" if bad == b"\xef\xbb\xbf" else data[: at % len(data)]) + bad + data[at % len(data) :], "id")


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000, b'{"a":' * 50_000, b'{"text": ' + b"9" * 5_000 + b"}", b'{"title": "a", "title": "b"}',
        b'{"text": NaN}', b'{"title": "\\ud800"}', b"\x00", b"{}x", b'{"deleted": 1}', b'{"text": []}',
    ],
)  # fmt: skip
def test_what_other_parsers_stumble_over_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        codec.decode(data, "id")
    assert len(caught.value.message) < 200
    assert "\n" not in caught.value.message


# Cursors

LISTINGS = ANY_TEXT
KEYS = st.text(st.characters(codec="ascii"))


@given(LISTINGS, st.integers(), KEYS)
def test_a_cursor_leads_back_to_its_entry(listing: str, number: int, key: str) -> None:
    assert cursor.decode(listing, cursor.encode(listing, number, key)) == (number, key)


@given(LISTINGS, LISTINGS, st.integers(), KEYS)
def test_a_cursor_of_another_listing_is_refused(listing: str, other: str, number: int, key: str) -> None:
    if listing != other:
        with pytest.raises(InvalidCursorError):
            cursor.decode(other, cursor.encode(listing, number, key))


@given(st.integers(), KEYS, st.data())
def test_a_cursor_that_was_changed_or_cut_is_refused(number: int, key: str, data: st.DataObject) -> None:
    whole = cursor.encode("a listing", number, key)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = data.draw(st.sampled_from([whole[:at], whole[:at] + data.draw(st.characters()) + whole[at + 1 :]]))
    if changed != whole:
        with pytest.raises(InvalidCursorError):
            cursor.decode("a listing", changed)


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_a_cursor_made_up_is_refused(made_up: str) -> None:
    with pytest.raises(InvalidCursorError):
        cursor.decode("a listing", made_up)


@pytest.mark.parametrize("odd", ["\ud800", "=", "====", "é", "A" * 100_000])
def test_odd_cursors_are_refused(odd: str) -> None:
    with pytest.raises(InvalidCursorError):
        cursor.decode("a listing", odd)


# Conditions and ids

TAGS = st.text(st.sampled_from("abcdef0123456789-,; /W*!~"), max_size=12).filter(
    lambda tag: "W/" not in tag.replace(" ", "")
)


@given(st.lists(st.lists(st.tuples(st.booleans(), TAGS.map(lambda t: t.replace(" ", ""))), min_size=1), min_size=1))
def test_every_tag_of_every_line_is_heard(lines: list[list[tuple[bool, str]]]) -> None:
    sent = [" , ".join(f'{"W/" if weak else ""}"{tag}"' for weak, tag in line) for line in lines]
    heard = conditions.to_change(sent, [])
    assert [tag for tag in heard if not tag.startswith("W/")] == [t for line in lines for weak, t in line if not weak]
    seen = conditions.to_read([], sent)
    assert all(tag in seen for line in lines for _, tag in line)


@given(st.lists(st.text(max_size=30), max_size=3), st.lists(st.text(max_size=30), max_size=3))
def test_any_condition_is_understood_or_refused(match: list[str], none_match: list[str]) -> None:
    for read in (conditions.to_read, conditions.to_put, conditions.to_change):
        try:
            read(match, none_match)
        except GitmemError as error:
            check_one_line(error)


@given(st.integers(0, (1 << 48) - 1), st.integers(0, (1 << 48) - 1), st.binary(min_size=10, max_size=10))
def test_ids_sort_by_time(one: int, other: int, random: bytes) -> None:
    made = [new_id("ses", time, lambda size: random[:size]) for time in (one, other)]
    assert all(is_id("ses", each) and not is_id("dep", each) for each in made)
    assert (made[0] < made[1]) == (one < other)


# Commits

PEOPLE = st.builds(Person, st.text(), st.text())


@pytest.mark.parametrize("seconds", ["253402300800", "9" * 12, "9" * 13, "9" * 5_000, "0" * 5_000, "-1"])
def test_both_readers_of_a_commit_take_an_impossible_time_alike(seconds: str) -> None:
    TARGETS["commit"](SEEDS["commit"][0].replace(b"> 1790000000", f"> {seconds}".encode()))


@given(PEOPLE, st.integers(0, 253_402_300_799_999), st.sampled_from(["create", "replace"]), st.booleans())
def test_a_commit_says_who_and_when_again(author: Person, time: int, operation: str, by_agent: bool) -> None:
    writer: Any = Writer(kind="agent", session_id="ses_x") if by_agent else Writer(kind="owner")
    data = render(
        tree=bytes(20), parents=[bytes(range(20))], author=author, milliseconds=time,
        subject=f"{operation} notes/a", writer=writer,
    )  # fmt: skip
    found = parse(object_id("commit", data), data)
    assert (found.own, found.updated, found.writer, found.subject) == (True, time, writer, f"{operation} notes/a")
    own = own_write(data)
    assert own is not None
    assert (own.updated, own.session) == (time, writer.session_id)
    TARGETS["commit"](data)
