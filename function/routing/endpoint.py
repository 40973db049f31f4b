"""The ModelEndpoint handler: from a URL to a Service that leads there. Begin with `handler.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from function.api.fault import Malformed
from function.api.inputs import RoutingConfig, invalid_input
from function.api.model import mapping, plain_of, string
from function.api.names import Destination, dns_1035_name, is_dns_1035, read_destination
from function.api.routing import read_endpoint
from function.api.text import one_line
from function.boundary import (
    Condition,
    Desired,
    NoReuse,
    Plain,
    Request,
    Requirement,
    Response,
    Reuse,
    text_at,
)
from function.fail_static import Doubt, foreign
from function.routing.traffic import SERVICE, SLICE, Composed, again, ours_observed
from function.transitions import circuit_open, transitions

# The endpoint's one condition, on every path, and what of it is an event.

READY = "RoutingReady"


def condition_types(_request: Request) -> tuple[str, ...]:
    """Return the condition that every answer carries."""
    return (READY,)


def routing_ready(snapshot: EndpointSnapshot) -> Condition:
    """RoutingReady: routes can refer to the Service, and it leads where the URL says."""
    destination = snapshot.destination
    if isinstance(destination, Doubt):
        text = one_line(f"{destination.message}; what is composed stays as it is")
        return Condition(READY, status=False, reason=destination.reason, message=text)
    if not snapshot.is_complete:
        waiting = "EndpointSlice" if snapshot.service else "Service"
        text = f"The {waiting} is not observed yet"
        return Condition(READY, status=False, reason="WaitingForBackend", message=text)
    return Condition(READY, status=True, reason="BackendConfigured")


# Read everything one request tells about an endpoint, and say what of it is in doubt (Law C).

SERVICE_KEY, SLICE_KEY = "service", "endpointslice"
FAMILIES = ("FQDN", "IPv4", "IPv6")

INVALID_URL, MALFORMED = "InvalidURL", "Malformed"


def slice_key(family: str) -> str:
    """Return the key of a slice that is not the first: the addressType of a slice is immutable."""
    return f"{SLICE_KEY}-{family.lower()}"


KEYS: Mapping[str, Composed] = {
    SERVICE_KEY: SERVICE,
    SLICE_KEY: SLICE,
    **{slice_key(family): SLICE for family in FAMILIES},
}


@dataclass(frozen=True, slots=True)
class EndpointSnapshot:
    """One endpoint, and what is observed of it."""

    namespace: str
    name: str
    destination: Destination | Doubt
    observed: Mapping[str, Composed]
    """Composed resources of ours that are observed."""
    service: str
    """The name that Crossplane gave the Service; empty while it is not observed."""
    families: Mapping[str, str]
    """The addressType of each observed slice, by key; empty where it says none."""
    status: Mapping[str, Plain]
    """The endpoint's status as it is."""
    ttl: tuple[float | None, float | None]

    @property
    def wanted_slice(self) -> str:
        """The key under which the slice for the destination stands, or will.

        Law C 4: another addressType is another object, so it gets another key, and keeps it.
        """
        if isinstance(self.destination, Doubt):
            return ""
        family = self.destination.family
        own_key = slice_key(family)
        if own_key in self.families or self.families.get(SLICE_KEY) not in (family, "", None):
            return own_key
        return SLICE_KEY

    @property
    def is_complete(self) -> bool:
        """Tell whether the Service and the slice that is wanted are observed."""
        return bool(self.service) and self.wanted_slice in self.families

    @property
    def backend(self) -> str:
        """The Service that routes may refer to. Law C 3: the last one until another is observed."""
        last = mapping(self.status.get("routing")).get("backendName")
        if self.is_complete:
            return self.service
        return string(last)


