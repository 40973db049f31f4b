"""Only a cluster whose condition Ready is True takes new replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.reasons import Reason, Rejection

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.scheduler.scheduling_input import SchedulingInput


class Readiness:
    """Rejects clusters that are not Ready."""

    @classmethod
    def of(cls, _inputs: SchedulingInput) -> Readiness:
        """It always applies."""
        return cls()

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster that is not Ready or does not say."""
        if cluster.ready:
            return None
        detail = (
            "no status" if cluster.status is None else "" if cluster.ready is False else "Ready is not told"
        )
        return Rejection(Reason.ClusterNotReady, detail=detail)
