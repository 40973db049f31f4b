"""The ledger: how many nodes of each pool are taken, and by whom.

It starts at each pool's published node count and charges every replica that exists. Everything that
affects free capacity must live here.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from function.api import InferenceCluster, ModelReplica

Key = tuple[str, str]
"""A pool of the fleet: the names of its cluster and of itself."""


class Ledger:
    """Free nodes by pool. A pool that is not published has none, and charging it changes nothing."""

    def __init__(self, clusters: Iterable[InferenceCluster]) -> None:
        """Open with what every cluster publishes."""
        self._free: dict[Key, int] = {
            (cluster.name, pool.name): pool.nodes for cluster in clusters for pool in cluster.pools
        }
        self._held: dict[str, list[ModelReplica]] = defaultdict(list)

    def free(self, cluster: str, pool: str) -> int:
        """Free nodes; negative when the pool is overcommitted."""
        return self._free.get((cluster, pool), 0)

    def charge(self, cluster: str, nodes: Mapping[str, int]) -> None:
        """Take nodes of a cluster, by pool. A pool that is not published charges nothing."""
        for pool, count in nodes.items():
            key = (cluster, pool)
            if key in self._free:
                self._free[key] -= count

    def release(self, cluster: str, nodes: Mapping[str, int]) -> None:
        """Give nodes back."""
        self.charge(cluster, {pool: -count for pool, count in nodes.items()})

    def open(self, replica: ModelReplica, cluster: str) -> None:
        """Charge a replica that exists, for the nodes stamped on it, and remember that it holds them."""
        if replica.nodes:
            self.charge(cluster, replica.nodes)
            self._held[cluster].append(replica)

    def holders(self, cluster: str, pool: str) -> dict[str, int]:
        """Nodes of a pool held by existing replicas, by `namespace/deployment`, most first."""
        held: dict[str, int] = defaultdict(int)
        for replica in self._held.get(cluster, ()):
            if pool in replica.nodes:
                held[f"{replica.namespace}/{replica.deployment or replica.name}"] += replica.nodes[pool]
        return dict(sorted(held.items(), key=lambda item: (-item[1], item[0])))

    def overcommitted(self, cluster: str, pool: str) -> bool:
        """Whether living replicas alone hold more than the pool has."""
        dying = sum(each.nodes.get(pool, 0) for each in self._held.get(cluster, ()) if each.deleting)
        return self.free(cluster, pool) + dying < 0
