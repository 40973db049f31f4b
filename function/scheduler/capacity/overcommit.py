"""Overcommitted pools: two deployments picked one node, and more is held than the pool has.

Composites reconcile at the same time from cached reads, so it can happen. It is told from what is observed,
terminating replicas aside, never from what this pass decides, so every instance sees the same. Nothing new
is charged there (the ledger is below zero). With `overcommit: Yield`, of the replicas on the pool that never
were Ready the last by creation, namespace and name gives way and is placed anew; every instance computes the
same one, and a replica that ever was Ready never yields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.api import ModelReplica
    from function.api.ownership import OwnReplica
    from function.scheduler.capacity.ledger import Ledger


@dataclass(frozen=True, slots=True, order=True)
class Overcommitted:
    """A pool of this deployment's replicas that holds more than it has."""

    cluster: str
    pool: str
    nodes: int
    """Nodes that living replicas hold; pods, where devices are charged."""
    total: int
    """Nodes the pool has."""
    by_devices: bool = False
    """Whether the pool charges devices: then some packing of the pods would strand one."""


def overcommitted_pools(own: Iterable[OwnReplica], ledger: Ledger) -> tuple[Overcommitted, ...]:
    """The overcommitted pools that replicas of this deployment hold something of."""
    held = sorted({(each.holds, pool) for each in own if not each.terminating for pool in each.replica.nodes})
    return tuple(
        Overcommitted(
            cluster,
            pool,
            ledger.living_nodes(cluster, pool),
            ledger.size(cluster, pool),
            by_devices=ledger.by_devices(cluster, pool),
        )
        for cluster, pool in held
        if ledger.overcommitted(cluster, pool)
    )


def _may_yield(replica: ModelReplica) -> bool:
    """Whether a replica can be asked to give way: it lives, can be read, and never was Ready."""
    return not (replica.deleting or replica.ready is True or replica.was_ready) and replica.whole


def yielding(ledger: Ledger, pools: Iterable[Overcommitted]) -> list[tuple[ModelReplica, Overcommitted]]:
    """Who gives way in each overcommitted pool; nobody where every replica was Ready once."""
    found = []
    for each in pools:
        asked = [one for one in ledger.holding(each.cluster, each.pool) if _may_yield(one)]
        if asked:
            last = max(asked, key=lambda replica: (replica.created, replica.namespace, replica.name))
            found.append((last, each))
    return found
