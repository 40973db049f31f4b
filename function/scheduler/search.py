"""Search: one option per engine, so that every pool has room for all of them together.

Exact: engines and their options are tried in declaration order with backtracking, so the first complete
choice in that order is taken, and a cluster is rejected only if there is none. Where options differ in what
is preferred (one pool before several of a fabric, then the ranks of firstAvailable), the most preferred that
can be completed is settled first, engine by engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from function.api.reasons import Reason
from function.scheduler.budget import Budget, OutOfSteps
from function.scheduler.capacity.device_accounting import free_nodes, taking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.scheduler.capacity.device_accounting import Room
    from function.scheduler.matching.engine_options import EngineOption
    from function.scheduler.matching.matcher import ClusterFit

Free: TypeAlias = "tuple[Room, ...]"
"""What each pool has left, by its position."""
Options: TypeAlias = "Sequence[Sequence[EngineOption]]"
"""The options of every engine."""


def _take(option: EngineOption, free: Free) -> Free | None:
    """What is left after an option, or None when a pool has too little."""
    left = list(free)
    for pool, nodes in option.nodes:
        room = left[pool]
        after = taking(room, nodes, () if isinstance(room, int) else option.gangs_on(pool))
        if after is None:
            return None
        left[pool] = after
    return tuple(left)


def free_left(options: Sequence[EngineOption], free: Free) -> int:
    """Free nodes left in the pools that options use; 0 where they do not fit."""
    left: Free | None = free
    for option in options:
        left = _take(option, left) if left is not None else None
    used = {pool for option in options for pool, _ in option.nodes}
    return sum(free_nodes(left[pool]) for pool in used) if left is not None else 0


class _Search:
    """One search over one cluster."""

    def __init__(self, options: Options, budget: Budget, *, tightest: bool) -> None:
        self._options, self._budget, self._tightest = options, budget, tightest
        self._dead: set[tuple[int, Free]] = set()

    def extend(self, chosen: list[EngineOption], free: Free) -> bool:
        """Choose for the remaining engines. Raises OutOfSteps."""
        at = len(chosen)
        if at == len(self._options):
            return True
        if (at, free) in self._dead:
            return False
        for option in self._ordered(self._options[at], free):
            self._budget.step()
            left = _take(option, free)
            if left is None:
                continue
            chosen.append(option)
            if self.extend(chosen, left):
                return True
            chosen.pop()
        self._dead.add((at, free))
        return False

    def _ordered(self, options: Sequence[EngineOption], free: Free) -> Sequence[EngineOption]:
        """Order options as declared; for bin packing, those that leave the least free first."""
        if not self._tightest:
            return options
        return sorted(options, key=lambda option: free_left((option,), free))


def _first(options: Options, free: Free, budget: Budget, *, tightest: bool) -> list[EngineOption] | None:
    chosen: list[EngineOption] = []
    return chosen if _Search(options, budget, tightest=tightest).extend(chosen, free) else None


def _preferred(options: Options, free: Free, budget: Budget, *, tightest: bool) -> list[EngineOption] | None:
    """Find the first choice, or the first of the most preferred ones where options differ in that."""
    found = _first(options, free, budget, tightest=tightest)
    settled = list(options)
    for at, each in enumerate(options):
        levels = sorted({option.preference for option in each})
        for level in levels if found and len(levels) > 1 else ():
            settled[at] = [option for option in each if option.preference == level]
            better = _first(settled, free, budget, tightest=tightest)
            if better is not None:
                found = better
                break
    return found


def search(
    fit: ClusterFit, free: Free, *, steps: int, tightest: bool = False
) -> tuple[EngineOption, ...] | Reason:
    """Choose one option per engine, or say which kind of capacity is missing.

    With `tightest`, pools that are left with the fewest free nodes come first (bin packing).
    """
    options = [each.options for each in fit.engines]
    try:
        found = _preferred(options, free, Budget(steps), tightest=tightest)
    except OutOfSteps:
        return Reason.SearchBudgetExceeded
    if found is not None:
        return tuple(found)
    if any(each.cut_short for each in fit.engines):
        return Reason.SearchBudgetExceeded
    alone = all(any(_take(option, free) is not None for option in each.options) for each in fit.engines)
    return Reason.JointCapacity if alone else Reason.InsufficientNodes
