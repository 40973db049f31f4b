"""What the pages show is what the commands print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.refresh_docs import ROOT, pages, refreshed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.gate
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_output_blocks_are_fresh(page: Path) -> None:
    text = page.read_text()
    assert refreshed(text) == text, "run `python -m hack.refresh_docs`"
