"""placement.disruption: how many of the wanted replicas may be missing or not Ready at a time.

A draining or mismatched replica is given up only if, afterwards, wanted minus (kept and in service) is at
most maxUnavailable. It does not hold back the loss of a cluster that is gone, nor scale down. With `maxSurge`
its replacement is placed beside it first: see `scheduler.replace`.

Replacing a mismatched replica is paced by `placement.rollout` where disruption says nothing: an edit of the
engines' shape is an edit of the template.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.api.ownership import OwnReplica
    from function.scheduler.scheduling_input import SchedulingInput


def drain_budget(inputs: SchedulingInput) -> int | None:
    """How many may be out of service because of drains; None for no limit."""
    stated = inputs.policy.disruption
    return stated.allowed if stated else None


def surge(inputs: SchedulingInput) -> int:
    """How many replicas more than wanted there may be while some are replaced."""
    return inputs.policy.disruption.max_surge if inputs.policy.disruption else 0


def rollout_budget(inputs: SchedulingInput) -> int | None:
    """How many may be out of service because of an edit of the template; None where that is not staged.

    Zero means by surge. Where the function's defaults say so for a deployment whose own disruption has no
    surge, it is 1: else nothing could be updated.
    """
    rollout = inputs.policy.rollout
    return max(rollout.max_unavailable, 0 if surge(inputs) else 1) if rollout else None


def replacement_budget(inputs: SchedulingInput) -> int | None:
    """How many may be out of service because of replacements; None for no limit."""
    stated = drain_budget(inputs)
    return rollout_budget(inputs) if stated is None else stated


def may_leave(
    inputs: SchedulingInput, staying: Iterable[OwnReplica], leaving: OwnReplica, budget: int | None
) -> bool:
    """Whether a replica may be given up now, seen who stays besides it."""
    if budget is None:
        return True
    serving = sum(1 for own_replica in staying if own_replica is not leaving and inputs.serving(own_replica))
    return inputs.deployment.wanted - serving <= budget


def serving_replacement(
    inputs: SchedulingInput, staying: Iterable[OwnReplica], outgoing: Iterable[OwnReplica]
) -> bool:
    """Whether more of those that last are in service than there would be without replacements.

    With surge one that is outgoing and not in service leaves then. Else several of them would hold the surge
    for ever: none is enough for the budget when all others are out of service too.
    """
    keys = {own_replica.key for own_replica in outgoing}
    lasting = sum(inputs.serving(own_replica) for own_replica in staying if own_replica.key not in keys)
    return surge(inputs) > 0 and lasting > inputs.deployment.wanted - len(keys)


def leaving_now(
    inputs: SchedulingInput, staying: Iterable[OwnReplica], draining: Iterable[OwnReplica]
) -> set[str]:
    """The keys of those draining replicas that may be given up in this pass.

    As in scale down, one that is not Ready goes first, then one on the cluster with most of the deployment's
    replicas (recomputed for each), then the highest index, then the later cluster.
    """
    left, waiting, gone = list(staying), list(draining), set()
    outgoing = list(waiting)
    while waiting:
        counts = Counter(own_replica.cluster for own_replica in left)
        first = max(waiting, key=partial(_order, inputs, counts=counts))
        waiting.remove(first)
        idle = not inputs.serving(first) and serving_replacement(inputs, left, outgoing)
        if idle or may_leave(inputs, left, first, drain_budget(inputs)):
            left.remove(first)
            outgoing.remove(first)
            gone.add(first.key)
    return gone


def _order(inputs: SchedulingInput, own_replica: OwnReplica, counts: Counter[str]) -> tuple[object, ...]:
    index = own_replica.identity.index if own_replica.identity else -1
    return (not inputs.serving(own_replica), counts[own_replica.cluster], index, own_replica.cluster)
