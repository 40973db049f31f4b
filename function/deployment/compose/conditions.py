"""The composite's conditions: the same on every path, the same text for the same problem, no time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from function.api.model import mapping
from function.api.text import counted, joined, listed, one_line
from function.boundary import Condition, Resolution, Unreadable
from function.deployment.compose.updated import UPDATED, listed_pools, noted, replicas_updated
from function.deployment.explain.lint import advice
from function.deployment.explain.message import around, placed_of, replacement_cause
from function.deployment.requirements import coordinated, published
from function.scheduler.outcomes import Cause
from function.transitions import conditions_before

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from function.boundary import Request
    from function.scheduler.decision import Decision


# Find degraded clusters, whose replicas may run and cannot be relied on, and say what is wrong there.
#
# A degraded cluster keeps its replicas (Law 2). That nothing is wrong with the replica itself is worth
# saying: who looks for the fault has to look at the cluster.

SHOWN = 3
"""How many degraded clusters a message names."""


class DegradedCluster(NamedTuple):
    """A cluster of this deployment's replicas that is not fit to serve."""

    name: str
    fault: str
    holds_ready: bool
    """Whether a replica on it is Ready itself: then the cluster is all that is wrong with that one."""


def degraded_clusters(decision: Decision, routable: Collection[str]) -> tuple[DegradedCluster, ...]:
    """The degraded clusters of the kept replicas, by name; none while the clusters are not delivered.

    A cluster without a gateway address is degraded only for a replica that has no endpoint from before:
    one whose endpoint is still there is reached as ever (`routable` holds the keys of those that are).
    """
    if decision.inputs.fleet.clusters_resolution is Resolution.UNRESOLVED:
        return ()
    degraded: dict[str, DegradedCluster] = {}
    for kept in decision.kept:
        own_replica = kept.own_replica
        fault = _fault(decision, own_replica.cluster, routed=own_replica.key in routable)
        if fault:
            before = degraded.get(own_replica.cluster)
            ready = own_replica.replica.ready is True or (before is not None and before.holds_ready)
            degraded[own_replica.cluster] = DegradedCluster(
                own_replica.cluster, before.fault if before else fault, ready
            )
    return tuple(degraded[name] for name in sorted(degraded))


def _fault(decision: Decision, name: str, *, routed: bool) -> str:
    """Return the fault of a cluster as far as traffic is concerned; empty for none."""
    fleet = decision.inputs.fleet
    cluster = fleet.clusters.get(name)
    if cluster is None:
        if routed:
            return ""  # Whether it is Ready is not known, and its endpoint is there.
        missing = "is not in the fleet" if fleet.whole else "is not known"
        return "cannot be read" if name in fleet.unreadable else missing
    if cluster.status is None:
        return "has no status"
    if not cluster.ready:
        return "is not Ready" if cluster.ready is False else "does not say whether it is Ready"
    return "" if cluster.gateway or routed else "has no gateway address"


def degraded_text(clusters: Sequence[DegradedCluster]) -> str:
    """`cluster use1 is not Ready, use2 has no gateway address`; empty for none."""
    if not clusters:
        return ""
    return f"cluster {listed([f'{cluster.name} {cluster.fault}' for cluster in clusters], SHOWN)}"


SCHEDULED, READY, CACHE_RESOLVED = "ReplicasScheduled", "ReplicasReady", "ModelCacheResolved"
CAPACITY = "CapacityRespected"
WAITED_FOR = 4
"""How many undelivered requirements a message names."""


def _kept(decision: Decision, whole: str) -> str:
    """Say what doubt keeps: `whole`, or all but those that leave for a reason beyond doubt."""
    causes = Counter(dropped.cause for dropped in decision.dropped if dropped.cause is not Cause.Terminating)
    if not causes:
        return f"{whole} is kept"
    leave = f"{counted(causes.total(), 'replica')} leave{'s' * (causes.total() == 1)}"
    why = "; ".join(cause.value for cause in Cause if cause in causes)
    return f"{leave} ({why}), every other one is kept"


def _invalid_selectors(decision: Decision) -> Iterator[tuple[str, str]]:
    """Selectors that do not compile: the first of its level, how many more, and what may be meant."""
    for of_clusters, reason in ((True, "InvalidClusterSelector"), (False, "InvalidNodeSelector")):
        invalid = [
            selector
            for selector in decision.inputs.selectors.invalid
            if selector.cluster_level is of_clusters
        ]
        if invalid:
            more = f" (and {len(invalid) - 1} more)" if len(invalid) > 1 else ""
            fault = f"{invalid[0].path}: {invalid[0].error}{more}"
            kept = f"{_kept(decision, 'every running replica')}, nothing new is placed"
            yield reason, joined(fault, advice(invalid[0], decision.inputs.fleet), kept)


