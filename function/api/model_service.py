"""ModelService: one address for a model, in front of the endpoints that its selectors match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from function.api.model import Model, Named, Whole

if TYPE_CHECKING:
    from function.boundary import Document, Shape

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
    """What all of them get together, in proportion to the other groups."""
    priority: Annotated[Whole, Field(ge=0, le=MAX_PRIORITY)] = 0
    """The lowest number with a ready endpoint takes all requests."""


def _weighed(groups: tuple[EndpointGroup, ...]) -> tuple[EndpointGroup, ...]:
    if not any(group.weight for group in groups):
        raise ValueError("at least one group of endpoints needs a weight above 0")
    return groups


class _Spec(Model):
    endpoints: Annotated[tuple[EndpointGroup, ...], Field(min_length=1), AfterValidator(_weighed)]


class ModelService(Named):
    """One service."""

    spec: _Spec

    @property
    def groups(self) -> tuple[EndpointGroup, ...]:
        """Its groups of endpoints, as written."""
        return self.spec.endpoints


SHAPE: Shape = {
    "metadata": {"name": None, "namespace": None},
    "spec": {"endpoints": None},
}


def read_service(document: Document) -> ModelService:
    """Read one ModelService. Raises Malformed, and Unreadable for what cannot be decoded."""
    return ModelService.parse(document.project(SHAPE))
