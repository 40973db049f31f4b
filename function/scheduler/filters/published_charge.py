"""Where charges are read from the clusters, one that does not say them takes nothing new: that is doubt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api.reasons import Reason, Rejection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.api import InferenceCluster
    from function.scheduler.scheduling_input import SchedulingInput


@dataclass(frozen=True, slots=True)
class PublishedCharge:
    """Rejects clusters whose charges are not known."""

    uncharged: Mapping[str, str]

    @classmethod
    def of(cls, inputs: SchedulingInput) -> PublishedCharge | None:
        """Build it where some cluster's are not."""
        uncharged = inputs.fleet.uncharged
        return cls(uncharged) if uncharged else None

    def reject(self, cluster: InferenceCluster) -> Rejection | None:
        """Reject a cluster whose charges are not known, and say why they are not."""
        if cluster.name not in self.uncharged:
            return None
        return Rejection(Reason.ChargeNotPublished, detail=self.uncharged[cluster.name])
