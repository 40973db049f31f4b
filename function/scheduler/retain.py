"""Retain: every existing replica keeps its cluster, index and pools unless Law 2 lists a reason not to.

Law 2. Crossplane deletes what is missing from the desired state, so doubt never removes a running replica.
One leaves only for a reason of this list, and the reason is on record:

1. its InferenceCluster no longer exists: the list was delivered, is not empty, and does not have it (here);
2. its cluster has a NoExecute taint that the deployment does not tolerate (here);
3. it is mismatched (`mismatch`), or superseded by a rollout with surge, which is opt-in (`rollout`),
   and its replacement has a place (`replace`);
4. scale down (`scale_down`);
5. it is being deleted already (here);
6. it yields its place in an overcommitted pool, where that is asked for (here, from `ledger`);
7. it or its cluster has been degraded for longer than asked, which is opt-in (`outcomes`), and its
   replacement has a place (`replace`).

A line that makes one leave cites its reason. Another way to leave is another line here, and a discussion
before that. Who is dropped in this module is in `_leaves` and `_yields`, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from function.api.taints import untolerated
from function.scheduler.disruption import leaving_now
from function.scheduler.mismatch import examine
from function.scheduler.outcomes import Cause, Dropped, Kept, evacuation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.api.ownership import OwnReplica
    from function.scheduler.ledger import Ledger, Yielding
    from function.scheduler.matching.matcher import Matcher
    from function.scheduler.outcomes import Evacuation
    from function.scheduler.scheduling_input import SchedulingInput


@dataclass(frozen=True, slots=True)
class Retained:
    """The replicas that stay and those that leave, before anything is scaled or placed."""

    kept: tuple[Kept, ...]
    dropped: tuple[Dropped, ...]


def _drained(inputs: SchedulingInput, own_replica: OwnReplica) -> str:
    """The NoExecute taint that drains the replica's cluster; empty when there is none."""
    cluster = inputs.fleet.clusters.get(own_replica.cluster)
    taints = cluster.spec.taints if cluster else ()
    left = untolerated(taints, inputs.deployment.template.tolerations)
    return next((str(taint) for taint in left if taint.effect == "NoExecute"), "")


def _leaves(inputs: SchedulingInput, own_replica: OwnReplica) -> Dropped | None:
    """The reason, of those that need no replacement, for which a replica leaves."""
    if own_replica.terminating:  # Law 2, reason 5.
        return Dropped(own_replica, Cause.Terminating)
    # Doubt: whose it is, what there is, or where it runs cannot be read. Doubt keeps.
    if (
        own_replica.identity is None
        or not inputs.fleet.inputs_delivered
        or own_replica.holds != own_replica.cluster
    ):
        return None
    if inputs.fleet.gone(own_replica.cluster):  # Law 2, reason 1.
        return Dropped(own_replica, Cause.ClusterGone, f"cluster {own_replica.cluster}")
    taint = _drained(inputs, own_replica)  # Law 2, reason 2.
    return Dropped(own_replica, Cause.Drained, taint) if taint else None


def _stays(
    inputs: SchedulingInput,
    matcher: Matcher,
    ledger: Ledger,
    evacuating: Evacuation,
    own_replica: OwnReplica,
) -> Kept:
    """How a replica stays: in doubt as it is observed, else as `mismatch` finds it."""
    if own_replica.identity is None:
        return Kept(own_replica, doubt=f"the key {own_replica.key} cannot be read")
    if not inputs.fleet.inputs_delivered:
        return Kept(own_replica, doubt="required resources are not delivered yet")
    if not own_replica.readable:
        return Kept(own_replica, doubt="the replica cannot be read")
    if inputs.selectors.invalid:
        return Kept(own_replica, doubt="a selector does not compile")
    cluster = inputs.fleet.clusters.get(own_replica.cluster)
    kept = examine(inputs, matcher, ledger, own_replica, cluster)
    too_long = None if kept.mismatch else evacuating.mismatch(own_replica, cluster)
    if too_long is None:
        return kept
    # Law 2, reason 7. It matches as ever: while it has nowhere to go it is updated like any other, which
    # may mend it.
    return replace(kept, mismatch=too_long, detail=f"for over {evacuating.after} s")


def _yields(inputs: SchedulingInput, gives_way: Iterable[Yielding]) -> dict[str, Dropped]:
    """Own replicas that give way in an overcommitted pool, by key (Law 2, reason 6)."""
    pools = {(yielding.replica.namespace, yielding.replica.name): yielding.pool for yielding in gives_way}
    return {
        own_replica.key: Dropped(
            own_replica,
            Cause.Yielded,
            f"pool {pools[own_replica.replica.namespace, own_replica.replica.name]}",
        )
        for own_replica in inputs.fleet.own_replicas
        if own_replica.identity is not None
        and (own_replica.replica.namespace, own_replica.replica.name) in pools
    }


def retain(
    inputs: SchedulingInput, matcher: Matcher, ledger: Ledger, gives_way: Iterable[Yielding] = ()
) -> Retained:
    """Go through the existing replicas in the order of cluster and index. `gives_way` names who yields."""
    yields = _yields(inputs, gives_way)
    leaving = {
        own_replica.key: _leaves(inputs, own_replica) or yields.get(own_replica.key)
        for own_replica in inputs.fleet.own_replicas
    }
    drains = {key: drop for key, drop in leaving.items() if drop and drop.cause is Cause.Drained}
    staying = [
        own_replica
        for own_replica in inputs.fleet.own_replicas
        if leaving[own_replica.key] is None or own_replica.key in drains
    ]
    now = leaving_now(inputs, staying, [drain.own_replica for drain in drains.values()])
    stays = partial(_stays, inputs, matcher, ledger, evacuation(inputs))
    kept: list[Kept] = []
    dropped: list[Dropped] = []
    for own_replica in inputs.fleet.own_replicas:
        gone = leaving[own_replica.key]
        if gone is None:
            kept.append(stays(own_replica))
        elif own_replica.key in drains and own_replica.key not in now:
            kept.append(replace(stays(own_replica), waits=f"drain ({gone.detail})"))
        else:
            dropped.append(gone)
    return Retained(tuple(kept), tuple(dropped))
