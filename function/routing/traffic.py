"""Decide which endpoints take the requests of a service, and in which proportion.

A ModelService promises shares and failover; a route of Gateway API has nothing but weights. This file turns
the one into the other, and reads nothing but the endpoints and the route that is observed:

1. An endpoint is ready when it has a backend and is not being deleted. Only ready endpoints take requests.
2. The lowest priority with a ready endpoint in a group of some weight takes all requests. So failover needs
   nothing of the gateway, and goes back by itself.
3. A rule of a route has room for 16 backends. Groups take turns, each its first endpoints by namespace and
   name, so that every group keeps a backend and with it its whole weight.
4. A group's weight is spread evenly over its endpoints, however many there are. Weights of a route are whole
   numbers, so all are scaled by one factor and reduced by their greatest common divisor.

Limits: beyond the largest weight of a route, shares are rounded, and nothing that takes requests rounds to 0.
An endpoint is never probed: what is ready is what its own handler wrote into its status.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import chain, zip_longest
from math import gcd, lcm
from typing import NamedTuple

from function.api.model import mapping, mappings
from function.api.names import DNS_LABEL, api_root, read_destination
from function.api.routing import MAX_WEIGHT, EndpointGroup, ModelEndpoint
from function.boundary import Plain, frozen
from function.gateway_api import MAX_BACKENDS, MAX_REPLACEMENT


@frozen
class Selection:
    """One group of a service, and the endpoints that its selector matches, by namespace and name."""

    group: EndpointGroup
    endpoints: tuple[ModelEndpoint, ...]
    left_out: tuple[str, ...] = ()
    """Those of namespaces that the input does not allow, as `namespace/name`."""


class Backend(NamedTuple):
    """A ready endpoint, as a route refers to it. The order of its fields is the order in the route."""

    namespace: str
    endpoint: str
    service: str
    port: int
    rewrite: str
    """The path that replaces the service's prefix."""
    host: str
    """The DNS name that the endpoint is; empty for an IP address."""


@frozen
class Traffic:
    """The backends that take requests, and what a condition says about the others."""

    backends: Mapping[Backend, int]
    """Weight by backend; empty where no endpoint is ready."""
    waiting: int = 0
    """Endpoints that are not ready."""
    priority: int = 0
    """The priority that takes requests."""
    failed_over: bool = False
    """Whether a group of a lower number gets nothing, for it has no ready endpoint."""
    beyond: tuple[str, ...] = ()
    """Ready endpoints for which the rule has no room, as `namespace/name`."""


class _Group(NamedTuple):
    """A group without its endpoints that are not ready."""

    weight: int
    priority: int
    ready: tuple[Backend, ...]


def read_traffic(selections: tuple[Selection, ...], route: Mapping[str, Plain] | None) -> Traffic:
    """Share the requests of a service among the endpoints of its groups. `route`: the observed one."""
    groups: list[_Group] = []
    waiting: set[tuple[str, str]] = set()
    made: dict[int, Backend | None] = {}
    """By the identity of an endpoint: one that several groups have is one object, and looked at once."""
    for selection in selections:
        # An endpoint that is listed twice is one backend: two entries would be twice its share.
        backends = {}
        for endpoint in selection.endpoints:
            if id(endpoint) not in made:
                made[id(endpoint)] = _backend(endpoint, route)
            backends[endpoint.namespace, endpoint.name] = made[id(endpoint)]
        waiting.update(name for name, backend in backends.items() if backend is None)
        ready = tuple(backend for backend in backends.values() if backend is not None)
        groups.append(_Group(selection.group.weight, selection.group.priority, ready))
    serving = [group.priority for group in groups if group.ready and group.weight]
    if not serving:
        return Traffic(backends={}, waiting=len(waiting))
    priority = min(serving)
    active = [group for group in groups if group.priority == priority]
    # Rule 3. Groups of weight 0 come last: their endpoints are listed too, and take nothing from the others.
    turns = zip_longest(*(group.ready for group in sorted(active, key=lambda group: not group.weight)))
    ordered = list(dict.fromkeys(backend for backend in chain.from_iterable(turns) if backend is not None))
    beyond = sorted(ordered[MAX_BACKENDS:])
    return Traffic(
        backends=_weights(active, frozenset(ordered[:MAX_BACKENDS])),
        waiting=len(waiting),
        priority=priority,
        failed_over=any(group.weight and group.priority < priority for group in groups),
        beyond=tuple(f"{backend.namespace}/{backend.endpoint}" for backend in beyond),
    )


def _backend(endpoint: ModelEndpoint, route: Mapping[str, Plain] | None) -> Backend | None:
    """Return an endpoint as a backend, None while it is not ready, or a route could not name it.

    Law C 2: an endpoint whose URL became invalid keeps the port that the observed route has for it. Its own
    handler keeps the Service as well, so requests go on as they did.
    """
    service, url, rewrite = endpoint.backend, endpoint.spec.url, endpoint.spec.rewrite_path
    if not DNS_LABEL.fullmatch(service):
        return None
    try:
        family, address, port = read_destination(url)
        rewrite = rewrite or api_root(url)
    except ValueError:
        rules = mappings(mapping(route, "spec").get("rules"))
        ports = (
            reference.get("port")
            for rule in rules
            for reference in mappings(rule.get("backendRefs"))
            if reference.get("name") == service
        )
        family, address = "", ""
        port = next((number for number in ports if isinstance(number, int)), 0)
    # A replacement outside these bounds would make the API server refuse the route with all its backends.
    if not port or not 0 < len(rewrite) <= MAX_REPLACEMENT:
        return None
    host = address if family == "FQDN" else ""
    return Backend(endpoint.namespace, endpoint.name, service, port, rewrite, host)


def _weights(groups: list[_Group], chosen: frozenset[Backend]) -> dict[Backend, int]:
    """Return the weight of each chosen backend: rule 4. An endpoint of several groups gets the sum.

    One at least has a weight: a group of some weight serves, and its first endpoint comes first.
    """
    shares: dict[Backend, Fraction] = {}
    for group in groups:
        backends = [backend for backend in group.ready if backend in chosen]
        for backend in backends:
            shares[backend] = shares.get(backend, Fraction()) + Fraction(group.weight, len(backends))
    scale = lcm(*(share.denominator for share in shares.values()))
    whole = {backend: int(share * scale) for backend, share in shares.items()}
    divisor = gcd(*whole.values())
    largest = max(whole.values()) // divisor
    if largest <= MAX_WEIGHT:
        return {backend: weight // divisor for backend, weight in whole.items()}
    factor = Fraction(MAX_WEIGHT, largest * divisor)
    return {backend: max(1, round(weight * factor)) if weight else 0 for backend, weight in whole.items()}
