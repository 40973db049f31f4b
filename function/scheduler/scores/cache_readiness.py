"""placement.cache Prefer: clusters on which the weights are nearest to being staged come first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.cache import readiness

if TYPE_CHECKING:
    from function.api import ModelCache
    from function.api.cache import Readiness
    from function.scheduler.candidate import Candidate
    from function.scheduler.capacity.ledger import ReplicaCounts
    from function.scheduler.scheduling_input import SchedulingInput


class CacheReadiness:
    """Prefers clusters where the referenced cache is Ready, then Hydrating, Pending, unknown, Failed."""

    description = "readiness of the cache"
    elsewhere = False

    def __init__(self, cache: ModelCache) -> None:
        """Take the cache."""
        self._phases = cache.phases

    @classmethod
    def of(cls, inputs: SchedulingInput) -> CacheReadiness | None:
        """Build it where it is preferred, and a cache is referenced and found."""
        cache = inputs.fleet.cache
        return cls(cache) if cache and inputs.policy.cache == "Prefer" else None

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> Readiness:
        """How far the cluster's phase is from serving."""
        return readiness(self._phases.get(candidate.cluster.name, ""))
