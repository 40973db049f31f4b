"""placement.maxReplicasPerCluster: so many of this deployment on one cluster and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.reasons import Reason, Rejection

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.scheduler.capacity.ledger import ReplicaCounts
    from function.scheduler.scheduling_input import SchedulingInput


class MaxReplicasPerCluster:
    """Rejects clusters that have as many replicas of the deployment as allowed."""

    elsewhere = False

    def __init__(self, limit: int) -> None:
        """Take the limit."""
        self._limit = limit

    @classmethod
    def of(cls, inputs: SchedulingInput) -> MaxReplicasPerCluster | None:
        """Build it where a limit is set."""
        limit = inputs.policy.max_replicas_per_cluster
        return cls(limit) if limit is not None else None

    def reject(self, cluster: InferenceCluster, counts: ReplicaCounts) -> Rejection | None:
        """Reject a cluster at the limit."""
        if counts[cluster.name] < self._limit:
            return None
        return Rejection(Reason.MaxReplicasPerCluster, needs=counts[cluster.name] + 1, total=self._limit)
