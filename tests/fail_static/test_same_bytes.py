"""Same request, same bytes out: whatever the order of lists and maps, in any process."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fail_static.test_doubt_keeps import settled
from tests.support.drive import run_bytes
from tests.support.world import World  # noqa: TC001 - tests build worlds at run time

ROOT = Path(__file__).parents[2]


def _shuffled(value: Any, rng: random.Random) -> Any:
    """The same objects with their map entries in another order."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: _shuffled(value[key], rng) for key in keys}
    return [_shuffled(each, rng) for each in value] if isinstance(value, list) else value


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


def worlds() -> list[World]:
    """A settled world, and one in which everything happens at once."""
    busy = settled()
    busy.deployment["spec"]["replicas"] = 7
    busy.clusters[0]["spec"]["taints"] = [
        {"key": key, "effect": effect} for key in "xyz" for effect in ("NoSchedule", "NoExecute")
    ]
    busy.clusters[1]["spec"]["nodePools"] = [{"name": "renamed"}]
    calm = settled()
    calm.clusters[0]["spec"]["taints"] = []
    return [calm, busy]


@pytest.mark.parametrize("seed", range(8))
def test_permutations_change_no_byte(seed: int) -> None:
    for world in worlds():
        expected = run_bytes(world.message().SerializeToString(deterministic=True))
        assert run_bytes(_permuted(world, seed).message().SerializeToString()) == expected


def test_processes_with_different_hash_seeds_answer_alike() -> None:
    script = (
        "import hashlib; from tests.fail_static.test_same_bytes import worlds;"
        "from tests.support.drive import run_bytes;"
        "print([hashlib.sha256(run_bytes(w.message().SerializeToString())).hexdigest() for w in worlds()])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(said) == 1
