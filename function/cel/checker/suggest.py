"""Suggest the nearest published name for an attribute that nobody publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def distance(one: str, two: str) -> int:
    """Return how many edits lead from one name to the other: insert, delete, replace, swap neighbours."""
    older: list[int] = []
    above = list(range(len(two) + 1))
    for i, left in enumerate(one, 1):
        row = [i]
        for j, right in enumerate(two, 1):
            edits = min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right))
            if i > 1 and j > 1 and left == two[j - 2] and right == one[i - 2]:
                edits = min(edits, older[j - 2] + 1)
            row.append(edits)
        older, above = above, row
    return above[-1]


def suggest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate nearest to `name`, ignoring case, or None if none is near; ties by name.

    Near is at most a third of its length in edits, and at least one edit.
    """
    wanted = name.lower()
    limit = max(1, len(wanted) // 3)
    ranked = sorted((distance(wanted, other.lower()), other) for other in set(candidates) if other != name)
    return ranked[0][1] if ranked and ranked[0][0] <= limit else None
