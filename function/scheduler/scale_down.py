"""Scale down: who leaves when more are kept than wanted. Survivors are never moved.

Mismatched first; then unhealthy (on a cluster under an untolerated taint or known not to be Ready, then a
replica not Ready; what a cluster does not say makes nothing unhealthy); then the cluster with most of this
deployment's replicas, recomputed for each victim; then the highest index; then the later cluster name. A
replica whose key cannot be read is never a victim. With surge, what is not in service goes before all others,
the mismatched that serve until they are replaced included.

Load comes before the index: where fresh identities left gaps in the indices, the highest index first would
empty one cluster and leave the others full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.taints import untolerated
from function.scheduler.capacity.ledger import ReplicaCounts
from function.scheduler.causes import Cause
from function.scheduler.outcomes import Dropped, Kept
from function.scheduler.policy.disruption import surge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.scheduler.capacity.ledger import Ledger
    from function.scheduler.scheduling_input import SchedulingInput


def _sick(inputs: SchedulingInput, cluster: str) -> bool:
    """Whether a cluster is under an untolerated taint or says that it is not Ready. Its silence is doubt."""
    inference_cluster = inputs.fleet.clusters.get(cluster)
    return inference_cluster is not None and (
        inference_cluster.ready is False
        or bool(untolerated(inference_cluster.spec.taints, inputs.deployment.template.tolerations))
    )


def next_victim(inputs: SchedulingInput, kept: Iterable[Kept], among: Iterable[Kept]) -> Kept | None:
    """The replica that leaves first of those that can, among some of all that are kept."""
    counts = ReplicaCounts(stays.own_replica.cluster for stays in kept)

    def order(replica: Kept) -> tuple[object, ...]:
        own_replica = replica.own_replica
        index = own_replica.identity.index if own_replica.identity else -1
        unready = not inputs.serving(own_replica)
        sick = _sick(inputs, own_replica.cluster)
        idle = unready and surge(inputs) > 0
        return (
            idle,
            replica.mismatch is not None,
            sick,
            unready,
            counts[own_replica.cluster],
            index,
            own_replica.cluster,
        )

    return max((candidate for candidate in among if candidate.own_replica.identity), key=order, default=None)


def _excess(inputs: SchedulingInput, staying: list[Kept]) -> list[Kept]:
    """The replicas of which one is too many; none where there are no more than wanted.

    Surge: outgoing ones stay for their replacements, as far as surge allows, and then any may be too many.
    Where none is wanted nothing is replaced, so none stays for a replacement.
    """
    wanted = inputs.deployment.wanted
    allowed = surge(inputs) if wanted else 0
    lasting = [replica for replica in staying if not (allowed and replica.outgoing)]
    if len(lasting) > wanted:
        return lasting
    return staying if len(staying) > wanted + min(allowed, len(staying) - len(lasting)) else []


def scale_down(
    inputs: SchedulingInput, ledger: Ledger, kept: tuple[Kept, ...]
) -> tuple[tuple[Kept, ...], list[Dropped]]:
    """Drop the excess over what is wanted. What a victim would have grown by is given back."""
    staying, dropped = list(kept), []
    while inputs.fleet.inputs_delivered and (among := _excess(inputs, staying)):
        victim = next_victim(inputs, staying, among=among)
        if victim is None:
            break
        staying.remove(victim)
        ledger.release(victim.own_replica.cluster, victim.growth)
        dropped.append(Dropped(victim.own_replica, Cause.ScaledDown))  # Law 2, reason 4.
    return tuple(staying), dropped
