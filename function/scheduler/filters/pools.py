"""A cluster that publishes no pools has nowhere to put an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.reasons import Reason, Rejection

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.scheduler.scheduling_input import SchedulingInput


class PoolsPublished:
    """Rejects clusters whose status.gpuPools is missing or empty."""

    @classmethod
    def of(cls, _inputs: SchedulingInput) -> PoolsPublished:
        """It always applies."""
        return cls()

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster without published pools."""
        return None if cluster.pools else Rejection(Reason.NoPoolsPublished)
