"""Read a service and its endpoints, say what of them is in doubt, and share its requests among the endpoints.

An endpoint's handler needs only the first part: what is desired again as it is observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, zip_longest
from math import gcd, lcm
from typing import Any, NamedTuple

from function.api.fault import Malformed
from function.api.inputs import RoutingConfig, invalid_input
from function.api.model import mapping, mappings, plain_of
from function.api.names import API_VERSION, api_root, is_dns_label, read_destination
from function.api.routing import (
    MAX_WEIGHT,
    EndpointGroup,
    ModelEndpoint,
    ModelService,
    read_endpoint,
    read_service,
)
from function.boundary import Desired, Document, Plain, Request, Requirement, Resolution, Reuse, text_at
from function.fail_static import Doubt, as_observed, foreign
from function.gateway_api import API_VERSION as GATEWAY_API_VERSION
from function.gateway_api import GATEWAY as GATEWAY_KIND
from function.gateway_api import MAX_BACKENDS, MAX_REPLACEMENT

# Desire composed resources of the control plane's own kinds again as they are observed, in doubt.


class Composed(NamedTuple):
    """The resource that is observed under a key."""

    api_version: str
    kind: str
    fields: tuple[str, ...] = ("spec",)
    """Fields that hold what we apply."""


SERVICE = Composed("v1", "Service")
SLICE = Composed("discovery.k8s.io/v1", "EndpointSlice", ("addressType", "endpoints", "ports"))
ROUTE = Composed("gateway.networking.k8s.io/v1", "HTTPRoute")

_PORT_FIELDS = ("port", "protocol")


def ours_observed(request: Request, keys: Mapping[str, Composed]) -> dict[str, Composed]:
    """Return what is observed under keys of ours, without what an earlier step desires."""
    return {key: keys[key] for key in sorted(keys) if key in request.observed and key not in request.desired}


def again(request: Request, key: str, composed: Composed, *, ready: bool) -> Desired:
    """Desire what is observed under a key as it was last applied (Law C 2).

    Of a Service its ports: the addresses are the API server's.
    """
    namespace = text_at(request.composite, "metadata", "namespace")
    resource = as_observed(
        request.observed[key],
        kind=composed.kind,
        namespace=namespace,
        api_version=composed.api_version,
        fields=composed.fields,
    )
    if resource["kind"] == SERVICE.kind == composed.kind:
        ports = mappings(mapping(resource.get("spec")).get("ports"))
        own_ports = [{name: port[name] for name in _PORT_FIELDS if name in port} for port in ports]
        resource["spec"] = {"ports": own_ports}
    return Desired(resource, ready=ready)


INFERENCE_GATEWAY, GATEWAY = "inference-gateway", "gateway"
# Declare what the handler needs of the control plane: the one table of requirement names.
#
# Every group's endpoints, by label, and what says where services are reached. Endpoints of other namespaces
# are delivered too and sorted out where they are read, so that a condition can say what is left out. Read
# leniently: what is required must not depend on whether the rest of the service can be read.

INFERENCE_GATEWAY_NAME = "default"


def endpoints_requirement(number: int) -> str:
    """Return the name of the requirement of a group."""
    return f"endpoints-{number}"


def declared(request: Request) -> tuple[Requirement, ...]:
    """Return what this request needs, whatever was delivered."""
    return (*_groups(request), *_gateway(request))


def _groups(request: Request) -> tuple[Requirement, ...]:
    groups = mapping(plain_of(request.composite).get("spec")).get("endpoints")
    return tuple(
        Requirement(endpoints_requirement(number), API_VERSION, "ModelEndpoint", match_labels=labels)
        for number, group in enumerate(groups if isinstance(groups, list) else ())
        if (labels := _labels(group))
    )


def _labels(group: Any) -> tuple[tuple[str, str], ...]:
    """Return a group's labels, none where they cannot be read: without labels, everything would match."""
    labels = mapping(mapping(mapping(group).get("selector")).get("matchLabels"))
    readable = all(isinstance(value, str) for value in labels.values())
    return tuple(sorted(labels.items())) if readable else ()


def _gateway(request: Request) -> tuple[Requirement, ...]:
    """Return what says the address; nothing where the input says it."""
    try:
        config = RoutingConfig.parse(request.input or {})
    except Malformed:
        return ()
    if config.gateway_address:
        return ()
    if config.address_from == "Gateway":
        of = config.gateway
        return (
            Requirement(
                GATEWAY, GATEWAY_API_VERSION, GATEWAY_KIND, match_name=of.name, namespace=of.namespace
            ),
        )
    return (
        Requirement(INFERENCE_GATEWAY, API_VERSION, "InferenceGateway", match_name=INFERENCE_GATEWAY_NAME),
    )


# Read everything one request tells about a service, and say what of it is in doubt (Law C).
#
# In doubt nothing is composed and the observed route stays as it is: a service, an input or an endpoint
# that cannot be read, a selection that is not delivered, an object of somebody else under the key of the
# route.

ROUTE_KEY = "httproute"
KEYS = {ROUTE_KEY: ROUTE}

MALFORMED, WAITING, UNREADABLE = "Malformed", "WaitingForEndpoints", "EndpointUnreadable"


