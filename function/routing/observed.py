"""Desire composed resources of the control plane's own kinds again as they are observed, in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from function.api.model import mapping, mappings
from function.boundary import Desired, text_at
from function.fail_static import as_observed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Request


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
