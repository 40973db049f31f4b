"""Charge the parse cache for what a deployment holds in caches of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.scheduler.cache import FitCaches
from function.scheduler.matching.selectors import HeldPrograms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import ModelDeployment
    from function.boundary import Part

ENTRY_SIZE = 800
"""Bytes that one entry of a fit cache takes, about."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much one deployment's fit cache takes."""

    owner: int
    size: int


def held_by(deployment: ModelDeployment) -> Iterator[Part]:
    """Yield the fit caches of a deployment, the device lists they know, and its compiled selectors."""
    for cache in list(deployment.cache_of(FitCaches).caches.values()):
        yield Extent(id(cache), ENTRY_SIZE * cache.entries)
        for (shared, _), _ in list(cache.lists):
            if shared is not None:
                yield shared
    yield from deployment.cache_of(HeldPrograms).programs
