"""Text for a terminal: what files say is shown, never obeyed, and names keep their telling end."""

from __future__ import annotations

WIDEST = 30
"""Characters of a name in a table."""
TAIL = 12
"""Characters of its end that are always shown: the part that tells replicas apart."""


def printable(text: str) -> str:
    """Escape control characters: a name from somebody's file must not move the cursor."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def short(name: str) -> str:
    """Cut a long name in the middle."""
    clean = printable(name)
    return clean if len(clean) <= WIDEST else f"{clean[: WIDEST - TAIL - 1]}…{clean[-TAIL:]}"
