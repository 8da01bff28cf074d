"""Blame against plain git's own."""

from __future__ import annotations

import gitmem
from gitmem.blame import blame
from tests.support import git

VERSIONS = [
    "one\ntwo\nthree\n",
    "zero\none\ntwo\nthree\n",
    "zero\none\n2\nthree\nfour\n",
    "four\n",
    "four\none\n",
    "",
    "five\nfour\n",
    "five\nsix\nfour",
]


def test_every_version_is_blamed_as_git_blames_it(environment: gitmem.Environment) -> None:
    notes = environment.documents("notes")
    seen = notes.create("a", title="A").revision
    for text in VERSIONS:
        seen = notes.replace("a", text=text, if_match=seen).revision
        environment.close()
        # The file holds one line of text a line, between its head and its end.
        lines = git(environment.folder, "blame", "--no-textconv", "-l", "-s", "notes/a.json").splitlines()
        expected = [line[:40] for line in lines if ") " in line and line.partition(") ")[2].startswith("    ")]
        assert len(expected) == text.count("\n") + 1
        found = blame(environment, "notes", "a")
        assert [line.text for line in found] == text.split("\n")[: len(found)]
        differing = [
            line.number for line, revision in zip(found, expected, strict=False) if line.revision != revision
        ]  # fmt: skip
        # A comma at a line's end is JSON's: git sees the line before a new last one as changed.
        assert all(number >= len(found) - 1 for number in differing), (text, found, lines)


def test_the_oldest_version_is_the_end_of_the_search(environment: gitmem.Environment) -> None:
    notes = environment.documents("notes")
    first = notes.create("a", title="A", text="stays\nend").revision
    seen = first
    for number in range(70):
        seen = notes.replace("a", text=f"stays\n{number}", if_match=seen).revision
    found = blame(environment, "notes", "a")
    assert [(line.text, line.revision) for line in found] == [("stays", first), ("69", seen)]


def test_restored_lines_belong_to_the_restore(environment: gitmem.Environment) -> None:
    notes = environment.documents("notes")
    first = notes.create("a", title="A", text="one\ntwo\n").revision
    second = notes.replace("a", text="one\n", if_match=first).revision
    third = notes.restore("a", first, if_match=second).revision
    assert [line.revision for line in blame(environment, "notes", "a")] == [first, third]
    patched = notes.patch("a", title="B", if_match=third).revision
    assert patched not in [line.revision for line in blame(environment, "notes", "a")]
