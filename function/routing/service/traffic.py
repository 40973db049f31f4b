"""Decide which endpoints take the requests of a service, and in which proportion.

1. Ready is an endpoint with a backend that is not being deleted.
2. The lowest priority that has a ready endpoint in a group of some weight takes all requests: failover needs
   nothing of the gateway but weights.
3. A rule has room for so many backends: groups take turns, the first endpoints by namespace and name.
4. A group's weight is spread evenly over its endpoints. Weights are whole: all are scaled by one factor and
   reduced by their greatest common divisor; beyond the largest weight of a route they are rounded, and none
   that gets requests becomes 0. An endpoint of several groups gets the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, zip_longest
from math import gcd, lcm
from typing import TYPE_CHECKING, NamedTuple

from function.api.destination import api_root, read_destination
from function.api.lenient import mapping, mappings
from function.api.model_service import MAX_WEIGHT
from function.api.names import is_dns_label
from function.fail_static import Doubt
from function.gateway_api import MAX_BACKENDS, MAX_REPLACEMENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from function.api.model_endpoint import ModelEndpoint
    from function.boundary import Plain
    from function.routing.service.snapshot import Selection, ServiceSnapshot


class Backend(NamedTuple):
    """A ready endpoint, as a route refers to it."""

    namespace: str
    endpoint: str
    service: str
    port: int
    rewrite: str
    """What the service's prefix is rewritten to."""
    host: str
    """The DNS name that the endpoint is; empty for an IP address."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Who takes requests."""

    backends: Mapping[Backend, int]
    """Weight by backend; empty where none is ready."""
    waiting: int = 0
    """Endpoints that are not ready."""
    priority: int = 0
    """The priority that takes requests."""
    failed_over: bool = False
    """Whether a group of a lower number gets nothing, for it has no ready endpoint."""
    beyond: tuple[str, ...] = ()
    """Ready endpoints for which the rule has no room, as `namespace/name`."""


NOBODY = Traffic(backends={})


class _Group(NamedTuple):
    weight: int
    priority: int
    ready: tuple[Backend, ...]
    waiting: tuple[tuple[str, str], ...]
    """Namespace and name of endpoints that are not ready."""

    @property
    def serves(self) -> bool:
        """Whether requests can go to it."""
        return bool(self.ready and self.weight)


def read_traffic(snapshot: ServiceSnapshot) -> Traffic:
    """Return who takes the requests of a service; nobody in doubt."""
    if isinstance(snapshot.selections, Doubt):
        return NOBODY
    groups = [_group(selection, snapshot.route) for selection in snapshot.selections]
    waiting = len({endpoint for group in groups for endpoint in group.waiting})
    priority = min((group.priority for group in groups if group.serves), default=None)
    if priority is None:
        return Traffic(backends={}, waiting=waiting)
    active = [group for group in groups if group.priority == priority]
    chosen, beyond = within_limit(active)
    return Traffic(
        backends=weights(
            (group.weight, [item for item in group.ready if item in chosen]) for group in active
        ),
        waiting=waiting,
        priority=priority,
        failed_over=any(group.weight and group.priority < priority for group in groups),
        beyond=tuple(f"{backend.namespace}/{backend.endpoint}" for backend in beyond),
    )


def _group(selection: Selection, route: Mapping[str, Plain] | None) -> _Group:
    backends = {
        (endpoint.namespace, endpoint.name): _backend(endpoint, route) for endpoint in selection.endpoints
    }
    return _Group(
        weight=selection.group.weight,
        priority=selection.group.priority,
        ready=tuple(backend for backend in backends.values() if backend is not None),
        waiting=tuple(endpoint for endpoint in backends if backends[endpoint] is None),
    )


def _backend(endpoint: ModelEndpoint, route: Mapping[str, Plain] | None) -> Backend | None:
    """Return an endpoint as a backend, None while it is not ready, or a route could not name it.

    Law C: one whose URL became invalid goes on as it is observed in the route, which has its port.
    """
    service, url, rewrite = endpoint.backend, endpoint.spec.url, endpoint.spec.rewrite_path
    if not is_dns_label(service):
        return None
    try:
        family, address, port = read_destination(url)
        rewrite = rewrite or api_root(url)
    except ValueError:
        family, address, port = "", "", _observed_port(route, service)
    if not port or not 0 < len(rewrite) <= MAX_REPLACEMENT:
        return None
    host = address if family == "FQDN" else ""
    return Backend(endpoint.namespace, endpoint.name, service, port, rewrite, host)


def _observed_port(route: Mapping[str, Plain] | None, service: str) -> int:
    """Return the port with which a route refers to a Service, 0 where it does not."""
    for rule in mappings(mapping((route or {}).get("spec")).get("rules")):
        for reference in mappings(rule.get("backendRefs")):
            port = reference.get("port")
            if reference.get("name") == service and isinstance(port, int):
                return port
    return 0


def within_limit(groups: Sequence[_Group]) -> tuple[frozenset[Backend], tuple[Backend, ...]]:
    """Return the backends that a rule has room for, and the others. Groups of weight 0 come last."""
    ordered = sorted(groups, key=lambda group: not group.weight)
    turns = chain.from_iterable(zip_longest(*(group.ready for group in ordered)))
    backends = list(dict.fromkeys(backend for backend in turns if backend is not None))
    return frozenset(backends[:MAX_BACKENDS]), tuple(sorted(backends[MAX_BACKENDS:]))


def weights(groups: Iterable[tuple[int, Sequence[Backend]]]) -> dict[Backend, int]:
    """Return each backend's weight, of every group's weight and its backends: rule 4 of the module."""
    shares: dict[Backend, Fraction] = {}
    for weight, backends in groups:
        for backend in backends:
            shares[backend] = shares.get(backend, Fraction()) + Fraction(weight, len(backends))
    scale = lcm(*(share.denominator for share in shares.values()))
    whole = {backend: int(share * scale) for backend, share in shares.items()}
    divisor = gcd(*whole.values()) or 1
    largest = max(whole.values(), default=0) // divisor
    if largest <= MAX_WEIGHT:
        return {backend: weight // divisor for backend, weight in whole.items()}
    factor = Fraction(MAX_WEIGHT, largest * divisor)
    return {backend: max(1, round(weight * factor)) if weight else 0 for backend, weight in whole.items()}
