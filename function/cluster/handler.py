"""Handle an InferenceCluster: one request in, one response out. This file is the table of contents.

requirements -> snapshot (the cluster, its classes, its replicas) -> compose -> publish -> conditions
"""

from __future__ import annotations

from typing import Any

from function.api.model import mapping, mappings, string
from function.boundary import NoReuse, Request, Response, Reuse
from function.cluster.compose import compose
from function.cluster.conditions import condition_types, conditions
from function.cluster.publish import overcommitted, publish
from function.cluster.snapshot import declared, read_snapshot
from function.transitions import circuit_open, transitions

__all__ = ["KIND", "condition_types", "declared", "run"]

KIND = "InferenceCluster"
NO_REUSE = NoReuse()


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before."""
    requirements = declared(request)
    snapshot = read_snapshot(request, reuse)
    desired, status = compose(request, snapshot), publish(snapshot)
    new_conditions = conditions(request, snapshot, status)
    delivered = all(requirement.delivered(request) for requirement in requirements)
    return Response(
        requirements=requirements,
        desired=desired,
        status=status,
        unready=not (status.get("gpuPools") and _address(status) and new_conditions[0].status),
        conditions=new_conditions,
        results=tuple(transitions(KIND, new_conditions, snapshot.before)),
        settled=delivered
        and all(condition.status for condition in new_conditions)
        and not overcommitted(status)
        and not circuit_open(snapshot.before),
        ttl=(snapshot.config.ttl.pending, snapshot.config.ttl.settled),
        counts={"pools": len(mappings(status.get("gpuPools"))), "objects": len(desired)},
    )


def _address(status: dict[str, Any]) -> str:
    """Return where replicas on the cluster are reached, "" where nothing is published of it."""
    return string(mapping(status.get("gateway")).get("address"))
