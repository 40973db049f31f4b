"""The ModelEndpoint handler: a URL becomes a Service that routes can refer to.

A ModelEndpoint says where a model answers: the address of a replica, or one elsewhere. A route of Gateway API
refers to Services and to nothing else. So host and port of the URL become two objects of the control plane:

    Service         a name and a port for routes, without a selector: no controller fills or changes it
    EndpointSlice   the host, an IPv4 or IPv6 address or a DNS name, with a label that names the Service

    read_snapshot (the URL, what is observed) ▶ compose (Service, EndpointSlice) ▶ status ▶ condition

Crossplane names most Services, so the slice is composed in a later call, when the name is observed. The
status tells routes which Service to refer to, and only once there is a slice behind it.

In doubt all that is observed stays as it is (Law C 2): a URL that became invalid, an endpoint or an input
that cannot be read, somebody else's object under a key of ours. Whether the host answers is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from function.api.fault import Malformed
from function.api.inputs import RoutingConfig, invalid_input
from function.api.model import mapping, mappings, plain_of, string
from function.api.names import DNS_1035, Destination, dns_1035_name, read_destination
from function.api.routing import read_endpoint
from function.boundary import NO_REUSE, Condition, Desired, Plain, Request, Response, Reuse, frozen, text_at
from function.fail_static import Doubt, as_observed, foreign
from function.transitions import circuit_open, transitions, unmet

__all__ = ["CONDITION_TYPES", "KIND", "run"]

KIND = "ModelEndpoint"
READY = "RoutingReady"
CONDITION_TYPES = (READY,)
"""The condition that every answer carries."""


class Composed(NamedTuple):
    """The resource that stands under a key."""

    api_version: str
    kind: str
    fields: tuple[str, ...] = ("spec",)
    """Fields that hold what we apply."""


SERVICE = Composed("v1", "Service")
SLICE = Composed("discovery.k8s.io/v1", "EndpointSlice", ("addressType", "endpoints", "ports"))
SERVICE_KEY, SLICE_KEY = "service", "endpointslice"
FAMILY_KEYS = {family: f"{SLICE_KEY}-{family.lower()}" for family in ("FQDN", "IPv4", "IPv6")}
"""The key of a slice that came after another. Kubernetes lets no slice change its addressType."""
KEYS: Mapping[str, Composed] = {
    SERVICE_KEY: SERVICE,
    SLICE_KEY: SLICE,
    **dict.fromkeys(FAMILY_KEYS.values(), SLICE),
}
PROTOCOL = "TCP"


@frozen
class EndpointSnapshot:
    """One endpoint, and what is observed of it."""

    namespace: str
    name: str
    destination: Destination | Doubt
    observed: Mapping[str, Composed]
    """Composed resources of ours that are observed."""
    service: str
    """The name that Crossplane gave the Service; empty while it is not observed."""
    wanted_slice: str
    """The key under which the slice for the destination stands, or will; empty in doubt."""
    status: Mapping[str, Plain]
    """The endpoint's status as it is."""
    ttl: tuple[float | None, float | None]

    @property
    def is_complete(self) -> bool:
        """Tell whether the Service and the slice that is wanted are observed."""
        return bool(self.service) and self.wanted_slice in self.observed


def read_snapshot(request: Request, reuse: Reuse) -> EndpointSnapshot:
    """Read one request, and say what of it is in doubt."""
    observed = {
        key: KEYS[key] for key in sorted(KEYS) if key in request.observed and key not in request.desired
    }
    config, fault = RoutingConfig(), ""
    try:
        config = RoutingConfig.parse(request.input)
    except Malformed as error:
        fault = invalid_input(request, error)
    destination = _destination(request, observed, fault, reuse)
    wanted_slice = ""
    if not isinstance(destination, Doubt):
        # Law C 4: another addressType is another object, so it gets a key of its own, and then keeps it.
        wanted_slice = FAMILY_KEYS[destination.family]
        if wanted_slice not in observed and (
            SLICE_KEY not in observed
            or text_at(request.observed[SLICE_KEY], "addressType") in (destination.family, "")
        ):
            wanted_slice = SLICE_KEY
    return EndpointSnapshot(
        namespace=text_at(request.composite, "metadata", "namespace"),
        name=text_at(request.composite, "metadata", "name"),
        destination=destination,
        observed=observed,
        service=text_at(request.observed[SERVICE_KEY], "metadata", "name") if SERVICE_KEY in observed else "",
        wanted_slice=wanted_slice,
        status=mapping(plain_of(request.composite).get("status")),
        ttl=(config.ttl.pending, config.ttl.settled),
    )


