"""Search: one option per engine, so that every pool has room for all of them together.

Exact: the first complete choice in declaration order of engines and options is taken, and a cluster is
rejected only if there is none. Where options differ in what is preferred (one pool before several of a
fabric, then the ranks of firstAvailable), the most preferred that can be completed is settled first, engine
by engine.

How it stays short: an engine takes an option only if the engines after it can still be completed. That is
found out with the scarcest of them first, it ends where one has no option left (forward checking), and what
could not be completed is not tried again. It decides how long the search takes, never what it finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from function.api.reasons import Reason
from function.scheduler.budget import Budget, OutOfSteps
from function.scheduler.engine_options import ClusterFit, EngineOption
from function.scheduler.ledger import Capacities

Options: TypeAlias = "Sequence[Sequence[EngineOption]]"
"""The options of every engine."""
Completion: TypeAlias = "dict[int, EngineOption]"
"""An option for each of some engines, by their position, that have room together."""


def _take(option: EngineOption, free: Capacities) -> Capacities | None:
    """Return the capacity left after an option, or None when a pool has too little."""
    left = list(free)
    for pool, demand in option.demands:
        after = left[pool].take(demand)
        if after is None:
            return None
        left[pool] = after
    return tuple(left)


def free_left(options: Sequence[EngineOption], free: Capacities) -> int:
    """Free nodes left in the pools that options use; 0 where they do not fit."""
    left: Capacities | None = free
    for option in options:
        left = _take(option, left) if left is not None else None
    used = {taken.pool for option in options for taken in option.demands}
    return sum(left[pool].free_nodes for pool in used) if left is not None else 0


MANY = 3
"""Numbers of options of an engine that differ when looking for the scarcest: none, one, two, more."""
LOOKS = 8
"""Options looked at in one step of that: as many as a cluster has pools."""


class _Search:
    """One search over one cluster. A step is an engine looked at, or an option of the scarcest tried."""

    def __init__(self, options: Options, budget: Budget, *, tightest: bool) -> None:
        self._options, self._budget, self._tightest = options, budget, tightest
        self._dead: set[tuple[tuple[int, ...], Capacities]] = set()

    def first(self, free: Capacities) -> list[EngineOption] | None:
        """The first complete choice in declaration order. Raises OutOfSteps.

        Engine after engine takes its first option with which the others can still be completed. Looking
        ahead may go in any order, since it only tells whether there is some completion.
        """
        engines = tuple(range(len(self._options)))
        ahead = self._completion(engines, free)
        if ahead is None:
            return None
        for at in engines:
            ahead = self._earliest(at, free, ahead)
            free = self._taken(ahead[at], free)
        return [ahead[at] for at in engines]

    def _earliest(self, at: int, free: Capacities, ahead: Completion) -> Completion:
        """The completion with the earliest option of one engine: the one at hand, or an earlier one."""
        for option in self._ordered(self._options[at], free):
            if option is ahead[at]:
                break
            left = _take(option, free)
            completion = (
                None if left is None else self._completion(tuple(range(at + 1, len(self._options))), left)
            )
            if completion is not None:
                return {**ahead, **completion, at: option}
        return ahead

    def _completion(self, rest: tuple[int, ...], free: Capacities) -> Completion | None:
        """Some choice for the remaining engines, the scarcest first; None when there is none."""
        if not rest:
            return {}
        if (rest, free) in self._dead:
            return None
        scarcest = self._scarcest(rest, free)
        if scarcest is not None:
            others = tuple(at for at in rest if at != scarcest)
            for option in self._options[scarcest]:
                self._budget.step()
                left = _take(option, free)
                completion = None if left is None else self._completion(others, left)
                if completion is not None:
                    return {**completion, scarcest: option}
        self._dead.add((rest, free))
        return None

    def _scarcest(self, rest: tuple[int, ...], free: Capacities) -> int | None:
        """The engine with the fewest options left, between equals the first; None: one has no option."""
        if len(rest) == 1:
            return rest[0]
        fewest, scarcest = MANY + 1, None
        for at in rest:
            count = sum(1 for _ in islice(self._fitting(at, free), min(MANY, fewest)))
            if not count:
                return None
            if count < fewest:
                fewest, scarcest = count, at
        return scarcest

    def _fitting(self, at: int, free: Capacities) -> Iterator[EngineOption]:
        """The options of an engine that there is room for."""
        for number, option in enumerate(self._options[at]):
            if number % LOOKS == 0:
                self._budget.step()
            if _take(option, free) is not None:
                yield option

    @staticmethod
    def _taken(option: EngineOption, free: Capacities) -> Capacities:
        left = _take(option, free)
        assert left is not None  # noqa: S101 - it is part of a completion
        return left

    def _ordered(self, options: Sequence[EngineOption], free: Capacities) -> Sequence[EngineOption]:
        """Order options as declared; for bin packing, those that leave the least free first."""
        if not self._tightest:
            return options
        return sorted(options, key=lambda option: free_left((option,), free))


def _first(
    options: Options, free: Capacities, budget: Budget, *, tightest: bool
) -> list[EngineOption] | None:
    return _Search(options, budget, tightest=tightest).first(free)


def _preferred(
    fit: ClusterFit, free: Capacities, budget: Budget, *, tightest: bool
) -> list[EngineOption] | None:
    """Find the first choice, or the first of the most preferred ones where options differ in that."""
    settled: list[Sequence[EngineOption]] = [engine.options for engine in fit.engines]
    chosen = _first(settled, free, budget, tightest=tightest)
    for at, engine in enumerate(fit.engines):
        levels = engine.preferences
        for level in levels if chosen and len(levels) > 1 else ():
            settled[at] = [option for option in engine.options if option.preference == level]
            better = _first(settled, free, budget, tightest=tightest)
            if better is not None:
                chosen = better
                break
    return chosen


def search(
    fit: ClusterFit, free: Capacities, *, budget: Budget, tightest: bool = False
) -> tuple[EngineOption, ...] | Reason:
    """Choose one option per engine, or say which kind of capacity is missing.

    With `tightest`, pools that are left with the fewest free nodes come first (bin packing).
    """
    try:
        choice = _preferred(fit, free, budget, tightest=tightest)
    except OutOfSteps:
        return Reason.SearchBudgetExceeded
    if choice is not None:
        return tuple(choice)
    if any(engine.cut_short for engine in fit.engines):
        return Reason.SearchBudgetExceeded
    alone = all(any(_take(option, free) is not None for option in engine.options) for engine in fit.engines)
    return Reason.JointCapacity if alone else Reason.InsufficientNodes
