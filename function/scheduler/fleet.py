"""The fleet of one pass: the clusters, the replicas, and what was not delivered.

Unresolved (not delivered yet), absent (delivered: there is none) and empty are three different things, and so
is a cluster that is there but cannot be read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from function.boundary import Resolution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.api import InferenceCluster, ModelCache, ModelDeployment
    from function.api.names import Identity
    from function.api.ownership import OwnReplica
    from function.boundary import Document
    from function.scheduler.capacity.overcommit import Yielding
    from function.scheduler.other_replicas import OtherReplicas


@dataclass(frozen=True, slots=True)
class UnreadableCluster:
    """An object that is there and cannot be read."""

    name: str
    fault: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """Everything one pass knows."""

    clusters: Mapping[str, InferenceCluster]
    unreadable: Mapping[str, UnreadableCluster]
    nameless: bool
    """Whether some cluster's name could not be read: then no cluster is known to be gone."""
    clusters_resolution: Resolution
    replicas_resolution: Resolution
    cache_resolution: Resolution | None
    """None without a modelCacheRef."""
    cache: ModelCache | None
    cache_fault: str
    """Why the referenced cache cannot be read, though it was delivered; it then counts as unresolved."""
    own_replicas: tuple[OwnReplica, ...]
    """Own replicas with an identity of their own, in the order of cluster and index."""
    other_replicas: OtherReplicas
    """Every other replica that exists: foreign ones, and own objects whose identity another one has."""
    endpoints: Mapping[str, Document]
    """Observed endpoints by key."""
    taken: frozenset[Identity] = field(default_factory=frozenset)
    """Identities that an own object, an observed key or a key of an earlier step has."""
    theirs: frozenset[str] = frozenset()
    """Keys that earlier steps of the pipeline desire."""
    uncharged: Mapping[str, str] = field(default_factory=dict)
    """Clusters that do not say what is charged to them where they are asked to, and why."""
    gives_way: tuple[Yielding, ...] | None = None
    """Who gives way as the clusters tell it, by seniority; None where it is computed from all replicas."""

    @property
    def inputs_delivered(self) -> bool:
        """Whether the clusters and the replicas were both delivered (perhaps as an empty list)."""
        return Resolution.UNRESOLVED not in (self.clusters_resolution, self.replicas_resolution)

    def gone(self, cluster: str) -> bool:
        """Whether the cluster is known not to exist: the list was delivered, is not empty, lacks it."""
        listed = cluster in self.clusters or cluster in self.unreadable
        return self.clusters_resolution is Resolution.DELIVERED and not self.nameless and not listed


@dataclass(frozen=True, slots=True)
class Peer:
    """One other deployment, and the fleet as it sees it."""

    deployment: ModelDeployment
    fleet: Fleet


@dataclass(frozen=True, slots=True)
class Peers:
    """The deployments whose turn comes before ours, in order; nobody where nothing is coordinated."""

    resolutions: Mapping[str, Resolution] = field(default_factory=dict)
    """How the requirements that coordination adds were resolved."""
    earlier: tuple[Peer, ...] = ()

    @property
    def resolved(self) -> bool:
        """Whether everything was delivered that coordination needs."""
        return Resolution.UNRESOLVED not in self.resolutions.values()
