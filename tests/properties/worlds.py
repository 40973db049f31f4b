"""Look at many random worlds, and show the seed of the first that breaks a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import generate, scale
from tests.support.drive import Answer, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.support.world import World

each_batch = pytest.mark.parametrize("number", range(scale.BATCHES))


def hold(
    number: int,
    broken: Callable[[World, Answer], Iterable[str]],
    *,
    quick: int = 240,
    taste: generate.Taste = generate.TASTE,
) -> None:
    """Fail with the first world whose answer `broken` complains about."""
    looked_at = 0
    for seed in scale.batch(number, quick=quick):
        world = generate.world(seed, taste)
        complaints = list(broken(world, run(world)))
        looked_at += 1
        if complaints:
            lines = "\n".join(complaints)
            pytest.fail(f"seed {seed}:\n{lines}\nThe world: generate.world({seed}, {taste})", pytrace=False)
    assert looked_at
