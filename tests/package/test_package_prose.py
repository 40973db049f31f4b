"""The pages are readable: no sentence over 35 words, 16 on average, no line of a thousand characters.

`test_package_source` holds every page to `too_long`, with what else every change is held to.
"""

from __future__ import annotations

import pytest

from tests.package.prose import MAX_AVERAGE, PAGES, length, sentences, too_long


def test_sentences_are_short_on_average() -> None:
    lengths = [length(sentence) for page in PAGES for sentence in sentences(page.read_text())]
    assert len(lengths) > 1_500, "the pages are not read"
    assert sum(lengths) / len(lengths) <= MAX_AVERAGE


@pytest.mark.parametrize(
    ("text", "expected", "reason"),
    [
        ("One two. Three `a. b` four!", ["One two.", "Three code four!"], "code is a word"),
        ("One\ntwo.\n\nThree", ["One two.", "Three"], "a paragraph goes on in the next line"),
        ("- one\n- two\n  goes on\n1. three", ["one", "two goes on", "three"], "an item is a sentence"),
        ("# No\n| no |\n```\nno\n```\nyes", ["yes"], "headings, tables and blocks are none"),
        (
            "See [the page](a.md). kubectl too.",
            ["See the page.", "kubectl too."],
            "a small letter begins one",
        ),
        ("Version 1.2 of it; and: more", ["Version 1.2 of it; and: more"], "no full stop, no end"),
    ],
)
def test_sentences_are_told_apart(text: str, expected: list[str], reason: str) -> None:
    assert sentences(text) == expected, reason


@pytest.mark.parametrize(
    ("text", "expected", "reason"),
    [
        ("word " * 35, 0, "as long as it may be"),
        ("word " * 36, 1, "a word too many"),
        (f"{'word ' * 30}; {'word ' * 30}", 1, "a semicolon ends no sentence"),
        (f"{'word ' * 30}. {'word ' * 30}", 0, "a full stop does"),
        ("a" * 1_001, 1, "a line too long"),
        (f"| {'word ' * 300} |", 0, "a table is no prose"),
    ],
)
def test_what_is_too_long_is_seen(text: str, expected: int, reason: str) -> None:
    assert len(too_long(text)) == expected, reason
