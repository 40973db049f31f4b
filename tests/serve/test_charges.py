"""Everything that outlives a call is charged to one bound, as what it takes in memory."""

from __future__ import annotations

import copy
import gc
import random
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from bench.fleets import Size, by_charges, fleet
from function import dispatch
from function.api import InferenceCluster, ModelReplica, devices, replica as replica_api
from function.api.cluster import MAX_POOLS
from function.api.replica import StampedEngine, StampedMember, StampedRequest
from function.boundary.memory import Memory, Session
from function.cluster.publish import charge
from function.deployment.compose.replicas import BOUND
from function.deployment.handler import read_deployment
from function.deployment.snapshot.charges import read_charged, read_cluster
from function.runner import Function
from function.wire import WireDocument, write
from tests.support import build
from tests.support.cases import ask, single
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from function.deployment.snapshot.charges import ChargedCluster

MEBI = 1024 * 1024
NUMBER = 300
MADE = fleet(Size(clusters=NUMBER, pools=4, replicas=NUMBER), 1)


def cluster_of(number: int, attributes: int) -> dict[str, Any]:
    """A cluster whose one device list nobody else has."""
    device = build.gpu()
    device["attributes"] = device.get("attributes", {}) | {
        f"a{at}": {"string": f"{number}-{at}"} for at in range(attributes)
    }
    made = build.cluster(f"c{number}", [build.pool("h100", 4, [device])])
    made["metadata"] |= {"uid": f"u-{number}", "resourceVersion": "1"}
    return made


def cluster_of_small_pools(number: int) -> dict[str, Any]:
    """A cluster of as many pools as there may be, each of them short."""
    pools = [{"name": f"p{at}", "nodes": 4} for at in range(MAX_POOLS)]
    made = build.cluster(f"c{number}", pools)
    made["metadata"] |= {"uid": f"u-{number}", "resourceVersion": "1"}
    return made


def charged_by(holders: int, *, by_devices: bool = False) -> list[dict[str, Any]]:
    """Clusters of one pool that many deployments hold a node of."""
    claim = StampedRequest("gpu", "gpu.nvidia.com", 8)
    engines = (StampedEngine("main", 1, (StampedMember("Standalone", "h100", 1, (claim,)),)),)
    clusters = [cluster_of(number, 0) for number in range(NUMBER)]
    for number, made in enumerate(clusters):
        name, pools = f"c{number}", made["status"]["gpuPools"]
        pools[0] |= {"nodes": holders} | ({"accounting": "Device"} if by_devices else {})
        replicas = [
            ModelReplica("r", "ml", deployment=f"d{at}", cluster=name, nodes={"h100": 1}, engines=engines)
            for at in range(holders)
        ]
        made["status"]["gpuPools"] = charge(name, pools, replicas)
    return clusters


def use_charged(charged: ChargedCluster) -> None:
    assert isinstance(charged.cluster, InferenceCluster)
    use(charged.cluster)


def deployment_of(number: int) -> dict[str, Any]:
    made = copy.deepcopy(MADE.deployment)
    made["metadata"] |= {"name": f"d{number}", "uid": f"u-{number}", "resourceVersion": "1"}
    return made


def use(cluster: InferenceCluster) -> None:
    """Work out what a pass works out of a cluster, which stays with it."""
    worked_out: list[Any] = [cluster.by_name, cluster.device_keys, cluster.canonical, cluster.attributes]
    for pool in cluster.pools:
        for device in pool.devices or ():
            worked_out += [device.subject, device.domains]
    assert worked_out


CASES: tuple[tuple[str, list[dict[str, Any]], Any, Callable[[Any], None]], ...] = (
    ("clusters", MADE.clusters, read_cluster, use),
    ("device lists, small", [cluster_of(n, 0) for n in range(NUMBER)], read_cluster, use),
    ("device lists, large", [cluster_of(n, 150) for n in range(NUMBER)], read_cluster, use),
    ("small pools", [cluster_of_small_pools(n) for n in range(NUMBER)], read_cluster, use),
    ("charged clusters", by_charges(MADE).clusters, read_charged, use_charged),
    ("charged clusters, many holders", charged_by(400), read_charged, use_charged),
    ("charged clusters, by devices", charged_by(400, by_devices=True), read_charged, use_charged),
    ("replicas", MADE.replicas, replica_api.parse, lambda _: None),
    ("replicas of others", MADE.replicas, replica_api.parse_charge, lambda _: None),
    ("deployments", [deployment_of(n) for n in range(NUMBER)], read_deployment, lambda _: None),
)


@pytest.mark.parametrize(("what", "objects", "parse", "used"), CASES, ids=[case[0] for case in CASES])
def test_an_object_is_charged_what_it_takes(
    what: str, objects: list[dict[str, Any]], parse: Any, used: Callable[[Any], None]
) -> None:
    written = [write.struct(one) for one in objects]
    memory = Memory(1 << 40)
    session = Session(memory, dispatch.COSTS)
    gc.collect()
    tracemalloc.start()
    for content in written:
        used(session.parsed(WireDocument(content), parse))
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    grown = BOUND if parse is read_deployment else 0
    charged = memory.bytes - len(written) * grown
    assert 0.3 * charged < taken < 1.2 * charged, f"{what}: {taken / charged:.2f}"


def remembered() -> int:
    """Return the number of device lists that are in memory."""
    gc.collect()
    return len(devices._LISTS)


