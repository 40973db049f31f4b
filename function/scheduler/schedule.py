"""One pass over a deployment: the whole placement, every time, in this order and in no other.

1. Retain: every existing replica stays, unless Law 2 lists a reason for it to leave (`retain`).
2. Scale down: if more are kept than wanted, some leave (`scale_down`).
3. Fill: the shortfall is placed one by one, each on the best cluster (`fill`, `placer`); or, where less than
   minReplicas would stand, nothing is.
4. Replace: a mismatched replica leaves once its replacement has a place, else it is held (`replace`).
5. Roll: a staged edit of the template reaches the replicas that stay, some at a time (`rollout`).

While anything that placing depends on is unknown or invalid, only 1, 2 and 5 run (`may_place`).
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from function.boundary import Resolution
from function.scheduler.budget import CallBudget
from function.scheduler.capacity.ledger import Ledger, ReplicaCounts
from function.scheduler.capacity.overcommit import overcommitted_pools, yielding
from function.scheduler.coordination import Queue, reserve
from function.scheduler.decision import Decision
from function.scheduler.fill import fill
from function.scheduler.indices import Indices
from function.scheduler.matching.matcher import Matcher
from function.scheduler.placer import Placer
from function.scheduler.policy.disruption import surge
from function.scheduler.replace import replace
from function.scheduler.retain import retain
from function.scheduler.rollout import roll, supersede
from function.scheduler.scale_down import scale_down

if TYPE_CHECKING:
    from function.api import ModelReplica
    from function.api.ownership import OwnReplica
    from function.api.reasons import Rejection
    from function.scheduler.capacity.overcommit import Yielding
    from function.scheduler.outcomes import Placed
    from function.scheduler.scheduling_input import SchedulingInput


def open_ledger(inputs: SchedulingInput) -> Ledger:
    """Charge every replica that exists: everybody's, until it is really gone."""
    fleet = inputs.fleet
    held = {own_replica.holds for own_replica in fleet.own_replicas}
    ledger = fleet.other_replicas.charged(fleet.clusters, held)
    for own_replica in fleet.own_replicas:
        ledger.open(_known_to_leave(own_replica), own_replica.holds)
    return ledger


def _known_to_leave(own_replica: OwnReplica) -> ModelReplica:
    """The replica, marked as being deleted where only the list knows that."""
    stale = own_replica.terminating and not own_replica.replica.deleting
    return own_replica.replica._replace(deleting=True) if stale else own_replica.replica


def may_place(inputs: SchedulingInput) -> bool:
    """Whether anything new may be placed: all inputs delivered, none absent, every selector valid."""
    fleet = inputs.fleet
    fleet_delivered = fleet.inputs_delivered and fleet.clusters_resolution is Resolution.DELIVERED
    cache_delivered = fleet.cache_resolution in (None, Resolution.DELIVERED)
    resolved = fleet_delivered and cache_delivered and inputs.peers.resolved
    return resolved and not inputs.selectors.invalid and not inputs.config_fault


def schedule(inputs: SchedulingInput, *, room: int | None = None, most: int | None = None) -> Decision:
    """Decide. `room` caps how many new replicas the answer can carry; None is no cap.

    `most` bounds the steps of all searches together; None leaves it to the budget of the input.
    """
    ledger, budget = open_ledger(inputs), CallBudget.of(inputs, most=most)
    run = partial(run_pass, gives_way=_gives_way(inputs, ledger))
    if may_place(inputs):
        reserve(inputs, ledger, budget, partial(run, survey=False))
    ours = budget.portion() if inputs.config.coordination == "GlobalOrder" else budget
    decision = run(inputs, ledger, ours, room=room)
    overcommitted = overcommitted_pools(inputs.fleet.own_replicas, ledger)
    return dataclasses.replace(decision, overcommitted=overcommitted, budget=budget.with_portion(ours))


def _gives_way(inputs: SchedulingInput, ledger: Ledger) -> tuple[Yielding, ...]:
    """The replicas that give way in overcommitted pools, where replicas are asked to."""
    if inputs.config.overcommit != "Yield" or not inputs.fleet.inputs_delivered:
        return ()
    return yielding(ledger) if inputs.fleet.gives_way is None else inputs.fleet.gives_way


def run_pass(
    inputs: SchedulingInput,
    ledger: Ledger,
    budget: CallBudget,
    *,
    gives_way: tuple[Yielding, ...],
    room: int | None = None,
    survey: bool = True,
) -> Decision:
    """Take one deployment through its pass, on a ledger that may hold what others would take.

    Without `survey` the clusters are looked at only if something is to be placed.
    """
    matcher = Matcher(inputs, budget)
    retained = retain(inputs, matcher, ledger, gives_way)  # 1
    kept, scaled = scale_down(inputs, ledger, supersede(inputs, retained.kept))  # 2
    dropped = [*retained.dropped, *scaled]
    changing = any(stays.needs_replacement or (stays.outgoing and surge(inputs)) for stays in kept)
    idle = len(kept) >= inputs.deployment.wanted and not changing
    if not may_place(inputs) or (idle and not survey):
        return Decision(inputs, ledger, roll(inputs, kept), (), tuple(dropped), matched=matcher.matched)
    ledger.count_for(ReplicaCounts(replica.own_replica.cluster for replica in kept))
    placer = Placer(inputs, matcher, ledger, Indices(inputs.deployment, inputs.fleet))
    shortfall = max(0, inputs.deployment.wanted - len(kept))
    allowed = shortfall if room is None else min(shortfall, room)
    placed = fill(placer, allowed, Queue(inputs, placer, gives_way))  # 3
    least = inputs.deployment.least
    enough = least is None or len(kept) + len(placed) >= least
    withheld, full = (0, {}) if enough else _withhold(placer, placed)
    if enough:  # 4
        left = None if room is None else room - len(placed)
        replaced = replace(inputs, placer, kept, len(placed), left)
        kept = replaced.kept
        placed.extend(replaced.placed)
        dropped.extend(replaced.dropped)
    return Decision(
        inputs,
        ledger,
        roll(inputs, kept),  # 5
        tuple(placed),
        tuple(dropped),
        full=full,
        stopped="the response would grow too large" if allowed < shortfall and len(placed) == allowed else "",
        withheld=withheld,
        matched=matcher.matched,
        placer=placer,
    )


def _withhold(placer: Placer, placed: list[Placed]) -> tuple[int, dict[str, Rejection]]:
    """Below minReplicas nothing new is placed, no replacement either; it never drops what runs.

    Returns how many had a place, and why no cluster took one more than those.
    """
    withheld, full = len(placed), placer.rejections() if placed else {}
    while placed:
        placer.give_back(placed.pop().candidate)
    return withheld, full
