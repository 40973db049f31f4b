"""Desired resources of a service: one HTTPRoute, or the observed one as it is.

Law C: in doubt, and while no endpoint is ready, an observed route stays: without backends a gateway answers
every request with 500, and a route that is gone makes it 404.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.boundary import Desired
from function.fail_static import Doubt
from function.gateway_api import http_route, prefix_match, url_rewrite
from function.routing.observed import ROUTE, again
from function.routing.service.snapshot import ROUTE_KEY

if TYPE_CHECKING:
    from function.boundary import Request
    from function.routing.service.snapshot import ServiceSnapshot
    from function.routing.service.traffic import Backend, Traffic


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
