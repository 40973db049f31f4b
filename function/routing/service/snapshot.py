"""Read everything one request tells about a service, and say what of it is in doubt (Law C).

In doubt nothing is composed and the observed route stays as it is: a service, an input or an endpoint that
cannot be read, a selection that is not delivered, an object of somebody else under the key of the route.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api.fault import Malformed
from function.api.lenient import mapping, plain_of
from function.api.model_endpoint import ModelEndpoint, read_endpoint
from function.api.model_service import ModelService, read_service
from function.api.routing_config import RoutingConfig
from function.api.step_input import invalid_input
from function.boundary import Resolution, text_at
from function.fail_static import Doubt, foreign
from function.routing.observed import ROUTE, ours_observed
from function.routing.service.requirements import endpoints_requirement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.api.model_service import EndpointGroup
    from function.boundary import Document, Plain, Request, Reuse

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
