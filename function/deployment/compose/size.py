"""Bound the new replicas of an answer: Crossplane receives at most 4 MiB."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.api import ModelDeployment
    from function.scheduler.fleet import Fleet

LIMIT = 3 * 1024 * 1024
"""Bytes of desired replicas at which filling stops. Nothing kept is ever dropped for size."""
OVERHEAD = 2_000
"""Bytes of a replica and its endpoint besides the templates: names, labels, requests, status."""


class _Largest:
    """The size of a deployment's largest replica, computed once."""

    size: int | None = None


def largest(deployment: ModelDeployment) -> int:
    """Bytes of the largest shape's replica, JSON standing in for the wire (which is never longer)."""
    cache = deployment.cache_of(_Largest)
    if cache.size is None:
        cache.size = _largest(deployment)
    return cache.size


def _largest(deployment: ModelDeployment) -> int:
    sizes: Counter[str] = Counter()
    for member in deployment.members:
        sizes[member.shape.name] += len(json.dumps(member.member.template).encode())
    for request in deployment.requests:
        sizes[request.of.shape.name] += sum(len(source.encode()) + 100 for source in request.sub.claimed_by)
    return max(sizes.values()) + OVERHEAD


def room_for(deployment: ModelDeployment, fleet: Fleet) -> int:
    """How many replicas can be added before the answer grows past the limit."""
    return max(0, LIMIT // largest(deployment) - len(fleet.own_replicas))
