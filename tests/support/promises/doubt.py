"""P1: doubt never removes a running replica or its endpoint: everything own and observed is desired, or the
result is fatal, unless one of the reasons the law lists is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import generate, law

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.drive import Answer
    from tests.support.world import World

DOUBTFUL = generate.Taste(doubt=0.5, oddity=0.25, own_replicas=1.0)


def unexplained(world: World, answer: Answer) -> Iterator[str]:
    yield from law.unexplained(world, answer)


def unrecorded(world: World, answer: Answer) -> Iterator[str]:
    """Yield the replicas that leave without a reason on record."""
    decision = answer.decision
    if decision is None:
        return
    recorded = {str(replica.own_replica.key) for replica in decision.dropped}
    for key in world.observed:
        if key.startswith("replica-") and key not in answer.desired and key not in recorded:
            yield f"{key} left without a reason on record"
