"""What the proposers of remedies look at: a decision and its rejections, the nearest miss first."""

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

EACH = 2
"""How many changes of one kind are proposed."""
SHORT = tuple(reason for reason in Reason if reason.short_pool)
"""Reasons that more nodes would mend."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the proposers look at."""

    decision: Decision
    rejections: Mapping[str, Rejection]

    @property
    def inputs(self) -> SchedulingInput:
        """The question that was asked."""
        return self.decision.inputs

    def headed(self, *reasons: Reason) -> list[tuple[InferenceCluster, Rejection]]:
        """The clusters with one of these headlines, the nearest miss first."""
        clusters = self.inputs.fleet.clusters
        found = [
            (clusters[name], rejection)
            for name, rejection in self.rejections.items()
            if rejection.reason in reasons and name in clusters
        ]
        return sorted(found, key=lambda item: (missing(item[1]), item[0].name))


def missing(found: Rejection) -> int:
    """How many nodes are missing."""
    return (found.needs or 0) - (found.free or 0)


def counted(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: list[str]) -> str:
    """The first names and how many more there are."""
    more = f" and {len(names) - EACH} more" if len(names) > EACH else ""
    return ", ".join(names[:EACH]) + more
