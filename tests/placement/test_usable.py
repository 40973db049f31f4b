"""Nodes that cannot be used: new replicas count on no others, what runs goes by what is declared."""

from __future__ import annotations

from typing import Any

import pytest

from function.deployment.explain.message import because_phrase
from tests.support import build
from tests.support.drive import Answer, run
from tests.support.world import World

Plain = dict[str, Any]
WHOLE_NODE = build.member(devices=[build.request("gpu", 8)])
CHAT = build.deployment(replicas=4, engines=[build.engine(members=[WHOLE_NODE])])


def world(running: int, usable: Any, *, nodes: int = 4, deployment: Plain = CHAT, **pool: Any) -> World:
    """Return one pool of nodes of eight GPUs, with some replicas on it that are not all Ready."""
    published = {**build.pool("h100", nodes, [build.gpu(count=8)]), "usable": usable, **pool}
    replicas = [build.replica(CHAT, "east", index, ready=index != 1) for index in range(running)]
    clusters = [build.cluster("east", [published])]
    return World(deployment, clusters, replicas, build.observed(*replicas))


def scheduled(answer: Answer) -> str:
    return answer.conditions["ReplicasScheduled"][2]


PLACED: list[tuple[int, Any, int, str]] = [
    (0, {"nodes": 3}, 3, "new replicas count on what can be used"),
    (2, {"nodes": 3}, 3, "what runs is charged, on whichever node it is"),
    (4, {"nodes": 3}, 4, "what runs stays, whatever can be used"),
    (4, {"nodes": 0}, 4, "also where nothing can"),
    (2, {"nodes": 9}, 4, "more than declared is not counted on"),
    (0, {"nodes": "x"}, 4, "absurd: the declared number counts"),
    (0, {"nodes": -1}, 4, "absurd: the declared number counts"),
    (0, "x", 4, "absurd: the declared number counts"),
    (0, None, 4, "not known: the declared number counts"),
]


@pytest.mark.parametrize("accounting", ["Node", "Device"])
@pytest.mark.parametrize(
    ("running", "usable", "total", "reason"), PLACED, ids=[f"{row[0]} {row[1]}" for row in PLACED]
)
def test_new_replicas_count_on_nodes_that_can_be_used(
    running: int, usable: Any, total: int, reason: str, accounting: str
) -> None:
    before = world(running, usable, accounting=accounting)
    answer = run(before)
    assert len(answer.replicas) == total, reason
    assert set(before.observed) <= set(answer.desired)
    assert "PoolOvercommitted" not in scheduled(answer), "that goes by what is declared"


def test_a_refusal_says_how_many_nodes_are_of_no_use() -> None:
    assert "east/h100 needs 1, 0 free of 4 (1 unusable)" in scheduled(run(world(0, {"nodes": 3})))


def test_replicas_that_may_stand_on_lost_nodes_are_named_those_that_are_not_ready_first() -> None:
    text = scheduled(run(world(4, {"nodes": 3, "exceeded": True})))
    suspect = build.composed_name("my-model", "east", 1)
    assert (
        f"east/h100 can use 3 of 4 nodes and holds more; {suspect} may stand on nodes that are gone" in text
    )
    assert "NodesUnusable" not in scheduled(run(world(3, {"nodes": 3})))


def test_an_edit_of_what_runs_may_cost_what_is_declared() -> None:
    """Two copies instead of one: the replica is updated in place, not moved for a node that is lost."""
    twice: Plain = build.deployment(replicas=1, engines=[build.engine(members=[WHOLE_NODE], copies=2)])
    before = world(1, {"nodes": 1}, deployment=twice)
    (kept,) = run(before).replicas.values()
    assert kept["spec"]["engines"][0]["copies"] == 2
    assert set(run(before).replicas) == {"replica-east-0"}


def test_a_replacement_never_goes_to_nodes_that_cannot_be_used() -> None:
    """Its own node is freed for it: then two are held of two that can be used, so it is held."""
    other: Plain = build.deployment(replicas=3, engines=[build.gang(nodes=1)])
    before = world(3, {"nodes": 2}, deployment=other)
    answer = run(before)
    assert set(answer.replicas) == set(before.observed)
    assert answer.reason() == "ReplacementBlocked"


def test_a_place_on_nodes_that_are_there_comes_before_one_that_needs_a_node_to_be_added() -> None:
    """Between clusters, before the spread, and between the pools of one cluster, whatever their order."""
    coming = {**build.pool("grows", 8, [build.gpu(count=8)]), "usable": {"nodes": 8, "toCome": 8}}
    there = build.pool("there", 2, [build.gpu(count=8)])
    three = build.deployment(replicas=3, engines=[build.engine(members=[WHOLE_NODE])])
    answer = run(World(three, [build.cluster("a", [coming]), build.cluster("b", [coming, there])], []))
    pools = [
        (one["spec"]["clusterName"], one["spec"]["engines"][0]["members"][0]["nodePoolName"])
        for one in answer.replicas.values()
    ]
    assert sorted(pools) == [("a", "grows"), ("b", "there"), ("b", "there")]
    because = [row.because for row in answer.decision.placed]
    assert ("waits for nodes to be added", "no") in because[0]


def test_packing_counts_the_nodes_to_come_of_a_pool_that_is_taken() -> None:
    """As it counts those that are there: the cluster with the least free of both is taken."""
    fleet = [
        build.cluster(name, [{**build.pool("h100", nodes), "usable": {"nodes": nodes, "toCome": nodes - 2}}])
        for name, nodes in (("a", 6), ("b", 4), ("c", 5))
    ]
    packed = build.deployment(engines=[build.engine(members=[WHOLE_NODE])])
    packed["spec"]["placement"] = {"strategy": "BinPack"}
    (placed,) = run(World(packed, fleet, [])).decision.placed
    assert (placed.identity.cluster, placed.candidate.free_left) == ("b", 3)


def test_waiting_for_a_node_to_be_added_is_no_shortage() -> None:
    usable = {"nodes": 4, "toCome": 2, "awaiting": True}
    answer = run(world(4, usable))
    assert answer.reason() == "ReplicasCreated"
    suspect = build.composed_name("my-model", "east", 1)
    text = f"east/h100 has 2 of 4 nodes yet and holds more; {suspect} may wait for nodes to be added"
    assert f"NodesToCome: {text}" in scheduled(answer)
    lost = scheduled(run(world(4, {"nodes": 3, "toCome": 1, "awaiting": True})))
    assert "east/h100 has 2 of 4 nodes yet" in lost, "nor are nodes there that are lost"
    (placed,) = run(world(3, {"nodes": 4, "toCome": 2})).decision.placed
    assert because_phrase(placed).endswith("; waits for nodes to be added")
