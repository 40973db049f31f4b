"""Handle a ModelReplica: one request in, one response out. This file is the table of contents.

requirements -> snapshot or doubt -> compose (claims, workloads, routing, succession) -> conditions -> status
"""

from __future__ import annotations

from typing import Any

from function.api.fault import Malformed
from function.api.model import mapping
from function.api.workload import read_workload
from function.boundary import Condition, Cost, Costs, NoReuse, Request, Response, Reuse, Shape, Unreadable
from function.fail_static import Doubt
from function.objects import read_briefly, read_object
from function.replica.compose import Composition, compose, keep_everything, unschedulable
from function.replica.conditions import READY, condition_types, conditions, results, status
from function.replica.snapshot import (
    ReplicaSnapshot,
    declared,
    diagnoses_pods,
    read_config,
    read_observed,
    read_snapshot,
)
from function.transitions import circuit_open

__all__ = ["COSTS", "KIND", "condition_types", "declared", "run"]

KIND = "ModelReplica"
NO_REUSE = NoReuse()
STATUS: Shape = {
    "status": {
        "conditions": {"type": None, "status": None, "reason": None},
        "engines": None,
        "servingDigest": None,
    }
}
"""What is read of the composite besides what its pods are made of."""

COSTS: Costs = {
    read_workload: Cost(factor=10, fixed=256 * 1024),
    read_object: Cost(factor=10),
    read_briefly: Cost(factor=2),
}
"""What it takes to remember what is read here, and what was composed of it."""


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before."""
    observed = read_observed(request, reuse)
    snapshot = read_snapshot(request, observed, reuse)
    if isinstance(snapshot, Doubt):
        composition = keep_everything(request, observed)
    else:
        composition = compose(request, snapshot)
    pending = unschedulable(request, reuse) if diagnoses_pods(request) else None
    new_conditions = conditions(request, snapshot, observed, composition.states, pending)
    composite = _composite(request)
    return Response(
        requirements=declared(request),
        desired=composition.desired,
        status=status(request, snapshot, composition.states, composite),
        unready=all(composed.ready for composed in composition.desired.values())
        and not _holds(new_conditions, READY),
        conditions=new_conditions,
        results=results(snapshot, new_conditions, composite),
        settled=all(condition.status for condition in new_conditions)
        and not _changes(composition)
        and not circuit_open(mapping(composite.get("status"))),
        ttl=_ttl(request, snapshot),
        counts={"objects": len(composition.desired), "objects_kept": composition.kept},
    )


def _composite(request: Request) -> dict[str, Any]:
    """Return what is read of the composite's status, empty where it cannot be read."""
    try:
        return request.composite.project(STATUS)
    except Unreadable:
        return {}


def _ttl(request: Request, snapshot: ReplicaSnapshot | Doubt) -> tuple[float | None, float | None]:
    """Return the times to live that the input asks for, where it can be read."""
    if not isinstance(snapshot, Doubt):
        return snapshot.config.ttl.pending, snapshot.config.ttl.settled
    try:
        ttl = read_config(request).ttl
    except Malformed:
        return None, None
    return (ttl.pending if ttl.waiting is None else ttl.waiting), ttl.settled


def _changes(composition: Composition) -> bool:
    """Tell whether something is still on its way out."""
    return composition.kept > 0


def _holds(new_conditions: tuple[Condition, ...], kind: str) -> bool:
    return any(condition.type == kind and condition.status for condition in new_conditions)