def _held(decision: Decision) -> Iterator[tuple[str, str]]:
    """Replicas whose replacement has no place: mismatched, or blocked. Law 2: they are kept as observed."""
    held = [kept for kept in decision.held if kept.blocked or not kept.waits]
    if held:
        why = replacement_cause(held[0])
        first = held[0]
        noun = "replica needs" if len(held) == 1 else "replicas need"
        evacuated = all(kept.mismatch and kept.mismatch.evacuates for kept in held)
        stay = "stay where they are" if evacuated else "keep running as they are"
        text = f"{len(held)} {noun} replacement and none has a place, so they {stay}"
        text = f"{text}: {first.own_replica.cluster}/{first.own_replica.replica.name}: {why}"
        blocked = around(text, decision) if decision.rejections else joined(text, placed_of(decision))
        yield "ReplacementBlocked", blocked


def _shortfall(decision: Decision) -> Iterator[tuple[str, str]]:
    """Fewer are placed than wanted, or than minReplicas asks for."""
    total, least = decision.total, decision.inputs.deployment.least
    if total >= decision.wanted:
        return
    if least is not None and total < least:
        others = (
            f"{decision.withheld} more had a place" if decision.withheld else "no place was found for more"
        )
        after = f"minReplicas is {least}, {others}, so nothing new is placed"
        yield "MinReplicasNotMet", _missing(decision, after)
    yield ("PartiallyScheduled" if total else "InsufficientCapacity"), _missing(decision)


def _missing(decision: Decision, after: str = "") -> str:
    """Why fewer are placed than wanted."""
    if decision.rejections and not decision.stopped:
        return around(placed_of(decision), decision, after)
    return joined(placed_of(decision), decision.stopped or _waiting(decision), after)


def _waiting(decision: Decision) -> str:
    """Why nothing was looked for, when no cluster was to blame."""
    fleet, name = decision.inputs.fleet, decision.inputs.deployment.cache
    if fleet.cache_resolution is Resolution.ABSENT:
        return f"nothing new is placed until ModelCache {name} exists"
    return "nothing new is placed until every input is known"


def _problems(decision: Decision) -> Iterator[tuple[str, str]]:
    """Every problem that holds, in the order in which the first one is reported."""
    undelivered = decision.inputs.fleet.undelivered
    if undelivered:
        waiting = f"Waiting for required resources: {listed(undelivered, WAITED_FOR)}"
        yield "InputsUnresolved", joined(waiting, _kept(decision, "everything running"))
    if decision.inputs.config_fault:
        yield (
            "InvalidInput",
            f"{decision.inputs.config_fault}; nothing new is placed",
        )
    yield from _invalid_selectors(decision)
    if decision.inputs.fleet.clusters_resolution is Resolution.ABSENT and (decision.wanted or decision.total):
        yield "NoClusters", f"There is no InferenceCluster; {_kept(decision, 'everything running')}"
    yield from _held(decision)
    yield from _shortfall(decision)


def scheduled(decision: Decision) -> Condition:
    """ReplicasScheduled: the first problem in order, or how far creation is."""
    problem = next(_problems(decision), None)
    if problem is not None:
        reason, text = problem
        met = reason == "PartiallyScheduled" and decision.inputs.deployment.least is not None
        return Condition(SCHEDULED, status=met, reason=reason, message=noted(decision, text))
    text = noted(decision, placed_of(decision))
    if decision.total and not any(kept.own_replica.observed for kept in decision.kept):
        return Condition(SCHEDULED, status=False, reason="Scheduling", message=text)
    return Condition(SCHEDULED, status=True, reason="ReplicasCreated", message=text)


def ready(decision: Decision, routable: Collection[str]) -> Condition:
    """ReplicasReady: Ready and routable replicas, counted against the placed ones.

    `routable` are the keys of the kept replicas that are Ready and have an endpoint.
    """
    if not decision.total and decision.wanted:
        return Condition(READY, status=False, reason="NoReplicasScheduled", message="No replica is placed")
    degraded = degraded_clusters(decision, routable)
    text = one_line(joined(f"{len(routable)} of {decision.total} ready", degraded_text(degraded)))
    if any(cluster.holds_ready for cluster in degraded):
        return Condition(READY, status=False, reason="ClusterDegraded", message=text)
    done = len(routable) >= decision.total
    return Condition(READY, status=done, reason="AllReplicasReady" if done else "ModelStarting", message=text)


