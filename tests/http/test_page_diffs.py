"""Line diffs as the page shows them: which lines, which words of them, and what is left out."""

from __future__ import annotations

import pytest

from gitmem.http.page.diffs import Line, between, read


def shown(lines: list[Line]) -> list[str]:
    """A sign and the line, with what is marked in brackets."""
    signs = {"same": " ", "added": "+", "removed": "-", "gap": "…"}
    return [
        signs[line.kind] + "".join(f"[{text}]" if marked else text for text, marked in line.parts) for line in lines
    ]


def test_changed_words_are_marked_and_lines_far_away_left_out() -> None:
    old = ["first line", *"abcdefghij", "the cat sat here"]
    new = ["first line!", *"abcdefghij", "the big dog sat here"]
    assert shown(between("\n".join(old), "\n".join(new))) == [
        "-first line", "+first line[!]", " a", " b", " c", "…", " h", " i", " j",
        "-the [cat] sat here", "+the [big dog] sat here",
    ]  # fmt: skip


def test_lines_that_have_little_in_common_are_not_marked() -> None:
    assert shown(between("apples\nkeep", "something else\nkeep")) == ["-apples", "+something else", " keep"]
    assert shown(between("", "x")) == ["-", "+x"]
    long = "word " * 200
    assert shown(between(long, f"{long}more")) == [f"-{long}", f"+{long}more"]


def test_nothing_differs() -> None:
    assert between("a\nb", "a\nb") == []
    assert read("") == []


@pytest.mark.parametrize(
    "line", ["--- a", "+++ b", "@@ -1 +1 @@", "-", "+", " ", "\\ No newline at end of file", "a\rb", "\u2028"]
)
def test_lines_that_look_like_a_diff_are_lines(line: str) -> None:
    assert shown(between(f"{line}\n", f"{line}\nx\n")) == [f" {line}", "+x", " "]
    assert shown(between("x", f"x\n{line}")) == [" x", f"+{line}"]
    assert shown(between(f"x\n{line}", "x")) == [" x", f"-{line}"]
