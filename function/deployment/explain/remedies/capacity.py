"""Remedies for want of nodes: add some, or have another deployment free some."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from function.api.charge import is_anonymous
from function.api.reasons import Reason
from function.api.text import counted
from function.deployment.explain.change import Effort, InputChange, changed, with_cluster
from function.deployment.explain.remedies.context import CHANGES_PER_KIND, SHORT, ProposalContext
from function.scheduler.other_replicas import Unshared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import InferenceCluster
    from function.api.reasons import Rejection
    from function.scheduler.scheduling_input import SchedulingInput


def nodes(context: ProposalContext) -> Iterator[InputChange]:
    """Add nodes to the pool that misses the fewest."""
    for cluster, rejection in context.headed(*SHORT)[:CHANGES_PER_KIND]:
        needed = _needed(context, cluster, rejection.pool)
        yield _grown(cluster, rejection.pool, rejection.missing)
        if needed > (rejection.needs or 0):
            yield _grown(cluster, rejection.pool, needed - (rejection.free or 0))
    for cluster, _ in context.headed(Reason.JointCapacity)[:1]:
        for pool in cluster.pools:
            free = context.decision.ledger.free(cluster.name, pool.name)
            needed = _needed(context, cluster, pool.name)
            if needed > free:
                yield _grown(cluster, pool.name, needed - free)


def _needed(context: ProposalContext, cluster: InferenceCluster, pool: str) -> int:
    """Nodes that all engines that fit a pool's devices need there together."""
    placer = context.decision.placer
    verdicts = list(placer.on_pools(cluster)) if placer else []
    first = verdicts[0][0].name if verdicts else ""
    return sum(
        verdict.nodes or 0 for shape, verdict in verdicts if shape.name == first and verdict.pools == (pool,)
    )


def _grown(cluster: InferenceCluster, pool: str, more: int) -> InputChange:
    total = cluster.by_name[pool].nodes

    def apply(inputs: SchedulingInput) -> SchedulingInput:
        status = cluster.status
        if status is None:
            return inputs
        grown = tuple(
            changed(published, nodes=published.nodes + more) if published.name == pool else published
            for published in status.gpu_pools or ()
        )
        return with_cluster(inputs, changed(cluster, status=changed(status, gpu_pools=grown)))

    text = f"add {counted(more, 'node')} to pool {pool} of cluster {cluster.name} ({total} to {total + more})"
    return InputChange(
        "AddNodes",
        Effort.HARDWARE,
        text,
        apply,
        {"cluster": cluster.name, "pool": pool, "nodes": more},
        group=f"nodes {cluster.name}/{pool}",
        smaller=lambda number: _grown(cluster, pool, number),
        bounds=(1, more),
    )


def holders(context: ProposalContext) -> Iterator[InputChange]:
    """Free nodes that another deployment holds, in the pool that misses the fewest."""
    deployment = context.inputs.deployment
    deployment_name = f"{deployment.namespace}/{deployment.name}"
    for cluster, rejection in context.headed(*SHORT)[:CHANGES_PER_KIND]:
        held = context.decision.ledger.holders(cluster.name, rejection.pool)
        enough = [
            (count, holder)
            for holder, count in held.items()
            if holder != deployment_name and not is_anonymous(holder) and count >= rejection.missing
        ]
        if enough:
            yield _freed(context, cluster, rejection, min(enough)[1])


def _freed(
    context: ProposalContext, cluster: InferenceCluster, rejection: Rejection, holder: str
) -> InputChange:
    """Have a holder give up replicas on a pool, the smallest first, until enough nodes are free."""
    pool, freed = rejection.pool, 0
    leaving: set[tuple[str, str]] = set()
    others = context.inputs.fleet.other_replicas
    for replica in sorted(others, key=lambda replica: (replica.nodes.get(pool, 0), replica.name)):
        holds = (replica.holder, replica.cluster) == (holder, cluster.name)
        if holds and replica.nodes.get(pool) and freed < rejection.missing:
            leaving.add((replica.namespace, replica.name))
            freed += replica.nodes[pool]

    def apply(inputs: SchedulingInput) -> SchedulingInput:
        staying = Unshared(
            replica
            for replica in inputs.fleet.other_replicas
            if (replica.namespace, replica.name) not in leaving
        )
        return replace(inputs, fleet=replace(inputs.fleet, other_replicas=staying))

    text = f"free {counted(freed, 'node')} of pool {pool} of cluster {cluster.name}, held by {holder}"
    facts = {"cluster": cluster.name, "pool": pool, "nodes": freed, "heldBy": holder}
    return InputChange("FreeNodes", Effort.FREE, text, apply, facts, group=f"free {cluster.name}/{pool}")
