"""Values that one pass computes once for each cluster or replica. The rules are those of `cache`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
V = TypeVar("V")


class PassValues(Generic[T, V]):
    """What is computed from one thing of a pass alone, by its name.

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
