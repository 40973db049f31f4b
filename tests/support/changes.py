"""Random worlds whose deployments look at more than room and labels: at how far a cache is staged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import generate
from tests.support.optins import staged
from tests.support.parts import Source

if TYPE_CHECKING:
    from tests.support.world import World


def world(seed: int) -> World:
    """Return the world of a seed: one of `generate`, with a policy."""
    made, draw = generate.world(seed).copy(), Source(f"changes {seed}")
    staged(draw, made)
    if made.cache is not None and draw.odds(0.8):
        made.deployment["spec"].setdefault("placement", {})["cache"] = draw.choice(("Prefer", "Require"))
    return made
