"""The referenced ModelCache must be staged on the cluster: its labels narrow new placements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.reasons import Reason, Rejection

if TYPE_CHECKING:
    from function.api import InferenceCluster, ModelCache
    from function.scheduler.scheduling_input import SchedulingInput


class CacheFootprint:
    """Rejects clusters outside the footprint of the referenced cache."""

    def __init__(self, cache: ModelCache) -> None:
        """Take the cache."""
        self._name, self._labels = cache.metadata.name, sorted(cache.footprint.items())

    @classmethod
    def of(cls, inputs: SchedulingInput) -> CacheFootprint | None:
        """Build it where a cache is referenced and found."""
        cache = inputs.fleet.cache
        return cls(cache) if cache and cache.footprint else None

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster that lacks one of the cache's labels."""
        for key, value in self._labels:
            if cluster.labels.get(key) != value:
                return Rejection(
                    Reason.OutsideCacheFootprint, detail=f"cache {self._name} wants {key}={value}"
                )
        return None
