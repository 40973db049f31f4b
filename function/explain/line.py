"""One line for one recorded fact: why a cluster takes no other replica, why a replica went where it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.scheduler.decision import Placed
    from function.scheduler.reason import Rejection


def rejection_line(rejection: Rejection) -> str:
    """`main on frontier: needs 2, 1 free of 4 nodes`."""
    where = " on ".join(part for part in (rejection.engine, rejection.pool) if part)
    what = rejection.detail
    if rejection.request:
        what = f"{rejection.request}: {what}" if what else rejection.request
    if rejection.selector is not None and rejection.request:
        what += f" (selector {rejection.selector})"
    if rejection.needs is not None:
        total = f" of {rejection.total}" if rejection.total is not None else ""
        free = f", {max(0, rejection.free)} free{total}" if rejection.free is not None else total
        what = f"{what + ', ' if what else ''}needs {rejection.needs}{free}"
    return ": ".join(part for part in (where, what) if part)


def because_line(placed: Placed) -> str:
    """`fewest replicas of this deployment (0), before use2`."""
    decisive = [(text, value) for text, value in placed.because if text != "first by name"]
    text = "; ".join(f"{text} ({_value(value)})" for text, value in decisive[:2])
    after = f", before {placed.runner_up}" if placed.runner_up else ", the only place"
    replaced = f"; replaces {placed.replaces.replica.name}" if placed.replaces else ""
    return f"{text}{after}{replaced}"


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()[:8]
    return str(abs(value)) if isinstance(value, int) else str(value)
