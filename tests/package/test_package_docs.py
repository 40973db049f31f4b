"""What the pages show is what the commands print."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from hack.refresh_docs import ROOT, pages, refreshed

if TYPE_CHECKING:
    from pathlib import Path


LINK = re.compile(r"\]\(([^)#:]+?)(?:#[^)]*)?\)")


@pytest.mark.gate
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []


@pytest.mark.gate
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_output_blocks_are_fresh(page: Path) -> None:
    text = page.read_text()
    assert refreshed(text) == text, "run `python -m hack.refresh_docs`"
