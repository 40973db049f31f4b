"""Remedies for want of nodes: add some, or have another deployment free some."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from function.api.reasons import Reason
from function.deployment.explain.change import Change, Cost, changed, with_cluster
from function.deployment.explain.remedies.seen import EACH, SHORT, Seen, counted, missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import InferenceCluster
    from function.api.reasons import Rejection
    from function.scheduler.scheduling_input import SchedulingInput


def nodes(seen: Seen) -> Iterator[Change]:
    """Add nodes to the pool that misses the fewest."""
    for cluster, found in seen.headed(*SHORT)[:EACH]:
        needed = _needed(seen, cluster, found.pool)
        yield _grown(cluster, found.pool, missing(found), found.free or 0)
        if needed > (found.needs or 0):
            yield _grown(cluster, found.pool, needed - (found.free or 0), found.free or 0)
    for cluster, _ in seen.headed(Reason.JointCapacity)[:1]:
        for pool in cluster.pools:
            free = seen.decision.ledger.free(cluster.name, pool.name)
            needed = _needed(seen, cluster, pool.name)
            if needed > free:
                yield _grown(cluster, pool.name, needed - free, free)


def _needed(seen: Seen, cluster: InferenceCluster, pool: str) -> int:
    """Nodes that all engines that fit a pool's devices need there together."""
    placer = seen.decision.placer
    found = list(placer.on_pools(cluster)) if placer else []
    first = found[0][0].name if found else ""
    return sum(each.nodes or 0 for shape, each in found if shape.name == first and each.pools == (pool,))


def _grown(cluster: InferenceCluster, pool: str, more: int, free: int) -> Change:
    total = cluster.by_name[pool].nodes

    def apply(inputs: SchedulingInput) -> SchedulingInput:
        status = cluster.status
        if status is None:
            return inputs
        pools = status.gpu_pools or ()
        grown = tuple(changed(e, nodes=e.nodes + more) if e.name == pool else e for e in pools)
        return with_cluster(inputs, changed(cluster, status=changed(status, gpu_pools=grown)))

    text = f"add {counted(more, 'node')} to pool {pool} of cluster {cluster.name} ({total} to {total + more})"
    return Change(
        "AddNodes",
        Cost.HARDWARE,
        text,
        apply,
        {"cluster": cluster.name, "pool": pool, "nodes": more},
        group=f"nodes {cluster.name}/{pool}",
        smaller=lambda number: _grown(cluster, pool, number, free),
        bounds=(1, more),
    )


def holders(seen: Seen) -> Iterator[Change]:
    """Free nodes that another deployment holds, in the pool that misses the fewest."""
    for cluster, found in seen.headed(*SHORT)[:EACH]:
        held = seen.decision.ledger.holders(cluster.name, found.pool)
        others = {name: count for name, count in held.items() if name != _own(seen.inputs)}
        enough = sorted((count, name) for name, count in others.items() if count >= missing(found))
        if enough:
            yield _freed(seen, cluster, found, enough[0][1])


def _own(inputs: SchedulingInput) -> str:
    return f"{inputs.deployment.namespace}/{inputs.deployment.name}"


def _freed(seen: Seen, cluster: InferenceCluster, found: Rejection, holder: str) -> Change:
    pool, wanted = found.pool, missing(found)
    leaving: set[int] = set()
    freed = 0
    for each in sorted(
        seen.inputs.fleet.other_replicas, key=lambda each: (each.nodes.get(pool, 0), each.name)
    ):
        holds = f"{each.namespace}/{each.deployment or each.name}" == holder and each.cluster == cluster.name
        if holds and each.nodes.get(pool) and freed < wanted:
            leaving.add(id(each))
            freed += each.nodes[pool]

    def apply(inputs: SchedulingInput) -> SchedulingInput:
        others = tuple(each for each in inputs.fleet.other_replicas if id(each) not in leaving)
        return replace(inputs, fleet=replace(inputs.fleet, other_replicas=others))

    text = f"free {counted(freed, 'node')} of pool {pool} of cluster {cluster.name}, held by {holder}"
    facts = {"cluster": cluster.name, "pool": pool, "nodes": freed, "heldBy": holder}
    return Change("FreeNodes", Cost.FREE, text, apply, facts, group=f"free {cluster.name}/{pool}")
