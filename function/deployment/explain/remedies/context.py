"""The context of remedies: a decision and its rejections, the nearest miss first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.api import InferenceCluster
    from function.api.reasons import Rejection
    from function.scheduler.decision import Decision
    from function.scheduler.scheduling_input import SchedulingInput

CHANGES_PER_KIND = 2
"""How many changes of one kind are proposed, and how many clusters a change names."""
SHORT = tuple(reason for reason in Reason if reason.short_pool)
"""Reasons that more nodes would mend."""


@dataclass(frozen=True, slots=True)
class ProposalContext:
    """What the proposers look at."""

    decision: Decision
    rejections: Mapping[str, Rejection]

    @property
    def inputs(self) -> SchedulingInput:
        """What was scheduled."""
        return self.decision.inputs

    def headed(self, *reasons: Reason) -> list[tuple[InferenceCluster, Rejection]]:
        """The clusters with one of these headlines, the nearest miss first."""
        clusters = self.inputs.fleet.clusters
        rejected = [
            (clusters[name], rejection)
            for name, rejection in self.rejections.items()
            if rejection.reason in reasons and name in clusters
        ]
        return sorted(rejected, key=lambda item: (item[1].missing, item[0].name))
