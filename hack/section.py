"""A generated part of a page, between two marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def replaced(text: str, start: str, content: str, end: str) -> str:
    """Return a page with the part between the marks replaced."""
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}\n{content}\n{end}{after}"


def write(page: Path, refreshed: Callable[[str], str]) -> int:
    """Write a page anew. Returns the exit code."""
    page.write_text(refreshed(page.read_text()))
    return 0
