"""ModelEndpoint, the way to one replica or to a model that runs elsewhere, and ModelService.

A service selects endpoints by labels, in groups with weights and priorities; the group of the lowest
priority that has a ready endpoint takes all requests (docs/routing.md). The status of an endpoint names the
Service of the control plane that leads to it, which routes refer to.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from function.api.model import Model, Name, Named, Whole, reader_of, shape_of
from function.boundary import Shape


class EndpointSpec(Model):
    """Where it leads."""

    url: Name
    rewrite_path: str = ""
    """The path that a service's prefix is rewritten to; empty: it is not."""


class Routing(Model):
    """The routing that was made of an endpoint."""

    backend_name: str = ""
    """The Service that routes refer to, in the endpoint's namespace; empty while there is none."""


class _Status(Model):
    """The part of the status that says where requests go."""

    routing: Routing = Routing.model_construct()


class ModelEndpoint(Named):
    """One endpoint."""

    spec: EndpointSpec
    status: _Status = _Status.model_construct()

    @property
    def backend(self) -> str:
        """The Service that leads to it; empty while there is none, and for an endpoint that is deleted."""
        return "" if self.metadata.deletion_timestamp else self.status.routing.backend_name


_METADATA = dict.fromkeys(("name", "namespace", "deletionTimestamp"))
ENDPOINT_SHAPE: Shape = shape_of(ModelEndpoint) | {"metadata": _METADATA}
read_endpoint = reader_of(ModelEndpoint, ENDPOINT_SHAPE)

# ModelService: one address for a model, in front of the endpoints that its selectors match.

MAX_WEIGHT = 1_000_000
"""The largest weight that a route takes."""
MAX_PRIORITY = 1_000
DEFAULT_WEIGHT = 1

Labels = Annotated[dict[str, str], Field(min_length=1)]


class EndpointSelector(Model):
    """Labels that an endpoint must all have."""

    match_labels: Labels


class EndpointGroup(Model):
    """Endpoints that share a weight."""

    selector: EndpointSelector
    weight: Annotated[Whole, Field(ge=0, le=MAX_WEIGHT)] = DEFAULT_WEIGHT
    """The share of requests of all of them together, in proportion to the other groups."""
    priority: Annotated[Whole, Field(ge=0, le=MAX_PRIORITY)] = 0
    """The lowest number with a ready endpoint takes all requests."""


def _weighed(groups: tuple[EndpointGroup, ...]) -> tuple[EndpointGroup, ...]:
    """Refuse groups that get no request at all."""
    if not any(group.weight for group in groups):
        raise ValueError("at least one group of endpoints needs a weight above 0")
    return groups


class _Spec(Model):
    """The groups of endpoints, in the order of their requirements."""

    endpoints: Annotated[tuple[EndpointGroup, ...], Field(min_length=1), AfterValidator(_weighed)]


class ModelService(Named):
    """One service."""

    spec: _Spec


SERVICE_SHAPE: Shape = shape_of(ModelService) | {"metadata": {"name": None, "namespace": None}}
read_service = reader_of(ModelService, SERVICE_SHAPE)
