"""Handle a ModelService: one request in, one response out. This file is the table of contents.

requirements -> snapshot (groups of endpoints, or doubt) -> traffic (priority, weights) -> compose (the route)
-> status (the address) -> conditions
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.model_endpoint import read_endpoint
from function.boundary import Cost, NoReuse, Response
from function.routing.service.address import status
from function.routing.service.compose import compose
from function.routing.service.conditions import condition_types, conditions
from function.routing.service.requirements import declared
from function.routing.service.snapshot import read_snapshot
from function.routing.service.traffic import read_traffic
from function.transitions import circuit_open, transitions

if TYPE_CHECKING:
    from function.boundary import Costs, Request, Reuse

__all__ = ["COSTS", "KIND", "condition_types", "declared", "run"]

KIND = "ModelService"
NO_REUSE = NoReuse()
COSTS: Costs = {read_endpoint: Cost(factor=8)}
"""What it takes to remember what is read here."""


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before."""
    requirements = declared(request)
    snapshot = read_snapshot(request, reuse)
    traffic = read_traffic(snapshot)
    resolved, ready = conditions(snapshot, traffic)
    desired = compose(request, snapshot, traffic, ready=ready.status)
    delivered = all(requirement.delivered(request) for requirement in requirements)
    return Response(
        requirements=requirements,
        desired=desired,
        status=status(request, snapshot),
        unready=not ready.status and all(composed.ready for composed in desired.values()),
        conditions=(resolved, ready),
        results=tuple(transitions(KIND, (resolved, ready), snapshot.status)),
        settled=delivered and resolved.status and ready.status and not circuit_open(snapshot.status),
        ttl=(snapshot.config.ttl.pending, snapshot.config.ttl.settled),
        counts={"endpoints": snapshot.matched, "backends": len(traffic.backends)},
    )
