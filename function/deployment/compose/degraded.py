"""Find degraded clusters, whose replicas may run and cannot be relied on, and say what is wrong there.

A degraded cluster keeps its replicas (Law 2). That nothing is wrong with the replica itself is worth saying:
who looks for the fault has to look at the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from function.api.text import listed
from function.boundary import Resolution

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from function.scheduler.decision import Decision

SHOWN = 3
"""How many degraded clusters a message names."""


class DegradedCluster(NamedTuple):
    """A cluster of this deployment's replicas that is not fit to serve."""

    name: str
    fault: str
    holds_ready: bool
    """Whether a replica on it is Ready itself: then the cluster is all that is wrong with that one."""


def degraded_clusters(decision: Decision, routable: Collection[str]) -> tuple[DegradedCluster, ...]:
    """The degraded clusters of the kept replicas, by name; none while the clusters are not delivered.

    A cluster without a gateway address is degraded only for a replica that has no endpoint from before:
    one whose endpoint is still there is reached as ever (`routable` holds the keys of those that are).
    """
    if decision.inputs.fleet.clusters_resolution is Resolution.UNRESOLVED:
        return ()
    degraded: dict[str, DegradedCluster] = {}
    for kept in decision.kept:
        own_replica = kept.own_replica
        fault = _fault(decision, own_replica.cluster, routed=own_replica.key in routable)
        if fault:
            before = degraded.get(own_replica.cluster)
            ready = own_replica.replica.ready is True or (before is not None and before.holds_ready)
            degraded[own_replica.cluster] = DegradedCluster(
                own_replica.cluster, before.fault if before else fault, ready
            )
    return tuple(degraded[name] for name in sorted(degraded))


def _fault(decision: Decision, name: str, *, routed: bool) -> str:
    """What is wrong with a cluster as far as traffic is concerned; empty for nothing."""
    fleet = decision.inputs.fleet
    cluster = fleet.clusters.get(name)
    if cluster is None:
        if routed:
            return ""  # Whether it is Ready is not known, and its endpoint is there.
        return "cannot be read" if name in fleet.unreadable else "is not in the fleet"
    if cluster.status is None:
        return "has no status"
    if not cluster.ready:
        return "is not Ready" if cluster.ready is False else "does not say whether it is Ready"
    return "" if cluster.gateway or routed else "has no gateway address"


def degraded_text(clusters: Sequence[DegradedCluster]) -> str:
    """`cluster use1 is not Ready, use2 has no gateway address`; empty for none."""
    if not clusters:
        return ""
    return f"cluster {listed([f'{cluster.name} {cluster.fault}' for cluster in clusters], SHOWN)}"
