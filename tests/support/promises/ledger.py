"""P2: a pool is never newly charged beyond what it publishes minus what exists (a replacement may stand on
the nodes of the replica it replaces).

P3: kept + placed never exceeds `replicas`, with `disruption.maxSurge` replicas + maxSurge.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.oracle import facts as read_facts
from tests.oracle.schedule import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle.schedule import Where
    from tests.support.drive import Answer
    from tests.support.world import World

Plain = dict[str, Any]


def stamped(replica: Plain) -> Counter[Where]:
    """Return the nodes that a desired replica will take."""
    total: Counter[Where] = Counter()
    for engine in replica["spec"]["engines"]:
        for member in engine["members"]:
            if member.get("deviceRequests"):
                pods = member.get("worker", {}).get("nodes", 1) if member["role"] == "Worker" else 1
                total[replica["spec"]["clusterName"], member["nodePoolName"]] += pods * engine["copies"]
    return total


def existing(world: World) -> tuple[Scheduler, dict[str, Counter[Where]]]:
    """Return what every existing replica takes, ours by key."""
    scheduler = Scheduler(read_facts.read(world))
    for replica in (*scheduler.facts.own_replicas, *scheduler.facts.others):
        scheduler.charged += scheduler.cost(replica)
    return scheduler, {str(replica.key): scheduler.cost(replica) for replica in scheduler.facts.own_replicas}


def free(scheduler: Scheduler, where: Where, *, usable: bool = False) -> int:
    """Return the free nodes of a pool that charges nodes, of all of them or of those that can be used."""
    pool = scheduler.clusters[where[0]].pools[where[1]]
    return (pool.usable if usable else pool.nodes) - scheduler.charged[where]


def overcharged(world: World, answer: Answer) -> Iterator[str]:
    scheduler, own_replicas = existing(world)
    added: Counter[Where] = Counter()
    new: Counter[Where] = Counter()
    for key, replica in answer.replicas.items():
        added += stamped(replica) - own_replicas.get(key, Counter())
        new += stamped(replica) if key not in own_replicas else Counter()
    spared: Counter[Where] = Counter()
    given_up: Counter[Where] = Counter()
    for placement in getattr(answer.decision, "placed", ()):
        if placement.replaces is not None:
            key = f"replica-{placement.identity.cluster}-{placement.identity.index}"
            given_up += own_replicas[str(placement.replaces.key)]
            spared += own_replicas[str(placement.replaces.key)] & stamped(answer.desired[key])
    for where in filter(lambda where: scheduler.published(*where[:2]), added):
        left, usable = free(scheduler, where), free(scheduler, where, usable=True)
        if added[where] > max(0, left) + spared[where]:
            yield f"{where}: {added[where]} more, {left} free, {spared[where]} given up for it"
        if new[where] > max(0, usable + given_up[where]):
            yield f"{where}: {new[where]} new, {usable} free of what can be used"


def too_many(world: World, answer: Answer) -> Iterator[str]:
    facts = read_facts.read(world)
    new = [key for key in answer.replicas if key not in {replica.key for replica in facts.own_replicas}]
    delivered = facts.clusters is not None and facts.listed
    most = facts.wanted + facts.surge
    if len(answer.replicas) > most and (delivered or new):
        yield f"{len(answer.replicas)} for {facts.wanted} wanted and a surge of {facts.surge}"
