"""placement.topologySpread: the PodTopologySpread rule over clusters.

Domains are the values of a label over the clusters that pass selectors and taints; the skew of a placement
is the domain's count + 1 - the least count of any domain, where the least counts as 0 while there are fewer
domains than minDomains. Clusters that lack the label of any binding constraint are excluded, from the counts
of all of them too: no replica can go there. It binds new placements only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.reasons import Reason, Rejection
from function.scheduler.filters.cache_footprint import CacheFootprint
from function.scheduler.filters.cluster_selector import ClusterSelectorFilter
from function.scheduler.filters.taints import Taints
from function.scheduler.pass_values import LatestValue

if TYPE_CHECKING:
    from collections import Counter

    from function.api import InferenceCluster
    from function.api.placement import TopologySpread
    from function.scheduler.capacity.ledger import ReplicaCounts
    from function.scheduler.scheduling_input import SchedulingInput


class Domains:
    """The domains of one topology key and the clusters in each."""

    def __init__(self, inputs: SchedulingInput, constraint: TopologySpread) -> None:
        """Gather the clusters that pass selectors and taints, with their value of the key."""
        self.constraint = constraint
        self._domain_of: dict[str, str] = {}
        gates = [filter_class.of(inputs) for filter_class in (ClusterSelectorFilter, CacheFootprint, Taints)]
        keys = {constraint.topology_key, *_binding_keys(inputs)}
        for cluster in inputs.fleet.clusters.values():
            open_to = keys <= cluster.labels.keys()
            if open_to and not any(gate and gate.reject(cluster) for gate in gates):
                self._domain_of[cluster.name] = cluster.labels[constraint.topology_key]
        self._domains = frozenset(self._domain_of.values())
        self._loads = LatestValue(self._load)

    @property
    def _enough(self) -> bool:
        """Whether there are as many domains as minDomains asks for."""
        return len(self._domains) >= (self.constraint.min_domains or 1)

    def skew(self, cluster: InferenceCluster, counts: ReplicaCounts) -> int | None:
        """The skew after one more replica on the cluster; None when it is in no domain."""
        value = cluster.labels.get(self.constraint.topology_key)
        if value is None:
            return None
        replicas, least = self._loads.of(counts.version, counts)
        return replicas[value] + 1 - least

    def phrase(self, cluster: InferenceCluster, counts: ReplicaCounts, skew: int) -> str:
        """Say what one more replica is too far ahead of: the domain that has the fewest, by its name."""
        replicas, least = self._loads.of(counts.version, counts)
        key, there = self.constraint.topology_key, cluster.labels[self.constraint.topology_key]
        if self._enough:
            behind = min(domain for domain in self._domains if replicas[domain] == least)
            text = f"{there} would be {skew} ahead of {behind} ({least})"
        else:
            wanted = f"{len(self._domains)} of minDomains {self.constraint.min_domains} are there"
            text = f"{there} would have {skew}, and {wanted}, so the least counts as 0"
        return f"{key}: {text}; maxSkew {self.constraint.max_skew}"

    def _load(self, counts: ReplicaCounts) -> tuple[Counter[str], int]:
        """Count the replicas of each domain, and the least of them."""
        replicas = counts.by(self._domain_of)
        least = min((replicas[domain] for domain in self._domains), default=0) if self._enough else 0
        return replicas, least


def _binding_keys(inputs: SchedulingInput) -> set[str]:
    stated = inputs.policy.topology_spread or ()
    return {
        constraint.topology_key for constraint in stated if constraint.when_unsatisfiable == "DoNotSchedule"
    }


def domains(inputs: SchedulingInput, mode: str) -> tuple[Domains, ...]:
    """The domains of every constraint of a mode: DoNotSchedule or ScheduleAnyway."""
    stated = inputs.policy.topology_spread or ()
    return tuple(
        Domains(inputs, constraint) for constraint in stated if constraint.when_unsatisfiable == mode
    )


class TopologySpreadFilter:
    """Rejects clusters where one more replica would exceed maxSkew."""

    elsewhere = True

    def __init__(self, constraints: tuple[Domains, ...]) -> None:
        """Take the binding constraints."""
        self._constraints = constraints

    @classmethod
    def of(cls, inputs: SchedulingInput) -> TopologySpreadFilter | None:
        """Build it where a constraint says DoNotSchedule."""
        spread_domains = domains(inputs, "DoNotSchedule")
        return cls(spread_domains) if spread_domains else None

    def reject(self, cluster: InferenceCluster, counts: ReplicaCounts) -> Rejection | None:
        """Reject a cluster in no domain, or in one that would be too far ahead."""
        for constraint in self._constraints:
            skew, stated = constraint.skew(cluster, counts), constraint.constraint
            if skew is None:
                return Rejection(Reason.TopologySpread, detail=f"has no label {stated.topology_key}")
            if skew > stated.max_skew:
                detail = constraint.phrase(cluster, counts, skew)
                return Rejection(Reason.TopologySpread, detail=detail, needs=skew, total=stated.max_skew)
        return None
