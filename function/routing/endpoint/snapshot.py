"""Read everything one request tells about an endpoint, and say what of it is in doubt (Law C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api.destination import Destination, read_destination
from function.api.fault import Malformed
from function.api.lenient import mapping, plain_of, string
from function.api.model_endpoint import read_endpoint
from function.api.routing_config import RoutingConfig
from function.api.step_input import invalid_input
from function.boundary import text_at
from function.fail_static import Doubt, foreign
from function.routing.observed import SERVICE, SLICE, ours_observed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Plain, Request, Reuse
    from function.routing.observed import Composed

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
        """Whether the Service and the slice that is wanted are observed."""
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
