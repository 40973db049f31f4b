"""How many more would fit, asked without leaving a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from function.api import InferenceCluster
from function.scheduler.headroom import (
    Guarantee,
    PartlyHeld,
    Question,
    count_more,
    fitting_pools,
    guarantees,
    partly_held,
    rejections_of_another,
    room_by_cluster,
)
from function.scheduler.placer import Placer
from tests.support import build
from tests.support.cases import ask, one, single
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
    assert count_more(decide(World(ask(), FLEET, input=QUOTA)), 9) == 2, "a quota has room for two more"
    two = ask(placement={"maxReplicasPerCluster": 2})
    assert count_more(decide(World(two, FLEET)), 9) == 3, "one more on a, two on b"


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


def with_image(deployment: Plain, image: str) -> Plain:
    [member] = deployment["spec"]["template"]["spec"]["engines"][0]["members"]
    member["template"] = build.template(image)
    return deployment


def serving(deployment: Plain) -> Plain:
    deployment["spec"]["template"]["spec"]["serving"] = {"model": {"uri": "hf://a/b"}}
    return deployment


def on_kserve() -> Plain:
    made = one("k", 0)
    made["spec"]["stack"] = "KServe"
    return made


def beside(first: str, second: str, **ours: Any) -> World:
    """Two full clusters, on one of them a replica of ours, which wants another."""
    mine, kin, stranger = ask(2, **ours), ask(), ask()
    kin["metadata"]["name"], stranger["metadata"]["namespace"] = "kin", "other"
    names = {"mine": mine, "kin": kin, "stranger": stranger}
    listed = [
        build.replica(names[name], on, 0, pools="p0", ready=True)
        for on, name in (("a", first), ("b", second))
    ]
    config = {"quotas": [QUOTA["quotas"][0] | {"atMost": {"nodes": 9}}]}
    return World(mine, [one("a", 1), one("b", 1)], listed, input=config)


CAPPED = {"maxReplicasPerCluster": 4}


@pytest.mark.parametrize(
    ("before", "after", "same", "reason"),
    [
        (World(ask(), []), World(with_image(ask(), "other"), []), True, "no rejection reads the image"),
        (World(ask(), []), World(ask(gpus=4), []), False, "other devices are asked for"),
        (World(ask(), []), World(ask(placement={"tieBreak": "Hash"}), []), False, "by another policy"),
        (World(ask(), []), World(ask(), [], input={"searchBudget": 5}), False, "with other settings"),
        (World(ask(), []), World(serving(ask()), []), True, "no cluster needs to know of the model"),
        (World(ask(), [on_kserve()]), World(serving(ask()), [on_kserve()]), False, "a stack does"),
        (beside("mine", "kin"), beside("kin", "mine"), True, "no filter counts where ours are"),
        (
            beside("mine", "kin", placement=CAPPED),
            beside("kin", "mine", placement=CAPPED),
            False,
            "a filter does",
        ),
        (beside("mine", "kin"), beside("mine", "stranger"), False, "less is held of the quota of ours"),
    ],
)
def test_what_is_asked_is_told_apart_by_what_rejections_read(
    *, before: World, after: World, same: bool, reason: str
) -> None:
    assert (Question.of(decide(before)) == Question.of(decide(after))) is same, reason


def test_each_cluster_has_its_own_room_and_what_runs_out_first() -> None:
    rooms = list(room_by_cluster(decide(World(ask(), FLEET)), 2))
    assert [(room.cluster, room.more, room.first and room.first.reason.name) for room in rooms] == [
        ("a", 2, None),
        ("b", 2, "InsufficientNodes"),
        ("c", 0, "ClusterNotReady"),
        ("d", 0, "MalformedCluster"),
    ]


def test_a_full_cluster_is_passed_over_and_what_one_more_costs_is_told() -> None:
    priced = build.pool("p0", 3) | {"attributes": {"modelplane.ai/centsPerNodeHour": {"int": 700}}}
    decision = decide(World(ask(), [one("a", 0), one("b", pools=[priced]), one("c", 1)]))
    rooms = list(room_by_cluster(decision, 9))
    assert [(room.cluster, room.more, room.cents) for room in rooms] == [
        ("a", 0, None),
        ("b", 2, 700),
        ("c", 1, None),
    ]
    assert [(room.more, room.cents) for room in room_by_cluster(decision, 0)] == [(0, None)] * 3


def test_spreading_looks_at_the_clusters_that_take_nothing_meanwhile() -> None:
    zones = [one(name, 4, labels={"zone": name}) for name in ("x", "y")]
    rooms = room_by_cluster(decide(World(ask(2, placement=SPREAD), zones)), 9)
    assert [(room.more, room.first and room.first.reason.name) for room in rooms] == [
        (1, "TopologySpread"),
        (1, "TopologySpread"),
    ]


def test_what_clusters_publish_is_read_of_those_that_take_nothing_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where a copy of a cluster has nothing that was derived of it before."""
    monkeypatch.setattr(
        InferenceCluster, "__copy__", lambda self: InferenceCluster.model_construct(**dict(self))
    )
    zones = [one(name, 4, labels={"zone": name}) for name in ("x", "y")]
    for zone in zones:
        zone["status"]["attributes"] = {"acme.io/tier": {"string": "gold"}}
    gold = {"cel": ["cluster.attributes['acme.io/tier'] == 'gold'"]}
    decision = decide(World(ask(2, placement=SPREAD, selector=gold), zones))
    assert [room.more for room in room_by_cluster(decision, 9)] == [1, 1]


