"""How many replicas of this deployment each cluster has, as far as spreading counts them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Tally:
    """Replicas by cluster: kept and placed ones, not those that are leaving."""

    def __init__(self, clusters: Iterable[str] = ()) -> None:
        """Count the clusters of the replicas that stay."""
        self._counts = Counter(clusters)

    def __getitem__(self, cluster: str) -> int:
        return self._counts[cluster]

    def add(self, cluster: str) -> None:
        """Count one more replica on a cluster."""
        self._counts[cluster] += 1

    def remove(self, cluster: str) -> None:
        """Count one replica less."""
        self._counts[cluster] -= 1

    def clusters(self) -> frozenset[str]:
        """The clusters that have replicas."""
        return frozenset(cluster for cluster, count in self._counts.items() if count)

    def over(self, clusters: Iterable[str]) -> int:
        """Count the replicas on several clusters."""
        return sum(self._counts[cluster] for cluster in clusters)
