"""Declare what the handler needs of the control plane: the one table of requirement names.

Every group's endpoints, by label, and what says where services are reached. Endpoints of other namespaces
are delivered too and sorted out where they are read, so that a condition can say what is left out. Read
leniently: what is required must not depend on whether the rest of the service can be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.fault import Malformed
from function.api.lenient import mapping, plain_of
from function.api.names import API_VERSION
from function.api.routing_config import RoutingConfig
from function.boundary import Requirement
from function.gateway_api import API_VERSION as GATEWAY_API_VERSION
from function.gateway_api import GATEWAY as GATEWAY_KIND

if TYPE_CHECKING:
    from function.boundary import Request

INFERENCE_GATEWAY, GATEWAY = "inference-gateway", "gateway"
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
