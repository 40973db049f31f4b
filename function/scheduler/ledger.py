"""The ledger: what each pool has left, who holds it, and how many replicas each cluster counts for.

It is the one owner of these facts, so that no two steps of a pass can disagree about what is free.

1. The capacity of a pool is nodes, or (with Device accounting) the devices that its pods leave free. Both
   kinds have the same methods, so a caller need not know which one it has. They are values: taking returns
   another one.
2. A pool that holds more than it has is overcommitted. Who gives way there depends on what is observed alone.
3. `Ledger` charges replicas to pools. Its journal tells memos which clusters changed.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from function.api.cluster import DeviceKey, InferenceCluster
from function.api.ownership import OwnReplica
from function.api.replica import ModelReplica
from function.api.text import counted
from function.boundary import frozen
from function.scheduler import device_accounting
from function.scheduler.budget import PACKING, Budget, OutOfSteps
from function.scheduler.device_accounting import Demand, DeviceCapacity, PoolDevices, Shortage, minus
from function.scheduler.quota import QuotaUsage


class NodeCapacity(NamedTuple):
    """The free nodes of a pool that charges whole nodes; negative when it is overcommitted."""

    free_nodes: int

    def charged(self, demand: Demand) -> NodeCapacity:
        """Return the pool with a demand charged to it, admitted or not."""
        return NodeCapacity(self.free_nodes - demand.nodes)

    def take(self, demand: Demand, _: Budget) -> NodeCapacity | None:
        """Return what is left after a demand, or None when there is not enough."""
        return NodeCapacity(self.free_nodes - demand.nodes) if demand.nodes <= self.free_nodes else None

    def fits(self, demand: Demand, _: Budget) -> bool:
        """Tell whether there is room for a demand."""
        return demand.nodes <= self.free_nodes

    def shortage(self, demand: Demand, _: Budget) -> Shortage | None:
        """Say what stands against a demand; None when there is room."""
        return Shortage(demand.nodes, self.free_nodes) if demand.nodes > self.free_nodes else None

    def grown(self, nodes: int) -> NodeCapacity:
        """Return the pool with some nodes more, or less."""
        return NodeCapacity(self.free_nodes + nodes)


PoolCapacity: TypeAlias = NodeCapacity | DeviceCapacity
Capacities: TypeAlias = tuple[PoolCapacity, ...]
"""What each pool of a cluster has left, in the order of its pools."""


# Overcommitted pools: two deployments picked one node, and more is held than the pool has.
#
# Composites reconcile at the same time from cached reads, so it can happen. It is inferred from what is
# observed, terminating replicas aside, never from what this pass decides, so every instance sees the same.
# Nothing new is charged there (the ledger is below zero). With `overcommit: Yield`, every replica beyond
# capacity that never was Ready gives way in one pass, the last by creation, namespace and name first, and
# is placed anew; every instance computes the same ones, and a replica that ever was Ready never yields.


@frozen(order=True)
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
    published: bool = False
    """Whether the cluster says so, and not every replica on it is known."""

    def __str__(self) -> str:
        """`use1/frontier holds 3 of 2 nodes`."""
        name, nodes = f"{self.cluster}/{self.pool}", counted(self.total, "node")
        if self.published:
            return f"{name} holds more than its {nodes}"
        if self.by_devices:
            return f"{name} holds {self.nodes} pods, and some packing on its {nodes} strands one"
        return f"{name} holds {self.nodes} of {nodes}"


def overcommitted_pools(
    own_replicas: Iterable[OwnReplica], ledger: Ledger, publishing: Mapping[str, InferenceCluster]
) -> tuple[Overcommitted, ...]:
    """The overcommitted pools that replicas of this deployment hold something of.

    `publishing`: the clusters whose word is taken for it, because not every replica on them is charged.
    """
    held = sorted(
        {
            (own_replica.holds, pool)
            for own_replica in own_replicas
            if not own_replica.terminating
            for pool in own_replica.replica.nodes
        }
    )
    entries = []
    for cluster, pool in held:
        if ledger.overcommitted(cluster, pool):
            entries.append(ledger.overcommitment(cluster, pool))
        elif cluster in publishing and pool in publishing[cluster].overcommitted:
            total = publishing[cluster].node_counts.get((cluster, pool), 0)
            entries.append(Overcommitted(cluster, pool, 0, total, published=True))
    return tuple(entries)


def seniority(replica: ModelReplica) -> tuple[str, str, str]:
    """The order in which replicas have a right to their nodes: creation, namespace, name."""
    return (replica.created, replica.namespace, replica.name)


def may_yield(replica: ModelReplica) -> bool:
    """Tell whether a replica can be asked to give way: it can be read, and never was Ready."""
    return replica.whole and not (replica.ready is True or replica.was_ready)


@frozen
class Yielding:
    """A replica that gives way, and the pool in which it does."""

    replica: ModelReplica
    pool: str


def yielding(ledger: Ledger, *, without: Collection[str] = ()) -> tuple[Yielding, ...]:
    """Every replica that gives way anywhere in the fleet, by seniority; `without` some clusters.

    Those that cannot give way keep what they hold. Of the others each keeps its own, the most senior first,
    if its pools still have it then; who is left over gives way. All of them are found at once: one in each
    pass would take as many passes as there are replicas too many. A replica that stands on two pools is
    judged once, and one that still fits after a larger one had to go stays.
    """
    watched = [key for key in ledger.overcommitted_pools() if key[0] not in without]
    rooms = Rooms(ledger, {key: ledger.initial(*key) for key in watched})
    charges: list[tuple[str, ModelReplica]] = []
    for cluster in sorted({cluster for cluster, _ in rooms}):
        for replica in ledger.living(cluster):
            if may_yield(replica):
                charges.append((cluster, replica))
            else:
                rooms.occupy(cluster, replica)
    budgets = {key: Budget(PACKING) for key in rooms}
    gives_way = []
    for cluster, replica in sorted(charges, key=lambda charge: seniority(charge[1])):
        try:
            pool = rooms.lacking(cluster, replica, budgets)
        except OutOfSteps:  # Doubt: a replica whose pools may have the room stays.
            pool = None
        if pool is None:
            rooms.occupy(cluster, replica)
        else:
            gives_way.append(Yielding(replica, pool))
    return tuple(gives_way)


PoolKey: TypeAlias = tuple[str, str]
"""A pool of the fleet: the names of its cluster and of itself."""


class Rooms(dict[PoolKey, PoolCapacity]):
    """The capacities left in some pools while it is tried who gives way there. No other pool is watched."""

    def __init__(self, ledger: Ledger, left: Mapping[PoolKey, PoolCapacity]) -> None:
        """Start with what is left. `ledger` says what a replica demands."""
        super().__init__(left)
        self._ledger = ledger

    def occupy(self, cluster: str, replica: ModelReplica, sign: int = 1) -> None:
        """Charge a replica to the watched pools, whether or not they have the room; or (-1) take it out."""
        self.charge(cluster, self._ledger.demands(replica), sign)

    def charge(self, cluster: str, demands: Mapping[str, Demand], sign: int) -> None:
        """Charge demands likewise, or take them out."""
        for pool, demand in demands.items():
            if (cluster, pool) in self:
                charged = demand if sign > 0 else Demand(-demand.nodes, minus(demand.gangs))
                self[cluster, pool] = self[cluster, pool].charged(charged)

    def lacking(self, cluster: str, replica: ModelReplica, budgets: Mapping[PoolKey, Budget]) -> str | None:
        """The first watched pool that has no room for a replica; None when all have. Raises OutOfSteps."""
        for pool, demand in self._ledger.demands(replica).items():
            room = self.get((cluster, pool))
            if room is not None and pool in replica.nodes and room.shortage(demand, budgets[cluster, pool]):
                return pool
        return None


# The ledger: how much of each pool is taken and by whom, and how many replicas each cluster counts for.
#
# Rules. Everything that affects free capacity and counts must live here.
# 1. A pool starts at what it publishes. One that is not published has nothing, and charging it changes
#    nothing. What is free leaves out nodes that are known to be of no use; what is held by those that are
#    there is held against what is declared (`declared`, `initial`, `overcommitted`).
# 2. Every replica of every deployment is charged, as stamped on it, until it is really gone.
# 3. A pool charges nodes, or with Device accounting the pods themselves (`device_accounting`).
# 4. Replicas count for spreading while they are kept or placed, not while they are leaving.
#
# What was found out about a cluster holds until the journal names it again. A memo reads on from where it
# stopped, and forgets the clusters that it finds there: a change needs no list of whom to tell.

_VERSIONS = itertools.count()
"""Versions of counts, of which none is given twice in a process."""


class ReplicaCounts:
    """How many replicas of one deployment each cluster has, as far as spreading counts them."""

    def __init__(self, clusters: Iterable[str] = ()) -> None:
        """Count the clusters of the replicas that stay."""
        self._counts = Counter(clusters)
        self.version = next(_VERSIONS)
        """Counts of one version are equal."""

    def __getitem__(self, cluster: str) -> int:
        return self._counts[cluster]

    def add(self, cluster: str, number: int = 1) -> None:
        """Count some replicas more, or less."""
        self._counts[cluster] += number
        self.version = next(_VERSIONS)

    @property
    def key(self) -> frozenset[tuple[str, int]]:
        """The counts as a value: equal keys are equal counts."""
        return frozenset(entry for entry in self._counts.items() if entry[1])

    def copy(self) -> ReplicaCounts:
        """Return counts that are the same and go their own way from now on."""
        other = ReplicaCounts()
        other._counts.update(self._counts)
        other.version = self.version
        return other

    def by(self, group_of: Mapping[str, str]) -> Counter[str]:
        """Count the replicas on the clusters of each group, by the clusters' groups."""
        groups: Counter[str] = Counter()
        for cluster, number in self._counts.items():
            if cluster in group_of:
                groups[group_of[cluster]] += number
        return groups


