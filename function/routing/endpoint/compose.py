"""Desired resources of an endpoint: the Service, and the EndpointSlice that says where it leads.

The slice refers to the Service by its name, which Crossplane gives in most cases: so it is composed once that
is observed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.names import dns_1035_name, is_dns_1035
from function.boundary import Desired
from function.fail_static import Doubt
from function.routing.endpoint.snapshot import SERVICE_KEY
from function.routing.observed import SERVICE, SLICE, again

if TYPE_CHECKING:
    from function.api.destination import Destination
    from function.boundary import Request
    from function.routing.endpoint.snapshot import EndpointSnapshot

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
