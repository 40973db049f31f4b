"""placement.disruption: how many of the wanted replicas may be missing or not Ready at a time.

There is no surge: a draining or mismatched replica is given up only if, afterwards, wanted minus (kept and
Ready) is at most maxUnavailable. It does not hold back the loss of a cluster that is gone, nor scale down.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.api.ownership import OwnReplica
    from function.scheduler.scheduling_input import SchedulingInput


def may_leave(inputs: SchedulingInput, staying: Iterable[OwnReplica], leaving: OwnReplica) -> bool:
    """Whether a replica may be given up now, seen who stays besides it."""
    stated = inputs.policy.disruption
    if stated is None or stated.max_unavailable is None:
        return True
    ready = sum(1 for own in staying if own is not leaving and own.replica.ready is True)
    return inputs.deployment.wanted - ready <= stated.max_unavailable


def leaving_now(
    inputs: SchedulingInput, staying: Iterable[OwnReplica], draining: Iterable[OwnReplica]
) -> set[str]:
    """The keys of those draining replicas that may be given up in this pass.

    As in scale down, one that is not Ready goes first, then one on the cluster with most of the deployment's
    replicas (recomputed for each), then the highest index, then the later cluster.
    """
    left, waiting, gone = list(staying), list(draining), set()
    while waiting:
        counts = Counter(own.cluster for own in left)
        first = max(waiting, key=partial(_order, counts=counts))
        waiting.remove(first)
        if may_leave(inputs, left, first):
            left.remove(first)
            gone.add(first.key)
    return gone


def _order(own: OwnReplica, counts: Counter[str]) -> tuple[object, ...]:
    index = own.identity.index if own.identity else -1
    return (own.replica.ready is not True, counts[own.cluster], index, own.cluster)
