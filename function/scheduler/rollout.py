"""placement.rollout: an edit of the template goes replica by replica.

A kept replica is *outdated* if what it would be updated to has another template than it is observed with.

1. Outdated replicas that are not in service are updated at once: there is nothing to lose.
2. Of the others one is updated, in the order of scale down, as long as afterwards wanted minus those in
   service is at most maxUnavailable. The order is that in which they would be scaled down were there no
   others, so it is the same in whichever pass their turn comes. Those that are about to leave come last.
3. All others keep the template they are observed with.

With maxUnavailable 0 no replica in service is updated in place: it is *superseded*. Another is placed beside
it (`scheduler.replace`), with the current template, and it leaves when that one is in service.

So a template that does not start stops at the first replica, and taking the edit back makes that one outdated
and the others up to date. The state of a rollout is what is observed; indices decide the order, not time.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from function.boundary import Unreadable
from function.scheduler.outcomes import Kept, Update
from function.scheduler.policy.disruption import rollout_budget
from function.scheduler.scale_down import next_victim
from function.scheduler.stamp import RUNNING, same_template, updated_spec

if TYPE_CHECKING:
    from function.scheduler.scheduling_input import SchedulingInput


def supersede(inputs: SchedulingInput, kept: tuple[Kept, ...]) -> tuple[Kept, ...]:
    """Mark the outdated replicas in service that are replaced, where the rollout goes by surge."""
    if rollout_budget(inputs) != 0:
        return kept
    return tuple(
        dataclasses.replace(replica, update=Update.Superseded)
        if inputs.serving(replica.own_replica) and is_outdated(inputs, replica)
        else replica
        for replica in kept
    )


def roll(inputs: SchedulingInput, kept: tuple[Kept, ...]) -> tuple[Kept, ...]:
    """Say of every outdated replica whether it is updated in this pass. Without a rollout all of them are."""
    budget = rollout_budget(inputs)
    if budget is None:
        return kept
    outdated = {
        replica.own_replica.key for replica in kept if replica.update is None and is_outdated(inputs, replica)
    }
    now = {
        replica.own_replica.key
        for replica in kept
        if replica.own_replica.key in outdated and not inputs.serving(replica.own_replica)
    }
    now |= _next(
        inputs, kept, budget, [replica for replica in kept if replica.own_replica.key in outdated - now]
    )
    return tuple(
        dataclasses.replace(replica, update=Update.Now if replica.own_replica.key in now else Update.Waits)
        if replica.own_replica.key in outdated
        else replica
        for replica in kept
    )


def is_outdated(inputs: SchedulingInput, kept: Kept) -> bool:
    """Whether an update would change the template of a replica. One that is not updated is not outdated."""
    own_replica = kept.own_replica
    if kept.shape is None:
        return False
    try:
        observed = own_replica.document.project(RUNNING)["spec"]
    except Unreadable:
        return False
    return not same_template(
        updated_spec(inputs.deployment, own_replica.cluster, kept.shape, observed), observed
    )


def _next(inputs: SchedulingInput, kept: tuple[Kept, ...], budget: int, waiting: list[Kept]) -> set[str]:
    """The keys of those outdated replicas in service that the budget lets be updated now."""
    serving = sum(inputs.serving(replica.own_replica) for replica in kept)
    now: set[str] = set()
    while waiting and inputs.deployment.wanted - (serving - 1) <= budget:
        lasting = [replica for replica in waiting if not replica.waits]
        following = next_victim(inputs, waiting, among=lasting or waiting)
        if following is None:
            break
        waiting.remove(following)
        now.add(following.own_replica.key)
        serving -= 1
    return now
