"""Add to the message of ReplicasScheduled what holds whatever its reason is."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from function.api.text import LIMIT, listed, one_line
from function.boundary import Resolution
from function.scheduler.filters.cache_footprint import CacheFootprint
from function.scheduler.filters.cluster_selector import ClusterSelectorFilter
from function.scheduler.policy.disruption import surge
from function.scheduler.policy.evacuation import evacuation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from function.scheduler.capacity.overcommit import Overcommitted
    from function.scheduler.decision import Decision

SHOWN = 3
"""How many pools, or doubts, a message names."""
NOTES_RESERVE = 160
"""Characters kept for the notes at least, so that a long message does not push them out."""


def _overcommitted(decision: Decision) -> Iterator[str]:
    """The pools of its replicas that hold more than they have: somebody has to act, or to yield."""
    if decision.overcommitted:
        yield f"PoolOvercommitted: {listed_pools(decision.overcommitted)}"


def listed_pools(pools: Sequence[Overcommitted]) -> str:
    """Overcommitted pools, the first few by name."""
    return listed([*map(str, pools)], SHOWN)


def _evacuation(decision: Decision) -> Iterator[str]:
    """Why nothing is evacuated though it is asked for: doing nothing would look like all is well."""
    inputs = decision.inputs
    if inputs.fleet.inputs_delivered and inputs.fleet.clusters_resolution is Resolution.DELIVERED:
        paused = evacuation(inputs).paused
        if paused:
            yield paused


def _waiting(decision: Decision) -> Iterator[str]:
    """Replicas that would leave now, were it not for the disruption budget."""
    waiting = Counter(kept.waits for kept in decision.kept if kept.waits and not kept.blocked)
    for cause, number in sorted(waiting.items()):
        yield f"{number} wait{'s' * (number == 1)} for {cause}, within placement.disruption.maxUnavailable"


def _beside(decision: Decision) -> Iterator[str]:
    """Replicas beyond those wanted, which stand beside what they replace."""
    beyond = decision.total - decision.wanted
    if beyond > 0 and surge(decision.inputs):
        yield f"{beyond} more than wanted until replacements are in service (placement.disruption.maxSurge)"


def _doubted(decision: Decision) -> Iterator[str]:
    """Replicas that are kept in doubt, and the edits that wait for the doubt to end.

    Where nothing at all can be looked at (inputs undelivered, no cluster, an invalid selector), the reason
    of the condition says already that everything is kept.
    """
    inputs = decision.inputs
    if inputs.selectors.invalid or not inputs.fleet.inputs_delivered:
        return
    if inputs.fleet.clusters_resolution is not Resolution.DELIVERED:
        return
    doubts = Counter((kept.own_replica.cluster, kept.doubt) for kept in decision.kept if kept.doubt)
    if doubts:
        named = [
            f"{number} on {cluster or 'an unknown cluster'} ({doubt})"
            for (cluster, doubt), number in sorted(doubts.items())
        ]
        yield f"kept in doubt: {listed(named, SHOWN)}"
    until = sorted({condition for kept in decision.kept for condition in kept.withheld_until})
    if until:
        yield f"edits are withheld until {listed(until, SHOWN)}"


def _outside(decision: Decision) -> Iterator[str]:
    """Replicas on clusters that a new one would not be put on: labels gate new placements only.

    A label or a selector that was mistyped looks just like one that was meant, so it is said. Where something
    is missing, the message has said it of every cluster.
    """
    inputs = decision.inputs
    if decision.rejections or inputs.selectors.invalid or not inputs.fleet.inputs_delivered:
        return
    gates = [gate for kind in (ClusterSelectorFilter, CacheFootprint) if (gate := kind.of(inputs))]
    hosts = Counter(kept.own_replica.cluster for kept in decision.kept if not kept.mismatch)
    named = []
    for name, number in sorted(hosts.items()) if gates else ():
        cluster = inputs.fleet.clusters.get(name)
        rejections = (gate.reject(cluster) for gate in gates) if cluster else ()
        rejection = next(filter(None, rejections), None)
        if rejection is not None:
            particular = f": {rejection.particular}" if rejection.particular else ""
            named.append(f"{number} on {name} ({rejection.reason.value}{particular})")
    if named:
        yield f"kept where no new one would go: {listed(named, SHOWN)}"


NOTES = (_overcommitted, _evacuation, _waiting, _beside, _doubted, _outside)
"""What is added, in this order."""


def noted(decision: Decision, text: str) -> str:
    """A message with the notes that hold, in one line of at most the length a condition has."""
    notes = "; ".join(note for notes in NOTES for note in notes(decision))
    if not notes:
        return one_line(text)
    tail = one_line(notes, max(NOTES_RESERVE, LIMIT - 2 - len(one_line(text))))
    return f"{one_line(text, LIMIT - 2 - len(tail))}; {tail}"
