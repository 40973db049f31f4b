"""Replace: a mismatched replica leaves only when a place for its replacement was found in the same pass.

One at a time, in the order of scale down: its nodes are freed in the ledger, a place is looked for as fill
does (neither it nor terminating replicas count for spreading), and it is given up if there is one; else it
is charged again and held. With a disruption budget, one that may not leave now waits, and is not tried.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.scheduler.capacity.device_accounting import stamped_gangs
from function.scheduler.decision import Cause, Dropped, Kept, Placed
from function.scheduler.policy.disruption import may_leave
from function.scheduler.scale_down import next_victim

if TYPE_CHECKING:
    from function.api.ownership import OwnReplica
    from function.scheduler.fill import Placing
    from function.scheduler.scheduling_input import SchedulingInput


@dataclass(frozen=True, slots=True)
class Replacement:
    """One replica given up, and its replacement."""

    dropped: Dropped
    placed: Placed


def _replace(placing: Placing, kept: Kept) -> Replacement | None:
    own = kept.own
    placing.ledger.vacate(own.replica, own.holds)
    placing.places.tally.remove(own.cluster)
    placing.places.touch(own.holds)
    found = placing.place(replaces=own)
    if found is not None:
        _linger(placing, own, found)
        assert kept.mismatch is not None  # noqa: S101 - only mismatched replicas are replaced
        detail = f"{kept.mismatch.value}: {kept.detail}" if kept.detail else kept.mismatch.value
        return Replacement(Dropped(own, Cause.Replaced, detail), found)
    placing.ledger.occupy(own.replica, own.holds)
    placing.places.tally.add(own.cluster)
    placing.places.touch(own.holds)
    return None


def _linger(placing: Placing, own: OwnReplica, found: Placed) -> None:
    """Charge what is given up until it is gone: its nodes are free for its own replacement only."""
    standing = found.candidate.nodes if found.identity.cluster == own.holds else {}
    left = {pool: max(0, nodes - standing.get(pool, 0)) for pool, nodes in own.replica.nodes.items()}
    placing.ledger.charge(own.holds, left, stamped_gangs(own.replica.engines))
    placing.places.touch(own.holds)


def replace(
    inputs: SchedulingInput, placing: Placing, kept: tuple[Kept, ...]
) -> tuple[list[Replacement], tuple[Kept, ...]]:
    """Try to replace every mismatched replica. Returns the replacements, and who stays."""
    done: list[Replacement] = []
    waits: set[str] = set()
    waiting, staying = [each for each in kept if each.mismatch], list(kept)
    while waiting:
        victim = next_victim(inputs, staying, among=waiting)
        if victim is None:
            break
        waiting.remove(victim)
        if not may_leave(inputs, (each.own for each in staying), victim.own):
            waits.add(victim.own.key)
            continue
        found = _replace(placing, victim)
        if found is not None:
            done.append(found)
            staying.remove(victim)
    return done, tuple(_marked(each) if each.own.key in waits else each for each in staying)


def _marked(kept: Kept) -> Kept:
    return dataclasses.replace(kept, waits=kept.waits or "replacement")
