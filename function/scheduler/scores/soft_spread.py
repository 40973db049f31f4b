"""topologySpread with ScheduleAnyway: the least skew beyond maxSkew first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.scheduler.filters.topology_spread import Domains, domains

if TYPE_CHECKING:
    from function.scheduler.candidate import Candidate
    from function.scheduler.capacity.ledger import ReplicaCounts
    from function.scheduler.scheduling_input import SchedulingInput

NO_DOMAIN_SKEW = 1_000_000
"""The skew of a cluster in no domain: behind every cluster in one."""


class SoftSpread:
    """Prefers clusters where one more replica would not exceed maxSkew, or exceed it least."""

    description = "least topology skew beyond maxSkew"
    elsewhere = True

    def __init__(self, constraints: tuple[Domains, ...]) -> None:
        """Take the constraints that do not bind."""
        self._constraints = constraints

    @classmethod
    def of(cls, inputs: SchedulingInput) -> SoftSpread | None:
        """Build it where a constraint says ScheduleAnyway."""
        spread_domains = domains(inputs, "ScheduleAnyway")
        return cls(spread_domains) if spread_domains else None

    def value(self, candidate: Candidate, counts: ReplicaCounts) -> tuple[int, ...]:
        """How far each constraint's skew would exceed its maxSkew."""
        skews = (constraint.skew(candidate.cluster, counts) for constraint in self._constraints)
        return tuple(
            NO_DOMAIN_SKEW if skew is None else max(0, skew - spread.constraint.max_skew)
            for skew, spread in zip(skews, self._constraints, strict=True)
        )
