"""The judge of refusals, on the referee's random worlds: what is decided, without a cluster."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from tests.referee import judge
from tests.referee.worlds import World, deployment, mappings
from tests.support.scale import count

Plain = dict[str, Any]


def judged(seed: int) -> Counter[str]:
    """What is said of all that is placed in a world, and of all that is refused there."""
    draw, world = random.Random(f"judged {seed}"), World.random(seed, "device")
    pools = {name: (nodes, entries) for name, (nodes, _, entries) in world.pools.items()}
    said: Counter[str] = Counter()
    for step in range(4):
        asked = deployment(draw, f"{world.name}x{step}", step, "device")
        new, _ = world.decide(asked)
        world.replicas += new
        if new:
            said[f"placed, {judge.verdict(pools, world.replicas)}"] += 1
        written = [
            world.by_hand(asked, on, f"{world.name}y{step}{at}")
            for at, on in enumerate(mappings(asked, list(pools)))
            if len(new) < asked["spec"]["replicas"]
        ]
        said.update(judge.verdict(pools, [*world.replicas, one]) for one in written if one)
    return said


def test_what_is_placed_is_safe_and_what_is_refused_would_not_be() -> None:
    said: Counter[str] = Counter()
    for seed in range(count(8, 200, 1_000)):
        said += judged(seed)
    unsafe = {what for what in said if what.startswith("placed") and "right" in what}
    assert not unsafe, said
    assert said[judge.WRONG] * 20 <= said[judge.RIGHT] + said[judge.WRONG], said
    assert said[judge.RIGHT] > 5, "too few refusals by devices: the test would prove little"
