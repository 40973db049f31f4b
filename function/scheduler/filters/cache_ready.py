"""placement.cache Require: the referenced ModelCache must have its weights on the cluster already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.cache import READY
from function.api.reasons import Reason, Rejection

if TYPE_CHECKING:
    from function.api import InferenceCluster, ModelCache
    from function.scheduler.scheduling_input import SchedulingInput


class CacheReady:
    """Rejects clusters where the referenced cache is not Ready. A phase that is not known is not Ready."""

    def __init__(self, cache: ModelCache) -> None:
        """Take the cache."""
        self._cache = cache

    @classmethod
    def of(cls, inputs: SchedulingInput) -> CacheReady | None:
        """Build it where it is required, and a cache is referenced and found."""
        cache = inputs.fleet.cache
        return cls(cache) if cache and inputs.policy.cache == "Require" else None

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster whose phase is another one."""
        phase = self._cache.phases.get(cluster.name, "")
        if phase == READY:
            return None
        detail = f"cache {self._cache.metadata.name} is {phase}" if phase else self._unknown()
        return Rejection(Reason.CacheNotReady, detail=detail)

    def _unknown(self) -> str:
        return f"cache {self._cache.metadata.name} has no phase there"
