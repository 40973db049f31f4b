"""What is prose on a page, its sentences, and which of them nobody reads to their end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
