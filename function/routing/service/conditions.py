"""The service's conditions: both on every path, the same text for the same problem, no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.lenient import mapping, mappings
from function.api.text import joined, listed, one_line
from function.boundary import Condition
from function.fail_static import Doubt
from function.gateway_api import MAX_BACKENDS, is_accepted, rejections
from function.routing.service.snapshot import WAITING

if TYPE_CHECKING:
    from function.boundary import Request
    from function.routing.service.snapshot import Selection, ServiceSnapshot
    from function.routing.service.traffic import Traffic

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
    """Whether the observed route leads anywhere."""
    rules = mappings(mapping((snapshot.route or {}).get("spec")).get("rules"))
    return any(rule.get("backendRefs") for rule in rules)


def _false(kind: str, reason: str, message: str) -> Condition:
    return Condition(kind, status=False, reason=reason, message=one_line(message))
