"""What random worlds once found, each as the smallest world that shows it: see tests/REGRESSIONS.md."""

from __future__ import annotations

import copy
from typing import Any

from function.api import InferenceCluster
from function.api.replica import parse
from function.boundary import PlainDocument
from function.verify.matching import stranded
from tests.support import build
from tests.support.apply import apply
from tests.support.drive import run
from tests.support.shuffle import shuffled
from tests.support.world import World

Plain = dict[str, Any]


def test_a_replacement_stands_on_the_nodes_of_no_other_replica_given_up() -> None:
    """Two are mismatched. The nodes that the first leaves over are not free while it terminates."""
    parent = build.deployment(replicas=2, engines=[build.engine(copies=2)])
    shaped = [build.engine(copies=2), build.engine("draft")]
    on_one = build.replica(parent, "a", 0, shaped, pools="p0")
    on_two = build.replica(parent, "b", 0, shaped, pools="p0")
    clusters = [
        build.cluster("a", [build.pool("p0", 3), build.pool("p1", 2)]),
        build.cluster("b", [build.pool("p0", 0)]),
    ]
    for replica in (on_one, on_two):
        replica["spec"]["engines"][1]["members"][0].pop("deviceRequests")
    for seen in ([on_one, on_two], []):
        answer = run(World(parent, clusters, seen, build.observed(on_one, on_two)))
        new = [
            running_replica
            for key, running_replica in answer.replicas.items()
            if key not in {"replica-a-0", "replica-b-0"}
        ]
        taken = [manifest["spec"]["engines"][0]["members"][0]["nodePoolName"] for manifest in new]
        assert taken.count("p0") + taken.count("p1") == len(taken) <= 2
        assert taken.count("p0") <= 1, "two copies each: p0 has three nodes, two of them taken by the old one"


def test_a_published_pool_that_is_no_longer_declared_takes_nothing_new() -> None:
    """It was filled, found mismatched in the next pass, and filled again: for ever."""
    cluster = build.cluster("a", [build.pool("gone"), build.pool("there")])
    cluster["spec"]["nodePools"] = [{"name": "there", "className": "any", "nodeCount": 4}]
    world = World(build.deployment(), [cluster])
    answer = run(world)
    assert answer.desired["replica-a-0"]["spec"]["engines"][0]["members"][0]["nodePoolName"] == "there"
    assert run(apply(world, answer)).desired == answer.desired


def test_a_member_that_is_pinned_to_nothing_is_re_emitted() -> None:
    """The second of two members without a pool raised a KeyError."""
    parent = build.deployment(engines=[build.gang()])
    for number in (0, 1):
        replica = build.replica(parent, "a", 0, ready=True)
        del replica["spec"]["engines"][0]["members"][number]["nodePoolName"]
        clusters = [build.cluster("a", [build.pool("h100")])]
        answer = run(World(parent, clusters, [replica], build.observed(replica)))
        engines = answer.desired["replica-a-0"]["spec"]["engines"]
        assert engines == replica["spec"]["engines"]


def test_the_endpoint_of_an_unreadable_replica_that_is_only_listed_stays() -> None:
    """A cache that lags hides the replica from what is observed, and nobody can read its shape."""
    parent = build.deployment()
    replica = build.replica(parent, "a", 0, ready=True)
    endpoint = build.endpoint(replica)
    broken = copy.deepcopy(replica)
    broken["spec"]["engines"] = [{"name": 7}]
    clusters = [build.cluster("a", [build.pool("h100")])]
    for fleet in (clusters, None, ()):
        answer = run(World(parent, fleet, [broken], build.observed(endpoints=[endpoint])))
        assert answer.desired.keys() == {"replica-a-0", "endpoint-a-0"}, fleet


def test_the_digest_of_the_input_does_not_know_the_order_of_maps_and_tolerations() -> None:
    """The templates were written down as they arrived, and Crossplane orders maps anew on every call."""
    tolerations = [{"key": key, "operator": "Exists"} for key in ("spot", "odd")]
    parent = build.deployment(match={"tier": "prod", "region": "eu"}, tolerations=tolerations)
    cache = build.cache(match={"a": "1", "b": "2"})
    parent["spec"]["template"]["spec"]["modelCacheRef"] = {"name": cache["metadata"]["name"]}
    world = World(
        parent, [build.cluster("a", [build.pool("h100")])], cache=[cache], input={"explain": "Status"}
    )
    said = {run(shuffled(world, seed)).status["placement"]["inputDigest"] for seed in range(20)}
    assert len(said) == 1


def test_a_pod_that_asks_for_more_than_a_node_has_ends_no_check() -> None:
    """Whoever certified a pool that was accounted by devices and had shrunk recursed without end."""
    parent = build.deployment(replicas=2)
    was = build.replica(
        parent, "a", 0, [build.engine(members=[build.member(devices=[build.request("gpu", 4)])])]
    )
    pool = build.pool("h100", 3, [build.gpu(2)]) | {"accounting": "Device"}
    parsed = InferenceCluster.parse(build.cluster("a", [pool]))
    replicas = tuple(parse(PlainDocument(item)) for item in (was, build.replica(parent, "a", 1)))
    assert not stranded(parsed.pools[0], replicas)
