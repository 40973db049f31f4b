"""A cluster that is being deleted takes nothing new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.scheduler.reason import Reason, Rejection

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.scheduler.question import Question


class Deleting:
    """Rejects clusters with a deletionTimestamp."""

    description = "not being deleted"

    @classmethod
    def of(cls, _question: Question) -> Deleting:
        """It always applies."""
        return cls()

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster on its way out."""
        return Rejection(Reason.ClusterDeleting) if cluster.deleting else None
