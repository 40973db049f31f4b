"""Replace: a mismatched replica leaves only when a place for its replacement was found in the same pass.

One at a time, in the order of scale down: its nodes are freed in the ledger, a place is looked for as fill
does (neither it nor terminating replicas count for spreading), and it is given up if there is one; else it
is charged again and held. With a disruption budget, one that may not leave now waits, and is not tried.

With surge (`placement.disruption.maxSurge`) a replacement is placed beside what it replaces first. That goes
for every *outgoing* replica: mismatched, drained, or superseded by a rollout.

1. While kept and placed together are less than wanted plus maxSurge, another is placed for it. It is charged
   in full: what it replaces stands on its nodes, and serves.
2. One that needs replacement leaves when it has one and the replicas in service without it are at least
   wanted minus maxUnavailable. (Drained ones leave in `retain`, when that holds.)
3. Where that holds before it has one, because maxUnavailable is more than 0, it is replaced as without surge.

There is no memory: as many as exist beyond those wanted are the replacements of the first that are outgoing.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from function.scheduler.capacity.device_accounting import Demand
from function.scheduler.causes import OUTDATED, Cause
from function.scheduler.outcomes import Dropped, Kept, Placed
from function.scheduler.policy.disruption import (
    may_leave,
    replacement_budget,
    rollout_budget,
    serving_replacement,
    surge,
)
from function.scheduler.scale_down import next_victim

if TYPE_CHECKING:
    from function.api.ownership import OwnReplica
    from function.scheduler.capacity.ledger import Ledger
    from function.scheduler.placer import Placer
    from function.scheduler.scheduling_input import SchedulingInput


@dataclass(slots=True)
class Replaced:
    """What came of replacing."""

    staying: list[Kept]
    dropped: list[Dropped] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    covered: int = 0
    """Outgoing replicas that stay although their replacement stands."""
    waits: set[str] = field(default_factory=set)
    """The keys of those that may not leave now."""
    blocked: str | None = None
    """The key of the first for which there is surge, and no place."""
    crowded: set[str] = field(default_factory=set)
    """Clusters without a place beside a replica of theirs: none is sought until one is placed or leaves."""

    @property
    def kept(self) -> tuple[Kept, ...]:
        """Those that stay, marked with what they wait for."""
        return tuple(self._marked(kept) for kept in self.staying)

    def _marked(self, kept: Kept) -> Kept:
        key = kept.own_replica.key
        if key in self.waits or key == self.blocked:
            waits = kept.waits or ("replacement" if key in self.waits else "")
            return dataclasses.replace(kept, waits=waits, blocked=key == self.blocked)
        return kept


def replace(
    inputs: SchedulingInput, placer: Placer, kept: tuple[Kept, ...], new: int = 0, room: int | None = None
) -> Replaced:
    """Try to replace every replica that needs it. `new` are placed in this pass already.

    `room` caps how many more the answer can carry beside those that are replaced.
    """
    done, extra = Replaced(list(kept)), surge(inputs)
    waiting = [replica for replica in kept if replica.needs_replacement or (extra and replica.outgoing)]
    while waiting and (victim := next_victim(inputs, done.staying, among=waiting)) is not None:
        waiting.remove(victim)
        standing = len(done.staying) + len(done.placed) + new
        covered = bool(extra) and standing - inputs.deployment.wanted > done.covered
        if covered:
            placer.ledger.count(victim.own_replica.cluster, -1)
        elif 0 <= standing - inputs.deployment.wanted < extra and len(done.placed) != room:
            covered = _place_beside(placer, done, victim)
        if _may_leave(inputs, done, victim) and (covered or _place_instead(placer, done, victim)):
            _give_up(placer, done, victim)
        else:
            done.covered += covered
    return done


def _may_leave(inputs: SchedulingInput, done: Replaced, victim: Kept) -> bool:
    """Whether a replica may leave for a replacement; one that may not yet waits. Drained ones left before."""
    if not victim.needs_replacement:
        return False
    if not inputs.serving(victim.own_replica) and _may_leave_idle(inputs, done, victim):
        return True  # It takes nothing with it. Else who fails with more than the budget has stays for ever.
    budget = replacement_budget(inputs) if victim.mismatch else rollout_budget(inputs)
    leaves = may_leave(inputs, (stays.own_replica for stays in done.staying), victim.own_replica, budget)
    if not leaves and victim.mismatch:  # What is superseded waits for its turn in the rollout.
        done.waits.add(victim.own_replica.key)
    return leaves


def _may_leave_idle(inputs: SchedulingInput, done: Replaced, victim: Kept) -> bool:
    """Whether one that is not in service may leave whatever the budget says.

    As an outdated one is updated at once in a staged rollout, a mismatched one is replaced at once.
    """
    if victim.mismatch and (victim.mismatch.evacuates or inputs.policy.rollout is not None):
        return True
    outgoing = [stays.own_replica for stays in done.staying if stays.outgoing]
    return serving_replacement(inputs, [stays.own_replica for stays in done.staying], outgoing)


def _place_beside(placer: Placer, done: Replaced, victim: Kept) -> bool:
    """Place another while a replica stands. It counts for spreading no longer, once there is one.

    Where it counts is all that two replicas differ in here, so while nothing changes a cluster is tried once.
    """
    cluster = victim.own_replica.cluster
    if cluster in done.crowded:
        return False
    placer.ledger.count(cluster, -1)
    placed = placer.place()
    if placed is not None:
        done.placed.append(placed)
        done.crowded.clear()
        return True
    placer.ledger.count(cluster)
    done.crowded.add(cluster)
    done.blocked = done.blocked or victim.own_replica.key
    return False


def _place_instead(placer: Placer, done: Replaced, victim: Kept) -> bool:
    """Place another on what a mismatched replica leaves free; without a place nothing is changed."""
    own_replica, ledger = victim.own_replica, placer.ledger
    if victim.mismatch is None:
        return False
    ledger.release(own_replica.cluster, victim.growth)
    ledger.vacate(own_replica.replica, own_replica.holds)
    ledger.count(own_replica.cluster, -1)
    placed = placer.place(replaces=own_replica)
    ledger.charge(own_replica.cluster, victim.growth)
    if placed is not None:
        _linger(ledger, own_replica, placed)
        done.placed.append(placed)
        return True
    ledger.occupy(own_replica.replica, own_replica.holds)
    ledger.count(own_replica.cluster)
    return False


def _give_up(placer: Placer, done: Replaced, victim: Kept) -> None:
    """Let a replica go, with the reason on record. It is charged until it is gone."""
    why = victim.mismatch.value if victim.mismatch else OUTDATED
    placer.ledger.release(victim.own_replica.cluster, victim.growth)
    done.staying.remove(victim)
    done.crowded.clear()
    detail = f"{why}: {victim.detail}" if victim.detail else why
    evacuated = victim.mismatch is not None and victim.mismatch.evacuates  # Law 2, reason 7; else 3.
    done.dropped.append(Dropped(victim.own_replica, Cause.Evacuated if evacuated else Cause.Replaced, detail))


def _linger(ledger: Ledger, own_replica: OwnReplica, placed: Placed) -> None:
    """Charge what is given up until it is gone: its nodes are free for its own replacement only."""
    standing = placed.candidate.nodes if placed.identity.cluster == own_replica.holds else {}
    held = ledger.demands(own_replica.replica)
    left = {
        pool: Demand(max(0, demand.nodes - standing.get(pool, 0)), demand.gangs)
        for pool, demand in held.items()
    }
    ledger.charge(own_replica.holds, left)
