"""The capacity that a pool has left: nodes, or (with Device accounting) the devices its pods leave free.

Both kinds have the same methods, so a caller need not know which one it has. They are values: taking returns
another one.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from function.scheduler.capacity.device_accounting import Demand, DeviceCapacity, Shortage


class NodeCapacity(NamedTuple):
    """The free nodes of a pool that charges whole nodes; negative when it is overcommitted."""

    free_nodes: int

    def charged(self, demand: Demand) -> NodeCapacity:
        """Return the pool with a demand charged to it, admitted or not."""
        return NodeCapacity(self.free_nodes - demand.nodes)

    def take(self, demand: Demand) -> NodeCapacity | None:
        """Return what is left after a demand, or None when there is not enough."""
        return NodeCapacity(self.free_nodes - demand.nodes) if demand.nodes <= self.free_nodes else None

    def shortage(self, demand: Demand) -> Shortage | None:
        """Say what stands against a demand; None when there is room."""
        return Shortage(demand.nodes, self.free_nodes) if demand.nodes > self.free_nodes else None

    def touched_by(self, demand: Demand) -> bool:
        """Whether a demand takes anything of it."""
        return bool(demand.nodes)


PoolCapacity: TypeAlias = NodeCapacity | DeviceCapacity
Capacities: TypeAlias = tuple[PoolCapacity, ...]
"""What each pool of a cluster has left, in the order of its pools."""
