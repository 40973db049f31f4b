"""The answer about an adapter: its placements, an endpoint for each replica that serves it, its conditions.

    placements ▶ data, which the replica's handler reads      endpoints ▶ where requests for the adapter go
    AdapterScheduled ▶ fully, partially or not placed         AdapterReady ▶ where requests reach it

An endpoint of an adapter leads where that of its replica does, under a label of the adapter: a ModelService
that selects the label is the one address of the adapter, whatever replica it moves to. Requests name the
adapter as their model.

Law 2 for endpoints: one is composed when the replica's handler says that the adapter is configured. From then
on it is withdrawn only when the replica is observed not Ready, or the placement leaves or lost its slot.

Both conditions are in every answer, the same text for the same problem, and no time in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from function.adapter.schedule import AdapterDecision, KeptPlacement, RefusalReason, gained, one_more_slot
from function.adapter.snapshot import ENDPOINT, ENDPOINT_KEY, ENDPOINT_KIND, PLACEMENT_KEY, AdapterSnapshot
from function.api.adapter import ADAPTER_LABEL, PLACEMENT_KIND, REPLICA_LABEL, placement_name
from function.api.model import Reader, mapping, plain_of
from function.api.names import API_VERSION
from function.api.text import counted, joined, listed, one_line
from function.boundary import Condition, Desired, Document, Request, Resolution
from function.fail_static import Doubt, as_observed
from function.transitions import unmet

# The resources.


def compose(request: Request, snapshot: AdapterSnapshot, decision: AdapterDecision) -> dict[str, Desired]:
    """Return all desired resources."""
    adapter, desired = snapshot.adapter, {}

    def placement(replica: str, name: str) -> dict[str, Any]:
        spec = {"adapter": adapter.name, "replica": replica, "source": adapter.spec.source}
        return _composed(PLACEMENT_KIND, snapshot, replica, name) | {"spec": spec}

    for kept in decision.kept:
        replica = kept.existing.replica
        base = snapshot.inputs.bases.get(replica)
        is_configured = base is not None and adapter.name in base.configured
        # The name that it has: one that is only listed stays the object that it is.
        name = kept.existing.name or placement_name(adapter.name, replica)
        desired[f"{PLACEMENT_KEY}{replica}"] = Desired(placement(replica, name), ready=is_configured)
        endpoint = _endpoint(request, snapshot, kept, is_configured=is_configured)
        if endpoint is not None:
            desired[f"{ENDPOINT_KEY}{replica}"] = endpoint
    for replica in decision.placed:
        name = placement_name(adapter.name, replica)
        desired[f"{PLACEMENT_KEY}{replica}"] = Desired(placement(replica, name))
    return {key: desired[key] for key in sorted(desired) if key not in request.desired}


def _composed(kind: str, snapshot: AdapterSnapshot, replica: str, name: str) -> dict[str, Any]:
    labels = {ADAPTER_LABEL: snapshot.adapter.name, REPLICA_LABEL: replica}
    metadata = {"name": name, "namespace": snapshot.adapter.namespace, "labels": labels}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}


def _endpoint(
    request: Request, snapshot: AdapterSnapshot, kept: KeptPlacement, *, is_configured: bool
) -> Desired | None:
    """Return the endpoint of a kept placement, None where there is none."""
    replica = kept.existing.replica
    base = snapshot.inputs.bases.get(replica)
    key = f"{ENDPOINT_KEY}{replica}"
    observed: Document | None = None if key in request.desired else request.observed.get(key)
    if kept.lost or (base is not None and base.ready is False):
        return None
    ready = observed is not None and Reader().ready(plain_of(observed)) is True
    name = f"{ENDPOINT}/{replica}"
    if is_configured and request.resolution(name) is Resolution.DELIVERED:
        source = plain_of(request.required[name][0])
        spec = mapping(source.get("spec"))
        if spec.get("url") and not mapping(source.get("metadata")).get("deletionTimestamp"):
            wanted = {key: spec[key] for key in ("url", "rewritePath") if key in spec}
            named = placement_name(snapshot.adapter.name, replica)
            return Desired(_composed(ENDPOINT_KIND, snapshot, replica, named) | {"spec": wanted}, ready)
    if observed is None:
        return None
    namespace = snapshot.adapter.namespace
    return Desired(as_observed(observed, kind=ENDPOINT_KIND, namespace=namespace), ready)


# The conditions.

SCHEDULED, READY = "AdapterScheduled", "AdapterReady"
CONDITION_TYPES = (SCHEDULED, READY)
"""The conditions that every answer carries, in their order."""
SHOWN = 3
"""How many replicas a message names."""


def in_doubt(doubt: Doubt) -> tuple[Condition, ...]:
    """Return the conditions of an adapter that cannot be read."""
    text = f"{doubt.message}; every placement is kept, nothing new is placed"
    return tuple(unmet(kind, doubt.reason, text) for kind in CONDITION_TYPES)


def conditions(
    snapshot: AdapterSnapshot,
    decision: AdapterDecision,
    undelivered: tuple[str, ...],
    composed: Collection[str],
) -> tuple[Condition, ...]:
    """Return all conditions.

    `undelivered`: what the decision stands on and was not delivered. `composed`: the keys that are desired.
    """
    return (_scheduled(decision, undelivered), _ready(snapshot, decision, composed))


def _scheduled(decision: AdapterDecision, undelivered: tuple[str, ...]) -> Condition:
    inputs, total = decision.inputs, decision.total
    if undelivered:
        text = f"Waiting for {listed(undelivered, SHOWN)}; every placement is kept, nothing new is placed"
        return unmet(SCHEDULED, "InputsUnresolved", text)
    head = f"Placed on {total} of {counted(inputs.wanted, 'replica')}"
    if decision.lasting < inputs.wanted:
        reason = "PartiallyScheduled" if total else "NotScheduled"
        if not inputs.bases:
            reason = "NoBaseReplicas"
            text = joined(head, "the base has no replica")
        else:
            text = joined(head, _why(decision), _hint(decision))
        if decision.outgoing:
            reason = "ReplacementBlocked"
        for fate, goes in (("kept until it is replaced", False), ("goes with its replica", True)):
            blocked = [kept.outgoing for kept in decision.outgoing if _goes(decision, kept) is goes]
            text = joined(text, f"{fate}: {'; '.join(blocked[:SHOWN])}" if blocked else "")
        # Those on replicas that are about to leave serve until then.
        is_enough = total >= inputs.wanted or (reason == "PartiallyScheduled" and 0 < inputs.minimum <= total)
        return Condition(SCHEDULED, status=is_enough, reason=reason, message=one_line(text))
    if decision.outgoing:
        replaced = "; ".join(kept.outgoing for kept in decision.outgoing[:SHOWN])
        text = joined(head, f"being replaced: {replaced}")
        return Condition(SCHEDULED, status=True, reason="Replacing", message=one_line(text))
    return Condition(SCHEDULED, status=True, reason="FullyScheduled")


def _goes(decision: AdapterDecision, kept: KeptPlacement) -> bool:
    """Tell whether a placement goes with its replica, replaced or not."""
    base = decision.inputs.bases.get(kept.existing.replica)
    return kept.lasts or (base is not None and base.terminating)


def _why(decision: AdapterDecision) -> str:
    """Return why no further replica takes the adapter: counts by reason, and the nearest one's numbers."""
    rejections = decision.rejections
    if not rejections:
        return f"minReplicas {decision.inputs.minimum} cannot be met"
    counts = Counter(reason for _, reason, _ in rejections)
    parts = []
    for reason in RefusalReason:
        if counts[reason]:
            replica, _, detail = next(row for row in rejections if row[1] is reason)
            parts.append(f"{counts[reason]} {reason.value}" + (f" ({replica} {detail})" if detail else ""))
    return f"0/{counted(len(rejections), 'replica')} of the base can take it: {', '.join(parts)}"


