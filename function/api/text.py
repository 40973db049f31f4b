"""Text that people read: one line, at most as long as a condition's message may be."""

from __future__ import annotations

LIMIT = 512
"""Characters of a condition's message."""


def one_line(text: str, limit: int = LIMIT) -> str:
    """Fold white space and cut to the limit, so that every text stays one readable line."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 1].rstrip() + "…"
