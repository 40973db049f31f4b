"""The ledger: how much of each pool is taken, and by whom.

It starts at what each pool publishes and charges every replica that exists: nodes, or in a pool with Device
accounting the pods themselves (`accounting`). Everything that affects free capacity must live here.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from function.scheduler.capacity.device_accounting import Packing, free_nodes, kinds_of, minus, stamped_gangs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from function.api import InferenceCluster, ModelReplica
    from function.scheduler.capacity.device_accounting import Gangs, Room

Key = tuple[str, str]
"""A pool of the fleet: the names of its cluster and of itself."""
NO_GANGS: Mapping[str, Gangs] = {}


class Ledger:
    """What is left of each pool. One that is not published has nothing, and charging it changes nothing."""

    def __init__(self, clusters: Iterable[InferenceCluster]) -> None:
        """Open with what every cluster publishes."""
        self._free: dict[Key, int] = {}
        self._packed: dict[Key, Packing] = {}
        for cluster in clusters:
            name = cluster.name
            for pool in cluster.pools:
                self._free[name, pool.name] = pool.nodes
                if pool.accounting == "Device":
                    self._packed[name, pool.name] = Packing(pool.nodes, kinds_of(pool))
        self._sizes = dict(self._free)
        self._kinds = dict(self._packed)
        self._held: dict[str, list[ModelReplica]] = defaultdict(list)

    def room(self, cluster: str, pool: str) -> Room:
        """What a pool has left, as the search counts it."""
        key = (cluster, pool)
        return self._packed[key] if key in self._packed else self._free.get(key, 0)

    def free(self, cluster: str, pool: str) -> int:
        """Free nodes; negative when the pool is overcommitted."""
        return free_nodes(self.room(cluster, pool))

    def charge(self, cluster: str, nodes: Mapping[str, int], gangs: Mapping[str, Gangs] = NO_GANGS) -> None:
        """Take of a cluster's pools: nodes, or gangs where pods are charged by devices."""
        self._take(cluster, nodes)
        for pool, taken in gangs.items():
            key = (cluster, pool)
            if key in self._packed:
                self._packed[key] = self._packed[key].plus(taken)

    def _take(self, cluster: str, nodes: Mapping[str, int]) -> None:
        free = self._free
        for pool, count in nodes.items():
            key = (cluster, pool)
            if key in free:
                free[key] -= count

    def release(self, cluster: str, nodes: Mapping[str, int], gangs: Mapping[str, Gangs] = NO_GANGS) -> None:
        """Give back what was taken."""
        back = {pool: minus(taken) for pool, taken in gangs.items()}
        self.charge(cluster, {pool: -count for pool, count in nodes.items()}, back)

    def occupy(self, replica: ModelReplica, cluster: str) -> None:
        """Charge a replica that exists, for what is stamped on it."""
        self.charge(cluster, replica.nodes, self.gangs(replica))

    def vacate(self, replica: ModelReplica, cluster: str) -> None:
        """Give back what a replica that exists holds."""
        self.release(cluster, replica.nodes, self.gangs(replica))

    def gangs(self, replica: ModelReplica) -> Mapping[str, Gangs]:
        """The pods of a replica that exists, by pool; nothing where no pool charges devices."""
        return stamped_gangs(replica.engines) if self._packed else NO_GANGS

    def open(self, replica: ModelReplica, cluster: str) -> None:
        """Charge a replica that exists and remember that it holds its place."""
        nodes = replica.nodes
        if nodes:
            self._held[cluster].append(replica)
            if self._packed:
                self.occupy(replica, cluster)
            else:
                self._take(cluster, nodes)

    def holding(self, cluster: str, pool: str) -> list[ModelReplica]:
        """Existing replicas that hold something of a pool."""
        return [each for each in self._held.get(cluster, ()) if pool in each.nodes]

    def holders(self, cluster: str, pool: str) -> dict[str, int]:
        """Nodes of a pool held by existing replicas, by `namespace/deployment`, most first."""
        held: dict[str, int] = defaultdict(int)
        for replica in self.holding(cluster, pool):
            held[f"{replica.namespace}/{replica.deployment or replica.name}"] += replica.nodes[pool]
        return dict(sorted(held.items(), key=lambda item: (-item[1], item[0])))

    def size(self, cluster: str, pool: str) -> int:
        """Nodes a pool has."""
        return self._sizes.get((cluster, pool), 0)

    def by_devices(self, cluster: str, pool: str) -> bool:
        """Whether a pool charges devices, not whole nodes."""
        return (cluster, pool) in self._kinds

    def opening(self, cluster: str, pool: str) -> Room:
        """What a pool has before anybody holds anything of it."""
        key = (cluster, pool)
        return self._kinds[key] if key in self._kinds else self._sizes.get(key, 0)

    def living(self, cluster: str) -> list[ModelReplica]:
        """Existing replicas that hold something of a cluster, those that are being deleted aside."""
        return [each for each in self._held.get(cluster, ()) if not each.deleting]

    def overcommitted_pools(self) -> list[Key]:
        """Every overcommitted pool of the fleet, in order."""
        nodes: dict[Key, int] = defaultdict(int)
        for cluster, held in self._held.items():
            for replica in held:
                if not replica.deleting:
                    for pool, count in replica.nodes.items():
                        nodes[cluster, pool] += count
        sizes, kinds = self._sizes, self._kinds
        return sorted(
            key
            for key, count in nodes.items()
            if key in sizes and (self.overcommitted(*key) if key in kinds else count > sizes[key])
        )

    def living_nodes(self, cluster: str, pool: str) -> int:
        """Nodes of a pool that existing replicas hold, those that are being deleted aside."""
        return sum(each.nodes[pool] for each in self.holding(cluster, pool) if not each.deleting)

    def overcommitted(self, cluster: str, pool: str) -> bool:
        """Whether the living replicas that exist hold more than the pool has, whatever is decided now."""
        key = (cluster, pool)
        if key not in self._sizes:
            return False
        if key not in self._kinds:
            return self.living_nodes(cluster, pool) > self._sizes[key]
        packed = self._kinds[key]
        for each in self.holding(cluster, pool):
            if not each.deleting:
                packed = packed.plus(stamped_gangs(each.engines).get(pool, ()))
        return packed.shortage is not None