def _destination(
    request: Request, observed: Mapping[str, Composed], fault: str, reuse: Reuse
) -> Destination | Doubt:
    """Return where the URL leads, or the doubt. `fault`: what is wrong with the input, if anything."""
    fault = fault or foreign(request, {key: composed.kind for key, composed in observed.items()})
    if fault:
        return Doubt("Malformed", fault)
    try:
        endpoint = reuse.parsed(request.composite, read_endpoint)
    except ValueError as error:
        return Doubt("Malformed", f"The ModelEndpoint cannot be read: {error}")
    try:
        return read_destination(endpoint.spec.url)
    except ValueError as error:
        return Doubt("InvalidURL", f"spec.url: {error}")


def compose(request: Request, snapshot: EndpointSnapshot) -> dict[str, Desired]:
    """Desire the Service and its slice; in doubt, what is observed of them."""
    destination, observed = snapshot.destination, snapshot.observed
    kept = {}
    for key, composed in observed.items():
        resource = as_observed(
            request.observed[key],
            kind=composed.kind,
            namespace=snapshot.namespace,
            api_version=composed.api_version,
            fields=composed.fields,
        )
        if key == SERVICE_KEY and resource["kind"] == SERVICE.kind:
            # Of a Service only the ports are ours: its addresses are the API server's to give.
            ports = mappings(mapping(resource.get("spec")).get("ports"))
            own_ports = [
                {name: port[name] for name in ("port", "protocol") if name in port} for port in ports
            ]
            resource["spec"] = {"ports": own_ports}
        kept[key] = Desired(resource, ready=True)
    if isinstance(destination, Doubt):
        # Law C 2: nothing is composed anew, and what is there goes on leading where it led.
        return kept
    metadata = {"namespace": snapshot.namespace}
    if not DNS_1035.fullmatch(snapshot.name):
        # Crossplane would name the Service after the endpoint, which no Service may be called here: a dot, a
        # leading digit. A Service that has such a name keeps it, for a newer API server may allow digits.
        metadata["name"] = snapshot.service or dns_1035_name(snapshot.name, "service")
    service = {
        "apiVersion": SERVICE.api_version,
        "kind": SERVICE.kind,
        "metadata": metadata,
        "spec": {"ports": [{"port": destination.port, "protocol": PROTOCOL}]},
    }
    made = {SERVICE_KEY: Desired(service, ready=SERVICE_KEY in observed)}
    if snapshot.service:
        labels = {"kubernetes.io/service-name": snapshot.service}
        endpoint_slice = {
            "apiVersion": SLICE.api_version,
            "kind": SLICE.kind,
            "metadata": {"namespace": snapshot.namespace, "labels": labels},
            "addressType": destination.family,
            "endpoints": [{"addresses": [destination.address], "conditions": {"ready": True}}],
            "ports": [{"name": "", "port": destination.port, "protocol": PROTOCOL}],
        }
        made[snapshot.wanted_slice] = Desired(endpoint_slice, ready=snapshot.wanted_slice in observed)
    if not snapshot.is_complete:
        # Law C 1: a slice of another family leaves when its successor is observed.
        made = kept | made
    return {key: made[key] for key in sorted(made) if key not in request.desired}


def routing_ready(snapshot: EndpointSnapshot) -> Condition:
    """RoutingReady: routes can refer to the Service, and it leads where the URL says."""
    destination = snapshot.destination
    if isinstance(destination, Doubt):
        return unmet(READY, destination.reason, f"{destination.message}; what is composed stays as it is")
    if not snapshot.is_complete:
        waiting = "EndpointSlice" if snapshot.service else "Service"
        text = f"The {waiting} is not observed yet"
        return Condition(READY, status=False, reason="WaitingForBackend", message=text)
    return Condition(READY, status=True, reason="BackendConfigured")


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one request. The same request gets the same answer, whatever was asked before (Law 1)."""
    snapshot = read_snapshot(request, reuse)
    desired = compose(request, snapshot)
    ready = routing_ready(snapshot)
    # Law C 3: routes go on referring to the last Service until another one is observed with its slice.
    last = string(mapping(snapshot.status.get("routing")).get("backendName"))
    backend = snapshot.service if snapshot.is_complete else last
    return Response(
        requirements=(),
        desired=desired,
        status={"routing": {"backendName": backend}} if backend else {},
        # What is kept counts as ready to Crossplane, though it may lead elsewhere than the URL says.
        unready=not ready.status and all(composed.ready for composed in desired.values()),
        conditions=(ready,),
        results=tuple(transitions(KIND, (ready,), snapshot.status)),
        settled=ready.status and not circuit_open(snapshot.status),
        ttl=snapshot.ttl,
        counts={"objects": len(desired)},
    )
