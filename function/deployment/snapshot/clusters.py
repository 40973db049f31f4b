"""Read InferenceClusters, each parsed or unreadable; and tell apart those that share a name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from function.api import InferenceCluster
from function.api import cluster as cluster_api
from function.boundary import text_at
from function.scheduler.fleet import UnreadableCluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.boundary import Document

UNNAMED = "(unnamed)"
"""What stands for clusters whose names cannot be read, where they are counted."""

Read = InferenceCluster | UnreadableCluster


def read_cluster(document: Document) -> Read:
    """Read one InferenceCluster; one that cannot be read costs exactly itself."""
    try:
        return InferenceCluster.parse(document.project(cluster_api.SHAPE))
    except ValueError as error:
        return UnreadableCluster(text_at(document, "metadata", "name"), str(error))


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of a fleet by name."""

    readable: dict[str, InferenceCluster]
    unreadable: dict[str, UnreadableCluster]
    nameless: bool
    """Whether the name of one could not be read."""


def by_name(read: Iterable[Read]) -> Clusters:
    """Sort clusters by name. One that is listed more than once is unreadable."""
    listed = sorted(read, key=attrgetter("name"))
    times = Counter(map(attrgetter("name"), listed))
    clusters: dict[str, InferenceCluster] = {}
    unreadable: dict[str, UnreadableCluster] = {}
    for cluster in listed:
        if times[cluster.name] > 1:
            unreadable[cluster.name] = UnreadableCluster(cluster.name, "listed more than once")
        elif isinstance(cluster, UnreadableCluster):
            unreadable[cluster.name] = cluster
        else:
            clusters[cluster.name] = cluster
    nameless = unreadable.pop("", None)
    if nameless is not None:
        unreadable[UNNAMED] = nameless
    return Clusters(clusters, unreadable, nameless is not None)
