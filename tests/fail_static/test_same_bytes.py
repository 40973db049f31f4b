"""Same request, same bytes out: whatever the order of lists and maps, in any process."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.calm import calm_and_busy
from tests.support.drive import run_bytes
from tests.support.hash_seeds import printed_under
from tests.support.world import World  # noqa: TC001 - tests build worlds at run time

ROOT = Path(__file__).parents[2]


def _shuffled(value: Any, rng: random.Random) -> Any:
    """The same objects with their map entries in another order."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: _shuffled(value[key], rng) for key in keys}
    return [_shuffled(item, rng) for item in value] if isinstance(value, list) else value


def _permuted(world: World, seed: int) -> World:
    rng = random.Random(seed)
    clusters, replicas = list(world.clusters or ()), list(world.replicas or ())
    rng.shuffle(clusters)
    rng.shuffle(replicas)
    changed = world.but(
        deployment=_shuffled(world.deployment, rng),
        clusters=_shuffled(clusters, rng),
        replicas=_shuffled(replicas, rng),
        observed=_shuffled(dict(world.observed), rng),
    )
    rng.shuffle(changed.clusters[0]["spec"].setdefault("taints", []))
    return changed


@pytest.mark.parametrize("seed", range(8))
def test_permutations_change_no_byte(seed: int) -> None:
    for world in calm_and_busy():
        expected = run_bytes(world.message().SerializeToString(deterministic=True))
        assert run_bytes(_permuted(world, seed).message().SerializeToString()) == expected


def test_processes_with_different_hash_seeds_answer_alike() -> None:
    script = (
        "import hashlib; from tests.support.calm import calm_and_busy;"
        "from tests.support.drive import run_bytes;"
        "messages = [world.message().SerializeToString() for world in calm_and_busy()];"
        "print([hashlib.sha256(run_bytes(message)).hexdigest() for message in messages])"
    )
    said = printed_under(("0", "1", "4242"), script)
    assert len(said) == 1
