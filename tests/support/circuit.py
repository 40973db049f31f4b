"""A composite whose circuit breaker Crossplane has opened or closed."""

from __future__ import annotations

import copy
from typing import Any

from tests.support import build

Plain = dict[str, Any]


def with_circuit(composite: Plain, *, opened: bool) -> Plain:
    """Return a composite with the condition that Crossplane writes of its circuit breaker."""
    made = copy.deepcopy(composite)
    reason = "WatchCircuitOpen" if opened else "WatchCircuitClosed"
    conditions = made.setdefault("status", {}).setdefault("conditions", [])
    conditions.append(build.condition("Responsive", status=not opened, reason=reason))
    return made