def test_the_pools_that_fit_whether_or_not_there_is_room() -> None:
    decision = decide(World(ask(), FLEET))
    pools = [
        (pool.cluster, pool.pool, pool.needs, pool.more, pool.total, [device.name for device in pool.devices])
        for pool in fitting_pools(decision)
    ]
    assert pools == [
        ("a", "p0", 1, 3, 4, ["gpu"]),
        ("b", "p0", 1, 2, 2, ["gpu"]),
        ("c", "p0", 1, 1, 1, ["gpu"]),
    ]
    barred = [pool.barred and pool.barred.reason.name for pool in fitting_pools(decision)]
    assert barred == [None, None, "ClusterNotReady"]


def test_a_cluster_where_nothing_matches_is_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    decision = decide(World(ask(), [one("a", 4), build.cluster("bare", [build.pool("p0", 4, [])])]))
    explained: list[str] = []
    monkeypatch.setattr(Placer, "rejection", lambda _, cluster: explained.append(cluster.name))
    assert [pool.cluster for pool in fitting_pools(decision)] == explained == ["a"]


def test_no_pool_is_barred_where_nothing_new_may_be_placed_at_all() -> None:
    """Why not is said of the deployment; a cluster is no reason."""
    decision = decide(World(ask(selector={"cel": ["cluster.nme"]}), FLEET))
    assert [(pool.cluster, pool.barred) for pool in fitting_pools(decision)] == [
        ("a", None),
        ("b", None),
        ("c", None),
    ]


def test_a_pool_that_is_full_is_not_barred() -> None:
    [pool] = fitting_pools(decide(World(ask(), [one("a", 1)])))
    assert (pool.more, pool.barred) == (0, None)


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


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (
            PartlyHeld("a", "p", 1, 1, 2),
            "1 whole node is held for a part of its devices; 1 more replica fits there, 2",
        ),
        (
            PartlyHeld("a", "p", 2, 0, 50),
            "2 whole nodes are held for a part of their devices; 0 more replicas fit there, at least 50",
        ),
    ],
)
def test_a_finding_is_text_and_data(finding: PartlyHeld, text: str) -> None:
    assert str(finding) == f"a/p: {text} with accounting: Device on the pool"
    assert finding.plain == {
        "cluster": "a",
        "pool": "p",
        "nodes": finding.nodes,
        "byNodes": finding.by_nodes,
        "byDevices": finding.by_devices,
        "message": str(finding),
    }


def found_of(decision: Any) -> list[tuple[str, str, int, int, int]]:
    return [(one.cluster, one.pool, one.nodes, one.by_nodes, one.by_devices) for one in partly_held(decision)]


def test_pools_of_which_most_is_held_come_first() -> None:
    """Of those that stay and of those that are placed, then by name. What others hold there is not free."""
    parent, other = ask(6, gpus=3), ask(1, gpus=8)
    other["metadata"]["name"] = "other"
    listed = [
        *(build.replica(parent, "b", index, pools="p0", ready=True) for index in range(2)),
        build.replica(parent, "c", 0, pools="p0", ready=True),
        build.replica(parent, "c", 1, pools="gone", ready=True),
        build.replica(parent, "d", 0, pools="p0", ready=True),
        build.replica(other, "b", 0, pools="p0", ready=True),
    ]
    fleet = [one("a", 1), one("b", 3), one("c", 1), {**one("d"), "status": 3}]
    decision = decide(World(parent, fleet, listed, build.observed(*listed[:-1])))
    assert [placed.candidate.cluster.name for placed in decision.placed] == ["a"]
    findings = [("b", "p0", 2, 0, 2), ("a", "p0", 1, 0, 1), ("c", "p0", 1, 0, 1)]
    assert found_of(decision) == findings, "d cannot be read, and one pool is gone"


