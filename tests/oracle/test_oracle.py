"""The function against the brute force scheduler, on random small worlds.

GATE=20000 python -m pytest tests/oracle     # more of them
SEED=4711 GATE=1 python -m pytest tests/oracle   # one of them
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.oracle.minimise import minimise
from tests.oracle.verdict import differences
from tests.support import changes, generate, scale
from tests.support.drive import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.support.world import World


def disagrees(world: World) -> bool:
    return bool(differences(world, run(world)))


@pytest.mark.parametrize("number", range(scale.BATCHES))
@pytest.mark.parametrize(
    "worlds", [generate.world, changes.world, changes.lost_nodes], ids=["plain", "changes", "lost nodes"]
)
def test_the_function_decides_what_the_rules_say(worlds: Callable[[int], World], number: int) -> None:
    agree(worlds, scale.batch(number, quick=800))


@pytest.mark.parametrize("number", range(scale.BATCHES))
@pytest.mark.parametrize("worlds", [generate.world, changes.world], ids=["plain", "changes"])
def test_pools_that_charge_devices(worlds: Callable[[int], World], number: int) -> None:
    agree(lambda seed: by_devices(seed, worlds(seed)), scale.batch(number, quick=400))


def by_devices(seed: int, made: World) -> World:
    """Return the world with pools that charge devices, some of which keep the pods of an engine apart."""
    draw, changed = random.Random(seed), made.copy()
    for cluster in changed.clusters or ():
        for pool in cluster["spec"].get("nodePools", ()):
            pool.update({"accounting": "Device"} if draw.random() < 0.8 else {})
            pool.update({"acrossNodes": "Required"} if draw.random() < 0.3 else {})
    return changed


@pytest.mark.parametrize("number", range(scale.BATCHES))
@pytest.mark.parametrize("worlds", [changes.staging, changes.staging_in_doubt], ids=["known", "in doubt"])
def test_rollouts_and_surge_go_as_the_rules_say(worlds: Callable[[int], World], number: int) -> None:
    """In doubt the budgets hold as well, and what depends on the unknown stays as it is observed."""
    agree(worlds, scale.batch(number, quick=800))


def agree(worlds: Callable[[int], World], seeds: Iterable[int]) -> None:
    """Fail with the first world, made small, of which the function and the oracle say different things."""
    for seed in seeds:
        world = worlds(seed)
        if disagrees(world):
            small = minimise(world, disagrees)
            text = "\n".join(differences(small, run(small)))
            pytest.fail(f"seed {seed} differs:\n{text}\nsmallest world:\n{small.dump()}")


def test_the_staged_worlds_are_worth_looking_at() -> None:
    """Replicas wait, leave beside their replacement, are blocked; and in doubt edits are held back."""
    seen: Counter[str] = Counter()
    for world in map(changes.staging, range(400)):
        answer = run(world)
        seen["surging"] += len(answer.replicas) > world.deployment["spec"]["replicas"]
        seen[answer.reason("ReplicasUpdated")] += 1
        seen.update(kept.update.name for kept in answer.decision.kept if kept.update)
        seen["blocked"] += any(kept.blocked for kept in answer.decision.kept)
        seen["waits"] += any(kept.waits for kept in answer.decision.kept)
    for world in map(changes.staging_in_doubt, range(400)):
        kept_replicas = run(world).decision.kept
        seen["doubt"] += any(kept.doubt for kept in kept_replicas)
        seen["rolls in doubt"] += any(kept.doubt and kept.update for kept in kept_replicas)
    few = {name: seen[name] for name in FEATURES if seen[name] < 5}
    assert not few, seen


FEATURES = (
    *("surging", "RolloutPaused", "RollingOut", "Now", "Waits", "Superseded", "blocked", "waits"),
    *("doubt", "rolls in doubt"),
)
