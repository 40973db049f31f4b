"""The function against the brute force scheduler, on random small worlds.

GATE=20000 python -m pytest tests/oracle     # more of them
SEED=4711 GATE=1 python -m pytest tests/oracle   # one of them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oracle.minimise import minimise
from tests.oracle.verdict import differences
from tests.support import changes, generate, scale
from tests.support.drive import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.world import World


def disagrees(world: World) -> bool:
    return bool(differences(world, run(world)))


@pytest.mark.parametrize("number", range(scale.BATCHES))
@pytest.mark.parametrize("worlds", [generate.world, changes.world], ids=["plain", "changes"])
def test_the_function_decides_what_the_rules_say(worlds: Callable[[int], World], number: int) -> None:
    for seed in scale.batch(number, quick=800):
        world = worlds(seed)
        if disagrees(world):
            small = minimise(world, disagrees)
            told = "\n".join(differences(small, run(small)))
            pytest.fail(f"seed {seed} differs:\n{told}\nsmallest world:\n{small.dump()}")
