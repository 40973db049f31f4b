"""The ModelReplica handler: a replica becomes the objects that serve it on its cluster.

The scheduler placed the replica; here it becomes pods, the claims of their devices and the route that leads
to them (docs/workloads.md). Each object is carried by an Object of provider-kubernetes, which applies it
there.

    snapshot or doubt ▶ compose (claims, workloads, routing, what remains) ▶ status ▶ conditions ▶ events

This file is the table of contents. What may be composed is decided in `snapshot.py`, what of it works in
`state.py`, and what doubt keeps in `fail_static.py`.
"""

from __future__ import annotations

from function.api.fault import Malformed
from function.api.inputs import WorkloadConfig
from function.api.model import mapping, plain_of
from function.api.workload import read_workload
from function.boundary import NO_REUSE, Cost, Costs, Request, Response, Reuse, Shape
from function.fail_static import Doubt
from function.objects import read_briefly, read_object
from function.replica.compose import compose, keep_everything, let_go, observed_pods
from function.replica.conditions import READY, condition_types, conditions, results, status
from function.replica.snapshot import NameTaken, declared, read_observed, read_snapshot
from function.transitions import circuit_open

__all__ = ["COSTS", "KIND", "condition_types", "declared", "run"]

KIND = "ModelReplica"
STATUS: Shape = {
    "status": {
        "conditions": {"type": None, "status": None, "reason": None},
        "engines": None,
        "servingDigest": None,
        "adapters": None,
    }
}
"""Fields of the composite that are read besides those that its pods are made of."""

COSTS: Costs = {
    read_workload: Cost(factor=10, fixed=256 * 1024),
    read_object: Cost(factor=10),
    read_briefly: Cost(factor=2),
}
"""The memory that a remembered object takes here, with the composition made of it."""


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before (Law 1)."""
    observed = read_observed(request, reuse)
    snapshot = read_snapshot(request, observed, reuse)
    if isinstance(snapshot, Doubt):
        if isinstance(snapshot, NameTaken):
            composition = let_go(request, observed, snapshot.engines)
        else:
            composition = keep_everything(request, observed)
        ttl: tuple[float | None, float | None] = (None, None)
        try:
            stated = WorkloadConfig.parse(request.input).ttl
            ttl = (stated.pending if stated.waiting is None else stated.waiting), stated.settled
        except Malformed:
            pass  # The input is the doubt: the flags of the process decide.
    else:
        composition = compose(request, snapshot)
        ttl = snapshot.config.ttl.pending, snapshot.config.ttl.settled
    pods = observed_pods(request, reuse)
    composite = plain_of(request.composite, STATUS)
    new_conditions = conditions(request, snapshot, observed, composition.states, pods, composite)
    is_ready = any(condition.type == READY and condition.status for condition in new_conditions)
    return Response(
        requirements=declared(request),
        desired=composition.desired,
        status=status(request, snapshot, composition.states, composite),
        # NothingIsNotReady of docs/compatibility.md: where every resource is ready, or there is none,
        # Crossplane would call the replica Ready, and its endpoint would get requests.
        unready=not is_ready and all(composed.ready for composed in composition.desired.values()),
        conditions=new_conditions,
        results=results(snapshot, new_conditions, composite),
        # What is kept is on its way out, and leaves in a later call.
        settled=all(condition.status for condition in new_conditions)
        and not composition.kept
        and not circuit_open(mapping(composite.get("status"))),
        ttl=ttl,
        counts={"objects": len(composition.desired), "objects_kept": composition.kept},
    )