def _hint(decision: AdapterDecision) -> str:
    """Return what would help, where that was tried."""
    more = gained(decision, one_more_slot) if decision.inputs.complete else 0
    return f"with one slot more on each replica {more} more would be placed" if more else ""


def _ready(snapshot: AdapterSnapshot, decision: AdapterDecision, composed: Collection[str]) -> Condition:
    """AdapterReady: every replica that it is on serves it, and has an endpoint that requests come by."""
    total, serving = decision.total, decision.serving
    if not total and decision.inputs.wanted:
        text = "It has to leave every replica that it is on" if decision.outgoing else "It is on no replica"
        return Condition(READY, status=False, reason="NoReplicas", message=text)
    if len(serving) < total:
        waiting = sorted(
            {*(kept.existing.replica for kept in decision.kept if kept.lasts or not kept.outgoing)}.union(
                decision.placed
            )
            - set(serving)
        )
        text = f"{len(serving)} of {counted(total, 'replica')} serve {snapshot.adapter.name}"
        text += f"; not configured or not Ready yet: {listed(waiting, SHOWN)}"
        return unmet(READY, "Configuring", text)
    unreached = [replica for replica in serving if f"{ENDPOINT_KEY}{replica}" not in composed]
    if unreached:
        text = f"No endpoint leads to {snapshot.adapter.name} on {listed(sorted(unreached), SHOWN)} yet"
        return unmet(READY, "NoEndpoint", text)
    return Condition(READY, status=True, reason="Configured")
