"""status.placement: what it says, only when asked, sorted and bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from function.deployment.explain.clusters import OTHERS
from function.deployment.explain.remedies import source_of
from function.deployment.explain.report import LIMIT
from tests.support import build, drive, scale, scarce
from tests.support.rejected import CASES, EIGHTY, here, one, wants
from tests.support.world import World

Plain = dict[str, Any]

STATUS = {"explain": "Status"}
RESPONSE = 1024 * 1024
FIELDS = {
    "summary",
    "replicas",
    "dropped",
    "clusters",
    "clustersOmitted",
    "hints",
    "lint",
    "inputDigest",
    "decisionDigest",
}
"""What the XRD declares: one field more, and the whole apply would fail."""


def placement(world: World) -> Plain:
    """Return status.placement of a world."""
    reported: Plain = drive.run(world.but(input=STATUS), level="plain").status["placement"]
    return reported


def test_it_is_there_only_when_the_input_asks() -> None:
    world = CASES["InsufficientNodes"]().world
    assert "placement" not in drive.run(world).status
    assert set(placement(world)) == FIELDS


REQUESTED = {"crossplane.io/reconcile-requested-at": "1770000000"}


@pytest.mark.parametrize(
    ("reason", "annotations", "settings", "handled"),
    [
        ("a request to reconcile is answered", REQUESTED, STATUS, {"lastHandledReconcileAt": "1770000000"}),
        ("nobody asked", {}, STATUS, {}),
        ("an empty value asks nothing", dict.fromkeys(REQUESTED, ""), STATUS, {}),
        ("an XRD of another project does not declare it", REQUESTED, {}, {}),
    ],
)
def test_a_handled_request_to_reconcile_is_in_the_status(
    reason: str, annotations: Plain, settings: Plain, handled: Plain
) -> None:
    world = CASES["InsufficientNodes"]().world
    metadata = {**world.deployment["metadata"], "annotations": annotations}
    deployment = {**world.deployment, "metadata": metadata}
    status = drive.run(world.but(deployment=deployment, input=settings)).status
    assert {key: status[key] for key in status.keys() - {"replicas", "placement"}} == handled, reason


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_only_declared_fields_sorted(number: int) -> None:
    for seed in scale.batch(number, quick=80):
        reported = placement(scarce.world(seed))
        assert set(reported) == FIELDS
        names = [cluster["name"] for cluster in reported["clusters"]]
        assert names == sorted(names)
        order = [
            (replica["cluster"], replica.get("index", -1), replica["name"])
            for replica in reported["replicas"]
        ]
        assert order == sorted(order)
        assert json.loads(json.dumps(reported)) == reported


def test_a_replica_says_where_it_is_and_why() -> None:
    made = wants(build.request(), replicas=1)
    reported = placement(
        one(made, build.cluster("b", [build.pool("p")]), build.cluster("a", [build.pool("p")]))
    )
    [replica] = reported["replicas"]
    assert replica == {
        "name": build.composed_name("my-model", "a", 0),
        "cluster": "a",
        "index": 0,
        "action": "Placed",
        "pools": {"main": "p"},
        "because": "fewest replicas of this deployment (0); next: b",
        "runnerUp": "b",
    }


def test_a_full_pool_says_what_it_needs_has_and_who_holds_it() -> None:
    stranger = build.deployment("stranger", namespace="ads")
    taking = [build.replica(stranger, "here", 0, pools="p")]
    reported = placement(one(wants(build.request(), replicas=2), replicas=taking))
    [cluster] = reported["clusters"]
    assert cluster == {
        "name": "here",
        "verdict": "Chosen",
        "reason": "InsufficientNodes",
        "resolvable": True,
        "message": "main on p: needs 1, 0 free of 2",
        "headroom": 0,
        "pools": [
            {
                "name": "p",
                "free": 0,
                "total": 2,
                "heldBy": [
                    {"deployment": "ads/stranger", "nodes": 1},
                    {"deployment": "ml-team/my-model", "nodes": 1},
                ],
                "engines": [{"engine": "main", "needs": 1, "reason": "InsufficientNodes"}],
            }
        ],
    }


def test_the_closest_device_is_shown_with_its_actual_value() -> None:
    reported = placement(CASES["NoMatchingDevice"]().world)
    [cluster] = reported["clusters"]
    assert cluster["pools"][0]["engines"][0]["rejections"] == [
        {
            "reason": "NoMatchingDevice",
            "member": "Standalone",
            "request": "gpu",
            "selector": 1,
            "device": "gpu",
            "actual": "memory 40Gi",
            "wanted": "at least 80Gi",
        }
    ]


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("InsufficientNodes", "Chosen"),
        ("InsufficientDevices", "Chosen"),
        ("MaxReplicasPerCluster", "Chosen"),
        ("PoolOvercommitted", "Full"),
        ("JointCapacity", "Full"),
        ("UntoleratedTaint", "Rejected"),
        ("NoMatchingDevice", "Rejected"),
        ("MalformedCluster", "Unknown"),
    ],
)
def test_each_reason_has_its_verdict(code: str, verdict: str) -> None:
    reported = placement(CASES[code]().world)
    assert [(cluster["verdict"], cluster["reason"]) for cluster in reported["clusters"]] == [(verdict, code)]


def test_a_cluster_that_could_take_more_says_how_many() -> None:
    made = wants(build.request(), replicas=1)
    reported = placement(one(made, here(build.pool("p", 3)), build.cluster("other", [build.pool("p", 50)])))
    assert {
        cluster["name"]: (cluster["verdict"], cluster["headroom"]) for cluster in reported["clusters"]
    } == {
        "here": ("Chosen", 2),
        "other": ("Eligible", 10),
    }


def test_while_nothing_is_known_no_verdict_is_given() -> None:
    world = one(wants(build.request())).but(replicas=None)
    reported = placement(world)
    assert reported["clusters"] == []
    assert reported["hints"] == []


def large(clusters: int, replicas: int, *, length: int = 20) -> World:
    """Return a large fleet with long names in which everything is a little different."""
    fleet = [
        build.cluster(
            f"{'c' * length}-{number:05}",
            [build.pool(f"pool-{item}", 1 + number % 3, [build.gpu(), build.nic()]) for item in range(4)],
            labels={"modelplane.ai/region": f"region-{number % 7}"},
            taints=[build.taint("maintenance", value=f"window-{number % 50}")] if number % 3 == 0 else (),
            ready=number % 5 != 0,
        )
        for number in range(clusters)
    ]
    return World(wants(build.request("gpu", 8), replicas=replicas), fleet, [], {}, input=STATUS)


@pytest.mark.parametrize(
    ("clusters", "replicas", "length", "reason"),
    [
        (600, 200, 20, "many clusters, many replicas"),
        (300, 200, 230, "names as long as names may be"),
        (600, 10, 20, "more clusters than are told about"),
    ],
)
def test_it_stays_within_its_size(clusters: int, replicas: int, length: int, reason: str) -> None:
    answer = drive.run(large(clusters, replicas, length=length), level="plain")
    reported = answer.status["placement"]
    assert len(json.dumps(reported).encode()) <= LIMIT, reason
    assert len(json.dumps(answer.desired).encode()) + LIMIT <= RESPONSE, reason
    hosting = {replica["cluster"] for replica in reported["replicas"]}
    assert len(reported["clusters"]) + reported["clustersOmitted"] == clusters
    assert (
        len([cluster for cluster in reported["clusters"] if cluster["name"] not in hosting]) <= OTHERS
        or length > 20
    )
    assert max(len(condition[2]) for condition in answer.conditions.values()) <= 512


def test_a_rejection_of_an_alternative_says_which_and_shows_its_own_selector() -> None:
    """Both shapes have an engine of one name; the selector that is shown is that of the right one."""
    made = wants(build.request("gpu", 1, build.GPUS, EIGHTY))
    other = build.engine(members=[build.member(devices=[build.request("gpu", 16, build.GPUS)])])
    made["spec"]["template"]["spec"]["alternatives"] = [{"name": "large", "engines": [other]}]
    small = here(build.pool("p", 2, [build.gpu(memory="40Gi")]))
    decision = scarce.decide(one(made, small))
    assert decision.placer is not None
    rejections = [
        manifest.rejection for _, manifest in decision.placer.on_pools(decision.inputs.fleet.clusters["here"])
    ]
    leaves = [leaf for leaf in rejections if leaf]
    assert [(leaf.alternative, leaf.reason.name) for leaf in leaves] == [
        ("", "NoMatchingDevice"),
        ("large", "DeviceCountShort"),
    ]
    assert [source_of(decision.inputs, leaf) for leaf in leaves] == [EIGHTY, ""]
    assert decision.rejections["here"].alternative == "large"


def test_a_pool_that_is_too_small_at_all_is_not_resolved_by_waiting() -> None:
    world = one(build.deployment(engines=[build.engine(copies=3)]))
    [cluster] = placement(world)["clusters"]
    assert (cluster["reason"], cluster["resolvable"]) == ("InsufficientNodes", False)
