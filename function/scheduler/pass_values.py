"""Values that one pass computes once: for each cluster or replica, or for a version of what changes.

The rules are those of `cache`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
V = TypeVar("V")


class PassValues(Generic[T, V]):
    """Values computed from one subject of a pass alone, by its name.

    Law: clusters and existing replicas do not change in a pass, and a name has one of them. Buys: what is
    asked for every candidate, or by every budget, is computed once for each cluster or replica.
    """

    def __init__(self, compute: Callable[[T], V]) -> None:
        """Start with nothing. `compute`: the value of one thing."""
        self._compute = compute
        self._values: dict[str, V] = {}

    def of(self, name: str, subject: T) -> V:
        """Return the value of the thing that has the name."""
        if name not in self._values:
            self._values[name] = self._compute(subject)
        return self._values[name]


class LatestValue(Generic[T, V]):
    """A value computed from a subject that changes, until it has changed.

    Law: a version is of one state of one thing. Buys: what is asked for every candidate is computed once for
    each replica that is placed, not once for each of 2,000 clusters.
    """

    def __init__(self, compute: Callable[[T], V]) -> None:
        """Start with nothing. `compute`: the value of the thing as it is."""
        self._compute = compute
        self._latest: tuple[int, V] | None = None

    def of(self, version: int, subject: T) -> V:
        """Return the value of the thing, which has this version."""
        if self._latest is None or self._latest[0] != version:
            self._latest = version, self._compute(subject)
        return self._latest[1]
