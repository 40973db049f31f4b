"""A replica without a gateway in front of it could not be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.reasons import Reason, Rejection

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.scheduler.scheduling_input import SchedulingInput


class GatewayAddress:
    """Rejects clusters without a gateway address."""

    @classmethod
    def of(cls, _inputs: SchedulingInput) -> GatewayAddress:
        """It always applies."""
        return cls()

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster whose status has no gateway address."""
        return None if cluster.gateway else Rejection(Reason.NoGatewayAddress)
