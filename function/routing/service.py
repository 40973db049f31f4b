"""The ModelService handler: from selected endpoints to one route. Begin with `handler.py`."""

from __future__ import annotations

from typing import Any

from function.api.model import mapping, mappings, plain_of, string
from function.api.names import bracketed
from function.api.routing import read_endpoint
from function.api.text import joined, listed, one_line
from function.boundary import Condition, Cost, Costs, Desired, NoReuse, Request, Resolution, Response, Reuse
from function.fail_static import Doubt
from function.gateway_api import (
    MAX_BACKENDS,
    first_address,
    http_route,
    is_accepted,
    prefix_match,
    rejections,
    url_rewrite,
)
from function.routing.traffic import (
    GATEWAY,
    INFERENCE_GATEWAY,
    MALFORMED,
    ROUTE,
    ROUTE_KEY,
    WAITING,
    Backend,
    Selection,
    ServiceSnapshot,
    Traffic,
    again,
    declared,
    read_snapshot,
    read_traffic,
)
from function.transitions import circuit_open, transitions

# The status of a service: the one address of its model.
#
# Law C 3: the last address is written until another is observed. While the input or the service cannot be
# read, nobody knows where to look.


def status(request: Request, snapshot: ServiceSnapshot) -> dict[str, Any]:
    """Return the fields of the status to write."""
    selections, config = snapshot.selections, snapshot.config
    is_malformed = isinstance(selections, Doubt) and selections.reason == MALFORMED
    host = "" if is_malformed else config.gateway_address or _observed(request, config.address_from)
    if host and snapshot.name:
        base = host if "://" in host else f"http://{bracketed(host)}"
        return {"address": f"{base}/{snapshot.namespace}/{snapshot.name}"}
    last = snapshot.status.get("address")
    return {"address": last} if isinstance(last, str) and last else {}


def _observed(request: Request, address_from: str) -> str:
    """Return where the gateway is reached, by the object that the input names; "" while it does not say.

    The Composition's bootstrap block may deliver the other one too.
    """
    name = GATEWAY if address_from == "Gateway" else INFERENCE_GATEWAY
    if request.resolution(name) is not Resolution.DELIVERED:
        return ""
    status = mapping(plain_of(request.required[name][0]).get("status"))
    return first_address(status) if name == GATEWAY else string(status.get("address"))


# Desired resources of a service: one HTTPRoute, or the observed one as it is.
#
# Law C: in doubt, and while no endpoint is ready, an observed route stays: without backends a gateway
# answers every request with 500, and a route that is gone makes it 404.


def compose(
    request: Request, snapshot: ServiceSnapshot, traffic: Traffic, *, ready: bool
) -> dict[str, Desired]:
    """Return everything desired, by key."""
    if ROUTE_KEY in request.desired:
        return {}
    if snapshot.route is not None and not traffic.backends:
        return {ROUTE_KEY: again(request, ROUTE_KEY, ROUTE, ready=ready)}
    if isinstance(snapshot.selections, Doubt) or not snapshot.matched:
        return {}
    return {ROUTE_KEY: Desired(_route(snapshot, traffic), ready=ready)}


def _route(snapshot: ServiceSnapshot, traffic: Traffic) -> dict[str, Any]:
    config = snapshot.config
    rule: dict[str, Any] = {"matches": [prefix_match(f"/{snapshot.namespace}/{snapshot.name}/")]}
    if config.request_timeout:
        rule["timeouts"] = {"request": config.request_timeout}
    if traffic.backends:
        rule["backendRefs"] = [
            _reference(snapshot, backend, traffic.backends[backend]) for backend in sorted(traffic.backends)
        ]
    gateway = {"namespace": config.gateway.namespace, "name": config.gateway.name}
    return http_route({"namespace": snapshot.namespace}, gateway, rule)


def _reference(snapshot: ServiceSnapshot, backend: Backend, weight: int) -> dict[str, Any]:
    host = backend.host if snapshot.config.rewrite_host else ""
    reference: dict[str, Any] = {
        "name": backend.service,
        "port": backend.port,
        "weight": weight,
        "filters": [url_rewrite(backend.rewrite, host)],
    }
    if backend.namespace != snapshot.namespace:
        # Needs a ReferenceGrant of the other namespace: that it may be used is for its owner to say.
        reference["namespace"] = backend.namespace
    return reference


