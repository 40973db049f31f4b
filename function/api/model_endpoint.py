"""ModelEndpoint: the way to one replica, or to a model that runs elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.model import Model, Name, Named

if TYPE_CHECKING:
    from function.boundary import Document, Shape


class EndpointSpec(Model):
    """Where it leads."""

    url: Name
    rewrite_path: str = ""
    """What a service's prefix is rewritten to; empty: nothing is."""


class Routing(Model):
    """What was made of it."""

    backend_name: str = ""
    """The Service that routes refer to, in the endpoint's namespace; empty while there is none."""


class _Status(Model):
    routing: Routing = Routing()


class ModelEndpoint(Named):
    """One endpoint."""

    spec: EndpointSpec
    status: _Status = _Status()

    @property
    def backend(self) -> str:
        """The Service that leads to it; empty while there is none, and for an endpoint that is deleted."""
        return "" if self.metadata.deletion_timestamp else self.status.routing.backend_name


SHAPE: Shape = {
    "metadata": {"name": None, "namespace": None, "deletionTimestamp": None},
    "spec": {"url": None, "rewritePath": None},
    "status": {"routing": {"backendName": None}},
}


def read_endpoint(document: Document) -> ModelEndpoint:
    """Read one ModelEndpoint. Raises Malformed, and Unreadable for what cannot be decoded."""
    return ModelEndpoint.parse(document.project(SHAPE))
