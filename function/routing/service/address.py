"""The status of a service: the one address of its model.

Law C 3: the last address is written until another is observed. While the input or the service cannot be read,
nobody knows where to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.destination import bracketed
from function.api.lenient import mapping, plain_of, string
from function.boundary import Resolution
from function.fail_static import Doubt
from function.gateway_api import first_address
from function.routing.service.requirements import GATEWAY, INFERENCE_GATEWAY
from function.routing.service.snapshot import MALFORMED

if TYPE_CHECKING:
    from function.boundary import Request
    from function.routing.service.snapshot import ServiceSnapshot


def status(request: Request, snapshot: ServiceSnapshot) -> dict[str, Any]:
    """Return the fields of the status to write."""
    selections, config = snapshot.selections, snapshot.config
    is_malformed = isinstance(selections, Doubt) and selections.reason == MALFORMED
    host = "" if is_malformed else config.gateway_address or _observed(request, config.address_from)
    if host and snapshot.name:
        base = host if "://" in host else f"http://{bracketed(host)}"
        return {"address": f"{base}/{snapshot.namespace}/{snapshot.name}"}
    last = snapshot.status.get("address")
    return {"address": last} if isinstance(last, str) and last else {}


def _observed(request: Request, address_from: str) -> str:
    """Return where the gateway is reached, by the object that the input names; "" while it does not say.

    The Composition's bootstrap block may deliver the other one too.
    """
    name = GATEWAY if address_from == "Gateway" else INFERENCE_GATEWAY
    if request.resolution(name) is not Resolution.DELIVERED:
        return ""
    status = mapping(plain_of(request.required[name][0]).get("status"))
    return first_address(status) if name == GATEWAY else string(status.get("address"))
