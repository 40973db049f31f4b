"""Compose the whole answer: desired resources, status, conditions, readiness, events.

Why in one place. The parts of an answer must agree: an endpoint is desired for a replica that is, the
conditions count what is desired, and an event says what changed since the conditions before.

Theory of operation
1. What is kept and what is placed becomes desired replicas and endpoints (`compose.replicas`). Law 2: what is
   left out here is deleted by Crossplane, so a replica is left out only where `Decision.dropped` has it.
2. Conditions are composed from the decision and from which replicas have an endpoint (`compose.conditions`).
3. Events are transitions. They are found by comparing with the conditions that the composite has now, never
   with anything remembered, so that a repeated call emits none (Law 1).
4. The composite is Ready when as many replicas are placed as are required, and the input is valid.
5. The time to live says when to ask again where Crossplane watches nothing that would wake it
   (docs/decisions/0012-who-is-woken.md). Waiting for the fleet is short, being settled is long.

An answer about a composite that cannot be read desires everything that is observed, as it is (`unreadable`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from function import boundary
from function.api.model import mapping
from function.api.names import RECONCILE_ANNOTATION, desired_key, read_key
from function.api.replica import DEPLOYMENT_LABEL
from function.api.text import counted, listed, one_line
from function.boundary import Condition, Desired, Plain, Request, Requirement, Resolution, Response, Result
from function.deployment.compose import conditions, replicas
from function.deployment.compose.conditions import SCHEDULED
from function.deployment.explain.message import histogram, preempted_phrase
from function.deployment.explain.report import report, steady
from function.deployment.requirements import referenced_cache, watched_for_room
from function.deployment.snapshot.fleet import read_cache
from function.fail_static import everything_observed
from function.scheduler.decision import Decision
from function.scheduler.outcomes import Cause, Update
from function.transitions import circuit_open, conditions_before, transitions

# Report which request to reconcile was handled: `status.lastHandledReconcileAt`.
#
# A new value of the annotation `crossplane.io/reconcile-requested-at` makes Crossplane reconcile a
# composite now. Crossplane 2.3 notes the value in the status it holds before it calls the function, but
# what the function desires then takes the place of that status, and no XRD declares the field by itself. So
# it stays empty, and every later reconcile emits the event `ReconcileRequestHandled` again, unless the XRD
# declares the field and the function returns it.


def handled_request(composite: Mapping[str, Plain]) -> dict[str, Plain]:
    """The status field with the value of the annotation; {} for a composite that has none."""
    annotations = mapping(composite, "metadata", "annotations")
    token = annotations.get(RECONCILE_ANNOTATION)
    return {"lastHandledReconcileAt": token} if token and isinstance(token, str) else {}


# Events: only on a transition, compared with the conditions the composite has now. Never on every call.

SHOWN = 5
"""How many replicas an event names."""

_SEVERITY = {Cause.ScaledDown: "NORMAL", Cause.Replaced: "NORMAL"}


def _dropped(decision: Decision) -> Iterator[Result]:
    """One event per reason for which observed replicas leave now. They leave `observed` at once."""
    causes: dict[Cause, list[str]] = defaultdict(list)
    details: dict[Cause, str] = {}
    for dropped in decision.dropped:
        if dropped.own_replica.observed and dropped.cause is not Cause.Terminating:
            causes[dropped.cause].append(f"{dropped.own_replica.cluster}/{dropped.own_replica.replica.name}")
            details.setdefault(dropped.cause, dropped.detail)
    for cause, names in causes.items():
        detail = f" ({details[cause]})" if details[cause] else ""
        number = counted(len(names), "replica")
        text = f"Removing {number}, {cause.value}{detail}: {listed(names, SHOWN)}"
        yield Result(_SEVERITY.get(cause, "WARNING"), f"Replica{cause.name}", one_line(text))


def _placed(decision: Decision) -> Iterator[Result]:
    """One event for new replicas, and one for those among them that others are to give way to."""
    names = [f"{placed.identity.cluster}/{placed.name}" for placed in decision.placed]
    if names:
        clusters = counted(len({placed.identity.cluster for placed in decision.placed}), "cluster")
        text = f"Placed {counted(len(names), 'replica')} on {clusters}: {listed(names, SHOWN)}"
        yield Result("NORMAL", "ReplicasPlaced", one_line(text))
    where = [
        f"{placed.identity.cluster}/{placed.name} ({preempted_phrase(placed)})"
        for placed in decision.placed
        if placed.preempts is not None
    ]
    if where:
        text = f"Placed {counted(len(where), 'replica')} where others are to give way"
        yield Result("NORMAL", "ReplicasPreempting", one_line(f"{text}: {listed(where, SHOWN)}"))


def _updated(decision: Decision) -> Iterator[Result]:
    """One event for the replicas that a staged rollout updates now."""
    names = [
        f"{kept.own_replica.cluster}/{kept.own_replica.replica.name}"
        for kept in decision.kept
        if kept.update is Update.Now
    ]
    if names:
        text = f"Updating {counted(len(names), 'replica')} to the current template: {listed(names, SHOWN)}"
        yield Result("NORMAL", "ReplicasUpdating", one_line(text))


def results(
    decision: Decision, stated: tuple[Condition, ...], composite: Mapping[str, Plain]
) -> tuple[Result, ...]:
    """The events of this call: what leaves, what is new, and a problem that was not there before."""
    events = list(_dropped(decision))
    scheduled = next(condition for condition in stated if condition.type == SCHEDULED)
    status = mapping(composite.get("status"))
    before = conditions_before(status).get(SCHEDULED)
    if events or before != (str(scheduled.status), scheduled.reason, scheduled.message):
        events.extend(_placed(decision))
    events.extend(_updated(decision))
    events.extend(transitions("ModelDeployment", stated, status))
    return tuple(events)


# Answer for a composite that cannot be read: nothing changes, and every condition says why.


def unreadable(request: Request, requirements: tuple[Requirement, ...], fault: str) -> Response:
    """Desire everything observed as it is.

    Fatal once the fleet was delivered; before that a fatal result would stop Crossplane from fetching it.
    """
    fatal = all(requirement.delivered(request) for requirement in requirements)
    cache, namespace = referenced_cache(request)
    state, _, cache_fault = read_cache(request, cache, namespace)
    text = one_line(f"The ModelDeployment cannot be read: {fault}")
    reason = "InvalidInput" if fatal else "InputsUnresolved"
    cache_resolved = conditions.cache_resolved(f"{namespace}/{cache}", state, cache_fault)
    stated = (
        *((cache_resolved,) if cache_resolved is not None else ()),
        Condition(SCHEDULED, status=False, reason=reason, message=text),
        Condition(conditions.READY, status=False, reason="ModelStarting", message=text),
        *(
            conditions.unresolved(kind, "the ModelDeployment cannot be read")
            for kind in conditions.optional(request)
        ),
    )
    return Response(
        requirements=requirements,
        desired=everything_observed(request, _kind_of, namespace),
        unready=True,
        conditions=stated,
        results=(Result("FATAL", "UnreadableComposite", text),) if fatal else (),
    )


def _kind_of(key: str, document: boundary.Document) -> str | None:
    """Return the kind under a key of ours; a replica or endpoint under an unreadable key is ours too."""
    identity = read_key(key)
    if identity is not None:
        return replicas.KIND if identity[0] == "replica" else replicas.ENDPOINT_KIND
    kind = boundary.text_at(document, "kind")
    return kind if kind in (replicas.KIND, replicas.ENDPOINT_KIND) else None


def desired(decision: Decision) -> dict[str, Desired]:
    """Everything desired: kept and new replicas, and the endpoints of those that are ready for traffic."""
    deployment = decision.inputs.deployment
    remember = decision.inputs.config.overcommit == "Yield"
    notes, doubt = replicas.notes_of(decision), bool(decision.inputs.config_fault)
    resources = replicas.unreferenced(decision) if remember else {}
    for kept in decision.kept:
        # Which classes there are is not known where the input is invalid: what is noted stays.
        standing = notes and notes._replace(guarantee=replicas.standing_of(decision, kept))
        noted = kept.own_replica.replica.notes if doubt else standing
        leaving = replicas.leaving_of(decision, kept)
        resource = replicas.kept_replica(deployment, kept, noted, remember=remember, leaving=leaving)
        if resource is not None:
            resources[kept.own_replica.key] = resource
    emitted: replicas.EmittedEngines = {}
    for placed in decision.placed:
        noted = notes and notes._replace(guarantee=str(placed.share or ""))
        resource = replicas.placed_replica(deployment, placed, emitted, noted)
        resources[desired_key("replica", placed.identity)] = resource
    resources |= replicas.endpoints(decision)
    return dict(sorted(resources.items()))


def _routable(decision: Decision, resources: Mapping[str, Desired]) -> frozenset[str]:
    """The keys of the replicas that are Ready and have an endpoint."""
    ready = (kept.own_replica for kept in decision.kept if kept.own_replica.replica.ready is True)
    return frozenset(
        own_replica.key
        for own_replica in ready
        if own_replica.identity and desired_key("endpoint", own_replica.identity) in resources
    )


def _replicas_status(decision: Decision, ready: int) -> dict[str, Plain]:
    """Build `status.replicas`: numbers, and on request the selector that the scale subresource serves.

    Every HPA, and KEDA through it, refuses a target whose scale has no selector, before it reads a metric. It
    must select the replicas of this deployment and of no other: two HPAs that select the same pods stop both.
    """
    inputs = decision.inputs
    stated: dict[str, Plain] = {"total": decision.total, "ready": ready}
    if inputs.config.scale_selector == "Status":
        stated["selector"] = f"{DEPLOYMENT_LABEL}={inputs.deployment.name}"
    return stated


def _counts(decision: Decision) -> dict[str, int]:
    """The work and the outcome in numbers, under the names that the log line and the metrics have."""
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
    stated = conditions.conditions(decision, routable, requested)
    invalid = bool(inputs.selectors.invalid or inputs.config_fault)
    invalid = invalid or bool(inputs.fleet.undelivered)
    ttl = inputs.config.ttl
    waits, deaf = waits_for_fleet(decision, stated), circuit_open(mapping(composite.get("status")))
    waiting = waits or deaf
    pending = ttl.pending if ttl.waiting is None or not waiting else ttl.waiting
    counts = _counts(decision)  # Of the decision: the report looks at more.
    status: dict[str, Plain] = {"replicas": _replicas_status(decision, len(routable))}
    if inputs.config.explain == "Status":
        summary = next(condition.message for condition in stated if condition.type == SCHEDULED)
        at_rest = not (waiting or decision.dropped or decision.placed)
        status["placement"] = steady(report(decision, summary), composite, at_rest=at_rest)
        status |= handled_request(composite)
    return Response(
        requirements=requirements,
        desired=resources,
        status=status,
        unready=decision.total < deployment.required or invalid,
        conditions=stated,
        results=results(decision, stated, composite),
        settled=not waiting and not invalid and all(condition.status for condition in stated),
        ttl=(pending, ttl.settled),
        woken=(
            waits
            and not (deaf or invalid or any(kept.outgoing for kept in decision.kept))
            and (decision.total >= decision.wanted or watched_for_room(requirements))
        ),
        counts=counts,
        rejections={reason.name: count for reason, count in histogram(decision.rejections).items()},
    )


def waits_for_fleet(decision: Decision, stated: tuple[Condition, ...]) -> bool:
    """Tell whether something is wanted that only a change of the fleet brings.

    Crossplane watches what a deployment composes, so a replica on its way to Ready is heard of at once. Up to
    2.3 what is required (clusters, other replicas, caches) is looked at again only when the ttl runs out.
    """
    fleet = decision.inputs.fleet
    delivered = not fleet.undelivered and fleet.cache_resolution in (None, Resolution.DELIVERED)
    degraded = any(condition.reason == "ClusterDegraded" for condition in stated)
    return (
        decision.total < decision.wanted
        or any(kept.outgoing for kept in decision.kept)
        or degraded
        or not delivered
    )
