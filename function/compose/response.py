"""The whole answer: desired resources, status, conditions, readiness, events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.names import endpoint_key, replica_key
from function.compose.conditions import SCHEDULED, conditions
from function.compose.endpoints import endpoints
from function.compose.objects import API_VERSION
from function.compose.replicas import Members, kept_replica, placed_replica
from function.compose.results import results
from function.exchange import Condition, Desired, Requirement, Response, Result
from function.explain.message import histogram, one_line
from function.explain.report import report
from function.fleet import CACHE, CACHES, CLUSTERS, DEPLOYMENTS, REPLICAS, Told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.exchange import Plain
    from function.scheduler.decision import Decision


def requirements(cache: str, namespace: str, *, coordinated: bool = False) -> tuple[Requirement, ...]:
    """What Crossplane must fetch: the same on every call."""
    needed: tuple[Requirement, ...] = (
        Requirement(CLUSTERS, API_VERSION, "InferenceCluster"),
        Requirement(REPLICAS, API_VERSION, "ModelReplica"),
    )
    if coordinated:
        deployments = Requirement(DEPLOYMENTS, API_VERSION, "ModelDeployment")
        needed = (*needed, deployments, Requirement(CACHES, API_VERSION, "ModelCache"))
    if not cache:
        return needed
    named = Requirement(
        CACHE, API_VERSION, "ModelCache", match_name=cache, namespace=namespace, served_by=CACHES
    )
    return (*needed, named)


def desired(decision: Decision) -> dict[str, Desired]:
    """Everything desired: kept and new replicas, and the endpoints of those that are ready for traffic."""
    deployment = decision.question.deployment
    remember = decision.question.config.overcommit == "Yield"
    found = {
        kept.own.key: resource
        for kept in decision.kept
        if (resource := kept_replica(deployment, kept, remember=remember)) is not None
    }
    emitted: Members = {}
    found |= {
        replica_key(placed.identity): placed_replica(deployment, placed, emitted)
        for placed in decision.placed
    }
    found |= endpoints(decision)
    return dict(sorted(found.items()))


def _routable(decision: Decision, found: Mapping[str, Desired]) -> frozenset[str]:
    """The keys of the replicas that are Ready and have an endpoint."""
    ready = (kept.own for kept in decision.kept if kept.own.replica.ready is True)
    return frozenset(own.key for own in ready if own.identity and endpoint_key(own.identity) in found)


def _counts(decision: Decision) -> dict[str, int]:
    fleet, work = decision.question.fleet, decision.question.selectors.evaluations
    return {
        "clusters": len(fleet.clusters) + len(fleet.broken),
        "clusters_unreadable": len(fleet.broken),
        "replicas_charged": len(fleet.charged) + len(fleet.own),
        "wanted": decision.wanted,
        "kept": len(decision.kept),
        "held": len(decision.held),
        "placed": len(decision.placed),
        "dropped": len(decision.dropped),
        "cel_evaluations": work.evaluated,
        "cel_reused": work.reused,
        "pool_matches": decision.matched,
    }


def answer(decision: Decision, composite: Mapping[str, Plain]) -> Response:
    """Put the answer together from a decision."""
    question = decision.question
    deployment = question.deployment
    found = desired(decision)
    routable = _routable(decision, found)
    told = conditions(decision, routable)
    invalid = bool(question.selectors.invalid or question.config_fault)
    invalid = invalid or not (question.fleet.inputs_told and question.peers.resolved)
    ttl, counts = question.config.ttl, _counts(decision)
    status: dict[str, Plain] = {"replicas": {"total": decision.total, "ready": len(routable)}}
    if question.config.explain == "Status":
        status["placement"] = report(decision, _summary(told))
    return Response(
        requirements=requirements(
            deployment.cache,
            deployment.namespace,
            coordinated=question.config.coordination == "GlobalOrder",
        ),
        desired=found,
        status=status,
        unready=decision.total < deployment.required or invalid or _cache_unresolved(decision),
        conditions=told,
        results=results(decision, told, composite),
        settled=decision.total >= decision.wanted and not invalid and all(each.status for each in told),
        ttl=(ttl.pending, ttl.settled),
        counts=counts,
        rejections={reason.name: count for reason, count in histogram(decision.rejections).items()},
        decision=decision,
    )


def _summary(told: tuple[Condition, ...]) -> str:
    return next(each.message for each in told if each.type == SCHEDULED)


def _cache_unresolved(decision: Decision) -> bool:
    return decision.question.fleet.told_cache is Told.UNRESOLVED


def unreadable(
    fault: str,
    kept: Mapping[str, Desired],
    needed: tuple[Requirement, ...],
    cache: Condition | None,
    *,
    fatal: bool,
) -> Response:
    """The answer to a composite that cannot be read: nothing changes.

    Fatal once the requirements were delivered; before that it would stop Crossplane from fetching them.
    """
    text = one_line(f"The ModelDeployment cannot be read: {fault}")
    scheduled = Condition(
        "ReplicasScheduled",
        status=False,
        reason="InvalidInput" if fatal else "InputsUnresolved",
        message=text,
    )
    ready = Condition("ReplicasReady", status=False, reason="ModelStarting", message=text)
    return Response(
        requirements=needed,
        desired=kept,
        unready=True,
        conditions=(cache, scheduled, ready) if cache else (scheduled, ready),
        results=(Result("FATAL", "UnreadableComposite", text),) if fatal else (),
    )
