"""The checker's worst packing, against packings tried one pod at a time, and against the scheduler."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest

from function.verify.matching import most_blocked
from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path


def _slowly(sizes: list[int], devices: int, least: int, nodes: int) -> int:
    """Put every pod on every node, or on none, and count."""
    best = 0
    for packing in itertools.product(range(nodes + 1), repeat=len(sizes)):
        loads = [0] * (nodes + 1)
        for place, size in zip(packing, sizes, strict=True):
            loads[place] += size
        if max(loads[:nodes], default=0) <= devices:
            best = max(best, sum(least <= item for item in loads[:nodes]))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_the_worst_packing_is_the_worst(seed: int) -> None:
    draw = random.Random(seed)
    devices = draw.choice((2, 4, 8))
    sizes = [draw.randint(1, devices) for _ in range(draw.randint(0, 5))]
    least = draw.randint(1, devices)
    blocked = min(5, most_blocked(sizes, devices, least))
    assert blocked == _slowly(sizes, devices, least, 5)


def _fleet(draw: random.Random) -> list[dict[str, Any]]:
    pool = build.pool("shared", draw.randint(1, 4), [build.gpu(draw.choice((4, 8)))]) | {
        "accounting": "Device"
    }
    deployments = [
        build.deployment(
            f"m{number}",
            draw.randint(1, 8),
            [build.engine(members=[build.member(devices=[build.request("gpu", draw.choice((1, 2, 3, 4)))])])]
            if draw.random() < 0.8
            else [build.gang(gpus=draw.choice((1, 2, 4)))],
        )
        for number in range(2)
    ]
    return [build.cluster("east", [pool]), *deployments]


@pytest.mark.parametrize("seed", range(25))
def test_what_is_placed_by_devices_can_never_be_stranded(seed: int, tmp_path: Path) -> None:
    ran = run("verify", write(tmp_path / "f.yaml", _fleet(random.Random(seed))), "-o", "json")
    assert ran.data["decision"] == [], seed


def test_one_pod_too_many_is_found(tmp_path: Path) -> None:
    pool = build.pool("shared", 2, [build.gpu(8)]) | {"accounting": "Device"}
    engine = build.engine(members=[build.member(devices=[build.request("gpu", 5)])])
    parent = build.deployment("chat", 3, [engine])
    path = write(tmp_path / "f.yaml", [build.cluster("east", [pool]), parent])
    decision = [build.replica(parent, "east", index, pools="shared") for index in range(3)]
    ran = run("verify", path, "--decision", write(tmp_path / "d.yaml", decision), "-o", "json")
    (finding,) = ran.data["decision"]
    assert finding["rule"] == "Overcommit"
    assert "a pod of 5 gpu may find 0 of 2 nodes open" in finding["message"]