def test_device_lists_are_within_the_bound_and_leave_with_their_clusters() -> None:
    before = remembered()
    memory = Memory(2 * MEBI)
    session = Session(memory, dispatch.COSTS)
    for number in range(1_000):
        session.parsed(WireDocument(write.struct(cluster_of(number, 40))), read_cluster)
        assert memory.bytes <= 2 * MEBI
    lists = remembered() - before
    assert 10 < lists == memory.entries < 100, "each of them takes tens of kilobytes"
    del memory, session
    assert remembered() == before


def test_a_list_that_clusters_share_is_charged_once_and_as_long_as_one_has_it() -> None:
    same = [cluster_of(1, 150) for _ in range(20)]
    for number, one in enumerate(same):
        one["metadata"] |= {"name": f"c{number}", "uid": f"u-{number}"}
    contents = [write.struct(one) for one in same]
    memory = Memory(64 * MEBI)
    session = Session(memory, dispatch.COSTS)
    charges = []
    for content in contents:
        session.parsed(WireDocument(content), read_cluster)
        charges.append(memory.bytes)
    first, *others = (after - before for before, after in zip([0, *charges], charges, strict=False))
    assert max(others) < first / 3
    assert max(others) - min(others) < 100
    shared = next(iter(memory._shared))
    assert memory._shared[shared] == 20
    for key in list(memory._entries):
        memory.put(key, 1, None)
    assert memory._shared == {}
    assert memory.bytes == sum(entry.charge for entry in memory._entries.values())


def request(number: int, lists: int) -> bytes:
    made = build.deployment(f"d{number}", replicas=2)
    clusters = [cluster_of(number * lists + at, 40) for at in range(lists)]
    return World(made, clusters, ()).message().SerializeToString()


@pytest.mark.parametrize("limit", [None, 2 * MEBI])
def test_what_deployments_found_out_keeps_no_device_lists_beyond_the_bound(limit: int | None) -> None:
    """A deployment notes what its members fit; with the fleet changed, that is about lists that are gone."""
    before = remembered()
    memory = None if limit is None else Memory(limit)
    function = Function(structlog.get_logger(), memory=memory)
    with structlog.testing.capture_logs():
        for number in range(60):
            function.answer(request(number, 5))
            assert memory is None or memory.bytes <= 2 * MEBI
    held = remembered() - before
    assert held == 0 if memory is None else 0 < held < 100, "of 300"


def on_fabrics(number: int) -> World:
    """A gang that may be spread, and clusters of six pools on one fabric, each on its own."""
    clusters = [cluster_of(number * 100 + at, 0) for at in range(100)]
    for made in clusters:
        [pool] = made["status"]["gpuPools"]
        fabric = {"fabric": {"infiniband": {"fabric": made["metadata"]["name"]}}}
        made["status"]["gpuPools"] = [pool | fabric | {"name": f"p{at}"} for at in range(6)]
        made["spec"] = {}
    return World(ask(engines=[build.gang(nodes=1, gpus=1) | {"poolPolicy": "SameFabric"}]), clusters)


def held(number: int, environment: int) -> World:
    """Replicas that stay exactly as they are observed, because a selector does not compile."""
    asked = ask(100, engines=[single(build.request("gpu", 1, "device."))])
    name = asked["metadata"]["name"] = f"held-{number}"
    replicas = [build.replica(asked, "c0", at, ready=True, name=f"{name}-{at}") for at in range(100)]
    variables = [{"name": f"E{at}", "value": "v" * 60} for at in range(environment)]
    for replica in replicas:
        replica["spec"]["engines"][0]["members"][0]["template"] = {
            "spec": {"containers": [{"name": "engine", "env": variables}]}
        }
    return World(asked, [cluster_of(0, 0)], replicas, build.observed(*replicas))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (on_fabrics, "options on several pools belong to one cluster"),
        (lambda number: held(number, 40), "what is desired as it is observed shares nothing"),
        (lambda number: held(number, 800), "large ones are not held from answer to answer"),
    ],
)
def test_what_an_answer_leaves_behind_is_charged(made: Callable[[int], World], reason: str) -> None:
    requests = [made(number).message().SerializeToString() for number in range(2)]
    memory = Memory(1 << 40)
    function = Function(structlog.get_logger(), memory=memory)
    with structlog.testing.capture_logs():
        function.answer(requests[0])  # What is made once for all deployments is there from now on.
        gc.collect()
        before = memory.bytes
        tracemalloc.start()
        function.answer(requests[1])
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    charged = memory.bytes - before
    assert 0.2 * charged < taken < 1.3 * charged, f"{reason}: {taken / charged:.2f}"


def test_whatever_is_put_forgotten_and_grows_the_sum_is_right() -> None:
    draw = random.Random(1)

    class Shared:
        def __init__(self, size: int) -> None:
            self.size = size

    parts = [Shared(draw.randrange(100, 5_000)) for _ in range(20)]
    memory = Memory(60_000)

    def some() -> Iterator[Shared]:
        yield from draw.sample(parts, draw.randrange(4))

    for _ in range(3_000):
        key = draw.randrange(40)
        if draw.random() < 0.5:
            memory.put(key, draw.randrange(3_000), None, some())
        else:
            memory.share(key, None, some())
        entries = memory._entries.values()
        alive = {part for entry in entries for part in entry.parts}
        assert set(memory._shared) == alive
        assert memory.bytes == sum(e.charge for e in entries) + sum(part.size for part in alive) <= 60_000
