"""Overcommitted pools: two deployments picked one node, and more is held than the pool has.

Composites reconcile at the same time from cached reads, so it can happen. It is inferred from what is
observed, terminating replicas aside, never from what this pass decides, so every instance sees the same.
Nothing new is charged there (the ledger is below zero). With `overcommit: Yield`, every replica beyond
capacity that never was Ready gives way in one pass, the last by creation, namespace and name first, and is
placed anew; every instance computes the same ones, and a replica that ever was Ready never yields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from function.api.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.api import ModelReplica
    from function.api.ownership import OwnReplica
    from function.scheduler.capacity.ledger import Ledger
    from function.scheduler.capacity.pool_capacity import PoolCapacity


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

    def __str__(self) -> str:
        """`use1/frontier holds 3 of 2 nodes`."""
        name, nodes = f"{self.cluster}/{self.pool}", counted(self.total, "node")
        if self.by_devices:
            return f"{name} holds {self.nodes} pods, and some packing on its {nodes} strands one"
        return f"{name} holds {self.nodes} of {nodes}"


def all_overcommitted(ledger: Ledger) -> tuple[Overcommitted, ...]:
    """The overcommitted pools of the whole fleet, whoever holds them."""
    return tuple(_entry(ledger, cluster, pool) for cluster, pool in ledger.overcommitted_pools())


def overcommitted_pools(own_replicas: Iterable[OwnReplica], ledger: Ledger) -> tuple[Overcommitted, ...]:
    """The overcommitted pools that replicas of this deployment hold something of."""
    held = sorted(
        {
            (own_replica.holds, pool)
            for own_replica in own_replicas
            if not own_replica.terminating
            for pool in own_replica.replica.nodes
        }
    )
    return tuple(
        _entry(ledger, cluster, pool) for cluster, pool in held if ledger.overcommitted(cluster, pool)
    )


def _entry(ledger: Ledger, cluster: str, pool: str) -> Overcommitted:
    nodes, size = ledger.living_nodes(cluster, pool), ledger.size(cluster, pool)
    return Overcommitted(cluster, pool, nodes, size, by_devices=ledger.by_devices(cluster, pool))


def seniority(replica: ModelReplica) -> tuple[str, str, str]:
    """The order in which replicas have a right to their nodes: creation, namespace, name."""
    return (replica.created, replica.namespace, replica.name)


def may_yield(replica: ModelReplica) -> bool:
    """Whether a replica can be asked to give way: it can be read, and never was Ready."""
    return replica.whole and not (replica.ready is True or replica.was_ready)


@dataclass(frozen=True, slots=True)
class Yielding:
    """A replica that gives way, and the pool in which it does."""

    replica: ModelReplica
    pool: str


def yielding(ledger: Ledger) -> tuple[Yielding, ...]:
    """Every replica that gives way anywhere in the fleet, by seniority.

    Those that cannot give way keep what they hold. Of the others each keeps its own, the most senior first,
    if its pools still have it then; who is left over gives way. All of them are found at once: one in each
    pass would take as many passes as there are replicas too many. A replica that stands on two pools is
    judged once, and one that still fits after a larger one had to go stays.
    """
    rooms = {key: ledger.initial(*key) for key in ledger.overcommitted_pools()}
    charges: list[tuple[str, ModelReplica]] = []
    for cluster in sorted({cluster for cluster, _ in rooms}):
        for replica in ledger.living(cluster):
            if may_yield(replica):
                charges.append((cluster, replica))
            else:
                _occupy(rooms, ledger, cluster, replica)
    gives_way = []
    for cluster, replica in sorted(charges, key=lambda charge: seniority(charge[1])):
        pool = _lacking(rooms, ledger, cluster, replica)
        if pool is None:
            _occupy(rooms, ledger, cluster, replica)
        else:
            gives_way.append(Yielding(replica, pool))
    return tuple(gives_way)


Rooms: TypeAlias = "dict[tuple[str, str], PoolCapacity]"
"""What is left of the overcommitted pools, by cluster and pool."""


def _occupy(rooms: Rooms, ledger: Ledger, cluster: str, replica: ModelReplica) -> None:
    """Charge a replica to the pools that are watched, whether or not they have the room."""
    for pool, demand in ledger.demands(replica).items():
        if (cluster, pool) in rooms:
            rooms[cluster, pool] = rooms[cluster, pool].charged(demand)


def _lacking(rooms: Rooms, ledger: Ledger, cluster: str, replica: ModelReplica) -> str | None:
    """The first watched pool that has no room for a replica; None when all have."""
    for pool, demand in ledger.demands(replica).items():
        room = rooms.get((cluster, pool))
        if room is not None and pool in replica.nodes and room.shortage(demand):
            return pool
    return None
