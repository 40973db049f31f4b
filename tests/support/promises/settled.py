"""P4: applying the answer (dropped objects still terminating) and asking again gives the same desired
resources.

(An edit that makes a replica smaller gives its nodes back once it is applied: until then it is charged the
larger of its two shapes. And Crossplane deletes only what it has observed: a replica that is merely listed
lives on when it is replaced, and is ours again in the next pass. Such worlds are left out.)

P11: complete: if filling stopped, brute force finds no place either (small fleets).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracle import facts as read_facts
from tests.oracle.schedule import Scheduler
from tests.support import build
from tests.support.apply import apply
from tests.support.drive import Answer, run
from tests.support.promises.ledger import existing, stamped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.world import World


def shrinks(world: World, answer: Answer) -> bool:
    """Say whether a replica that stays takes fewer nodes than before."""
    _, own_replicas = existing(world)
    return any(
        own_replicas[key] - stamped(replica)
        for key, replica in answer.replicas.items()
        if key in own_replicas
    )


def doubles(world: World) -> bool:
    """Say whether two objects have one identity: when the one that is observed is gone, the other is ours."""
    return any(replica.key for replica in read_facts.read(world).others)


def outlives(answer: Answer) -> bool:
    """Say whether a replica is replaced that Crossplane has not observed, and so does not delete."""
    placed = answer.decision.placed if answer.decision else ()
    return any(item.replaces is not None and not item.replaces.observed for item in placed)


def unsettled(world: World, answer: Answer) -> Iterator[str]:
    if world.replicas is None or shrinks(world, answer) or doubles(world) or outlives(answer):
        return  # Where the list was not delivered there is nothing to carry on.
    after = run(apply(world, answer))
    for key in sorted(answer.desired.keys() | after.desired.keys()):
        if answer.desired.get(key) != after.desired.get(key):
            yield f"{key}: {answer.desired.get(key)} became {after.desired.get(key)}"


def missed(world: World, answer: Answer) -> Iterator[str]:
    facts = read_facts.read(world)
    if (
        facts.clusters is None
        or not facts.listed
        or len(answer.replicas) >= facts.wanted
        or shrinks(world, answer)
    ):
        return
    plan = Scheduler(read_facts.read(apply(world, answer))).run()
    if plan.new and not any(reason == "replaced" for reason in plan.dropped.values()):
        yield f"stopped at {len(answer.replicas)} of {facts.wanted}; {plan.new[0]} was possible"


def noisy(world: World, answer: Answer) -> Iterator[str]:
    """Ask until nothing changes any more: from then on there are no events and the texts stay."""
    if world.replicas is None:
        return
    for _ in range(2):
        world = reported(apply(world, answer), answer)
        answer = run(world)
    after = run(reported(apply(world, answer), answer))
    if after.events:
        yield f"events without a transition: {after.events}"
    if after.conditions != answer.conditions or after.status != answer.status:
        yield f"{answer.conditions} became {after.conditions}"


def reported(world: World, answer: Answer) -> World:
    """Return a world whose composite has the conditions and the status of an answer."""
    made = world.copy()
    conditions = [
        build.condition(kind, status=status, reason=reason) | {"message": message}
        for kind, (status, reason, message) in answer.conditions.items()
    ]
    made.deployment["status"] = dict(answer.status) | {"conditions": conditions}
    return made
