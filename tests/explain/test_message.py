"""The message: one line of at most 512 characters, counts in a fixed order, particulars dropped first."""

from __future__ import annotations

import re

import pytest

from function.deployment.explain.message import histogram, unplaced
from tests.support import build, drive, scale, scarce
from tests.support.rejected import CASES, EIGHTY, wants
from tests.support.world import World

LIMIT = 512


def said(world: World) -> str:
    """Return the message of ReplicasScheduled."""
    return drive.run(world, level="plain").conditions["ReplicasScheduled"][2]


def test_it_has_the_shape_every_kubernetes_user_reads() -> None:
    stranger = build.deployment("stranger")
    clusters = [
        build.cluster("use1", [build.pool("frontier", 4)]),
        build.cluster("usw2", [build.pool("frontier", 5)]),
        build.cluster("euw1", [build.pool("p")], taints=[build.taint("maintenance")]),
        build.cluster("old1", [build.pool("p", devices=[build.gpu(memory="40Gi")])]),
        build.cluster("old2", [build.pool("p", devices=[build.gpu(memory="24Gi")])]),
    ]
    taken = [build.replica(stranger, "use1", index, pools="frontier") for index in range(3)]
    taken += [build.replica(stranger, "usw2", index, pools="frontier") for index in range(1)]
    engines = [
        build.engine(members=[build.member(devices=[build.request("gpu", 8, build.GPUS, EIGHTY)])], copies=2)
    ]
    world = World(build.deployment(replicas=3, engines=engines), clusters, taken, {})
    assert said(world) == (
        "Scheduled 2 of 3 replicas; 0/5 clusters can host another: "
        "2 insufficient nodes (nearest: use1/frontier needs 2, 1 free of 4), "
        "2 no matching device (gpu: has memory 40Gi, wants at least 80Gi, selector 1), "
        "1 untolerated taint {maintenance: NoSchedule}"
    )


def test_the_nearest_miss_speaks_for_all() -> None:
    """Most clusters lack only the network: the memory of the smallest GPU of the fleet is no help."""
    gpu = build.request("gpu", 8, build.GPUS, EIGHTY)
    nic = build.request("nic", 8, 'device.driver == "nic.nvidia.com"')
    clusters = [
        build.cluster("aaa", [build.pool("l4", 4, [build.gpu(memory="24Gi")])]),
        *(build.cluster(f"use{number}", [build.pool("h100", 4)]) for number in range(3)),
    ]
    engines = [build.engine(members=[build.member(devices=[gpu, nic])])]
    text = said(World(build.deployment(replicas=1, engines=engines), clusters, [], {}))
    assert "4 no matching device (nic: has driver gpu.nvidia.com, wants nic.nvidia.com, selector 0)" in text


@pytest.mark.parametrize(
    ("taints", "message", "reason"),
    [
        (
            [("maintenance", "NoSchedule", "soon"), ("maintenance", "NoSchedule", "soon")],
            "2 untolerated taint {maintenance: NoSchedule}",
            "one taint on two clusters is one count",
        ),
        (
            [("dedicated", "NoSchedule", None), ("spot", "NoSchedule", None), ("spot", "NoExecute", None)],
            (
                "1 untolerated taint {dedicated: NoSchedule}, 1 untolerated taint {spot: NoExecute},"
                " 1 untolerated taint {spot: NoSchedule}"
            ),
            "three taints are three counts",
        ),
        (
            [("dedicated", "NoSchedule", team) for team in ("a", "b", "b")],
            "2 untolerated taint {dedicated=b: NoSchedule}, 1 untolerated taint {dedicated=a: NoSchedule}",
            "the value is shown where it is what differs, most clusters first",
        ),
        (
            [(f"t{number}", "NoSchedule", None) for number in range(5)],
            (
                "1 untolerated taint {t0: NoSchedule}, 1 untolerated taint {t1: NoSchedule},"
                " 1 untolerated taint {t2: NoSchedule}, 2 other untolerated taints"
            ),
            "of many the first are named, and the others are counted",
        ),
    ],
)
def test_clusters_are_counted_by_the_taint_that_keeps_them_out(
    taints: list[tuple[str, str, str | None]], message: str, reason: str
) -> None:
    fleet = [
        build.cluster(f"c{at}", [build.pool("p")], taints=[build.taint(*taint)])
        for at, taint in enumerate(taints)
    ]
    number = len(taints)
    made = said(World(build.deployment(), fleet, [], {}))
    assert made == f"Scheduled 0 of 1 replica; 0/{number} clusters can host another: {message}", reason


def everything() -> World:
    """Return a fleet in which as many reasons hold at once as one deployment can have."""
    codes = ("MalformedCluster", "ClusterDeleting", "UntoleratedTaint", "ClusterNotReady", "NoGatewayAddress")
    codes += ("NoPoolsPublished", "NoMatchingDevice", "DeviceCountShort", "NothingClaimable")
    clusters = []
    for number, code in enumerate(codes):
        [cluster] = CASES[code]().world.copy().clusters or ()
        cluster["metadata"]["name"] = f"{'x' * 200}-{number}"
        clusters.append(cluster)
    clusters.append(build.cluster("full", [build.pool("p")]))
    made = wants(build.request("gpu", 8, build.GPUS, EIGHTY), replicas=10)
    return World(made, clusters, [], {})


def test_particulars_are_dropped_before_counts() -> None:
    message = said(everything())
    assert len(message) <= LIMIT
    counted = re.sub(r"\([^)]*\)|\{[^}]*\}", "", message.split("another: ")[1])
    assert sum(int(part.split()[0]) for part in counted.split(", ")) == len(everything().clusters or ())
    assert "…" not in message


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_it_is_one_line_that_fits(number: int) -> None:
    for seed in scale.batch(number, quick=400, gate=20_000):
        for _, _, message in drive.run(scarce.world(seed), level="plain").conditions.values():
            assert len(message) <= LIMIT
            assert "\n" not in message


def test_counts_that_do_not_fit_are_summed() -> None:
    decision = scarce.decide(everything())
    text = unplaced(decision, 120)
    assert len(text) <= 120
    assert text.endswith("for other reasons")
    counts = text.split("another: ")[1].split(", ")
    assert sum(int(count.split()[0]) for count in counts) == len(decision.rejections)


def test_where_room_is_short_every_count_stays() -> None:
    decision = scarce.decide(everything())
    text = unplaced(decision, 300)
    assert len(text) <= 300
    for reason, count in histogram(decision.rejections).items():
        assert f"{count} {reason.value}" in text
    assert text.count("(") > 0, "as many particulars as fit"
    assert len(text) < len(unplaced(decision))
