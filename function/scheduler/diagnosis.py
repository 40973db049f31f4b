"""Diagnose why a cluster that passed every gate still cannot host one more replica.

An engine's headline is the deepest of its pools' reasons, the one nearest to fitting. A cluster's is that of
the engine that stands in the way: the one with the shallowest headline, since every engine must fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from function.api import Engine, InferenceCluster, Pool
from function.api.reasons import Level, Reason, Rejection
from function.scheduler.engine_options import Barred, ClusterFit, EngineFit, EngineOption
from function.scheduler.ledger import Capacities, Ledger

Why: TypeAlias = "Callable[[int], Barred]"
"""Why the engine at a position of the shape does not fit some pools; found out when it is called."""


@dataclass(frozen=True, slots=True)
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


def below_gates(
    fit: ClusterFit,
    cluster: InferenceCluster,
    ledger: Ledger,
    free: Capacities,
    outcome: Reason,
    why: Why,
) -> Rejection:
    """The verdict on a cluster where the search found nothing, with everything below it."""
    verdicts = (
        _engine(engine, cluster, ledger, free, partial(why, at)) for at, engine in enumerate(fit.engines)
    )
    engines = tuple(filter(None, verdicts))
    if not engines or (outcome.level is Level.REPLICA and fit.possible):
        names = " + ".join(engine.engine.name for engine in fit.engines)
        together = outcome if outcome.level is Level.REPLICA else Reason.JointCapacity
        return Rejection(together, detail=names, parts=engines)
    headline = min(engines, key=lambda rejection: rejection.reason.depth)
    return headline._replace(parts=engines)


def on_pools(
    fit: ClusterFit, cluster: InferenceCluster, ledger: Ledger, free: Capacities, why: Why
) -> Iterator[OnPools]:
    """Every engine on every pool, in the order of engines and pools: what the verdict rests on."""
    for number, engine in enumerate(fit.engines):
        alone = {option.pools[0]: option for option in engine.options if len(set(option.pools)) == 1}
        barred = dict(why(number))
        for at, pool in enumerate(cluster.pools):
            if at in alone:
                short = _short(alone[at], cluster, ledger, free)
                nodes = alone[at].nodes
                yield OnPools(engine.engine.name, (pool.name,), nodes, short)
            elif at in barred:
                rejection = barred[at].at(pool=pool.name, engine=engine.engine.name)
                yield OnPools(engine.engine.name, (pool.name,), None, rejection)


def _engine(
    engine_fit: EngineFit,
    cluster: InferenceCluster,
    ledger: Ledger,
    free: Capacities,
    why: Callable[[], Barred],
) -> Rejection | None:
    """The verdict on one engine; None when it fits alone."""
    short = [_short(option, cluster, ledger, free) for option in engine_fit.options]
    if any(rejection is None for rejection in short):
        return None
    name, barred = engine_fit.engine.name, why()
    pools = [
        *(rejection._replace(engine=name) for rejection in short if rejection),
        *(rejection.at(pool=cluster.pools[at].name, engine=name) for at, rejection in barred),
    ]
    if not pools:
        return Rejection(Reason.NoPoolsPublished, engine=name)
    split = None if engine_fit.options else _split(engine_fit, barred)
    headline = max(pools, key=_nearness)
    parts = tuple(pools)
    if split is not None and split.depth > headline.reason.depth:
        return Rejection(split, detail=_apart(engine_fit.engine, cluster, barred), engine=name, parts=parts)
    return headline._replace(parts=parts)


def _nearness(rejection: Rejection) -> tuple[int, int, int, int]:
    """How near a pool comes: deeper reason, fewer nodes missing, fewer failures, later selector."""
    selector = -1 if rejection.selector is None else rejection.selector
    return (rejection.reason.depth, -rejection.missing, -len(rejection.leaves), selector)


def _short(
    option: EngineOption, cluster: InferenceCluster, ledger: Ledger, free: Capacities
) -> Rejection | None:
    """Find the pool of an option that has too few free nodes, and say how many."""
    worst: Rejection | None = None
    for at, demand in option.demands:
        shortage = free[at].shortage(demand)
        if shortage is None:
            continue
        pool = cluster.pools[at]
        rejection = Rejection(
            _scarce(ledger, cluster, pool),
            pool=pool.name,
            needs=shortage.needs,
            free=shortage.free,
            total=pool.nodes,
            unusable=pool.unusable,
        )
        if worst is None or rejection.missing > worst.missing:
            worst = rejection
    return worst


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
