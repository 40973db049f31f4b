"""The function against the brute force scheduler, on random small worlds.

GATE=20000 python -m pytest tests/oracle     # more of them
SEED=4711 GATE=1 python -m pytest tests/oracle   # one of them
"""

from __future__ import annotations

from collections import Counter
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


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_rollouts_and_surge_go_as_the_rules_say(number: int) -> None:
    """Worlds in which something is in doubt are left out: there the budgets count what cannot be updated."""
    for seed in scale.batch(number, quick=800):
        world = changes.staging(seed)
        if changes.certain(world) and disagrees(world):
            small = minimise(world, lambda smaller: changes.certain(smaller) and disagrees(smaller))
            told = "\n".join(differences(small, run(small)))
            pytest.fail(f"seed {seed} differs:\n{told}\nsmallest world:\n{small.dump()}")


def test_the_staged_worlds_are_worth_looking_at() -> None:
    """Replicas wait, leave beside their replacement, are blocked: on worlds without doubt."""
    seen: Counter[str] = Counter()
    for world in filter(changes.certain, map(changes.staging, range(400))):
        answer = run(world)
        seen["worlds"] += 1
        seen["surging"] += len(answer.replicas) > world.deployment["spec"]["replicas"]
        seen[answer.reason("ReplicasUpdated")] += 1
        seen.update(kept.update.name for kept in answer.decision.kept if kept.update)
        seen["blocked"] += any(kept.blocked for kept in answer.decision.kept)
        seen["waits"] += any(kept.waits for kept in answer.decision.kept)
    few = {name: seen[name] for name in WORTH if seen[name] < 5}
    assert not few, seen


WORTH = ("worlds", "surging", "RolloutPaused", "RollingOut", "Now", "Waits", "Superseded", "blocked", "waits")
