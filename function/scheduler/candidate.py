"""A candidate: one cluster with a complete choice of pools for one new replica."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.scheduler.capacity.device_accounting import Demand, total

if TYPE_CHECKING:
    from function.api import Engine, InferenceCluster
    from function.api.engine import ReplicaShape
    from function.scheduler.matching.engine_options import EngineOption


@dataclass(frozen=True, slots=True)
class Candidate:
    """Where a new replica could go."""

    cluster: InferenceCluster
    shape: ReplicaShape
    options: tuple[EngineOption, ...]
    """One per engine, in the order of the shape's engines."""
    free_left: int
    """Free nodes left in the pools it would use."""

    @property
    def demands(self) -> dict[str, Demand]:
        """What it takes, by pool name."""
        parts: dict[str, list[Demand]] = defaultdict(list)
        for option in self.options:
            for at, demand in option.demands:
                parts[self.cluster.pools[at].name].append(demand)
        return {
            pool: Demand(sum(part.nodes for part in taken), total(part.gangs for part in taken))
            for pool, taken in parts.items()
        }

    @property
    def nodes(self) -> dict[str, int]:
        """Nodes it takes, by pool name."""
        return {pool: demand.nodes for pool, demand in self.demands.items()}

    @property
    def engines(self) -> tuple[tuple[Engine, EngineOption], ...]:
        """Each engine with its option."""
        return tuple(zip(self.shape.engines, self.options, strict=True))

    def pool(self, option: EngineOption, member: int) -> str:
        """Name of the pool of one member."""
        return self.cluster.pools[option.pools[member]].name
