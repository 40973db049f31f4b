"""ModelCache: weights staged on the clusters its labels select."""

from __future__ import annotations

from function.api.model import Metadata, Model


class LabelSelector(Model):
    """Plain equality on labels; nothing set selects everything."""

    match_labels: dict[str, str] = {}

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether every wanted label is there with the wanted value."""
        return all(labels.get(key) == value for key, value in self.match_labels.items())


class CacheSpec(Model):
    """Where the cache is staged."""

    cluster_selector: LabelSelector = LabelSelector()


class ModelCache(Model):
    """One cache of model weights. Only its labels are read: they narrow new placements."""

    metadata: Metadata
    spec: CacheSpec = CacheSpec()

    @property
    def footprint(self) -> dict[str, str]:
        """The labels a cluster must carry to hold the cache."""
        return self.spec.cluster_selector.match_labels
