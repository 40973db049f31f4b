"""Filters: the gates that keep a new replica off a cluster, in their order.

One idea per file; what a cluster's own state decides is a table (`cluster_state`).

A filter is built once per pass by its `of` (None where it does not apply) and asked about one cluster at a
time. The order of the lists is the order of evaluation; the first rejection is the cluster's headline.
Adding a filter is adding a file and a line in one of the lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from function.scheduler.filters.cache_footprint import CacheFootprint
from function.scheduler.filters.cache_ready import CacheReady
from function.scheduler.filters.cluster_lost import ClusterLost
from function.scheduler.filters.cluster_selector import ClusterSelectorFilter
from function.scheduler.filters.cluster_state import HAS_GATEWAY, NOT_DELETING, PUBLISHES_POOLS, READY
from function.scheduler.filters.max_per_cluster import MaxReplicasPerCluster
from function.scheduler.filters.published_charge import PublishedCharge
from function.scheduler.filters.stack import StackExpresses
from function.scheduler.filters.taints import Taints
from function.scheduler.filters.topology_spread import TopologySpreadFilter

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.api.reasons import Rejection
    from function.scheduler.capacity.ledger import ReplicaCounts
    from function.scheduler.scheduling_input import SchedulingInput


class StandingFilter(Protocol):
    """Says the same about a cluster for the whole pass."""

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Say why the cluster takes no new replica, or None."""


class CountingFilter(Protocol):
    """Depends on where the replicas are, so it is asked again for every placement."""

    elsewhere: bool
    """Whether a placement on another cluster can change what it says."""

    def reject(self, cluster: InferenceCluster, counts: ReplicaCounts) -> Rejection | None:
        """Say why the cluster takes no other replica now, or None."""


STANDING = (
    NOT_DELETING,
    ClusterSelectorFilter,
    CacheFootprint,
    CacheReady,
    Taints,
    StackExpresses,
    READY,
    ClusterLost,
    HAS_GATEWAY,
    PUBLISHES_POOLS,
    PublishedCharge,
)
COUNTING = (MaxReplicasPerCluster, TopologySpreadFilter)


def standing(inputs: SchedulingInput) -> tuple[StandingFilter, ...]:
    """Build the standing filters that apply."""
    built = (filter_class.of(inputs) for filter_class in STANDING)
    return tuple(gate for gate in built if gate is not None)


def counting(inputs: SchedulingInput) -> tuple[CountingFilter, ...]:
    """Build the counting filters that apply."""
    built = (filter_class.of(inputs) for filter_class in COUNTING)
    return tuple(gate for gate in built if gate is not None)
