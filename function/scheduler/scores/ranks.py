"""firstAvailable: lower ranks first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.scheduler.candidate import Candidate
    from function.scheduler.capacity.ledger import ReplicaCounts
    from function.scheduler.scheduling_input import SchedulingInput


class Ranks:
    """Prefers clusters where the preferred devices of a prioritized list are available."""

    description = "preferred devices of firstAvailable"
    elsewhere = False

    @classmethod
    def of(cls, inputs: SchedulingInput) -> Ranks | None:
        """Build it where some request has a prioritized list."""
        members = (
            m for shape in inputs.deployment.shapes for engine in shape.engines for m in engine.members
        )
        return cls() if any(request.first_available for m in members for request in m.requests) else None

    def value(self, candidate: Candidate, _counts: ReplicaCounts) -> tuple[int, ...]:
        """The ranks chosen for prioritized lists, in the order of the requests.

        Zeros at the end are left out: they say nothing, and shapes of different length must compare.
        """
        listed = (
            resolved.rank
            for engine, option in candidate.engines
            for member, match in zip(engine.members, option.matches, strict=True)
            for request, resolved in zip(member.requests, match.resolved, strict=True)
            if request.first_available
        )
        ranks = list(listed)
        while ranks and not ranks[-1]:
            ranks.pop()
        return tuple(ranks)
