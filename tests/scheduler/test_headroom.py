"""How many more would fit, asked without leaving a trace."""

from __future__ import annotations

from typing import Any

import pytest

from function.scheduler.headroom import (
    Question,
    count_more,
    fitting_pools,
    partly_held,
    rejections_of_another,
    room_by_cluster,
)
from tests.support import build
from tests.support.cases import ask, one
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]
SPREAD = {"topologySpread": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}


QUOTA = {"quotas": [{"name": "q", "namespaces": [build.NAMESPACE], "atMost": {"nodes": 3}}]}


@pytest.mark.parametrize(
    ("nodes", "accounting", "limit", "placement", "config", "room", "reason"),
    [
        (4, "Node", 9, None, None, 3, "one is placed, three nodes are left"),
        (4, "Device", 9, None, None, 3, "whatever is charged"),
        (4, "Node", 2, None, None, 2, "no more are counted than are asked for"),
        (1, "Node", 9, None, None, 0, "none is left"),
        (9, "Node", 9, {"maxReplicasPerCluster": 3}, None, 2, "as many as the deployment allows there"),
        (9, "Node", 9, None, QUOTA, 2, "as many as a quota has room for"),
    ],
)
def test_headroom(
    *,
    nodes: int,
    accounting: str,
    limit: int,
    placement: Plain | None,
    config: Plain | None,
    room: int,
    reason: str,
) -> None:
    fleet = [one("a", nodes, accounting=accounting)]
    decision = decide(World(ask(placement=placement), fleet, input=config))
    placer = decision.placer
    assert placer is not None
    before = placer.rejections()
    for _ in range(2):
        cluster = decision.inputs.fleet.clusters["a"]
        assert placer.headroom(cluster, limit) == room, reason
        assert (decision.ledger.capacity("a", "p0").free_nodes, decision.ledger.counts["a"]) == (nodes - 1, 1)
        assert placer.rejections() == before


FLEET = [one("a", 4), one("b", 2), one("c", 1, ready=False), {**one("d", 1), "status": 3}]
"""One replica is placed on `a`; nothing new goes to `c` and `d`."""


def test_more_replicas_are_counted_up_to_a_limit() -> None:
    decision = decide(World(ask(), FLEET))
    assert [count_more(decision, limit) for limit in (9, 2)] == [5, 2]


def test_why_each_cluster_takes_no_other() -> None:
    decision = decide(World(ask(), FLEET))
    reasons = {name: rejection.reason.name for name, rejection in rejections_of_another(decision).items()}
    assert reasons == {"c": "ClusterNotReady", "d": "MalformedCluster"}
    undecided = decide(World(ask(), None))
    assert rejections_of_another(undecided) == {}, "nothing new may be placed at all"


@pytest.mark.parametrize(
    ("fleet", "same", "reason"),
    [
        ([one("a", 4), one("b", 2)], True, "the same fleet, read anew"),
        ([one("a", 5), one("b", 2)], False, "one node more is left"),
        ([one("a", 4), one("b", 2, ready=False)], False, "a cluster is not Ready"),
        ([one("a", 4), one("b", 2), {**one("d", 1), "status": 3}], False, "one more cannot be read"),
        ([one("a", 4, accounting="Device"), one("b", 2)], False, "devices are charged"),
    ],
)
def test_what_is_asked_is_told_apart_by_the_fleet_too(*, fleet: list[Plain], same: bool, reason: str) -> None:
    before = Question.of(decide(World(ask(), [one("a", 4), one("b", 2)])))
    after = Question.of(decide(World(ask(), fleet)))
    assert (before == after) is same, reason
    assert hash(before) == hash(after), "the fleet is compared, and not hashed"


def test_each_cluster_has_its_own_room_and_what_runs_out_first() -> None:
    rooms = list(room_by_cluster(decide(World(ask(), FLEET)), 2))
    assert [(room.cluster, room.more, room.first and room.first.reason.name) for room in rooms] == [
        ("a", 2, None),
        ("b", 2, "InsufficientNodes"),
        ("c", 0, "ClusterNotReady"),
        ("d", 0, "MalformedCluster"),
    ]


def test_spreading_looks_at_the_clusters_that_take_nothing_meanwhile() -> None:
    zones = [one(name, 4, labels={"zone": name}) for name in ("x", "y")]
    rooms = room_by_cluster(decide(World(ask(2, placement=SPREAD), zones)), 9)
    assert [(room.more, room.first and room.first.reason.name) for room in rooms] == [
        (1, "TopologySpread"),
        (1, "TopologySpread"),
    ]


def test_the_pools_that_fit_whether_or_not_there_is_room() -> None:
    decision = decide(World(ask(), FLEET))
    pools = [
        (pool.cluster, pool.pool, pool.needs, pool.free, pool.total, [device.name for device in pool.devices])
        for pool in fitting_pools(decision)
    ]
    assert pools == [
        ("a", "p0", 1, 3, 4, ["gpu"]),
        ("b", "p0", 1, 2, 2, ["gpu"]),
        ("c", "p0", 1, 1, 1, ["gpu"]),
    ]
    barred = [pool.barred and pool.barred.reason.name for pool in fitting_pools(decision)]
    assert barred == [None, None, "ClusterNotReady"]


def test_a_pool_that_is_full_is_not_barred() -> None:
    [pool] = fitting_pools(decide(World(ask(), [one("a", 1)])))
    assert (pool.free, pool.barred) == (0, None)


@pytest.mark.parametrize(
    ("gpus", "nodes", "more", "fit"),
    [
        (1, 3, {}, "1 more replica fits there, 22 with accounting: Device on the pool"),
        (4, 2, {}, "0 more replicas fit there, 2 with accounting: Device on the pool"),
        (1, 9, {}, "7 more replicas fit there, at least 50 with accounting: Device on the pool"),
        (8, 3, {}, None),
        (5, 3, {}, None),
        (1, 3, {"accounting": "Device"}, None),
    ],
)
def test_whole_nodes_that_are_held_for_a_part_are_told_of(
    gpus: int, nodes: int, more: Plain, fit: str | None
) -> None:
    decision = decide(World(ask(2, gpus=gpus), [one("a", nodes, **more)]))
    held = "a/p0: 2 whole nodes are held for a part of their devices"
    assert [str(pool) for pool in partly_held(decision)] == ([f"{held}; {fit}"] if fit else [])
