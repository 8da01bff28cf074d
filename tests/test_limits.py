"""The limits of seed 000, each to its last byte, and texts that must come back exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gitmem
from gitmem import Document, Documents, ErrorCode
from tests.support import git
from tests.workshop import Calls, limited, tip


def overfill(notes: Documents, document: Document, field: str, text: str) -> None:
    """Put `text` into a field of an existing document."""
    if field == "title":
        notes.patch(document.id, title=text, if_match=document.revision)
    elif field == "summary":
        notes.replace(document.id, text="", summary=text, if_match=document.revision)
    else:
        notes.replace(document.id, text=text, if_match=document.revision)


@pytest.mark.parametrize(
    ("field", "limit", "text"),
    [
        ("title", 240, "a" * 240),
        ("title", 240, "é" * 120),
        ("title", 240, "𝄞" * 60),
        ("summary", 240, "a" * 240),
        ("summary", 240, "é" * 120),
        ("text", 8192, "a" * 8192),
        ("text", 8192, "€" * 2730 + "aa"),
        ("text", 8192, "\n" * 8192),
    ],
)
def test_limits_count_utf8_bytes_to_the_last_one(notes: Documents, field: str, limit: int, text: str) -> None:
    made = notes.create("full", **({"title": "Title"} | {field: text}))  # type: ignore[arg-type]
    assert len(getattr(made, field).encode()) == limit
    before = notes.list()

    def refused(error: gitmem.LimitExceededError) -> None:
        assert (error.field, error.bytes, error.max_bytes) == (field, limit + 1, limit)
        assert error.code == ErrorCode.MEMORY_LIMIT_EXCEEDED

    with pytest.raises(gitmem.LimitExceededError) as raised:
        notes.create("over", **({"title": "Title"} | {field: text + "a"}))  # type: ignore[arg-type]
    refused(raised.value)
    with pytest.raises(gitmem.LimitExceededError) as raised:
        overfill(notes, made, field, text + "a")
    refused(raised.value)
    assert notes.list() == before


@pytest.mark.parametrize("limit", [1, 16_384])
def test_a_resource_may_limit_its_texts_to_1_up_to_16384_bytes(environment: gitmem.Environment, limit: int) -> None:
    notes = limited(environment, limit)
    made = notes.create("full", title="Title", text="a" * limit)
    assert (made.bytes, made.max_bytes) == (limit, limit)
    with pytest.raises(gitmem.LimitExceededError) as raised:
        notes.replace("full", text="a" * (limit + 1), if_match=made.revision)
    assert raised.value.max_bytes == limit


@pytest.mark.parametrize("limit", [0, -1, 16_385, True, 1.5, "8192", None])
def test_other_limits_are_refused(limit: object) -> None:
    with pytest.raises(gitmem.InvalidRequestError):
        gitmem.document_memory(max_bytes=limit)  # type: ignore[arg-type]


def test_a_title_is_never_empty(notes: Documents) -> None:
    with pytest.raises(gitmem.InvalidRequestError):
        notes.create("workshop", title="")
    made = notes.create("workshop", title="Title")
    with pytest.raises(gitmem.InvalidRequestError):
        notes.patch("workshop", title="", if_match=made.revision)
    assert notes.read("workshop") == made


def test_a_lowered_limit_leaves_documents_readable_and_patchable(environment: gitmem.Environment) -> None:
    notes = limited(environment, 100)
    made = notes.create("long", title="Long", text="a" * 100)
    notes = limited(environment, 10)
    read = notes.read("long")
    assert (read.text, read.bytes, read.max_bytes) == ("a" * 100, 100, 10)
    assert [(d.bytes, d.max_bytes) for d in notes.list().documents] == [(100, 10)]
    assert read.revision == made.revision
    for text in ("a" * 100, "a" * 11):
        with pytest.raises(gitmem.LimitExceededError) as raised:
            notes.replace("long", text=text, summary="New", if_match=made.revision)
        assert (raised.value.field, raised.value.bytes, raised.value.max_bytes) == ("text", len(text), 10)
    patched = notes.patch("long", title="Too long", agent_writes="disabled", if_match=made.revision)
    assert (patched.text, patched.title, patched.agent_writes) == ("a" * 100, "Too long", "disabled")
    assert notes.replace("long", text="a" * 10, if_match=patched.revision).bytes == 10


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud834 \udd1e"])
def test_lone_surrogates_are_refused_in_every_field(
    notes: Documents, environment: gitmem.Environment, text: str
) -> None:
    made = notes.create("workshop", title="Title")
    before = tip(environment)
    calls: Calls = [
        lambda: notes.create("other", title=text),
        lambda: notes.create("other", title="Title", text=text),
        lambda: notes.create("other", title="Title", summary=text),
        lambda: notes.replace("workshop", text=text, if_match=made.revision),
        lambda: notes.replace("workshop", text="", summary=text, if_match=made.revision),
        lambda: notes.patch("workshop", title=text, if_match=made.revision),
    ]
    for call in calls:
        with pytest.raises(gitmem.InvalidRequestError):
            call()
    assert tip(environment) == before


@pytest.mark.parametrize("value", [None, 5, b"bytes", ["lines"]])
def test_fields_are_strings(notes: Documents, environment: gitmem.Environment, value: object) -> None:
    made = notes.create("workshop", title="Title")
    before = tip(environment)
    calls: Calls = [
        lambda: notes.create("other", title=value),  # type: ignore[arg-type]
        lambda: notes.create("other", title="Title", text=value),  # type: ignore[arg-type]
        lambda: notes.create("other", title="Title", summary=value),  # type: ignore[arg-type]
        lambda: notes.create("other", title="Title", agent_writes=value),  # type: ignore[arg-type]
        lambda: notes.create(value, title="Title"),  # type: ignore[arg-type]
        lambda: notes.replace("workshop", text=value, if_match=made.revision),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(gitmem.InvalidRequestError):
            call()
    assert tip(environment) == before


STRANGE = [
    "",
    "\n",
    "\n\n",
    "a\n",
    "\na",
    "a\r\nb\r\n",
    "a\rb",
    "\ufeffa",
    "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg",
    "a\0b",
    "\x00\x01\x1f\x7f\x9f",
    '"\\/\b\f\t',
    "𝄞 e\u0301 é \u202e \ufffe \uffff",
    "</script> <<<<<<< ours\n=======\n>>>>>>> theirs",
    "  trailing \t \n\t",
]


@pytest.mark.parametrize("text", STRANGE)
def test_text_comes_back_exactly(notes: Documents, environment: gitmem.Environment, text: str) -> None:
    title, summary = (text or "t")[:20], text[:40]
    made = notes.create("strange", title=title, text=text, summary=summary)
    read = notes.read("strange")
    assert (read.title, read.text, read.summary) == (title, text, summary)
    stored = json.loads(git(environment.folder, "show", "main:notes/strange.json"))
    assert (stored["title"], "\n".join(stored["text"]), stored["summary"]) == (title, text, summary)
    (Path(environment.folder) / ".git/gitmem/index.sqlite").unlink()
    assert notes.read("strange") == made
    assert [entry.title for entry in notes.list().documents] == [title]
