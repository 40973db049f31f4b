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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from function.api import Engine, InferenceCluster, Pool
from function.api.reasons import Reason, Rejection
from function.boundary import frozen
from function.scheduler.budget import Budget, OutOfSteps
from function.scheduler.device_accounting import Shortage
from function.scheduler.engine_options import Barred, ClusterFit, EngineFit, EngineOption
from function.scheduler.ledger import Capacities, Ledger

Options: TypeAlias = "Sequence[Sequence[EngineOption]]"
"""The options of every engine."""
Completion: TypeAlias = "dict[int, EngineOption]"
"""An option for each of some engines, by their position, that have room together."""


def _take(option: EngineOption, free: Capacities, budget: Budget) -> Capacities | None:
    """Return the capacity left after an option, or None when a pool has too little. Raises OutOfSteps."""
    left = list(free)
    for pool, demand in option.demands:
        after = left[pool].take(demand, budget)
        if after is None:
            return None
        left[pool] = after
    return tuple(left)


def _fits(option: EngineOption, free: Capacities, budget: Budget) -> bool:
    """Tell whether an option has room, with the steps of `_take`: a search asks far more than it takes."""
    for pool, demand in option.demands:  # noqa: SIM110 - a generator takes twice as long
        if not free[pool].fits(demand, budget):
            return False
    return True


def free_left(options: Sequence[EngineOption], free: Capacities) -> int:
    """Free nodes left in the pools that options use, which have room for them."""
    left = list(free)
    for option in options:
        for pool, demand in option.demands:
            left[pool] = left[pool].charged(demand)
    used = {taken.pool for option in options for taken in option.demands}
    return sum(left[pool].free_nodes for pool in used)


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
            left = _take(ahead[at], free, self._budget)
            assert left is not None  # noqa: S101 - it is part of a completion
            free = left
        return [ahead[at] for at in engines]

    def _earliest(self, at: int, free: Capacities, ahead: Completion) -> Completion:
        """The completion with the earliest option of one engine: the one at hand, or an earlier one."""
        options = self._options[at]
        if self._tightest:  # BinPack: what leaves the least free comes first.
            options = sorted(options, key=lambda option: free_left((option,), free))
        for option in options:
            if option is ahead[at]:
                break
            left = _take(option, free, self._budget)
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
                left = _take(option, free, self._budget)
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
            count, enough = 0, min(MANY, fewest)
            for number, option in enumerate(self._options[at]):
                if number % LOOKS == 0:
                    self._budget.step()
                count += _fits(option, free, self._budget)
                if count == enough:
                    break
            if not count:
                return None
            if count < fewest:
                fewest, scarcest = count, at
        return scarcest


def _preferred(
    fit: ClusterFit, free: Capacities, budget: Budget, *, tightest: bool
) -> list[EngineOption] | None:
    """Find the first choice, or the first of the most preferred ones where options differ in that."""
    settled: list[Sequence[EngineOption]] = [engine.options for engine in fit.engines]
    chosen = _Search(settled, budget, tightest=tightest).first(free)
    for at, engine in enumerate(fit.engines):
        levels = engine.preferences
        for level in levels if chosen and len(levels) > 1 else ():
            settled[at] = [option for option in engine.options if option.preference == level]
            better = _Search(settled, budget, tightest=tightest).first(free)
            if better is not None:
                chosen = better
                break
    return chosen


def search(
    fit: ClusterFit, free: Capacities, *, budget: Budget, tightest: bool = False
) -> tuple[EngineOption, ...] | Reason:
    """Choose one option per engine, or say that no choice has room, or that none could be found.

    With `tightest`, pools that are left with the fewest free nodes come first (bin packing).
    """
    try:
        choice = _preferred(fit, free, budget, tightest=tightest)
        if choice is not None:
            return tuple(choice)
        if budget.cut or any(engine.cut_short for engine in fit.engines):
            return Reason.SearchBudgetExceeded
    except OutOfSteps:
        return Reason.SearchBudgetExceeded
    return Reason.JointCapacity


# Diagnose: why a cluster that passed every gate still cannot host one more replica.
#
# An engine's headline is the deepest of its pools' reasons, the one nearest to fitting. A cluster's
# headline is that of the engine that stands in the way: the shallowest of them, since every engine must fit.

Why: TypeAlias = "Callable[[int], Barred]"
"""Why the engine at a position of the shape does not fit some pools; found out when it is called."""


class Explained(NamedTuple):
    """The cluster that is explained, what it has left, and the steps for finding out what is short."""

    cluster: InferenceCluster
    ledger: Ledger
    free: Capacities
    budget: Budget


@frozen
class OnPools:
    """One engine on one pool (or on several of one fabric): whether it fits, and what it would take."""

    engine: str
    pools: tuple[str, ...]
    nodes: int | None
    """Nodes it takes; None when it does not fit however many are free."""
    rejection: Rejection | None

    def of(self, alternative: str) -> OnPools:
        """The same, signed with the alternative shape that the engine belongs to."""
        if self.rejection is None or not alternative:
            return self
        return replace(self, rejection=self.rejection.at(alternative=alternative))


