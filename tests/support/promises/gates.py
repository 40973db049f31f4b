"""P9: nothing new where a taint is untolerated, the cluster is not Ready, deleting, or has no gateway; no
endpoint without a Ready replica.

P10: spread: a new replica lands on a least-loaded feasible cluster, ties by the rule.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.oracle import facts as read_facts
from tests.oracle.schedule import Scheduler
from tests.support import law
from tests.support.apply import apply
from tests.support.promises.identity import new

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.drive import Answer
    from tests.support.world import World


def barred(world: World, answer: Answer) -> Iterator[str]:
    scheduler = Scheduler(read_facts.read(world))
    for key, manifest in new(world, answer).items():
        if not scheduler.open(scheduler.clusters[manifest["spec"]["clusterName"]]):
            yield f"{key} is new on a cluster that takes nothing new"


def dead_ends(world: World, answer: Answer) -> Iterator[str]:
    ready = {item.key for item in read_facts.read(world).own_replicas if item.condition == "True"}
    for key in answer.endpoints:
        replica = key.replace("endpoint-", "replica-", 1)
        if replica not in answer.desired:
            yield f"{key} without a replica"
        # Nothing said, or Unknown, is doubt: then an endpoint stays as it is.
        elif replica not in ready and law.condition(world.observed.get(replica), "Ready") not in (
            None,
            "Unknown",
        ):
            yield f"{key} without a Ready replica"


def uneven(world: World, answer: Answer) -> Iterator[str]:
    """A cluster that could take one more at the end could have taken any that went elsewhere."""
    replaced = getattr(answer.decision, "placed", ())
    if not new(world, answer) or any(placement.replaces is not None for placement in replaced):
        return
    scheduler = Scheduler(read_facts.read(apply(world, answer)))
    for replica in (*scheduler.facts.own_replicas, *scheduler.facts.others):
        scheduler.charged += scheduler.cost(replica)
    hosts = Counter(replica["spec"]["clusterName"] for replica in answer.replicas.values())
    chosen = {manifest["spec"]["clusterName"] for manifest in new(world, answer).values()}
    for other in (cluster for cluster in scheduler.clusters.values() if scheduler.open(cluster)):
        if scheduler.search(other) is None:
            continue
        for on in chosen - {other.name}:
            if (hosts[on] - 1, on) > (hosts[other.name], other.name):
                yield f"{on} hosts {hosts[on]}, {other.name} could have: {hosts[other.name]}"
