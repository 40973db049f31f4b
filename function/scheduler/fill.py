"""Fill: one replica at a time on the best place, until none is missing or one fits nowhere.

What was placed stands. Every new replica charges the ledger as it is placed, so one pass never overcommits
a pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.scheduler.decision import Placed

if TYPE_CHECKING:
    from function.api.ownership import OwnReplica
    from function.scheduler.capacity.ledger import Ledger
    from function.scheduler.indices import Indices
    from function.scheduler.placer import Places
    from function.scheduler.policy.coordination import Queue


@dataclass(frozen=True, slots=True)
class Placing:
    """Where new replicas go, who pays for them, and what they are called."""

    places: Places
    ledger: Ledger
    indices: Indices
    queue: Queue | None = None
    """Replicas of others that get their new places before ours."""

    def place(self, replaces: OwnReplica | None = None) -> Placed | None:
        """Place one replica on the best place, or return None when it fits nowhere."""
        best = self.places.best()
        if best is None:
            return None
        candidate, because, runner_up = best
        cluster = candidate.cluster.name
        identity, name = self.indices.take(cluster)
        self.ledger.charge(cluster, candidate.nodes, candidate.gangs)
        self.places.tally.add(cluster)
        self.places.touch(cluster)
        return Placed(identity, name, candidate, because, runner_up, replaces)

    def undo(self, placed: Placed) -> None:
        """Take a placement back."""
        cluster = placed.identity.cluster
        self.ledger.release(cluster, placed.candidate.nodes, placed.candidate.gangs)
        self.places.tally.remove(cluster)
        self.places.touch(cluster)


def fill(placing: Placing, shortfall: int) -> list[Placed]:
    """Place up to `shortfall` replicas; stop at the first that fits nowhere."""
    placed: list[Placed] = []
    while len(placed) < shortfall:
        if placing.queue is not None:
            placing.queue.serve_seniors()
        found = placing.place()
        if found is None:
            break
        placed.append(found)
    return placed
