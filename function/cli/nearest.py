"""Find the nearest existing name for one that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CUTOFF = 0.6
"""How alike two names must be, as `difflib` counts it."""
_SEPARATORS = str.maketrans("", "", "-_. ")


def nearest(name: str, existing: Iterable[str], *, most: int = 3, cutoff: float = CUTOFF) -> list[str]:
    """Return the names that are meant, the likeliest first; case and separators count for nothing."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

    names = sorted(existing)
    folded = _folded(name)
    same = [candidate for candidate in names if _folded(candidate) == folded]
    return same[:most] or get_close_matches(name, names, n=most, cutoff=cutoff)


def _folded(name: str) -> str:
    return name.casefold().translate(_SEPARATORS)