def cache_resolved(name: str, resolution: Resolution | None, fault: str) -> Condition | None:
    """ModelCacheResolved, only with a modelCacheRef. `fault` says why one that is there cannot be read."""
    match resolution:
        case None:
            return None
        case Resolution.DELIVERED:
            return Condition(CACHE_RESOLVED, status=True, reason="ModelCacheResolved")
        case Resolution.ABSENT:
            text = f"ModelCache {name} does not exist; nothing new is placed"
            return Condition(
                CACHE_RESOLVED, status=False, reason="ModelCacheNotFound", message=one_line(text)
            )
        case Resolution.UNRESOLVED:
            text = f"ModelCache {name} cannot be read: {fault}" if fault else f"Waiting for ModelCache {name}"
            return Condition(
                CACHE_RESOLVED, status=False, reason="ModelCacheUnresolved", message=one_line(text)
            )


def capacity_respected(decision: Decision) -> Condition:
    """CapacityRespected: whether the pools of the deployment's replicas hold no more than they have.

    It tells what is observed, so what gives way in this pass is still in it.
    """
    if not decision.inputs.fleet.inputs_delivered:
        return unresolved_capacity("the fleet has not been delivered")
    if not decision.overcommitted:
        return Condition(CAPACITY, status=True, reason="CapacityRespected")
    gives_way = sum(dropped.cause is Cause.Yielded for dropped in decision.dropped)
    leaving = f"{gives_way} of its replicas give{'s' * (gives_way == 1)} way" if gives_way else ""
    text = joined(listed_pools(decision.overcommitted), leaving)
    return Condition(CAPACITY, status=False, reason="PoolOvercommitted", message=one_line(text))


def unresolved_capacity(why: str) -> Condition:
    """CapacityRespected while nothing can be said of it."""
    return Condition(CAPACITY, status=False, reason="InputsUnresolved", message=one_line(f"Unknown: {why}"))


def tells_capacity(request: Request) -> bool:
    """Tell whether CapacityRespected is returned: where the input coordinates or reads sums, and ever after.

    A composite that has it keeps it when the input no longer asks: what is not returned would keep its last
    value and lie. One that never had it, as on Modelplane's own Composition, gets what it always got.
    """
    if coordinated(request) or published(request) or (request.input or {}).get("overcommit") == "Yield":
        return True
    try:
        composite = request.composite.project({"status": {"conditions": {"type": None}}})
    except Unreadable:
        return False
    return CAPACITY in conditions_before(mapping(composite.get("status")))


def tells_rollout(request: Request) -> bool:
    """Tell if ReplicasUpdated is returned: where a rollout is staged, and ever after as `tells_capacity`."""
    defaults = mapping(mapping((request.input or {}).get("defaults")).get("placement"))
    try:
        composite = request.composite.project(
            {"spec": {"placement": {"rollout": None}}, "status": {"conditions": {"type": None}}}
        )
    except Unreadable:
        return False
    stated = mapping(mapping(composite.get("spec")).get("placement"))
    return stated.get("rollout", defaults.get("rollout")) is not None or UPDATED in conditions_before(
        mapping(composite.get("status"))
    )


def optional(request: Request) -> tuple[str, ...]:
    """The conditions that are returned because somebody asked for them, in their order."""
    return (
        *((UPDATED,) if tells_rollout(request) else ()),
        *((CAPACITY,) if tells_capacity(request) else ()),
    )


def conditions(
    decision: Decision, routable: Collection[str], requested: Collection[str]
) -> tuple[Condition, ...]:
    """All conditions, in their order. What is not returned would keep its last value and lie.

    `requested` are the optional ones that are returned.
    """
    fleet = decision.inputs.fleet
    stated = (
        cache_resolved(decision.inputs.deployment.cache, fleet.cache_resolution, fleet.cache_fault),
        scheduled(decision),
        ready(decision, routable),
        replicas_updated(decision) if UPDATED in requested else None,
        capacity_respected(decision) if CAPACITY in requested else None,
    )
    return tuple(condition for condition in stated if condition is not None)
