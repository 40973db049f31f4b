"""How much is tried: a quick share by default, the gate's or the soak's when asked for.

FLEET_SCALE is quick, gate or soak; GATE=20000 (or SOAK=100000) sets the number of random worlds of every
check outright, SEED moves the first seed.
"""

from __future__ import annotations

import os


def count(quick: int, gate: int, soak: int) -> int:
    """Return how many random worlds a check looks at."""
    asked = os.environ.get("GATE") or os.environ.get("SOAK")
    if asked:
        return int(asked)
    return {"gate": gate, "soak": soak}.get(os.environ.get("FLEET_SCALE", "quick"), quick)


def seeds(quick: int, gate: int = 20_000, soak: int = 100_000) -> range:
    """Return the seeds of a check."""
    first = int(os.environ.get("SEED", "0"))
    return range(first, first + count(quick, gate, soak))


BATCHES = 8
"""A check over many seeds is cut into this many tests, so that several workers share it."""


def batch(number: int, quick: int, gate: int = 20_000, soak: int = 100_000) -> range:
    """Return every `BATCHES`th seed of a check, from `number` on."""
    return seeds(quick, gate, soak)[number::BATCHES]