@pytest.mark.parametrize(
    ("nodes", "usable", "findings", "reason"),
    [
        (4, 4, [("a", "p0", 2, 2, 6)], "four nodes of two each, two of them there"),
        (4, 3, [("a", "p0", 2, 1, 4)], "a node that is of no use takes nothing"),
        (1, 1, [], "two of two nodes that are no longer there leave less than nothing"),
    ],
)
def test_devices_are_counted_on_the_nodes_that_can_be_used(
    nodes: int, usable: int, findings: list[tuple[str, str, int, int, int]], reason: str
) -> None:
    parent = ask(2, gpus=4)
    pool = build.pool("p0", nodes) | {"usable": {"nodes": usable}}
    standing = [build.replica(parent, "a", index, pools="p0", ready=True) for index in range(2)]
    decision = decide(World(parent, [one("a", pools=[pool])], standing, build.observed(*standing)))
    assert found_of(decision) == findings, reason


def test_engines_on_other_pools_are_no_part_of_what_a_pool_is_held_for() -> None:
    """One engine on each of two pools: both are held for a part."""
    engines = [
        single(build.request("gpu", 2), name=name, selectors=[{"cel": f'node.name == "{pool}"'}])
        for name, pool in (("x", "p0"), ("y", "p1"))
    ]
    fleet = [one("a", pools=[build.pool("p0", 2), build.pool("p1", 3)])]
    decision = decide(World(ask(1, engines=engines), fleet))
    assert found_of(decision) == [("a", "p0", 1, 1, 7), ("a", "p1", 1, 2, 11)]


def test_a_packing_that_is_not_found_out_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    decision = decide(World(ask(2, gpus=1), [one("a", 3)]))
    assert len(found_of(decision)) == 1
    monkeypatch.setattr("function.scheduler.headroom.PACKING", 0)
    assert found_of(decision) == []


@pytest.mark.parametrize(
    ("holds", "borrowers", "rest", "reason"),
    [
        (1, {"b": 1}, "; 1 more when b returns what it borrows", "one borrows"),
        (1, {"c": 1, "b": 4}, "; 2 more when b, c return what they borrow", "no more than is guaranteed"),
        (
            0,
            dict.fromkeys("edcb", 1),
            "; 3 more when b, c, d and 1 more return what they borrow",
            "three are named",
        ),
        (3, {"b": 1}, "", "all of it is held"),
        (4, {"b": 1}, "", "and more, which is borrowed"),
        (1, {}, "", "nobody borrows"),
    ],
)
def test_how_far_a_guarantee_is_held_is_said(
    holds: int, borrowers: dict[str, int], rest: str, reason: str
) -> None:
    said = str(Guarantee("a", "cents_per_hour", holds, 3, borrowers))
    assert said == f"a holds {holds} of 3 guaranteed cents an hour{rest}", reason


def test_the_guarantees_of_a_namespace_and_who_borrows_of_the_same_pools() -> None:
    """What is within a guarantee of theirs is not borrowed, nor what our own team holds."""
    quotas = [
        {"name": "ours", "namespaces": [build.NAMESPACE, "kin"], "guaranteed": {"nodes": 3, "replicas": 2}},
        {
            "name": "pool-q",
            "namespaces": [build.NAMESPACE],
            "cel": 'node.name == "q"',
            "guaranteed": {"nodes": 1},
        },
        {"name": "lent", "namespaces": ["b", "c"], "guaranteed": {"nodes": 1}},
    ]
    listed = []
    for namespace, count in ((build.NAMESPACE, 1), ("kin", 1), ("b", 3), ("d", 1)):
        parent = ask(count)
        parent["metadata"]["namespace"] = namespace
        listed += [build.replica(parent, "a", index, pools="p", ready=True) for index in range(count)]
    config = {"overcommit": "Yield", "quotas": quotas, "priorityClasses": []}
    fleet = [one("a", pools=[build.pool("p", 7), build.pool("q", 1)])]
    decision = decide(World(ask(3), fleet, listed, build.observed(listed[0]), input=config))
    assert [
        (row.quota, row.unit, row.holds, row.guaranteed, row.borrowers) for row in guarantees(decision)
    ] == [
        ("ours", "nodes", 4, 3, {"b": 2}),
        ("ours", "replicas", 4, 2, {"b": 2}),
        ("pool-q", "nodes", 1, 1, {}),
    ]
    assert list(guarantees(decide(World(ask(3), fleet)))) == [], "nothing is guaranteed"
    assert list(guarantees(replace(decision, shares=None))) == [], "doubt"
