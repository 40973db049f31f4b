"""Lists beyond what the XRDs allow are a fault of the object they stand in, found before they are read."""

from __future__ import annotations

from typing import Any

import pytest

from function.api import Device, InferenceClass, InferenceCluster, Malformed, ModelDeployment
from tests.support import build
from tests.support.cases import ask, one
from tests.support.drive import run
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]


def faults(kind: Any, plain: Plain) -> list[str]:
    """What is wrong with an object; nothing where it can be read."""
    try:
        kind.parse(plain)
    except Malformed as error:
        return [str(fault) for fault in error.faults]
    return []


def cluster(pools: int = 1, devices: int = 1, taints: int = 0) -> Plain:
    listed = [build.gpu(8, name=f"g{at}") for at in range(devices)]
    published = [build.pool(f"p{at}", 1, listed) for at in range(pools)]
    return one("a", pools=published, taints=[build.taint(f"t{at}") for at in range(taints)])


def classed(devices: int) -> Plain:
    return {
        "metadata": {"name": "c"},
        "spec": {"devices": [build.gpu(1, name=f"g{at}") for at in range(devices)]},
    }


def asking(requests: int) -> Plain:
    return ask(
        engines=[
            build.engine("e", [build.member(devices=[build.request(f"r{at}") for at in range(requests)])])
        ]
    )


REQUESTS = "spec.template.spec.engines[0].members[0].nodeSelector.devices"
BOUNDED = [
    (InferenceCluster, cluster(pools=8, devices=16, taints=16), []),
    (InferenceCluster, cluster(devices=17), ["status.gpuPools[0].devices: must have at most 16 items"]),
    (
        InferenceCluster,
        cluster(pools=9),
        ["spec.nodePools: must have at most 8 items", "status.gpuPools: must have at most 8 items"],
    ),
    (InferenceCluster, cluster(taints=17), ["spec.taints: must have at most 16 items"]),
    (InferenceClass, classed(16), []),
    (InferenceClass, classed(17), ["spec.devices: must have at most 16 items"]),
    (ModelDeployment, asking(16), []),
    (ModelDeployment, asking(17), [f"{REQUESTS}: must have at most 16 items"]),
]


@pytest.mark.parametrize(("kind", "plain", "expected"), BOUNDED)
def test_a_list_beyond_its_bound_is_a_fault(kind: Any, plain: Plain, expected: list[str]) -> None:
    assert faults(kind, plain) == expected


def test_a_list_that_is_too_long_costs_its_cluster_and_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 entries took 1.5 GB; none of them is read, and the other clusters go on."""
    read: list[object] = []
    real = Device.parse

    def counted(plain: Any) -> Device:
        read.append(plain)
        return real(plain)

    large = cluster(devices=3_000)
    monkeypatch.setattr(Device, "parse", counted)
    made = World(ask(2), [large, one("b", 4)])
    assert set(run(made).replicas) == {"replica-b-0", "replica-b-1"}
    assert len(read) <= 1
    assert [
        manifest["name"]
        for manifest in run(made.but(input={"explain": "Status"})).status["placement"]["clusters"]
    ]
    assert decide(made.but(deployment=ask(9))).rejections["a"].reason.name == "MalformedCluster"


def test_the_ways_to_use_one_fabric_are_bounded_by_the_pools() -> None:
    """300 pools of one fabric made 90,000 pairs for each gang of two."""
    published = [
        build.pool(f"p{at}", 1) | {"attributes": {"modelplane.ai/fabric": {"string": "f"}}}
        for at in range(300)
    ]
    gang = build.gang() | {"poolPolicy": "SameFabric"}
    decision = decide(World(ask(engines=[gang]), [one("a", pools=published)]))
    assert decision.rejections["a"].reason.name == "MalformedCluster"
