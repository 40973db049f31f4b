"""HTTPRoutes and Gateways of Gateway API: how a route is written, and what a status says.

Two handlers write routes: that of replicas on a workload cluster, that of services on the control plane. Both
use no more of Gateway API than every implementation has, but for a rewrite of each backend (docs/routing.md).

An implementation of Gateways reports about a route in `status.parents[]`, one entry for each Gateway: the
conditions Accepted and ResolvedRefs. Some implementations report late or not at all, so a missing report is
no refusal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from function.api.model import condition_of, mapping, mappings, string
from function.boundary import Plain

API_VERSION = "gateway.networking.k8s.io/v1"
ROUTE, GATEWAY = "HTTPRoute", "Gateway"
MAX_BACKENDS = 16
"""Backends that one rule takes. An HTTPRoute with more is refused whole."""
MAX_REPLACEMENT = 1024
"""Characters of what a prefix is rewritten to."""


def http_route(
    metadata: Mapping[str, str], gateway: Mapping[str, str], *rules: Mapping[str, Plain]
) -> dict[str, Any]:
    """Return a route of some rules. `gateway`: namespace and name of its parent."""
    return {
        "apiVersion": API_VERSION,
        "kind": ROUTE,
        "metadata": dict(metadata),
        "spec": {"parentRefs": [dict(gateway)], "rules": [dict(rule) for rule in rules]},
    }


def prefix_match(prefix: str) -> dict[str, Any]:
    """Return the match of all paths that begin with a prefix."""
    return {"path": {"type": "PathPrefix", "value": prefix}}


def url_rewrite(replacement: str, hostname: str = "") -> dict[str, Any]:
    """Return the filter that replaces the matched prefix and, where one is given, the name of the host."""
    rewrite: dict[str, Any] = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": replacement}}
    if hostname:
        rewrite["hostname"] = hostname
    return {"type": "URLRewrite", "urlRewrite": rewrite}


def rejections(status: Mapping[str, Plain]) -> Iterator[str]:
    """Yield why a Gateway refuses a route, in its own words. What is not said yet passes."""
    for parent in mappings(status.get("parents")):
        for kind in ("Accepted", "ResolvedRefs"):
            accepted, message = condition_of(parent, kind)
            if accepted is False:
                yield message or f"The gateway reports {kind} False of the route"


def first_address(status: Mapping[str, Plain]) -> str:
    """Return the first address of a Gateway's status, "" for none."""
    addresses = status.get("addresses")
    first = mapping(addresses[0]).get("value") if isinstance(addresses, list) and addresses else None
    return string(first)
