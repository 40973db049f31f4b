"""Device accounting through the whole pipeline: what is placed, reconcile after reconcile, strands nobody."""

from __future__ import annotations

import random
from typing import Any

import pytest

from function.deployment import handler
from tests.accounting.packings import Gangs, Pod, Way, strands
from tests.support import build, generate
from tests.support.apply import apply
from tests.support.cases import Case, ask, first_available, one, single
from tests.support.drive import run
from tests.support.parts import Taste
from tests.support.scale import count
from tests.support.world import World

Plain = dict[str, Any]
NIC = 'device.driver == "dra.net"'
GPU = 'device.driver == "gpu.nvidia.com"'
KINDS = (build.GPU, "rdma.dra.net")


def engine(draw: random.Random, devices: Way) -> Plain:
    """One pod or a small gang, with GPUs and perhaps NICs, some of them whatever is left."""
    gpus = draw.randint(1, devices[0])
    request = build.request("gpu", gpus)
    if draw.random() < 0.3:
        request = first_available("gpu", (gpus, GPU), (max(1, gpus // 2), GPU))
    requests = [request]
    if draw.random() < 0.5:
        requests.append(build.request("nic", draw.randint(1, devices[1]), NIC))
    if draw.random() < 0.3:
        leader, worker = build.member("Leader", requests), build.member("Worker", requests, nodes=1)
        return build.engine("main", [leader, worker])
    made = single(*requests)
    return made | ({"copies": 2} if draw.random() < 0.2 else {})


def gangs_of(replica: Plain) -> Gangs:
    """The pods of a replica as they are stamped, gang by gang."""
    gangs: Gangs = []
    for one_engine in replica["spec"]["engines"]:
        pods: list[Pod] = []
        for member in one_engine["members"]:
            held = dict.fromkeys(KINDS, 0)
            for request in member.get("deviceRequests", ()):
                held[request["deviceClassName"]] += request["count"]
            pods += [(tuple(held.values()),)] * member.get("worker", {}).get("nodes", 1)
        gangs += [pods] * one_engine["copies"]
    return gangs


def test_deployments_that_fill_a_pool_one_after_the_other_never_strand_a_pod() -> None:
    shared = 0
    for seed in range(count(25, 400, 2_000)):
        draw = random.Random(seed)
        devices, nodes = draw.choice(((4, 2), (8, 4), (3, 1))), draw.choice((1, 2, 3))
        pool = build.pool("p0", nodes, [build.gpu(devices[0]), build.nic(devices[1], claim="DRA")])
        fleet, listed = [one("a", pools=[pool], accounting="Device")], []
        for number in range(6):
            deployment = ask(1, engines=[engine(draw, devices)])
            deployment["metadata"] |= {"name": f"model-{number}", "uid": build.uid(number)}
            listed += Case("", fleet, deployment, [], others=listed).answer().replicas.values()
        gangs = [item for replica in listed for item in gangs_of(replica)]
        if sum(map(len, gangs)) <= 8:
            shared += sum(map(len, gangs)) > nodes
            assert not strands(nodes, devices, gangs, apart=False), (seed, nodes, devices, gangs)
    assert shared, "no node was ever shared: the test would prove nothing"


def by_devices(made: World) -> World:
    """Return the world with pools that charge devices, where they said nothing or nodes before."""
    changed = made.copy()
    for cluster in changed.clusters or ():
        status = cluster.get("status")
        for pool in status.get("gpuPools") or () if isinstance(status, dict) else ():
            pool["accounting"] = "Device"
    return changed


def outcome(made: World) -> tuple[set[tuple[str, str]], set[str], set[str]]:
    """Overcommitted pools, mismatched replicas, and those that leave, in one pass."""
    decision = handler.answer(made.request()).decision
    if decision is None:
        return set(), set(), set()
    mismatched = {kept.own_replica.replica.name for kept in decision.kept if kept.mismatch}
    leaving = {dropped.own_replica.replica.name for dropped in decision.dropped}
    return set(decision.ledger.overcommitted_pools()), mismatched, leaving


def test_charging_devices_from_now_on_disturbs_nobody() -> None:
    """P24. What stood on whole nodes has room by devices: no pool is overcommitted, no replica mismatched.

    One that was mismatched before may find its replacement a place, and leave.
    """
    pools, kept_up = 0, 0
    for seed in range(count(200, 4_000, 20_000)):
        made = generate.world(seed, Taste(doubt=0.0, edits=0.6, own_replicas=1.0, opted=seed % 2 == 0))
        crowded, mismatched, leaving = outcome(made)
        now_crowded, now_mismatched, now_leaving = outcome(by_devices(made))
        assert now_crowded <= crowded, seed
        assert now_mismatched <= mismatched | leaving, seed
        assert now_leaving <= leaving | mismatched, seed
        pools, kept_up = pools + len(crowded), kept_up + len(mismatched)
    assert pools, "no pool was ever overcommitted: the test would prove little"
    assert kept_up, "no replica was ever mismatched: the test would prove little"


def classes(of: str, many: int) -> list[Plain]:
    """Entries of one device each, of a class of their own and an architecture."""
    return [build.gpu(1, name=f"{of}{at}", architecture=of, device_class=f"{of}{at}") for at in range(many)]


def on_fabric(*published: Plain, accounting: dict[str, str]) -> list[Plain]:
    """A cluster of pools of one fabric that say how they are charged."""
    made = one(
        "a", pools=[pool | {"attributes": {"modelplane.ai/fabric": {"string": "f"}}} for pool in published]
    )
    for pool in made["spec"]["nodePools"]:
        pool["accounting"] = accounting[pool["name"]]
    return [made]


def of_two(worker: str) -> Plain:
    """A gang whose leader wants one of the devices x, and whose worker one of others."""
    wants = 'device.attributes["gpu.nvidia.com"].architecture == "{}"'.format
    members = [
        build.member(role, [build.request("gpu", 1, wants(of))], nodes=nodes)
        for role, of, nodes in (("Leader", "x", None), ("Worker", worker, 1))
    ]
    return ask(engines=[build.engine("main", members) | {"poolPolicy": "SameFabric"}])


def holding(*held: str) -> Plain:
    """A replica on pool p0 whose pods hold a device of each class."""
    made = build.replica(
        build.deployment("there", engines=[build.engine(name) for name in held]), "a", 0, pools="p0"
    )
    for engine_there, name in zip(made["spec"]["engines"], held, strict=True):
        engine_there["members"][0]["deviceRequests"][0]["deviceClassName"] = name
    return made


@pytest.mark.parametrize(
    "case",
    [
        Case(
            "every pool stays an option where claims are varied",
            [one("a", pools=[build.pool(name, 1) for name in ("p0", "p1")], accounting="Device")],
            ask(2),
            ["a", "a"],
        ),
        Case(
            "a member that binds nothing leaves the others their ways to claim",
            [
                one(
                    "a",
                    pools=[
                        build.pool(
                            "p0",
                            2,
                            [*classes("x", 2), build.gpu(1, name="y", architecture="y", claim="Synthetic")],
                        )
                    ],
                    accounting="Device",
                )
            ],
            of_two("y"),
            ["a"],
            others=[holding("x0", "x0")],
        ),
        Case(
            "ways to claim on a pool of whole nodes, which change nothing there, take the place of no other",
            on_fabric(
                build.pool("p0", 1, classes("x", 3)),
                build.pool("p1", 1, classes("y", 16)),
                accounting={"p0": "Device", "p1": "Node"},
            ),
            of_two("y"),
            ["a"],
            others=[holding("x0", "x1")],
        ),
    ],
    ids=str,
)
def test_other_ways_to_claim_find_what_is_free(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("accounting", ["Node", "Device"])
def test_an_entry_that_has_no_devices_covers_nothing_and_is_no_fault(accounting: str) -> None:
    """The platform may publish a count of 0; the entry beside it has what is asked for."""
    empty = build.gpu(0, name="empty", device_class="empty.example.com")
    both = one("a", pools=[build.pool("p0", 2, [empty, build.gpu(8)])], accounting=accounting)
    only = one("b", pools=[build.pool("p0", 2, [empty])], accounting=accounting)
    why = {"a": "InsufficientNodes" if accounting == "Node" else "InsufficientDevices"}
    Case("as many as fit", [both, only], ask(3), ["a", "a"], why | {"b": "DeviceCountShort"}).check()


def test_where_a_pod_has_more_ways_than_are_told_apart_no_shortage_is_claimed() -> None:
    """Four entries that four pods tell apart: four GPUs of any of them are chosen in 35 ways, and all fit."""
    zones = ("a", "b", "c", "d")
    entries = [build.gpu(8, name=zone, architecture=zone) for zone in zones]
    selectors = [f'device.attributes["{build.GPU}"].architecture == "{zone}"' for zone in zones]
    requests = [build.request("gpu", 1, selector) for selector in selectors]
    engines = [single(asked) | {"name": zone} for zone, asked in zip(zones, requests, strict=True)]
    fleet = [one("a", pools=[build.pool("p0", 1, entries)], accounting="Device")]
    wanted = ask(1, engines=[*engines, single(build.request("gpu", 4)) | {"name": "anywhere"}])
    Case("it would bind, and nobody says so", fleet, wanted, [], {"a": "SearchBudgetExceeded"}).check()


ACROSS = [
    (1, 2, 1, 0, "two pods that may share no node find two, or have no place"),
    (2, 2, 1, 1, "they do"),
    (2, 2, 1, 2, "pods of different engines may"),
    (2, 2, 8, 1, "a node is full with one of eight"),
    (3, 3, 1, 1, "as many as there are nodes"),
]


@pytest.mark.parametrize(("nodes", "copies", "count", "placed", "reason"), ACROSS)
def test_pods_of_an_engine_that_may_share_no_node(
    nodes: int, copies: int, count: int, placed: int, reason: str
) -> None:
    cluster = one("a", pools=[build.pool("p0", nodes, [build.gpu(8)])], accounting="Device")
    cluster["spec"]["nodePools"][0]["acrossNodes"] = "Required"
    engines = [single(build.request("gpu", count)) | {"copies": copies}]
    wanted = max(1, placed)
    answer = run(World(ask(wanted, engines=engines), [cluster]))
    assert len(answer.replicas) == placed, reason
    if placed:
        after = run(apply(World(ask(wanted, engines=engines), [cluster]), answer))
        assert after.replicas.keys() == answer.replicas.keys(), reason


@pytest.mark.parametrize("accounting", ["Node", "Device"])
@pytest.mark.parametrize(
    ("reason", "copies", "workers", "stays"),
    [
        ("as many equal pods, grouped otherwise", 1, 3, True),
        ("fewer copies of larger gangs", 1, 2, True),
        ("more pods than nodes", 2, 2, False),
    ],
)
def test_an_edit_that_takes_as_many_pods_has_room(
    reason: str, copies: int, workers: int, accounting: str, *, stays: bool
) -> None:
    """Four whole nodes are held by two gangs of a leader and a worker, and there are no more."""
    before = ask(1, engines=[build.gang(copies=2)])
    after = ask(1, engines=[build.gang(copies=copies, nodes=workers)])
    replica = build.replica(before, "a", 0, pools="p0")
    cluster = one("a", pools=[build.pool("p0", 4)], accounting=accounting)
    answer = run(World(after, [cluster], [replica], {"replica-a-0": replica}))
    assert [kept.mismatch is None for kept in answer.decision.kept] == [stays], reason