def below_gates(fit: ClusterFit, room: Explained, outcome: Reason, why: Why) -> Rejection:
    """The verdict on a cluster where the search found nothing, with everything below it."""
    verdicts = (_engine(engine, room, partial(why, at)) for at, engine in enumerate(fit.engines))
    engines = tuple(filter(None, verdicts))
    if not engines or outcome is Reason.SearchBudgetExceeded:
        names = " + ".join(engine.engine.name for engine in fit.engines)
        return Rejection(outcome, detail=names, parts=engines)
    headline = min(engines, key=lambda rejection: rejection.reason.depth)
    return headline._replace(parts=engines)


def on_pools(fit: ClusterFit, room: Explained, why: Why) -> Iterator[OnPools]:
    """Every engine on every pool, in the order of engines and pools: what the verdict rests on."""
    for number, engine in enumerate(fit.engines):
        alone = {option.pools[0]: option for option in engine.options if len(set(option.pools)) == 1}
        barred = dict(why(number))
        for at, pool in enumerate(room.cluster.pools):
            if at in alone:
                lack = _lack(alone[at], room)
                short = _short(lack, room) if lack else None
                yield OnPools(engine.engine.name, (pool.name,), alone[at].nodes, short)
            elif at in barred:
                rejection = barred[at].at(pool=pool.name, engine=engine.engine.name)
                yield OnPools(engine.engine.name, (pool.name,), None, rejection)


def _engine(engine_fit: EngineFit, room: Explained, why: Callable[[], Barred]) -> Rejection | None:
    """The verdict on one engine; None when it fits alone."""
    lacks = [_lack(option, room) for option in engine_fit.options]
    if None in lacks:
        return None
    name, barred, cluster = engine_fit.engine.name, why(), room.cluster
    pools = [
        *(_short(lack, room, name) for lack in lacks if lack),
        *(rejection.at(pool=cluster.pools[at].name, engine=name) for at, rejection in barred),
    ]
    split = _split(engine_fit, barred)
    headline = max(pools, key=_nearness)
    parts = tuple(pools)
    if split is not None and split.depth > headline.reason.depth:
        return Rejection(split, detail=_apart(engine_fit.engine, cluster, barred), engine=name, parts=parts)
    return headline._replace(parts=parts)


def _nearness(rejection: Rejection) -> tuple[int, int, int, int]:
    """How near a pool comes: deeper reason, fewer nodes missing, fewer failures, later selector."""
    selector = -1 if rejection.selector is None else rejection.selector
    return (rejection.reason.depth, -rejection.missing, -len(rejection.leaves), selector)


class Lack(NamedTuple):
    """The pool of an option, by its position, that has too few free nodes."""

    pool: int
    shortage: Shortage | None
    """None where the steps ended before it was told: then `why` says so."""
    why: str = ""


def _lack(option: EngineOption, room: Explained) -> Lack | None:
    """Find the pool of an option that lacks most nodes."""
    lacks = []
    for at, demand in option.demands:
        try:
            shortage = room.free[at].shortage(demand, room.budget)
        except OutOfSteps as ended:
            return Lack(at, None, str(ended) or f"{room.budget.steps} steps")
        if shortage is not None:
            lacks.append((shortage.needs - shortage.free, Lack(at, shortage)))
    return max(lacks, key=itemgetter(0))[1] if lacks else None


def _short(lack: Lack, room: Explained, engine: str = "") -> Rejection:
    """Say how many nodes a pool lacks."""
    pool, shortage = room.cluster.pools[lack.pool], lack.shortage
    if shortage is None:
        return Rejection(Reason.SearchBudgetExceeded, detail=lack.why, pool=pool.name, engine=engine)
    return Rejection(
        _scarce(room.ledger, room.cluster, pool),
        pool=pool.name,
        engine=engine,
        needs=shortage.needs,
        free=shortage.free,
        total=pool.nodes,
        unusable=pool.unusable,
    )


def _scarce(ledger: Ledger, cluster: InferenceCluster, pool: Pool) -> Reason:
    """Return the resources that a pool is short of."""
    if ledger.overcommitted(cluster.name, pool.name):
        return Reason.PoolOvercommitted
    return Reason.InsufficientDevices if pool.accounting == "Device" else Reason.InsufficientNodes


def _split(engine_fit: EngineFit, barred: Barred) -> Reason | None:
    """Members that each fit some pool, but not together: the engine would have to be split."""
    if len(engine_fit.engine.members) == 1:
        return None  # It is never split, whatever each of its pools lacks.
    if not engine_fit.scattered or all(
        rejection.reason is Reason.NothingClaimable for _, rejection in barred
    ):
        return None
    return Reason.FabricMismatch if engine_fit.engine.pool_policy == "SameFabric" else Reason.NoSinglePool


def _apart(engine: Engine, cluster: InferenceCluster, barred: Barred) -> str:
    """Say which member fits which pools: `Leader fits big, Worker fits small`."""
    unfit = {at: {leaf.member for leaf in rejection.leaves} for at, rejection in barred}
    phrases = []
    for member in engine.members:
        pools = [cluster.pools[at].name for at, members in unfit.items() if member.role not in members]
        phrases.append(f"{member.role} fits {' or '.join(pools)}")
    return ", ".join(phrases)
