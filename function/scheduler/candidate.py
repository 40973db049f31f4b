"""A candidate: one cluster with a complete choice of pools for one new replica."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.scheduler.capacity.device_accounting import total

if TYPE_CHECKING:
    from function.api import Engine, InferenceCluster
    from function.api.deployment import Shape
    from function.scheduler.capacity.device_accounting import Gangs
    from function.scheduler.matching.engine_options import EngineOption


@dataclass(frozen=True, slots=True)
class Candidate:
    """Where a new replica could go."""

    cluster: InferenceCluster
    shape: Shape
    options: tuple[EngineOption, ...]
    """One per engine, in the order of the shape's engines."""
    free_left: int
    """Free nodes left in the pools it would use."""

    @property
    def nodes(self) -> dict[str, int]:
        """Nodes it takes, by pool name."""
        taken: dict[str, int] = {}
        for option in self.options:
            for at, nodes in option.nodes:
                pool = self.cluster.pools[at].name
                taken[pool] = taken.get(pool, 0) + nodes
        return taken

    @property
    def gangs(self) -> dict[str, Gangs]:
        """Pods it puts on each pool, by pool name; none where no pool of the cluster charges devices."""
        if not self.cluster.counts_devices:
            return {}
        parts: dict[str, list[Gangs]] = defaultdict(list)
        for option in self.options:
            for at, gangs in option.gangs:
                parts[self.cluster.pools[at].name].append(gangs)
        return {pool: total(each) for pool, each in parts.items()}

    @property
    def engines(self) -> tuple[tuple[Engine, EngineOption], ...]:
        """Each engine with its option."""
        return tuple(zip(self.shape.engines, self.options, strict=True))

    def pool(self, option: EngineOption, member: int) -> str:
        """Name of the pool of one member."""
        return self.cluster.pools[option.pools[member]].name
