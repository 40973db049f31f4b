"""placement.evacuate: what is given up as lost takes no new replica, or it would be given up again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.reasons import Reason, Rejection
from function.scheduler.policy.evacuation import evacuation

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.scheduler.policy.evacuation import Evacuation
    from function.scheduler.scheduling_input import SchedulingInput


class ClusterLost:
    """Rejects clusters that were not heard of for longer than asked."""

    def __init__(self, evacuating: Evacuation) -> None:
        """Take what is too long."""
        self._evacuating = evacuating

    @classmethod
    def of(cls, inputs: SchedulingInput) -> ClusterLost | None:
        """Build it where evacuation is asked for and there is a clock."""
        evacuating = evacuation(inputs)
        return cls(evacuating) if evacuating.before is not None else None

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster whose heartbeat is too old."""
        if not self._evacuating.lost(cluster):
            return None
        return Rejection(Reason.ClusterLost, detail=f"no heartbeat for over {self._evacuating.after} s")
