"""The last score: the name of the cluster. With it no two candidates are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.scheduler.candidate import Candidate
    from function.scheduler.capacity.ledger import ReplicaCounts
    from function.scheduler.scheduling_input import SchedulingInput


class FirstByName:
    """Prefers the name that sorts first."""

    description = "first by name"
    elsewhere = False

    @classmethod
    def of(cls, _inputs: SchedulingInput) -> FirstByName:
        """Build it, always."""
        return cls()

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> str:
        """The cluster's name."""
        return candidate.cluster.name
