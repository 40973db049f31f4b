"""The InferenceCluster handler: from what is declared to what everybody else reads of a cluster.

A platform engineer declares how a cluster is reached and which pools of machines it has. This handler makes
it reachable, looks at it, and publishes pools with their devices; the scheduler reads nothing else of it.

    read_snapshot (the cluster, its classes, its replicas) ▶ compose ▶ publish ▶ conditions

This file is the table of contents, and holds the handler of InferenceClasses: other kinds read a class as it
stands, so nothing is composed of it, and it becomes Ready instead of waiting for a function.
"""

from __future__ import annotations

from function.api.model import mapping, mappings, string
from function.boundary import NO_REUSE, Request, Response, Reuse
from function.cluster.arbiter import GIVES_WAY
from function.cluster.compose import compose, condition_types, conditions
from function.cluster.publish import overcommitted, publish
from function.cluster.snapshot import declared, read_snapshot
from function.transitions import circuit_open, transitions

__all__ = ["CLASS_KIND", "KIND", "condition_types", "declared", "run", "run_class"]

KIND, CLASS_KIND = "InferenceCluster", "InferenceClass"


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before."""
    requirements = declared(request)
    snapshot = read_snapshot(request, reuse)
    desired, status = compose(request, snapshot), publish(snapshot)
    new_conditions = conditions(request, snapshot, status)
    delivered = all(requirement.delivered(request) for requirement in requirements)
    address = string(mapping(status.get("gateway")).get("address"))
    return Response(
        requirements=requirements,
        desired=desired,
        status=status,
        # Nobody can place or reach anything on a cluster without pools or an address.
        unready=not (status.get("gpuPools") and address and new_conditions[0].status),
        conditions=new_conditions,
        results=tuple(transitions(KIND, new_conditions, snapshot.before)),
        # Replicas that are asked to give way leave soon: the next sum should not come a ttl later.
        settled=delivered
        and all(condition.status for condition in new_conditions)
        and not (overcommitted(status) or status.get(GIVES_WAY))
        and not circuit_open(snapshot.before),
        ttl=(snapshot.config.ttl.pending, snapshot.config.ttl.settled),
        counts={"pools": len(mappings(status.get("gpuPools"))), "objects": len(desired)},
    )


def run_class(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:  # noqa: ARG001 - the protocol
    """Answer for an InferenceClass: nothing is desired and nothing is pending."""
    return Response(requirements=(), settled=True)
