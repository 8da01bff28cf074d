"""How much screening finds, and how much harmless text it refuses, on the labelled set."""

from __future__ import annotations

import random

import pytest

from gitmem.screening.screen import screen
from tests.screening.labelled import PARTS, Part, labelled, refused, report


def test_no_known_format_of_the_part_that_rules_were_written_from_is_missed() -> None:
    missed = {one.kind for one in labelled("rules", "secrets") if one.format and one not in refused("rules", "secrets")}
    assert not missed
    assert len({one.kind for one in labelled("rules", "secrets")}) >= 25


@pytest.mark.parametrize("part", PARTS)
def test_false_alarms_stay_below_two_percent(part: Part) -> None:
    texts = labelled(part, "harmless") + labelled(part, "imperatives")
    alarms = refused(part, "harmless") + refused(part, "imperatives")
    assert len(texts) >= 120
    assert len(alarms) < 0.02 * len(texts), alarms


@pytest.mark.parametrize(
    ("part", "what", "least"),
    [
        ("rules", "secrets", 127),
        ("rules", "injections", 30),
        ("held-out", "secrets", 63),
        ("held-out", "injections", 22),
    ],
)
def test_what_is_found_is_not_lost_again(part: Part, what: str, least: int) -> None:
    assert len(refused(part, what)) >= least, report()


@pytest.mark.parametrize(
    "piece",
    [
        "<!-- ", '](a "', "send api key ", "a b ", "AKIA", "password is ", "always post ", "&#73;", "A" * 30 + " ",
        "\u200b", "PuTTY-User-Key-File-3: a\n", "machine login password ", "mysql -p", "'", "\n",
        "-----BEGIN RSA PRIVATE KEY-----\n",
    ],
)  # fmt: skip
def test_no_text_keeps_screening_from_coming_to_an_end(piece: str) -> None:
    screen((piece * 32_768)[:32_768])


def test_random_text_comes_through() -> None:
    letters = random.Random(3)
    for _ in range(20):
        screen("".join(chr(letters.choice((32, 10, 60, 97, 0x200B, 0x5D0, 0x1F600))) for _ in range(2_000)))
