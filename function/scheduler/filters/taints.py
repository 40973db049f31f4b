"""An untolerated taint keeps new replicas away, whatever its effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.reasons import Reason, Rejection
from function.api.taints import Toleration, untolerated

if TYPE_CHECKING:
    from function.api import InferenceCluster
    from function.scheduler.scheduling_input import SchedulingInput


class Taints:
    """Rejects clusters with a taint the deployment does not tolerate."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        """Take the deployment's tolerations."""
        self._tolerations = tolerations

    @classmethod
    def of(cls, inputs: SchedulingInput) -> Taints:
        """Build it, always."""
        return cls(inputs.deployment.template.tolerations)

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster by its first untolerated taint."""
        left = untolerated(cluster.spec.taints, self._tolerations) if cluster.spec.taints else ()
        return (
            Rejection(Reason.UntoleratedTaint, detail=f"{{{left[0].key}: {left[0].effect}}}")
            if left
            else None
        )
