"""Text that people read: one line, at most as long as a condition's message may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 512
"""Characters of a condition's message."""


def one_line(text: str, limit: int = LIMIT) -> str:
    """Fold white space and cut to the limit, so that every text stays one readable line."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 1].rstrip() + "…"


def joined(*parts: str) -> str:
    """The parts of a message that are not empty: `Scheduled 2 of 3 replicas; ...; ...`."""
    return "; ".join(part for part in parts if part)


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are: `a, b and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def counted(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
