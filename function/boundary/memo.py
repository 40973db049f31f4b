"""Values that are computed once, at most so many of them: the one memo of the core.

A memo stays only where it was measured to pay, and says so where it is made. It is bounded by a number of
entries and drops the oldest, without looking at what is used: at the bound something else is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V")

_MISSING: Any = object()


class Memo(Generic[T, V]):
    """Values computed from a subject alone, each once for a key: the name of the subject, or its version.

    At most so many are kept, the latest: with 1 it is the value of a subject that changes, until it has
    changed. Where one is made it says why a key has one subject, and what it buys.
    """

    __slots__ = ("_compute", "_most", "_values")

    def __init__(self, compute: Callable[[T], V], most: int = 100_000) -> None:
        """Start with nothing. `compute`: the value of one subject."""
        self._compute, self._most = compute, most
        self._values: dict[Hashable, V] = {}

    def of(self, key: Hashable, subject: T) -> V:
        """Return the value of the subject that has the key.

        Safe for many threads: at worst a value is computed twice, or one more is kept for a while.
        """
        values = self._values
        value: V = values.get(key, _MISSING)
        if value is _MISSING:
            value = self._compute(subject)
            if len(values) >= self._most:
                with suppress(RuntimeError, StopIteration):  # Another thread was quicker.
                    values.pop(next(iter(values)), None)
            values[key] = value
        return value
