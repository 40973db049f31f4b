"""Fill: one replica at a time on the best place, until none is missing or one fits nowhere.

What was placed stands. Every new replica charges the ledger as it is placed, so one pass never overcommits
a pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.scheduler.coordination import Queue
    from function.scheduler.outcomes import Placed
    from function.scheduler.placer import Placer


def fill(placer: Placer, shortfall: int, queue: Queue | None = None) -> list[Placed]:
    """Place up to `shortfall` replicas; stop at the first that fits nowhere.

    `queue` has the replicas of others that get their new places before ours.
    """
    placed: list[Placed] = []
    while len(placed) < shortfall:
        if queue is not None:
            queue.serve_seniors()
        replica = placer.place()
        if replica is None:
            break
        placed.append(replica)
    return placed
