"""What the pages show is what the commands print."""

from __future__ import annotations

import pytest

from hack.refresh_docs import ROOT, pages, refreshed


@pytest.mark.gate
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_output_blocks_are_fresh(page) -> None:
    text = page.read_text()
    assert refreshed(text) == text, "run `python -m hack.refresh_docs`"