@dataclass(frozen=True, slots=True)
class Selection:
    """One group, and the endpoints that its selector matches, by namespace and name."""

    group: EndpointGroup
    endpoints: tuple[ModelEndpoint, ...]
    left_out: tuple[str, ...] = ()
    """Those of namespaces that the input does not allow, as `namespace/name`."""


@dataclass(frozen=True, slots=True)
class UnreadableEndpoint:
    """An endpoint that a selector matches and that cannot be read: doubt, but where it is left out anyway."""

    namespace: str
    name: str
    fault: str


@dataclass(frozen=True, slots=True)
class ServiceSnapshot:
    """One service, and all that is known around it."""

    namespace: str
    name: str
    config: RoutingConfig
    selections: tuple[Selection, ...] | Doubt
    route: Mapping[str, Plain] | None
    """The observed route; None while none of ours is."""
    status: Mapping[str, Plain]
    """The service's status as it is."""

    @property
    def matched(self) -> int:
        """How many endpoints the selectors match, each counted once."""
        if isinstance(self.selections, Doubt):
            return 0
        return len({_key(endpoint) for selection in self.selections for endpoint in selection.endpoints})


def _key(endpoint: ModelEndpoint | UnreadableEndpoint) -> tuple[str, str]:
    return endpoint.namespace, endpoint.name


def _order(endpoint: ModelEndpoint | UnreadableEndpoint) -> tuple[str, ...]:
    """By namespace and name, and an object that is listed twice by what it says: no list decides anything."""
    if isinstance(endpoint, UnreadableEndpoint):
        return (*_key(endpoint), endpoint.fault)
    return (*_key(endpoint), endpoint.backend, endpoint.spec.url, endpoint.spec.rewrite_path)


def read_snapshot(request: Request, reuse: Reuse) -> ServiceSnapshot:
    """Read one request."""
    observed = ours_observed(request, KEYS)
    config, selections = _read(request, reuse)
    fault = foreign(request, {key: composed.kind for key, composed in observed.items()})
    if fault:
        selections = Doubt(MALFORMED, fault)
    return ServiceSnapshot(
        namespace=text_at(request.composite, "metadata", "namespace"),
        name=text_at(request.composite, "metadata", "name"),
        config=config,
        selections=selections,
        route=plain_of(request.observed[ROUTE_KEY]) if ROUTE_KEY in observed else None,
        status=mapping(plain_of(request.composite).get("status")),
    )


def _read(request: Request, reuse: Reuse) -> tuple[RoutingConfig, tuple[Selection, ...] | Doubt]:
    try:
        config = RoutingConfig.parse(request.input or {})
    except Malformed as error:
        return RoutingConfig(), Doubt(MALFORMED, invalid_input(request, error))
    try:
        service = reuse.parsed(request.composite, read_service)
    except ValueError as error:
        return config, Doubt(MALFORMED, f"The ModelService cannot be read: {error}")
    return config, _selections(request, service, config, reuse)


def _selections(
    request: Request, service: ModelService, config: RoutingConfig, reuse: Reuse
) -> tuple[Selection, ...] | Doubt:
    selections = []
    for number, group in enumerate(service.groups):
        name = endpoints_requirement(number)
        if request.resolution(name) is Resolution.UNRESOLVED:
            return Doubt(WAITING, f"The endpoints of spec.endpoints[{number}] are not delivered yet")
        endpoints = sorted((_endpoint(document, reuse) for document in request.required[name]), key=_order)
        allowed = [entry for entry in endpoints if config.allows(service.namespace, entry.namespace)]
        others = (entry for entry in endpoints if not config.allows(service.namespace, entry.namespace))
        unreadable = next((entry for entry in allowed if isinstance(entry, UnreadableEndpoint)), None)
        if unreadable is not None:
            return Doubt(UNREADABLE, unreadable.fault)
        readable = tuple(entry for entry in allowed if isinstance(entry, ModelEndpoint))
        selections.append(Selection(group, readable, tuple("/".join(_key(entry)) for entry in others)))
    return tuple(selections)


def _endpoint(document: Document, reuse: Reuse) -> ModelEndpoint | UnreadableEndpoint:
    try:
        return reuse.parsed(document, read_endpoint)
    except ValueError as error:
        namespace, name = (text_at(document, "metadata", key) for key in ("namespace", "name"))
        fault = f"ModelEndpoint {namespace or '?'}/{name or '?'} cannot be read: {error}"
        return UnreadableEndpoint(namespace, name, fault)


# Decide which endpoints take the requests of a service, and in which proportion.
#
# 1. Ready is an endpoint with a backend that is not being deleted.
# 2. The lowest priority that has a ready endpoint in a group of some weight takes all requests: failover
#    needs nothing of the gateway but weights.
# 3. A rule has room for so many backends: groups take turns, the first endpoints by namespace and name.
# 4. A group's weight is spread evenly over its endpoints. Weights are whole: all are scaled by one factor and
#    reduced by their greatest common divisor; beyond the largest weight of a route they are rounded, and none
#    that gets requests becomes 0. An endpoint of several groups gets the sum.


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
        """Tell whether requests can go to it."""
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
