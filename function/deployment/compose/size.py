"""How many new replicas an answer can carry: Crossplane receives at most 4 MiB."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.api import ModelDeployment
    from function.scheduler.fleet import Fleet

LIMIT = 3 * 1024 * 1024
"""Bytes of desired replicas at which filling stops. Nothing kept is ever dropped for size."""
OVERHEAD = 2_000
"""Bytes of a replica and its endpoint besides the templates: names, labels, requests, status."""


def largest(deployment: ModelDeployment) -> int:
    """Bytes of the largest shape's replica, JSON standing in for the wire (which is never longer)."""
    found: int | None = deployment.notes.get("largest replica")
    if found is None:
        found = deployment.notes["largest replica"] = _largest(deployment)
    return found


def _largest(deployment: ModelDeployment) -> int:
    sizes = (
        sum(
            len(json.dumps(member.template).encode()) + _selectors(member)
            for engine in shape.engines
            for member in engine.members
        )
        for shape in deployment.shapes
    )
    return max(sizes) + OVERHEAD


def _selectors(member: object) -> int:
    requests = getattr(member, "requests", ())
    return sum(
        len(each.cel.encode()) + 100
        for request in requests
        for sub in request.ranked
        for each in sub.selectors
    )


def room_for(deployment: ModelDeployment, fleet: Fleet) -> int:
    """How many replicas can be added before the answer grows past the limit."""
    return max(0, LIMIT // largest(deployment) - len(fleet.own_replicas))
