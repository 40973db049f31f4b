"""Retain: every existing replica keeps its cluster, index and pools unless Law 2 lists a reason not to.

Doubt never removes a running replica. Everything that can make one leave in this step is in `_leaves`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from function.api.taints import untolerated
from function.scheduler.decision import Cause, Dropped, Kept
from function.scheduler.mismatch import examine
from function.scheduler.policy.disruption import leaving_now

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.api.ownership import OwnReplica
    from function.scheduler.capacity.ledger import Ledger
    from function.scheduler.capacity.overcommit import Yielding
    from function.scheduler.matching.matcher import Matcher
    from function.scheduler.scheduling_input import SchedulingInput


@dataclass(frozen=True, slots=True)
class Retained:
    """Who stays and who leaves before anything is scaled or placed."""

    kept: tuple[Kept, ...]
    dropped: tuple[Dropped, ...]


def _drained(inputs: SchedulingInput, own: OwnReplica) -> str:
    """The NoExecute taint that drains the replica's cluster; empty when there is none."""
    cluster = inputs.fleet.clusters.get(own.cluster)
    taints = cluster.spec.taints if cluster else ()
    left = untolerated(taints, inputs.deployment.template.tolerations)
    return next((str(taint) for taint in left if taint.effect == "NoExecute"), "")


def _leaves(inputs: SchedulingInput, own: OwnReplica) -> Dropped | None:
    """The reason, of those that need no replacement, for which a replica leaves."""
    if own.terminating:
        return Dropped(own, Cause.Terminating)
    if own.identity is None or not inputs.fleet.inputs_delivered or own.holds != own.cluster:
        return None
    if inputs.fleet.gone(own.cluster):
        return Dropped(own, Cause.ClusterGone, f"cluster {own.cluster}")
    taint = _drained(inputs, own)
    return Dropped(own, Cause.Drained, taint) if taint else None


def _stays(inputs: SchedulingInput, matcher: Matcher, ledger: Ledger, own: OwnReplica) -> Kept:
    if own.identity is None:
        return Kept(own, doubt=f"the key {own.key} cannot be read")
    if not inputs.fleet.inputs_delivered:
        return Kept(own, doubt="required resources are not delivered yet")
    if not own.readable:
        return Kept(own, doubt="the replica cannot be read")
    if inputs.selectors.invalid:
        return Kept(own, doubt="a selector does not compile")
    return examine(inputs, matcher, ledger, own, inputs.fleet.clusters.get(own.cluster))


def _yields(inputs: SchedulingInput, gives_way: Iterable[Yielding]) -> dict[str, Dropped]:
    """Own replicas that give way in an overcommitted pool, by key."""
    pools = {(each.replica.namespace, each.replica.name): each.pool for each in gives_way}
    return {
        own.key: Dropped(own, Cause.Yielded, f"pool {pools[own.replica.namespace, own.replica.name]}")
        for own in inputs.fleet.own_replicas
        if own.identity is not None and (own.replica.namespace, own.replica.name) in pools
    }


def retain(
    inputs: SchedulingInput, matcher: Matcher, ledger: Ledger, gives_way: Iterable[Yielding] = ()
) -> Retained:
    """Go through the existing replicas in the order of cluster and index. `gives_way` names who yields."""
    yields = _yields(inputs, gives_way)
    leaving = {own.key: _leaves(inputs, own) or yields.get(own.key) for own in inputs.fleet.own_replicas}
    drains = {key: each for key, each in leaving.items() if each and each.cause is Cause.Drained}
    staying = [own for own in inputs.fleet.own_replicas if leaving[own.key] is None or own.key in drains]
    now = leaving_now(inputs, staying, [drain.own for drain in drains.values()])
    kept: list[Kept] = []
    dropped: list[Dropped] = []
    for own in inputs.fleet.own_replicas:
        gone = leaving[own.key]
        if gone is None:
            kept.append(_stays(inputs, matcher, ledger, own))
        elif own.key in drains and own.key not in now:
            kept.append(replace(_stays(inputs, matcher, ledger, own), waits=f"drain ({gone.detail})"))
        else:
            dropped.append(gone)
    return Retained(tuple(kept), tuple(dropped))
