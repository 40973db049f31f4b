"""The ModelAdapter handler: a small fine-tune is placed on replicas that run its base model.

    read_snapshot ▶ schedule (retain, scale down, fill, give up) ▶ stated ▶ compose ▶ conditions ▶ events

The pass runs on what the adapter stands on. Where that leaves something to place, to replace or to wait
for, it runs on all replicas of the base and on all placements of the namespace, or asks for them.
A placement is data: its handler composes nothing, and the replica's handler reads it by its label.
"""

from __future__ import annotations

from function.adapter.compose import CONDITION_TYPES, compose, conditions, in_doubt
from function.adapter.schedule import schedule
from function.adapter.snapshot import declared, fleet, kind_of, read_snapshot, stated
from function.api.adapter import PLACEMENT_KIND, read_adapter, read_base, read_placement
from function.api.model import mapping, plain_of
from function.boundary import NO_REUSE, Cost, Costs, Request, Response, Reuse, text_at
from function.fail_static import Doubt, everything_observed
from function.transitions import circuit_open, transitions

__all__ = ["CONDITION_TYPES", "COSTS", "KIND", "PLACEMENT_KIND", "declared", "run"]

KIND = "ModelAdapter"
COSTS: Costs = {
    read_adapter: Cost(factor=8),
    read_placement: Cost(factor=4),
    read_base: Cost(factor=2),
}
"""What it takes to remember what is read here."""


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before (Law 1)."""
    before = mapping(plain_of(request.composite).get("status"))
    snapshot = read_snapshot(request, reuse, whole=False)
    if isinstance(snapshot, Doubt):
        namespace = text_at(request.composite, "metadata", "namespace")
        new_conditions = in_doubt(snapshot)
        return Response(
            requirements=declared(request),
            desired=everything_observed(request, kind_of, namespace),
            status={"replicas": before["replicas"]} if "replicas" in before else {},
            unready=True,
            conditions=new_conditions,
            results=tuple(transitions(KIND, new_conditions, before)),
        )
    decision, undelivered = schedule(snapshot.inputs), snapshot.undelivered
    requirements = stated(request, decision)
    if decision.needs_fleet:
        whole = read_snapshot(request, reuse, whole=True)
        undelivered += tuple(item.name for item in fleet(request) if not item.delivered(request))
        if not isinstance(whole, Doubt):
            snapshot, decision = whole, schedule(whole.inputs)
    desired = compose(request, snapshot, decision)
    new_conditions = conditions(snapshot, decision, undelivered, {*desired, *request.desired})
    # What serves gets its endpoint once its replica has one again, and the breaker may hide that.
    is_settled = (
        all(condition.status for condition in new_conditions)
        and not decision.outgoing
        and not circuit_open(before)
    )
    spec = snapshot.adapter.spec
    required = spec.replicas if spec.min_replicas is None else spec.min_replicas
    return Response(
        requirements=requirements,
        desired=desired,
        status={"replicas": {"total": decision.total, "ready": len(decision.serving)}},
        unready=bool(undelivered) or decision.total < required,
        conditions=new_conditions,
        results=tuple(transitions(KIND, new_conditions, before)),
        settled=is_settled,
        counts={"placed": len(decision.placed), "kept": len(decision.kept)},
    )