def read_snapshot(request: Request, reuse: Reuse) -> EndpointSnapshot:
    """Read one request."""
    observed = ours_observed(request, KEYS)
    config, fault = RoutingConfig(), ""
    try:
        config = RoutingConfig.parse(request.input or {})
    except Malformed as error:
        fault = invalid_input(request, error)
    service = observed.get(SERVICE_KEY) and text_at(request.observed[SERVICE_KEY], "metadata", "name")
    return EndpointSnapshot(
        namespace=text_at(request.composite, "metadata", "namespace"),
        name=text_at(request.composite, "metadata", "name"),
        destination=_destination(request, observed, fault, reuse),
        observed=observed,
        service=service or "",
        families={
            key: text_at(request.observed[key], "addressType") for key in observed if key != SERVICE_KEY
        },
        status=mapping(plain_of(request.composite).get("status")),
        ttl=(config.ttl.pending, config.ttl.settled),
    )


def _destination(
    request: Request, observed: Mapping[str, Composed], fault: str, reuse: Reuse
) -> Destination | Doubt:
    fault = fault or foreign(request, {key: composed.kind for key, composed in observed.items()})
    if fault:
        return Doubt(MALFORMED, fault)
    try:
        endpoint = reuse.parsed(request.composite, read_endpoint)
    except ValueError as error:
        return Doubt(MALFORMED, f"The ModelEndpoint cannot be read: {error}")
    try:
        return read_destination(endpoint.spec.url)
    except ValueError as error:
        return Doubt(INVALID_URL, f"spec.url: {error}")


# Desired resources of an endpoint: the Service, and the EndpointSlice that says where it leads.
#
# The slice refers to the Service by its name, which Crossplane gives in most cases: so it is composed once
# that is observed.

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
PROTOCOL = "TCP"


def compose(request: Request, snapshot: EndpointSnapshot) -> dict[str, Desired]:
    """Return everything desired, by key."""
    destination, observed = snapshot.destination, snapshot.observed
    kept = {key: again(request, key, observed[key], ready=True) for key in observed}
    if isinstance(destination, Doubt):
        return kept
    made = {SERVICE_KEY: Desired(_service(snapshot, destination), ready=SERVICE_KEY in observed)}
    if snapshot.service:
        wanted = snapshot.wanted_slice
        resource = _slice(snapshot.namespace, snapshot.service, destination)
        made[wanted] = Desired(resource, ready=wanted in observed)
    if not snapshot.is_complete:
        # Law C 1: a slice of another family leaves when its successor is observed.
        made = kept | made
    return {key: made[key] for key in sorted(made) if key not in request.desired}


def _service(snapshot: EndpointSnapshot, destination: Destination) -> dict[str, Any]:
    """Return the Service. Crossplane names it after the endpoint, where a Service may be called like that.

    One that is there keeps its name: newer API servers can be told to take a leading digit.
    """
    metadata = {"namespace": snapshot.namespace}
    if not is_dns_1035(snapshot.name):
        metadata["name"] = snapshot.service or dns_1035_name(snapshot.name, "service")
    return {
        "apiVersion": SERVICE.api_version,
        "kind": SERVICE.kind,
        "metadata": metadata,
        "spec": {"ports": [{"port": destination.port, "protocol": PROTOCOL}]},
    }


def _slice(namespace: str, service: str, destination: Destination) -> dict[str, Any]:
    return {
        "apiVersion": SLICE.api_version,
        "kind": SLICE.kind,
        "metadata": {"namespace": namespace, "labels": {SERVICE_NAME_LABEL: service}},
        "addressType": destination.family,
        "endpoints": [{"addresses": [destination.address], "conditions": {"ready": True}}],
        "ports": [{"name": "", "port": destination.port, "protocol": PROTOCOL}],
    }


# Handle a ModelEndpoint: one request in, one response out. This file is the table of contents.
#
# snapshot (the URL, what is observed) -> compose (Service, EndpointSlice) -> status -> conditions
#
# A Service without a selector and one EndpointSlice for it: any gateway can lead requests to an address
# that is written down like that, and no controller changes it.

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
