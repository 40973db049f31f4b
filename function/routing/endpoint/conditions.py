"""The endpoint's one condition, on every path, and what of it is an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.text import one_line
from function.boundary import Condition
from function.fail_static import Doubt

if TYPE_CHECKING:
    from function.boundary import Request
    from function.routing.endpoint.snapshot import EndpointSnapshot

READY = "RoutingReady"


def condition_types(_request: Request) -> tuple[str, ...]:
    """Return the condition that every answer carries."""
    return (READY,)


def routing_ready(snapshot: EndpointSnapshot) -> Condition:
    """RoutingReady: routes can refer to the Service, and it leads where the URL says."""
    destination = snapshot.destination
    if isinstance(destination, Doubt):
        text = one_line(f"{destination.message}; what is composed stays as it is")
        return Condition(READY, status=False, reason=destination.reason, message=text)
    if not snapshot.is_complete:
        waiting = "EndpointSlice" if snapshot.service else "Service"
        text = f"The {waiting} is not observed yet"
        return Condition(READY, status=False, reason="WaitingForBackend", message=text)
    return Condition(READY, status=True, reason="BackendConfigured")
