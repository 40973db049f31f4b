"""P5: permuting the items of required resources, map entries, conditions, taints or tolerations, any
PYTHONHASHSEED, any process: the same bytes. (The order of engines, members, requests, gpuPools, devices and
alternatives is input.)
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import generate
from tests.support.drive import Answer, run, run_bytes
from tests.support.shuffle import shuffled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.world import World

ROOT = Path(__file__).parents[3]


def ordered(world: World, answer: Answer) -> Iterator[str]:
    for seed in range(3):
        if not run(shuffled(world, seed)).same(answer):
            yield f"another order (shuffle {seed}) gives another answer"


def other_bytes(world: World, _: Answer) -> Iterator[str]:
    said = run_bytes(world.message().SerializeToString())
    for seed in range(2):
        if run_bytes(shuffled(world, seed).message().SerializeToString()) != said:
            yield f"another order (shuffle {seed}) gives other bytes"


def digest(number: int) -> str:
    """Return the digest of the answers to the first worlds."""
    said = hashlib.sha256()
    for seed in range(number):
        said.update(run_bytes(generate.world(seed).message().SerializeToString()))
    return said.hexdigest()
