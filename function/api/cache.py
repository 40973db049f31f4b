"""ModelCache: weights staged on the clusters its labels select.

Its footprint, the labels, gates new placements of deployments that refer to it: a cluster outside of it
takes none. Its phases, one for each cluster, do so only where `placement.cache` asks for it (docs/api.md).
Both are read here; what follows from them is in `scheduler.filters` and `scheduler.scores`.
"""

from collections import Counter
from functools import cached_property
from typing import Any, NamedTuple

from function.api.model import Metadata, Model, Reader

READY, UNKNOWN = "Ready", "unknown"
READINESS = (READY, "Hydrating", "Pending", UNKNOWN, "Failed")
"""The phases of a staged cache, the nearest to serving first. Unknown is a cluster without a phase, and one
with a phase that this build does not know. What has failed does not become Ready by waiting."""


class Readiness(NamedTuple):
    """How far a cluster's cache is from serving; smaller is nearer."""

    rank: int
    phase: str

    def __str__(self) -> str:
        """Return the phase."""
        return self.phase


def readiness(phase: str) -> Readiness:
    """Return how far a phase is from serving."""
    state = phase if phase in READINESS else UNKNOWN
    return Readiness(READINESS.index(state), state)


class LabelSelector(Model):
    """Plain equality on labels; nothing set selects everything."""

    match_labels: dict[str, str] = {}


class CacheSpec(Model):
    """Where the cache is staged."""

    cluster_selector: LabelSelector = LabelSelector.model_construct()


class ModelCache(Model):
    """One cache of model weights. Its labels narrow new placements; its phases do so where asked for."""

    metadata: Metadata
    spec: CacheSpec = CacheSpec.model_construct()
    status: Any = None
    """Read leniently by `phases`: what is wrong with it is no fault of whom it does not concern."""

    @property
    def footprint(self) -> dict[str, str]:
        """The labels a cluster must carry to hold the cache."""
        return self.spec.cluster_selector.match_labels

    @cached_property
    def phases(self) -> dict[str, str]:
        """The phase on each cluster that publishes one; a cluster that is listed twice has none."""
        read = Reader()
        status = self.status if isinstance(self.status, dict) else {}
        listed = [
            (read.text(cluster, "name"), read.text(cluster, "phase"))
            for cluster in read.maps(status, "clusters")
        ]
        times = Counter(name for name, _ in listed)
        return {name: phase for name, phase in listed if phase and times[name] == 1}
