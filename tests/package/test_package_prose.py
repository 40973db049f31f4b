"""The pages are readable: no sentence over 35 words, 16 on average, no line of a thousand characters.

`test_package_source` holds every page to `too_long`, with what else every change is held to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from hack.refresh_docs import ROOT  # type: ignore[attr-defined]

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_WORDS, MAX_AVERAGE, MAX_LINE = 35, 16, 1_000
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
LEFT_OUT = re.compile(r"\s*(?:\||#|<)")
"""Lines that are no prose: tables, headings, elements."""
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) +")
CODE, LINK = re.compile(r"`[^`]*`"), re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
ENDS = re.compile(r"""(?<=[.!?])["')*]*\s+(?=["'(*]*\w)""")
WORD = re.compile(r"\w[\w'/.-]*")


def prose(text: str) -> Iterator[str]:
    """Yield the paragraphs and items of a page, each as one line, without blocks, tables and headings."""
    lines: list[str] = []
    for line in [*FENCED.sub("\n", text).split("\n"), ""]:
        ends = not line.strip() or LEFT_OUT.match(line)
        if (ends or ITEM.match(line)) and lines:
            yield " ".join(lines)
            lines = []
        if not ends:
            lines.append(ITEM.sub("", line, count=1).strip())


def sentences(text: str) -> list[str]:
    """The sentences of a page, code as one word, of links what is read."""
    plain = (LINK.sub(r"\1", CODE.sub("code", paragraph)) for paragraph in prose(text))
    return [sentence for paragraph in plain for sentence in ENDS.split(paragraph) if WORD.search(sentence)]


def length(sentence: str) -> int:
    return len(WORD.findall(sentence))


def too_long(text: str) -> list[str]:
    """The sentences and lines of a page that nobody reads to their end."""
    lines = (line for line in FENCED.sub("", text).split("\n") if len(line) > MAX_LINE)
    long = [sentence for sentence in sentences(text) if length(sentence) > MAX_WORDS]
    return long + [line for line in lines if not LEFT_OUT.match(line)]


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
