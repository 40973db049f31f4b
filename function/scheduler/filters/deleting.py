"""A cluster that is being deleted takes nothing new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.reasons import Reason, Rejection

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.scheduler.scheduling_input import SchedulingInput


class Deleting:
    """Rejects clusters with a deletionTimestamp."""

    @classmethod
    def of(cls, _inputs: SchedulingInput) -> Deleting:
        """It always applies."""
        return cls()

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster on its way out."""
        return Rejection(Reason.ClusterDeleting) if cluster.deleting else None
