"""placement.strategy: spread before packing, or pack before spreading."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.scheduler.candidate import Candidate
    from function.scheduler.capacity.ledger import ReplicaCounts
    from function.scheduler.scheduling_input import SchedulingInput


class FewestReplicas:
    """Spread: prefers the cluster that hosts the fewest replicas of this deployment."""

    description = "fewest replicas of this deployment"
    elsewhere = False

    @classmethod
    def of(cls, inputs: SchedulingInput) -> FewestReplicas | None:
        """Build it unless the strategy is BinPack."""
        return None if inputs.policy.strategy == "BinPack" else cls()

    def value(self, candidate: Candidate, counts: ReplicaCounts) -> int:
        """Replicas of this deployment on the cluster."""
        return counts[candidate.cluster.name]


class LeastFreeLeft:
    """BinPack: prefers the cluster with the least free nodes left in the pools it would use."""

    description = "least free nodes left in its pools"
    elsewhere = False

    @classmethod
    def of(cls, inputs: SchedulingInput) -> LeastFreeLeft | None:
        """Build it for the strategy BinPack."""
        return cls() if inputs.policy.strategy == "BinPack" else None

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> int:
        """Free nodes left after the placement."""
        return candidate.free_left


class MostReplicas:
    """BinPack: then the cluster that has the most replicas of this deployment already."""

    description = "most replicas of this deployment"
    elsewhere = False

    @classmethod
    def of(cls, inputs: SchedulingInput) -> MostReplicas | None:
        """Build it for the strategy BinPack."""
        return cls() if inputs.policy.strategy == "BinPack" else None

    def value(self, candidate: Candidate, counts: ReplicaCounts) -> int:
        """Replicas of this deployment on the cluster, negative so that more is better."""
        return -counts[candidate.cluster.name]
