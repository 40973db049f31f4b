"""Replace: a mismatched replica leaves only when a place for its replacement was found in the same pass.

One at a time, in the order of scale down: its nodes are freed in the ledger, a place is looked for as fill
does (neither it nor terminating replicas count for spreading), and it is given up if there is one; else it
is charged again and held. With a disruption budget, one that may not leave now waits, and is not tried.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.scheduler.capacity.device_accounting import Demand
from function.scheduler.decision import Cause, Dropped, Kept, Placed
from function.scheduler.policy.disruption import may_leave, replacement_budget
from function.scheduler.scale_down import next_victim

if TYPE_CHECKING:
    from function.api.ownership import OwnReplica
    from function.scheduler.capacity.ledger import Ledger
    from function.scheduler.placer import Placer
    from function.scheduler.scheduling_input import SchedulingInput


@dataclass(frozen=True, slots=True)
class Replacement:
    """One replica given up, and its replacement."""

    dropped: Dropped
    placed: Placed


def _replace(placer: Placer, kept: Kept) -> Replacement | None:
    own_replica, ledger = kept.own, placer.ledger
    ledger.vacate(own_replica.replica, own_replica.holds)
    ledger.count(own_replica.cluster, -1)
    placed = placer.place(replaces=own_replica)
    if placed is not None:
        _linger(ledger, own_replica, placed)
        assert kept.mismatch is not None  # noqa: S101 - only mismatched replicas are replaced
        detail = f"{kept.mismatch.value}: {kept.detail}" if kept.detail else kept.mismatch.value
        return Replacement(Dropped(own_replica, Cause.Replaced, detail), placed)
    ledger.occupy(own_replica.replica, own_replica.holds)
    ledger.count(own_replica.cluster)
    return None


def _linger(ledger: Ledger, own_replica: OwnReplica, placed: Placed) -> None:
    """Charge what is given up until it is gone: its nodes are free for its own replacement only."""
    standing = placed.candidate.nodes if placed.identity.cluster == own_replica.holds else {}
    held = ledger.demands(own_replica.replica)
    left = {
        pool: Demand(max(0, demand.nodes - standing.get(pool, 0)), demand.gangs)
        for pool, demand in held.items()
    }
    ledger.charge(own_replica.holds, left)


def replace(
    inputs: SchedulingInput, placer: Placer, kept: tuple[Kept, ...]
) -> tuple[list[Replacement], tuple[Kept, ...]]:
    """Try to replace every mismatched replica. Returns the replacements, and who stays."""
    done: list[Replacement] = []
    waits: set[str] = set()
    waiting, staying = [kept_replica for kept_replica in kept if kept_replica.mismatch], list(kept)
    while waiting:
        victim = next_victim(inputs, staying, among=waiting)
        if victim is None:
            break
        waiting.remove(victim)
        if not may_leave(inputs, (stays.own for stays in staying), victim.own, replacement_budget(inputs)):
            waits.add(victim.own.key)
            continue
        replacement = _replace(placer, victim)
        if replacement is not None:
            done.append(replacement)
            staying.remove(victim)
    return done, tuple(_marked(stays) if stays.own.key in waits else stays for stays in staying)


def _marked(kept: Kept) -> Kept:
    return dataclasses.replace(kept, waits=kept.waits or "replacement")
