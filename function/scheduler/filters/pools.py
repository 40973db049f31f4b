"""A cluster that publishes no pools has nowhere to put an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.scheduler.reason import Reason, Rejection

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.scheduler.question import Question


class PoolsPublished:
    """Rejects clusters whose status.gpuPools is missing or empty."""

    description = "publishes node pools"

    @classmethod
    def of(cls, _question: Question) -> PoolsPublished:
        """It always applies."""
        return cls()

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster without published pools."""
        return None if cluster.pools else Rejection(Reason.NoPoolsPublished)