# The service's conditions: both on every path, the same text for the same problem, no time.

RESOLVED, READY = "EndpointsResolved", "RoutingReady"
NO_ENDPOINTS, NO_BACKENDS, FAILED_OVER = "NoEndpoints", "NoReadyEndpoint", "FailedOver"
KEPT = "the route stays as it is"
SHOWN = 3
"""How many endpoints a message names."""


def condition_types(_request: Request) -> tuple[str, ...]:
    """Return the conditions that every answer carries, in their order."""
    return (RESOLVED, READY)


def conditions(snapshot: ServiceSnapshot, traffic: Traffic) -> tuple[Condition, Condition]:
    """Return both conditions."""
    return _resolved(snapshot, traffic), _ready(snapshot, traffic)


def _resolved(snapshot: ServiceSnapshot, traffic: Traffic) -> Condition:
    """EndpointsResolved: the selectors match endpoints, and those of the first priority take requests."""
    selections = snapshot.selections
    kept = KEPT if snapshot.route is not None and not traffic.backends else ""
    if isinstance(selections, Doubt):
        return _false(RESOLVED, selections.reason, joined(selections.message, kept))
    others = _left_out(selections)
    if not snapshot.matched:
        return _false(
            RESOLVED, NO_ENDPOINTS, joined("No ModelEndpoints matched the configured selectors", others, kept)
        )
    text = joined(
        f"Matched {snapshot.matched} endpoint(s)",
        f"{traffic.waiting} waiting for Backend" if traffic.waiting else "",
        f"requests go to priority {traffic.priority}" if traffic.failed_over else "",
        _beyond(traffic),
        others,
        kept,
    )
    if kept:
        return _false(RESOLVED, NO_BACKENDS, text)
    reason = FAILED_OVER if traffic.failed_over else "Resolved"
    return Condition(RESOLVED, status=True, reason=reason, message=one_line(text))


def _left_out(selections: tuple[Selection, ...]) -> str:
    names = sorted({name for selection in selections for name in selection.left_out})
    if not names:
        return ""
    return f"left out, of namespaces that allowNamespaces does not name: {listed(names, SHOWN)}"


def _beyond(traffic: Traffic) -> str:
    if not traffic.beyond:
        return ""
    return f"a route has room for {MAX_BACKENDS}, so no requests go to {listed(traffic.beyond, SHOWN)}"


def _ready(snapshot: ServiceSnapshot, traffic: Traffic) -> Condition:
    """RoutingReady: the gateway took the route, and something is behind it."""
    if snapshot.route is None:
        composed = not isinstance(snapshot.selections, Doubt) and snapshot.matched
        text = "The route is not observed yet" if composed else "There is no endpoint to route to"
        return _false(READY, "Configuring" if composed else WAITING, text)
    route_status = mapping(snapshot.route.get("status"))
    rejection = next(rejections(route_status), "")
    if rejection:
        return _false(READY, "RouteRejected", rejection)
    gateway = snapshot.config.gateway
    if not is_accepted(route_status):
        text = f"Gateway {gateway.namespace}/{gateway.name} has not accepted the route yet"
        return _false(READY, "Configuring", text)
    if not traffic.backends and not _has_backends(snapshot):
        return _false(READY, "Configuring", "The route has no backend yet")
    return Condition(READY, status=True, reason="RouteAccepted")


def _has_backends(snapshot: ServiceSnapshot) -> bool:
    """Tell whether the observed route leads anywhere."""
    rules = mappings(mapping((snapshot.route or {}).get("spec")).get("rules"))
    return any(rule.get("backendRefs") for rule in rules)


def _false(kind: str, reason: str, message: str) -> Condition:
    return Condition(kind, status=False, reason=reason, message=one_line(message))


# Handle a ModelService: one request in, one response out. This file is the table of contents.
#
# requirements -> snapshot (groups of endpoints, or doubt) -> traffic (priority, weights) -> compose (the
# route) -> status (the address) -> conditions

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
