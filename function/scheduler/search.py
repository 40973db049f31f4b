"""Search: one option per engine, so that every pool has the nodes for all of them together.

Exact: engines and their options are tried in declaration order with backtracking, so the first complete
choice in that order is taken, and a cluster is rejected only if there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.scheduler.budget import Budget, OutOfSteps
from function.scheduler.reason import Reason, Rejection

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from function.scheduler.fit import ClusterFit, EngineFit, EngineOption

Free = tuple[int, ...]
"""Free nodes by position of the pool."""


def _take(option: EngineOption, free: Free) -> Free | None:
    """What is left after an option, or None when a pool has too little."""
    left = list(free)
    for pool, nodes in option.nodes:
        left[pool] -= nodes
        if left[pool] < 0:
            return None
    return tuple(left)


def _tightest_first(options: Iterable[EngineOption], free: Free) -> list[EngineOption]:
    return sorted(options, key=lambda option: sum(free[pool] - nodes for pool, nodes in option.nodes))


class _Search:
    """One search over one cluster."""

    def __init__(self, engines: Sequence[EngineFit], budget: Budget, *, tightest: bool) -> None:
        self._engines, self._budget, self._tightest = engines, budget, tightest
        self._dead: set[tuple[int, Free]] = set()

    def extend(self, chosen: list[EngineOption], free: Free) -> bool:
        """Choose for the remaining engines. Raises OutOfSteps."""
        at = len(chosen)
        if at == len(self._engines):
            return True
        if (at, free) in self._dead:
            return False
        options: Iterable[EngineOption] = self._engines[at].options
        for option in _tightest_first(options, free) if self._tightest else options:
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


def search(
    fit: ClusterFit, free: Free, *, steps: int, tightest: bool = False
) -> tuple[EngineOption, ...] | Reason:
    """Choose one option per engine, or say which kind of capacity is missing.

    With `tightest`, pools that are left with the fewest free nodes come first (bin packing).
    """
    chosen: list[EngineOption] = []
    try:
        found = _Search(fit.engines, Budget(steps), tightest=tightest).extend(chosen, free)
    except OutOfSteps:
        return Reason.SearchBudgetExceeded
    if found:
        return tuple(chosen)
    alone = all(any(_take(option, free) is not None for option in each.options) for each in fit.engines)
    return Reason.JointCapacity if alone else Reason.InsufficientNodes


def shortage(each: EngineFit, free: Free) -> tuple[int, int, int] | None:
    """The option nearest to fitting one engine: pool position, nodes needed there, nodes free there.

    None when the engine fits as it is.
    """
    nearest: tuple[int, int, int, int] | None = None
    for option in each.options:
        short = [
            (nodes - free[pool], pool, nodes, free[pool])
            for pool, nodes in option.nodes
            if nodes > free[pool]
        ]
        if not short:
            return None
        worst = max(short, key=lambda item: (item[0], -item[1]))
        if nearest is None or worst[0] < nearest[0]:
            nearest = worst
    return nearest[1:] if nearest else None


def too_short(fit: ClusterFit, free: Free) -> Rejection | None:
    """The first engine that finds no nodes even alone."""
    for each in fit.engines:
        found = shortage(each, free)
        if found is not None:
            return Rejection(Reason.InsufficientNodes, engine=each.engine.name, needs=found[1], free=found[2])
    return None
