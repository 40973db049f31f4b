"""RoutingConfig: the input of the steps that route requests to endpoints. Every field is optional."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from function.api.destination import DEFAULT_PORTS
from function.api.model import Flag, Name
from function.api.names import SYSTEM_NAMESPACE
from function.api.step_input import API_VERSION, StepInput, TtlConfig

ANY_NAMESPACE = "*"
_DURATION = re.compile(r"([0-9]{1,5}(h|m|s|ms)){1,4}", re.ASCII)


class GatewayName(StepInput):
    """The Gateway of the control plane that serves the routes."""

    namespace: Name = SYSTEM_NAMESPACE
    name: Name = "modelplane"


def _address(value: str) -> str:
    scheme, separator, _ = value.partition("://")
    if (separator and scheme not in DEFAULT_PORTS) or value != value.strip() or value.endswith("/"):
        raise ValueError("expected a host, or a URL with http:// or https:// and without a / at its end")
    return value


def _duration(value: str) -> str:
    if not _DURATION.fullmatch(value):
        raise ValueError("expected a duration of Gateway API such as 30s or 1h30m, 0s for none")
    return value


class RoutingConfig(StepInput):
    """What a platform engineer chooses for all services of a Composition.

    Left out, everything is as Modelplane v0.3 makes it, but for the rows of docs/compatibility.md.
    """

    api_version: Literal["fleet-scheduler.fn.modelplane.ai/v1alpha1"] = API_VERSION
    kind: Literal["RoutingConfig"] = "RoutingConfig"
    metadata: dict[str, Any] = {}
    gateway: GatewayName = GatewayName()
    gateway_address: Annotated[str, Field(max_length=253), AfterValidator(_address)] = ""
    """Where services are reached, said by hand: a host, or a URL. Then nobody else is asked."""
    address_from: Literal["InferenceGateway", "Gateway"] = "InferenceGateway"
    """Which object says where services are reached: the InferenceGateway `default`, or the Gateway."""
    allow_namespaces: tuple[Name, ...] = ()
    """Namespaces whose endpoints services of other namespaces may use; `*` for every one."""
    request_timeout: Annotated[str, AfterValidator(_duration)] = ""
    """The timeout of a request, as Gateway API has it; `0s` for none. Empty leaves it to the gateway."""
    rewrite_host: Flag = False
    """Whether requests to an endpoint that is a DNS name carry that name instead of the gateway's."""
    ttl: TtlConfig = TtlConfig()

    def allows(self, namespace: str, other: str) -> bool:
        """Whether a service of one namespace may use endpoints of another."""
        return namespace == other or other in self.allow_namespaces or ANY_NAMESPACE in self.allow_namespaces
