"""Compose the whole answer: desired resources, status, conditions, readiness, events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.lenient import mapping
from function.api.names import endpoint_key, replica_key
from function.api.replica import DEPLOYMENT_LABEL
from function.boundary import Condition, Desired, Requirement, Resolution, Response
from function.deployment.compose.cache import EmittedEngines
from function.deployment.compose.conditions import SCHEDULED, conditions
from function.deployment.compose.endpoints import endpoints
from function.deployment.compose.handled import handled_request
from function.deployment.compose.replicas import kept_replica, placed_replica
from function.deployment.compose.results import results
from function.deployment.explain.message import histogram
from function.deployment.explain.report import report
from function.deployment.explain.steady import steady
from function.transitions import circuit_open

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from function.boundary import Plain
    from function.scheduler.decision import Decision


def desired(decision: Decision) -> dict[str, Desired]:
    """Everything desired: kept and new replicas, and the endpoints of those that are ready for traffic."""
    deployment = decision.inputs.deployment
    remember = decision.inputs.config.overcommit == "Yield"
    resources = {
        kept.own_replica.key: resource
        for kept in decision.kept
        if (resource := kept_replica(deployment, kept, remember=remember)) is not None
    }
    emitted = EmittedEngines()
    resources |= {
        replica_key(placed.identity): placed_replica(deployment, placed, emitted)
        for placed in decision.placed
    }
    resources |= endpoints(decision)
    return dict(sorted(resources.items()))


def _routable(decision: Decision, resources: Mapping[str, Desired]) -> frozenset[str]:
    """The keys of the replicas that are Ready and have an endpoint."""
    ready = (kept.own_replica for kept in decision.kept if kept.own_replica.replica.ready is True)
    return frozenset(
        own_replica.key
        for own_replica in ready
        if own_replica.identity and endpoint_key(own_replica.identity) in resources
    )


def _replicas_status(decision: Decision, ready: int) -> dict[str, Plain]:
    """What `status.replicas` says: numbers, and on request the selector that the scale subresource serves.

    Every HPA, and KEDA through it, refuses a target whose scale has no selector, before it reads a metric. It
    must select the replicas of this deployment and of no other: two HPAs that select the same pods stop both.
    """
    inputs = decision.inputs
    stated: dict[str, Plain] = {"total": decision.total, "ready": ready}
    if inputs.config.scale_selector == "Status":
        stated["selector"] = f"{DEPLOYMENT_LABEL}={inputs.deployment.name}"
    return stated


def _counts(decision: Decision) -> dict[str, int]:
    fleet, work = decision.inputs.fleet, decision.inputs.evaluations.outcomes
    return {
        "clusters": len(fleet.clusters) + len(fleet.unreadable),
        "clusters_unreadable": len(fleet.unreadable),
        "replicas_charged": len(fleet.other_replicas) + len(fleet.own_replicas),
        "wanted": decision.wanted,
        "kept": len(decision.kept),
        "held": len(decision.held),
        "placed": len(decision.placed),
        "dropped": len(decision.dropped),
        "cel_evaluations": work.evaluated,
        "cel_reused": work.reused,
        "pool_matches": decision.matched,
    }


def compose(
    decision: Decision,
    composite: Mapping[str, Plain],
    requirements: tuple[Requirement, ...],
    requested: Collection[str],
) -> Response:
    """Put the answer together from a decision. `requested` are the optional conditions that are returned."""
    inputs = decision.inputs
    deployment = inputs.deployment
    resources = desired(decision)
    routable = _routable(decision, resources)
    stated = conditions(decision, routable, requested)
    invalid = bool(inputs.selectors.invalid or inputs.config_fault)
    invalid = invalid or not (inputs.fleet.inputs_delivered and inputs.peers.resolved)
    ttl = inputs.config.ttl
    waiting = waits_for_fleet(decision, stated) or circuit_open(mapping(composite.get("status")))
    pending = ttl.pending if ttl.waiting is None or not waiting else ttl.waiting
    counts = _counts(decision)  # Of the decision: the report looks at more.
    status: dict[str, Plain] = {"replicas": _replicas_status(decision, len(routable))}
    if inputs.config.explain == "Status":
        made, at_rest = (
            report(decision, _summary(stated)),
            not (waiting or decision.dropped or decision.placed),
        )
        status["placement"] = steady(made, composite, at_rest=at_rest)
        status |= handled_request(composite)
    return Response(
        requirements=requirements,
        desired=resources,
        status=status,
        unready=decision.total < deployment.required or invalid or _cache_unresolved(decision),
        conditions=stated,
        results=results(decision, stated, composite),
        settled=not waiting and not invalid and all(condition.status for condition in stated),
        ttl=(pending, ttl.settled),
        counts=counts,
        rejections={reason.name: count for reason, count in histogram(decision.rejections).items()},
    )


def waits_for_fleet(decision: Decision, conditions: tuple[Condition, ...]) -> bool:
    """Whether something is wanted that only a change of the fleet brings.

    Crossplane watches what a deployment composes, so a replica on its way to Ready is heard of at once; what
    is required (clusters, other replicas, caches) is looked at again only when the ttl runs out.
    """
    fleet = decision.inputs.fleet
    delivered = fleet.inputs_delivered and decision.inputs.peers.resolved
    delivered = delivered and fleet.cache_resolution in (None, Resolution.DELIVERED)
    moving = any(kept.outgoing for kept in decision.kept)
    degraded = any(condition.reason == "ClusterDegraded" for condition in conditions)
    short = decision.total < decision.wanted
    return short or moving or degraded or not delivered


def _summary(stated: tuple[Condition, ...]) -> str:
    return next(condition.message for condition in stated if condition.type == SCHEDULED)


def _cache_unresolved(decision: Decision) -> bool:
    return decision.inputs.fleet.cache_resolution is Resolution.UNRESOLVED
