"""Two-level matching, co-scheduling and counting: one case per rule, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.support import build
from tests.support.build import HOPPER, engine, gang, gpu, member, nic, pool, request
from tests.support.drive import Answer, run
from tests.support.world import World

Plain = dict[str, Any]
NIC = 'device.driver == "dra.net"'
ANY = "true"
EIGHTY = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0'
GUARD = '"architecture" in device.attributes["gpu.nvidia.com"]'


def place(engines: list[Plain], pools: list[Plain], replicas: int = 1, **more: Any) -> Answer:
    """Place replicas of these engines on one cluster of these pools."""
    return run(World(build.deployment("my-model", replicas, engines), [build.cluster("a", pools)], **more))


def pinned(answer: Answer, key: str = "replica-a-0") -> list[tuple[str, str, list[str]]]:
    """Engine, pool and names of the claimed requests of every member."""
    spec = answer.desired[key]["spec"]
    return [
        (entry["name"], one["nodePoolName"], [asked["name"] for asked in one.get("deviceRequests", [])])
        for entry in spec["engines"]
        for one in entry["members"]
    ]


@dataclass(frozen=True)
class Case:
    reason: str
    engines: list[Plain]
    pools: list[Plain]
    lands: list[tuple[str, str, list[str]]] | None
    """Engine, pool and claims of every member; None: it has no place."""
    says: str = ""
    """The headline reason, in words."""


def one(*devices: Plain) -> list[Plain]:
    return [engine("main", [member(devices=list(devices))])]


def ways(*ranked: Plain) -> Plain:
    return {"name": "gpu", "firstAvailable": list(ranked)}


FITS = [
    Case(
        "the first pool in the order they are published",
        one(request()),
        [pool("p"), pool("q")],
        [("main", "p", ["gpu"])],
    ),
    Case(
        "a pool without enough free nodes is passed over",
        one(request()),
        [pool("p", 0), pool("q")],
        [("main", "q", ["gpu"])],
    ),
    Case(
        "several entries of one driver and class cover a request: 4 + 4 are 8",
        one(request("gpu", 8)),
        [pool("p", 4, [gpu(4, name="a"), gpu(4, name="b")])],
        [("main", "p", ["gpu"])],
    ),
    Case(
        "not entries of two device classes, which no claim binds together",
        one(request("gpu", 8)),
        [pool("p", 4, [gpu(4, name="a"), gpu(4, name="b", device_class="other")])],
        None,
        "too few devices per node",
    ),
    Case(
        "a selector that errs on another entry of the class stops the pod on every node",
        one(request("gpu", 1, HOPPER)),
        [pool("p", 4, [gpu(4, name="a"), gpu(4, name="b", architecture=None)])],
        None,
        "device selector error",
    ),
    Case(
        "whichever is listed first: the second pod finds the first entry taken",
        one(request("gpu", 1, HOPPER)),
        [pool("p", 4, [gpu(4, name="b", architecture=None), gpu(4, name="a")])],
        None,
        "device selector error",
    ),
    Case(
        "the selector before it keeps the allocator from asking, and so does a guard",
        one(request("x", 1, EIGHTY, HOPPER), request("y", 1, f"{GUARD} && {HOPPER}")),
        [pool("p", 4, [gpu(4, name="a"), gpu(4, name="b", architecture=None, memory="40Gi")])],
        [("main", "p", ["x", "y"])],
    ),
    Case(
        "entries of other classes are not asked, nor what nobody claims, nor what is not there",
        one(request("gpu", 1, HOPPER)),
        [
            pool(
                "p",
                4,
                [
                    gpu(4, name="a"),
                    gpu(4, name="b", architecture=None, device_class="mig.nvidia.com"),
                    gpu(4, name="c", architecture=None, claim="Synthetic"),
                    gpu(0, name="d", architecture=None),
                ],
            )
        ],
        [("main", "p", ["gpu"])],
    ),
    Case(
        "another way of the request is taken where the first errs",
        one(ways(request("best", 1, HOPPER), request("any", 2))),
        [pool("p", 4, [gpu(4, name="a"), gpu(4, name="b", architecture=None)])],
        [("main", "p", ["gpu"])],
    ),
    Case(
        "a claim holds 32 devices",
        one(request("gpu", 33)),
        [pool("p", 4, [gpu(48)])],
        None,
        "claim too large",
    ),
    Case(
        "of all its requests together",
        one(request("gpu", 20), request("nic", 20, NIC)),
        [pool("p", 4, [gpu(20), nic(20, claim="DRA")])],
        None,
        "claim too large",
    ),
    Case(
        "what is Synthetic is in no claim",
        one(request("gpu", 32), request("nic", 64, NIC)),
        [pool("p", 4, [gpu(32), nic(64)])],
        [("main", "p", ["gpu"])],
    ),
    Case(
        "the narrowest request comes first: the allocator takes them in order and gives up in the end",
        one(request("any", 8), request("first", 8, HOPPER)),
        [pool("p", 4, [gpu(8, name="a"), gpu(8, name="b", architecture="Ada")])],
        [("main", "p", ["first", "any"])],
    ),
    Case(
        "of equally narrow ones, as they are declared",
        one(request("y", 1), request("x", 1)),
        [pool("p", 4, [gpu(8)])],
        [("main", "p", ["y", "x"])],
    ),
    Case(
        "two requests of one pod share an entry's devices",
        one(request("x", 4), request("y", 4)),
        [pool("p", 4, [gpu(8)])],
        [("main", "p", ["x", "y"])],
    ),
    Case(
        "but not more than there are",
        one(request("x", 4), request("y", 5)),
        [pool("p", 4, [gpu(8)])],
        None,
        "device contention",
    ),
    Case(
        "a greedy choice for the first request is taken back for the second",
        one(request("x", 1, ANY), request("y", 1, build.GPUS)),
        [pool("p", 4, [gpu(1), nic(1, claim="DRA")])],
        [("main", "p", ["x", "y"])],
    ),
    Case(
        "a Synthetic entry listed first never hides a DRA entry that would do",
        one(request("gpu", 1)),
        [pool("p", 4, [gpu(8, name="s", claim="Synthetic"), gpu(8)])],
        [("main", "p", ["gpu"])],
    ),
    Case(
        "an engine that binds no device does not fit: its pods would have no GPU",
        one(request("gpu", 1)),
        [pool("p", 4, [gpu(8, claim="Synthetic")])],
        None,
        "nothing claimable",
    ),
    Case(
        "a Synthetic match next to a claimed one is a fact, not a claim",
        one(request("gpu", 1), request("nic", 1, NIC)),
        [pool("p", 4, [gpu(), nic()])],
        [("main", "p", ["gpu"])],
    ),
    Case(
        "a pool that strands a member is left for one where it can claim",
        [engine("main", [member("Leader", [request()]), member("Worker", [request("nic", 1, NIC)])])],
        [pool("p", 4, [gpu(), nic()]), pool("q", 4, [gpu(), nic(claim="DRA")])],
        [("main", "q", ["gpu"]), ("main", "q", ["nic"])],
    ),
    Case(
        "a member that could claim nowhere else is not stranded",
        [engine("main", [member("Leader", [request()]), member("Worker", [request("nic", 1, NIC)])])],
        [pool("p", 4, [gpu(), nic()])],
        [("main", "p", ["gpu"]), ("main", "p", [])],
    ),
    Case(
        "an engine is never split over pools",
        [engine("main", [member("Leader", [request()]), member("Worker", [request("nic", 1, NIC)])])],
        [pool("p", 4, [gpu()]), pool("q", 4, [nic(claim="DRA")])],
        None,
        "no single pool",
    ),
    Case(
        "different engines may use different pools",
        [engine("x", [member(devices=[request()])]), engine("y", [member(devices=[request("nic", 1, NIC)])])],
        [pool("p", 4, [gpu()]), pool("q", 4, [nic(claim="DRA")])],
        [("x", "p", ["gpu"]), ("y", "q", ["nic"])],
    ),
    Case(
        "a member without a nodeSelector goes along at no cost",
        [engine("main", [member("Leader", [request()]), member("Worker", nodes=5)])],
        [pool("p", 1)],
        [("main", "p", ["gpu"]), ("main", "p", [])],
    ),
    Case(
        "a gang needs a node for every pod of every copy",
        [gang(nodes=3, copies=2)],
        [pool("p", 7)],
        None,
        "insufficient nodes",
    ),
    Case(
        "and fits where it has them",
        [gang(nodes=3, copies=2)],
        [pool("p", 8)],
        [("main", "p", ["gpu"]), ("main", "p", ["gpu"])],
    ),
    Case(
        "an earlier engine gives way when a later one has no other place",
        [
            engine("x", [member(devices=[request()])]),
            engine("y", [member(devices=[request("gpu", 1, build.HOPPER)])]),
        ],
        [pool("p", 1), pool("q", 1, [gpu(architecture="Ada")])],
        [("x", "q", ["gpu"]), ("y", "p", ["gpu"])],
    ),
    Case(
        "engines that fit alone and not together",
        [engine("x", [member(devices=[request()])]), engine("y", [member(devices=[request()])])],
        [pool("p", 1)],
        None,
        "insufficient joint capacity",
    ),
    Case(
        "a device that no selector matches",
        one(request("gpu", 1, 'device.driver == "other"')),
        [pool("p")],
        None,
        "no matching device",
    ),
    Case(
        "a selector that errs is no silent mismatch",
        one(request("gpu", 1, 'device.attributes["gpu.nvidia.com"].nosuch == 1')),
        [pool("p")],
        None,
        "device selector error",
    ),
    Case("a pool of zero nodes has no place", one(request()), [pool("p", 0)], None, "insufficient nodes"),
    Case("negative nodes read as none", one(request()), [pool("p", -3)], None, "insufficient nodes"),
    Case("nor has a cluster without pools", one(request()), [], None, "no pools published"),
]


@pytest.mark.parametrize("case", FITS, ids=lambda case: case.reason)
def test_where_one_replica_lands(case: Case) -> None:
    answer = place(case.engines, case.pools)
    if case.lands is None:
        assert answer.replicas == {}
        assert f"1 {case.says}" in answer.conditions["ReplicasScheduled"][2]
    else:
        assert pinned(answer) == case.lands


def _counts(answer: Answer) -> dict[str, int]:
    clusters = [replica["spec"]["clusterName"] for replica in answer.replicas.values()]
    return {name: clusters.count(name) for name in sorted(set(clusters))}


@pytest.mark.parametrize(
    ("nodes", "replicas", "lands", "reason"),
    [
        ({"a": 9, "b": 9, "c": 9}, 2, {"a": 1, "b": 1}, "spread before packing, ties by name"),
        ({"a": 9, "b": 9}, 5, {"a": 3, "b": 2}, "the fewest replicas, again and again"),
        ({"a": 1, "b": 9}, 4, {"a": 1, "b": 3}, "a full cluster is out, the others go on"),
        ({"a": 1, "b": 1}, 4, {"a": 1, "b": 1}, "what was placed stands"),
    ],
)
def test_spread(nodes: dict[str, int], replicas: int, lands: dict[str, int], reason: str) -> None:
    clusters = [build.cluster(name, [pool("p", count)]) for name, count in nodes.items()]
    assert _counts(run(World(build.deployment("my-model", replicas), clusters))) == lands, reason


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"ready": False}, "cluster not ready"),
        ({"ready": None}, "cluster not ready"),
        ({"gateway": None}, "no gateway address"),
        ({"gateway": ""}, "no gateway address"),
        ({"deleting": True}, "cluster being deleted"),
        ({"taints": [build.taint("x")]}, "untolerated taint"),
        ({"taints": [build.taint("x", "NoExecute")]}, "untolerated taint"),
    ],
)
def test_a_gate_that_is_closed_for_new_replicas(options: Any, says: str) -> None:
    answer = run(World(build.deployment("my-model"), [build.cluster("a", [pool("p")], **options)]))
    assert answer.replicas == {}
    assert f"1 {says}" in answer.conditions["ReplicasScheduled"][2]


def test_labels_of_deployment_and_cache_that_contradict_leave_no_candidate() -> None:
    """Never the wider set."""
    made = build.deployment("my-model", match={"tier": "dev"}, cache="weights")
    clusters = [build.cluster(name, [pool("p")], labels={"tier": name}) for name in ("dev", "prod")]
    answer = run(World(made, clusters, cache=[build.cache("weights", {"tier": "prod"})]))
    assert answer.replicas == {}
    message = answer.conditions["ReplicasScheduled"][2]
    assert "1 cluster selector mismatch" in message
    assert "1 outside the cache's footprint" in message


def test_every_replica_that_exists_is_charged() -> None:
    """Foreign, terminating, ours: a pool of 4 nodes with 3 of them held has room for one."""
    deployment = build.deployment("my-model", 3)
    other = build.deployment("other", namespace="elsewhere")
    own_replica = build.replica(deployment, "a", 0, pools="p", ready=True)
    dying = build.replica(deployment, "a", 5, pools="p", terminating=True)
    foreign = build.replica(other, "a", 0, pools="p")
    answer = run(
        World(
            deployment,
            [build.cluster("a", [pool("p", 4)])],
            [own_replica, dying, foreign],
            build.observed(own_replica),
        )
    )
    assert set(answer.replicas) == {"replica-a-0", "replica-a-1"}


def test_a_pin_to_a_pool_that_is_not_published_charges_nothing() -> None:
    other = build.deployment("other", namespace="elsewhere")
    foreign = build.replica(other, "a", 0, pools="vanished")
    made = World(build.deployment("my-model"), [build.cluster("a", [pool("p", 1)])], [foreign])
    assert set(run(made).replicas) == {"replica-a-0"}


def test_the_search_gives_up_by_steps_and_says_so() -> None:
    """Ten engines of one node on pools that have nine in all: every order is tried, or the budget ends it."""
    engines = [engine(f"e{number}", [member(devices=[request()])]) for number in range(8)]
    pools = [pool(f"p{number}", 1) for number in range(7)]
    answer = place(engines, pools, input={"searchBudget": 50})
    assert "1 search budget exceeded" in answer.conditions["ReplicasScheduled"][2]
    exact = place(engines, pools)
    assert "1 insufficient joint capacity" in exact.conditions["ReplicasScheduled"][2]


def test_an_index_is_never_reused_while_its_object_terminates() -> None:
    deployment = build.deployment("my-model", 1)
    dying = build.replica(deployment, "a", 0, pools="p", terminating=True)
    answer = run(World(deployment, [build.cluster("a", [pool("p", 4)])], [dying]))
    assert set(answer.replicas) == {"replica-a-1"}


def test_an_index_is_not_used_while_its_endpoint_is_observed() -> None:
    deployment = build.deployment("my-model", 1)
    gone = build.replica(deployment, "a", 0, pools="p")
    observed = build.observed(endpoints=[build.endpoint(gone)])
    answer = run(World(deployment, [build.cluster("a", [pool("p", 4)])], [], observed))
    assert set(answer.desired) == {"replica-a-1"}


def test_a_listed_replica_that_is_not_observed_is_ours_under_its_listed_name() -> None:
    """The list can be ahead of what Crossplane observes."""
    deployment = build.deployment("my-model", 1)
    listed = build.replica(deployment, "a", 3, pools="p", name="my-model-by-hand")
    answer = run(World(deployment, [build.cluster("a", [pool("p", 4)])], [listed]))
    assert {key: replica["metadata"]["name"] for key, replica in answer.replicas.items()} == {
        "replica-a-3": "my-model-by-hand"
    }


def test_of_two_objects_with_one_identity_the_observed_one_is_emitted_and_both_are_charged() -> None:
    deployment = build.deployment("my-model", 2)
    seen = build.replica(deployment, "a", 0, pools="p", ready=True)
    twin = build.replica(deployment, "a", 0, pools="p", name="my-model-twin")
    clusters = [build.cluster("a", [pool("p", 2)])]
    answer = run(World(deployment, clusters, [seen, twin], build.observed(seen)))
    assert set(answer.replicas) == {"replica-a-0"}
    assert answer.replicas["replica-a-0"]["metadata"]["name"] == seen["metadata"]["name"]


def test_two_new_replicas_never_share_a_name() -> None:
    """The names of these two clusters at index 0 end in the same five characters of a digest."""
    clusters = [build.cluster(name, [pool("p", 1)]) for name in ("c900", "c964")]
    answer = run(World(build.deployment("my-model", 2), clusters))
    assert set(answer.replicas) == {"replica-c900-0", "replica-c964-1"}
    assert len({replica["metadata"]["name"] for replica in answer.replicas.values()}) == 2
