"""The status of a service: the one address of its model.

Law C 3: the last address is written until another is observed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.destination import bracketed
from function.api.lenient import mapping, plain_of, string
from function.boundary import Resolution
from function.gateway_api import first_address
from function.routing.service.requirements import GATEWAY, INFERENCE_GATEWAY

if TYPE_CHECKING:
    from function.boundary import Request
    from function.routing.service.snapshot import ServiceSnapshot


def status(request: Request, snapshot: ServiceSnapshot) -> dict[str, Any]:
    """Return the fields of the status to write."""
    host = snapshot.config.gateway_address or _observed(request)
    if host and snapshot.name:
        base = host if "://" in host else f"http://{bracketed(host)}"
        return {"address": f"{base}/{snapshot.namespace}/{snapshot.name}"}
    last = snapshot.status.get("address")
    return {"address": last} if isinstance(last, str) and last else {}


def _observed(request: Request) -> str:
    """Return where the gateway is reached, by whichever object is required; "" while none says it."""
    for name in (INFERENCE_GATEWAY, GATEWAY):
        if request.resolution(name) is Resolution.DELIVERED:
            status = mapping(plain_of(request.required[name][0]).get("status"))
            address = status.get("address") if name == INFERENCE_GATEWAY else first_address(status)
            return string(address)
    return ""
