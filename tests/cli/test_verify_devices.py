"""The checker's worst packing, against packings tried one pod at a time, and against the scheduler."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest

from function.api import InferenceCluster
from function.api.replica import parse
from function.boundary import PlainDocument
from function.verify.matching import stranded
from tests.accounting.packings import Pod, strands
from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("across", [False, True], ids=["pods share nodes", "engines apart"])
@pytest.mark.parametrize("seed", range(120))
def test_the_worst_packing_is_the_worst(seed: int, across: bool) -> None:  # noqa: FBT001 - a table
    """Against every packing, one pod at a time, with entries of one class that selectors tell apart."""
    draw = random.Random(seed)
    counts = [draw.choice((1, 2, 4)) for _ in range(draw.choice((1, 2, 2)))]
    entries = [build.gpu(number, name=f"e{at}", memory=f"{at}Gi") for at, number in enumerate(counts)]
    pool = build.pool("p0", draw.choice((1, 2, 3)), entries) | {"accounting": "Device"}
    cluster = build.cluster("east", [pool])
    if across:
        cluster["spec"]["nodePools"][0]["acrossNodes"] = "Required"
    published = InferenceCluster.parse(cluster).pools[0]
    gangs: list[list[Pod]] = []
    replicas = []
    for number in range(draw.randint(1, 5)):
        only = draw.choice([None, *range(len(counts))])
        size = draw.randint(1, sum(counts) if only is None else counts[only])
        chosen = range(len(counts)) if only is None else [only]
        shares = itertools.product(
            *(range(most + 1 if at in chosen else 1) for at, most in enumerate(counts))
        )
        copies = draw.choice((1, 1, 2)) if across else 1
        gangs.append([tuple(share for share in shares if sum(share) == size)] * copies)
        memory = 'device.capacity["gpu.nvidia.com"].memory'
        cel = 'device.driver == "gpu.nvidia.com"'
        cel = cel if only is None else f'{memory}.compareTo(quantity("{only}Gi")) == 0'
        request = {"name": "gpu", "deviceClassName": build.GPU, "count": size, "selectors": [{"cel": cel}]}
        parent = build.deployment(f"m{number}", 1)
        made = build.replica(parent, "east", 0, pools="p0")
        made["spec"]["engines"][0]["members"][0]["deviceRequests"] = [request]
        made["spec"]["engines"][0]["copies"] = copies
        replicas.append(parse(PlainDocument(made)))
    worst = strands(published.nodes, tuple(counts), gangs, apart=across)
    assert bool(stranded(published, replicas)) == worst


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


def test_copies_that_may_not_share_a_node_are_counted_apart(tmp_path: Path) -> None:
    pool = build.pool("shared", 2, [build.gpu(8)]) | {"accounting": "Device"}
    parent = build.deployment("chat", 1, [build.engine(copies=3)])
    decision = write(tmp_path / "d.yaml", [build.replica(parent, "east", 0, pools="shared")])
    rules = {}
    for across in (False, True):
        cluster = build.cluster("east", [pool])
        if across:
            cluster["spec"]["nodePools"][0]["acrossNodes"] = "Required"
        path = write(tmp_path / "f.yaml", [cluster, parent])
        ran = run("verify", path, "--decision", decision, "-o", "json")
        rules[across] = [finding["rule"] for finding in ran.data["decision"]]
    assert rules == {False: [], True: ["Overcommit"]}
