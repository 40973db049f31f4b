"""What the pages show is what the commands print."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from hack.refresh_docs import ROOT, pages, refreshed

if TYPE_CHECKING:
    from pathlib import Path


LINK = re.compile(r"\]\(([^)#:]+?)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\(([^)#:]*?)#([^)]*)\)")
FENCED = re.compile(r"```.*?```", re.DOTALL)
LABEL = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@pytest.mark.gate
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """What a link to a heading of the page may end in."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", LABEL.sub(r"\1", heading)).strip() for heading in headings)
    return {heading.lower().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_lead_to_one(page: Path) -> None:
    links = ANCHOR.findall(FENCED.sub("", page.read_text()))
    targets = [((page.parent / name) if name else page, anchor) for name, anchor in links]
    assert [(str(to), anchor) for to, anchor in targets if anchor not in anchors(to)] == []


@pytest.mark.gate
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_output_blocks_are_fresh(page: Path) -> None:
    text = page.read_text()
    assert refreshed(text) == text, "run `python -m hack.refresh_docs`"
