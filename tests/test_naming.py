"""Ids and titles for texts that come from files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.limits import TITLE_BYTES, is_document_id
from gitmem.naming import id_from, title_from


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("workshop.md", "workshop"),
        ("-rf.txt", "-rf"),
        ("My notes (2026).md", "My-notes-2026"),
        ("Café naïve.md", "Cafe-naive"),
        ("a.b.c.md", "a-b-c"),
        ("x" * 128 + ".md", "x" * 128),
    ],
)
def test_an_id_is_the_name_made_legal(file: str, found: str) -> None:
    assert id_from(file) == found


@pytest.mark.parametrize(
    "pair", [("заметки.md", "записки.md"), ("日本 1.md", "中国 1.md"), ("x" * 200, "x" * 201), ("!", "?")]
)
def test_names_that_lose_letters_stay_apart(pair: tuple[str, str]) -> None:
    assert id_from(pair[0]) != id_from(pair[1])


@given(st.text(min_size=1))
def test_every_name_gives_a_legal_id_and_title(name: str) -> None:
    assert is_document_id(id_from(name))
    assert id_from(name) == id_from(name)
    assert 1 <= len(title_from("", name).encode()) <= TITLE_BYTES


@given(st.text())
def test_every_text_gives_a_legal_title(text: str) -> None:
    assert 1 <= len(title_from(text, "name.md").encode()) <= TITLE_BYTES


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Workshop\ntext", "Workshop"),
        ("\ufeff# Workshop", "Workshop"),
        ("intro\n\n## Deeper  ##\n# Later", "Deeper"),
        ("#\n#hashtag\n# Real", "Real"),
        ("Workshop\n========\n", "Workshop"),
        ("Workshop\r\n---\r\n", "Workshop"),
        ("---\ntitle: x\n# comment\n---\n# Real\n", "Real"),
        ("```sh\n# comment\n```\n# Real\n", "Real"),
        ("~~~\n```\n# comment\n~~~\n# Real\n", "Real"),
        ("no heading\n\n---\n", "the-name"),
        ("", "the-name"),
        ("# " + "é" * 200, "é" * 120),
        ("# a\tb  c", "a b c"),
    ],
)
def test_a_title_is_the_first_heading_else_the_name(text: str, title: str) -> None:
    assert title_from(text, "the-name.md") == title
