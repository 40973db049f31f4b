"""Handle a ModelEndpoint: one request in, one response out. This file is the table of contents.

snapshot (the URL, what is observed) -> compose (Service, EndpointSlice) -> status -> conditions

A Service without a selector and one EndpointSlice for it: any gateway can lead requests to an address that is
written down like that, and no controller changes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.boundary import NoReuse, Response
from function.routing.endpoint.compose import compose
from function.routing.endpoint.conditions import condition_types, routing_ready
from function.routing.endpoint.snapshot import read_snapshot
from function.transitions import circuit_open, transitions

if TYPE_CHECKING:
    from function.boundary import Request, Requirement, Reuse

__all__ = ["KIND", "condition_types", "declared", "run"]

KIND = "ModelEndpoint"
NO_REUSE = NoReuse()


def declared(_request: Request) -> tuple[Requirement, ...]:
    """Return nothing: an endpoint needs nothing but itself."""
    return ()


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before."""
    snapshot = read_snapshot(request, reuse)
    desired = compose(request, snapshot)
    ready = routing_ready(snapshot)
    backend = snapshot.backend
    return Response(
        requirements=(),
        desired=desired,
        status={"routing": {"backendName": backend}} if backend else {},
        unready=not ready.status and all(composed.ready for composed in desired.values()),
        conditions=(ready,),
        results=tuple(transitions(KIND, (ready,), snapshot.status)),
        settled=ready.status and not circuit_open(snapshot.status),
        ttl=snapshot.ttl,
        counts={"objects": len(desired)},
    )