class Ledger:
    """Free nodes and devices of each pool, the holders, and the replicas that count."""

    def __init__(self, clusters: Iterable[InferenceCluster]) -> None:
        """Open with what every cluster publishes."""
        self._sizes: dict[PoolKey, int] = {}
        self._empty: dict[PoolKey, DeviceCapacity] = {}
        self._unusable: dict[PoolKey, int] = {}
        self._apart: dict[str, list[str]] = defaultdict(list)
        equal: dict[DeviceKey, PoolDevices] = {}
        for cluster in clusters:
            self._sizes.update(cluster.node_counts)
            self._unusable.update(cluster.unusable_nodes)
            for pool in cluster.pools if cluster.counts_devices else ():
                if pool.accounting == "Device":
                    devices = equal.get(pool.device_key) or equal.setdefault(
                        pool.device_key, PoolDevices(pool)
                    )
                    self._empty[cluster.name, pool.name] = DeviceCapacity(pool.nodes, devices)
                    if pool.across_nodes:
                        self._apart[cluster.name].append(pool.name)
        self._free = dict(self._sizes)
        self._devices = dict(self._empty)
        for key, nodes in self._unusable.items():
            if key in self._free:
                self._free[key] -= nodes
            if key in self._devices:
                self._devices[key] = self._devices[key].grown(-nodes)
        self._held: dict[str, list[ModelReplica]] = defaultdict(list)
        self.journal: list[str] = []
        """The cluster of every change, in order. A memo notes how far it has read, and forgets the clusters
        that come after."""
        self._overcommitted: dict[PoolKey, bool] = {}  # Until a replica is opened or closed.
        self._settled: Iterable[PoolKey] = ()
        self._touched: frozenset[str] | None = None
        self.counts = ReplicaCounts()
        self.quotas: QuotaUsage | None = None
        """How much of each quota is held; None where there is none."""

    def copy(self) -> Ledger:
        """Return a ledger that says the same and goes its own way from now on."""
        other = Ledger(())
        other._sizes, other._empty = self._sizes, self._empty  # None of them changes after the opening.
        other._apart, other._unusable = self._apart, self._unusable
        other._free, other._devices = dict(self._free), dict(self._devices)
        other._held.update((cluster, list(replicas)) for cluster, replicas in self._held.items())
        other.journal = list(self.journal)
        other._settled, other._touched = self._settled, self._touched
        other.counts = self.counts.copy()
        other.quotas = self.quotas.copy() if self.quotas is not None else None
        return other

    def fork(self, touched: Iterable[str]) -> Ledger:
        """Return a ledger that says the same, on which more may be opened or closed on the touched clusters.

        The lists of the others are shared, and which of their pools are overcommitted is settled, so nothing
        may be opened on the ledger that was forked any more.
        """
        self._settled, self._touched = self.overcommitted_pools(), frozenset()
        other = Ledger(())
        other._settled, other._touched = self._settled, frozenset(touched)
        other._sizes, other._empty, other._apart = self._sizes, self._empty, self._apart
        other._unusable = self._unusable
        other._free, other._devices = dict(self._free), dict(self._devices)
        other._held.update(self._held)
        for cluster in other._touched:
            other._held[cluster] = list(self._held.get(cluster, ()))
        return other

    # What is left

    def capacity(self, cluster: str, pool: str) -> PoolCapacity:
        """Return the free capacity of a pool."""
        key = (cluster, pool)
        return self._devices[key] if key in self._devices else NodeCapacity(self._free.get(key, 0))

    def declared(self, cluster: str, pool: str) -> PoolCapacity:
        """Return the free capacity of a pool as if every node of it could be used: what runs goes by that."""
        return self.capacity(cluster, pool).grown(self._unusable.get((cluster, pool), 0))

    def present(self, cluster: InferenceCluster) -> Capacities | None:
        """Return the free capacities without nodes that are still to come; None where none is to come."""
        if not cluster.nodes_to_come:
            return None
        pairs = [(self.capacity(cluster.name, pool.name), pool.to_come) for pool in cluster.pools]
        return tuple([capacity.grown(-to_come) for capacity, to_come in pairs])

    def capacities(self, cluster: InferenceCluster) -> Capacities:
        """Return the free capacities of a cluster's pools, in their order."""
        return tuple([self.capacity(cluster.name, pool.name) for pool in cluster.pools])

    def rooms(self, cluster: InferenceCluster) -> Rooms:
        """Return the free capacities of a cluster's pools, to try on what comes of changes."""
        keys = [(cluster.name, pool.name) for pool in cluster.pools]
        return Rooms(self, {key: self.capacity(*key) for key in keys})

    def by_devices(self, cluster: str, pool: str) -> bool:
        """Tell whether a pool charges devices, not whole nodes."""
        return (cluster, pool) in self._empty

    def initial(self, cluster: str, pool: str) -> PoolCapacity:
        """Return the capacity of a pool before anything is charged to it."""
        key = (cluster, pool)
        return self._empty[key] if key in self._empty else NodeCapacity(self._sizes.get(key, 0))

    def levels(self, namespace: str) -> tuple[object, ...]:
        """Free capacities, overcommitted pools, and what is held of the quotas of a namespace, as a value.

        The rejections of one more replica of that namespace rest on no more.
        """
        usage = self.quotas
        held = (
            [(quota, dict(usage.held[quota.name])) for quota in usage.team(namespace).quotas] if usage else []
        )
        return dict(self._free), dict(self._devices), self.overcommitted_pools(), held

    # Charging

    def charge(self, cluster: str, demands: Mapping[str, Demand]) -> None:
        """Take of a cluster's pools, admitted or not."""
        for pool, demand in demands.items():
            key = (cluster, pool)
            if key in self._free:
                self._free[key] -= demand.nodes
            if key in self._devices:
                self._devices[key] = self._devices[key].charged(demand)
        self.journal.append(cluster)

    def release(self, cluster: str, demands: Mapping[str, Demand]) -> None:
        """Give back what was taken."""
        released = {pool: Demand(-demand.nodes, minus(demand.gangs)) for pool, demand in demands.items()}
        self.charge(cluster, released)

    def demands(self, replica: ModelReplica) -> dict[str, Demand]:
        """Return the demands of an existing replica, as stamped on it, by pool."""
        apart = self._apart.get(replica.cluster, ())
        gangs = device_accounting.stamped_gangs(replica.engines, apart=apart) if self._empty else {}
        return {pool: Demand(nodes, gangs.get(pool, ())) for pool, nodes in replica.nodes.items()}

    def occupy(self, replica: ModelReplica, cluster: str) -> None:
        """Charge a replica that exists, for what is stamped on it."""
        self.charge(cluster, self.demands(replica))
        if self.quotas is not None:
            self.quotas.count(replica, cluster)

    def vacate(self, replica: ModelReplica, cluster: str) -> None:
        """Give back what a replica that exists holds."""
        self.release(cluster, self.demands(replica))
        if self.quotas is not None:
            self.quotas.count(replica, cluster, -1)

    def open(self, replica: ModelReplica, cluster: str) -> None:
        """Charge a replica that exists and remember that it holds its place."""
        nodes = replica.nodes
        if not nodes:
            return
        self._held[cluster].append(replica)
        self._overcommitted.clear()
        if self._empty:
            self.occupy(replica, cluster)
            return
        free = self._free
        for pool, count in nodes.items():
            key = (cluster, pool)
            if key in free:
                free[key] -= count

    def close(self, replicas: Iterable[ModelReplica]) -> None:
        """Forget replicas that were opened on their clusters, and give back what they hold."""
        for replica in replicas:
            if replica.nodes:
                self._held[replica.cluster].remove(replica)
                self._overcommitted.clear()
                self.vacate(replica, replica.cluster)

    def limit(self, quotas: QuotaUsage) -> None:
        """Count from now on what quotas limit, and what exists at once."""
        held = self._held.items()
        quotas.count_all((cluster, replica) for cluster, replicas in held for replica in replicas)
        self.quotas = quotas

    # Counting

    def count(self, cluster: str, number: int = 1) -> None:
        """Count some replicas of the deployment more, or less, on a cluster."""
        self.counts.add(cluster, number)
        self.journal.append(cluster)

    def count_for(self, counts: ReplicaCounts) -> ReplicaCounts:
        """Count replicas of another deployment from now on; returns the counts before."""
        before, self.counts = self.counts, counts
        self.journal.extend({cluster for cluster, _ in before.key | counts.key})
        return before

    # Who holds what

    def holding(self, cluster: str, pool: str) -> list[ModelReplica]:
        """Existing replicas that hold something of a pool."""
        return [replica for replica in self._held.get(cluster, ()) if pool in replica.nodes]

    def holders(self, cluster: str, pool: str) -> dict[str, int]:
        """Nodes of a pool held by existing replicas, by `namespace/deployment`, most first."""
        held: dict[str, int] = defaultdict(int)
        for replica in self.holding(cluster, pool):
            held[replica.holder] += replica.nodes[pool]
        return dict(sorted(held.items(), key=lambda item: (-item[1], item[0])))

    @property
    def holding_clusters(self) -> list[str]:
        """The clusters of which existing replicas hold something."""
        return [cluster for cluster, replicas in self._held.items() if replicas]

    def living(self, cluster: str, *, deleting: bool = False) -> list[ModelReplica]:
        """Existing replicas that hold something of a cluster and stay; with `deleting` those that do not."""
        return [replica for replica in self._held.get(cluster, ()) if replica.deleting is deleting]

    def overcommitment(self, cluster: str, pool: str) -> Overcommitted:
        """Say how much of a pool its living replicas hold, for one that holds more than it has."""
        key, holding = (cluster, pool), self.holding(cluster, pool)
        nodes = sum(replica.nodes[pool] for replica in holding if not replica.deleting)
        return Overcommitted(*key, nodes, self._sizes.get(key, 0), by_devices=key in self._empty)

    def overcommitted_pools(self) -> list[PoolKey]:
        """Every overcommitted pool of the fleet, in order."""
        nodes: dict[PoolKey, int] = defaultdict(int)
        touched = self._held if self._touched is None else self._touched
        for cluster in touched:
            for replica in self._held[cluster]:
                if not replica.deleting:
                    for pool, count in replica.nodes.items():
                        nodes[cluster, pool] += count
        sizes, devices = self._sizes, self._empty
        overcommitted = (
            key
            for key, count in nodes.items()
            if key in sizes and (self.overcommitted(*key) if key in devices else count > sizes[key])
        )
        return sorted((*(key for key in self._settled if key[0] not in touched), *overcommitted))

    def overcommitted(self, cluster: str, pool: str) -> bool:
        """Tell if the living replicas that exist hold more than the pool has, whatever is decided now."""
        key = (cluster, pool)
        if key not in self._sizes:
            return False
        if key not in self._overcommitted:
            if key in self._empty:
                self._overcommitted[key] = self._strands(*key)
            else:
                self._overcommitted[key] = self.overcommitment(cluster, pool).nodes > self._sizes[key]
        return self._overcommitted[key]

    def _strands(self, cluster: str, pool: str) -> bool:
        """Tell if some packing of the living replicas strands a pod, where devices are charged."""
        held = self._empty[cluster, pool]
        for replica in self.holding(cluster, pool):
            if not replica.deleting:
                held = held.charged(self.demands(replica)[pool])
        try:
            return held.stranded(Budget(PACKING)) is not None
        except OutOfSteps:  # Doubt: the pool is not reported, and no replica yields there.
            return False
