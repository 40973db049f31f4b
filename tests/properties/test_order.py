"""P5: permuting the items of required resources, map entries, conditions, taints or tolerations, any
PYTHONHASHSEED, any process: the same bytes. (The order of engines, members, requests, gpuPools, devices and
alternatives is input.)
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.properties.worlds import each_batch, hold
from tests.support import generate, scale
from tests.support.drive import Answer, run, run_bytes
from tests.support.shuffle import shuffled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.world import World

ROOT = Path(__file__).parents[2]


def ordered(world: World, answer: Answer) -> Iterator[str]:
    for seed in range(3):
        if not run(shuffled(world, seed)).same(answer):
            yield f"another order (shuffle {seed}) gives another answer"


def other_bytes(world: World, _: Answer) -> Iterator[str]:
    said = run_bytes(world.message().SerializeToString())
    for seed in range(2):
        if run_bytes(shuffled(world, seed).message().SerializeToString()) != said:
            yield f"another order (shuffle {seed}) gives other bytes"


@each_batch
def test_another_order_gives_the_same_answer(number: int) -> None:
    hold(number, ordered)


@each_batch
def test_another_order_gives_the_same_bytes(number: int) -> None:
    hold(number, other_bytes, quick=80)


def digest(number: int) -> str:
    """Return the digest of the answers to the first worlds."""
    said = hashlib.sha256()
    for seed in range(number):
        said.update(run_bytes(generate.world(seed).message().SerializeToString()))
    return said.hexdigest()


def test_another_process_with_another_hash_seed_gives_the_same_bytes() -> None:
    number = scale.count(40, 1000, 5000)
    program = f"from tests.properties.test_order import digest; print(digest({number}))"
    for seed in ("0", "1", "4711"):
        told = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.strip() == digest(number), f"PYTHONHASHSEED={seed}"
