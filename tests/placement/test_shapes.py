"""Which devices and pools: firstAvailable, constraints, alternatives, SameFabric, Device accounting."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import build
from tests.support.cases import EU, US, Case, ask, clusters, first_available, one, single

Plain = dict[str, Any]
ROOT = "resource.kubernetes.io/pcieRoot"
H200 = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("140Gi")) >= 0'
ANY = 'device.driver == "gpu.nvidia.com"'
NIC = 'device.driver == "dra.net"'


def members(replica: Plain) -> list[Plain]:
    return [member for engine in replica["spec"]["engines"] for member in engine["members"]]


def the(answer: Any) -> Plain:
    (replica,) = answer.replicas.values()
    return dict(replica)


BIG, SMALL = build.gpu(4, memory="143771Mi"), build.gpu(8, memory="81559Mi")
FLEET = [one("a", pools=[build.pool("h100", 4, [SMALL])]), one("b", pools=[build.pool("h200", 1, [BIG])])]
PREFER = first_available("gpu", (4, H200), (8, ANY))

FIRST_AVAILABLE = [
    Case("a lower rank is preferred before spreading", FLEET, ask(1, engines=[single(PREFER)]), ["b"]),
    Case("when it is full the next one serves", FLEET, ask(3, engines=[single(PREFER)]), ["a", "a", "b"]),
    Case(
        "ranks come before the least free nodes of BinPack",
        [FLEET[0], one("b", pools=[build.pool("h200", 9, [BIG])])],
        ask(1, engines=[single(PREFER)], placement={"strategy": "BinPack"}),
        ["b"],
    ),
    Case(
        "when no way is satisfiable the reason is that of the nearest",
        clusters(a=1),
        ask(1, engines=[single(first_available("gpu", (16, ANY), (1, "false")))]),
        [],
        {"a": "DeviceCountShort"},
    ),
    Case(
        "a way that does not compile is an invalid selector, though another would do",
        clusters(a=1),
        ask(1, engines=[single(first_available("gpu", (1, "device.nme"), (1, ANY)))]),
        [],
        status="InvalidNodeSelector",
    ),
    Case(
        "backtracking: the first way of one request leaves nothing for the other, so the second is taken",
        [one("a", pools=[build.pool("p0", 1, [build.gpu(4)])])],
        ask(1, engines=[single(first_available("x", (4, ANY), (2, ANY)), build.request("y", 2))]),
        ["a"],
    ),
]


def sided(gpu_root: object, nic_root: object, *, claim: str = "DRA") -> list[Plain]:
    """A pool whose GPUs and NICs have (or lack) a PCIe root."""
    gpu, nic = build.gpu(8), build.nic(8, claim=claim)
    for device, root in ((gpu, gpu_root), (nic, nic_root)):
        if root is not None:
            device["attributes"][ROOT] = root if isinstance(root, dict) else {"string": root}
    return [one("a", pools=[build.pool("p0", 4, [gpu, nic])])]


def aligned(*names: str) -> Plain:
    stated: Plain = {"matchAttribute": ROOT}
    if names:
        stated["requests"] = list(names)
    requests = (build.request("gpu", 8), build.request("nic", 8, NIC))
    return ask(1, engines=[single(*requests, constraints=[stated])])


LISTED = {"list": {"string": ["r1", "r2"]}}
CONSTRAINTS = [
    Case("one value in common", sided("r1", "r1"), aligned("gpu", "nic"), ["a"]),
    Case("no request named: all of them", sided("r1", "r1"), aligned(), ["a"]),
    Case("different values", sided("r1", "r2"), aligned("gpu", "nic"), [], {"a": "ConstraintUnsatisfied"}),
    Case(
        "a missing attribute fails",
        sided("r1", None),
        aligned("gpu", "nic"),
        [],
        {"a": "ConstraintUnsatisfied"},
    ),
    Case("only the named requests count", sided("r1", "r2"), aligned("gpu"), ["a"]),
    Case("lists that meet", sided(LISTED, {"strings": ["r2", "r3"]}), aligned(), ["a"]),
    Case(
        "lists that do not", sided(LISTED, {"strings": ["r3"]}), aligned(), [], {"a": "ConstraintUnsatisfied"}
    ),
    Case("a list and one of its values", sided(LISTED, "r2"), aligned(), ["a"]),
    Case(
        "equal text of another type is another value",
        sided({"int": 1}, "1"),
        aligned(),
        [],
        {"a": "ConstraintUnsatisfied"},
    ),
    Case(
        "a request that does not exist can never hold",
        sided("r1", "r1"),
        aligned("gpu", "nik"),
        [],
        {"a": "ConstraintUnsatisfied"},
    ),
]


def four_nodes(name: str = "four-nodes", gpus: int = 8) -> Plain:
    return {"name": name, "engines": [build.gang(nodes=3, gpus=gpus)]}


WIDE = build.request("gpu", 16)
ALTERNATIVES = [
    Case("the primary first", clusters(a=4), ask(1, alternatives=[four_nodes()]), ["a"]),
    Case(
        "an alternative where the primary fits nowhere",
        clusters(a=4),
        ask(1, engines=[single(WIDE)], alternatives=[four_nodes()]),
        ["a/four-nodes"],
    ),
    Case(
        "PreferFirst: the primary on every cluster before the alternative",
        [one("a"), one("b", pools=[build.pool("p0", 2, [build.gpu(16)])])],
        ask(3, engines=[single(WIDE)], alternatives=[four_nodes()]),
        ["a/four-nodes", "b", "b"],
    ),
    Case(
        "ClusterFirst: the emptier cluster with its alternative before a second primary",
        [one("a"), one("b", pools=[build.pool("p0", 2, [build.gpu(16)])])],
        ask(
            2,
            engines=[single(WIDE)],
            alternatives=[four_nodes()],
            placement={"alternativePolicy": "ClusterFirst"},
        ),
        ["a/four-nodes", "b"],
    ),
    Case(
        "ClusterFirst: where both fit, the name decides and not the shape",
        [one("a"), one("b", pools=[build.pool("p0", 2, [build.gpu(16)])])],
        ask(
            1,
            engines=[single(WIDE)],
            alternatives=[four_nodes()],
            placement={"alternativePolicy": "ClusterFirst"},
        ),
        ["a/four-nodes"],
    ),
    Case(
        "alternatives in their order",
        clusters(a=4),
        ask(
            2,
            engines=[single(WIDE)],
            alternatives=[four_nodes("x", 16), four_nodes("y", 4), four_nodes("z", 4)],
        ),
        ["a/y"],
        {"a": "InsufficientNodes"},
    ),
    Case(
        "gangs of an alternative count their nodes",
        clusters(a=3),
        ask(1, engines=[single(WIDE)], alternatives=[four_nodes()]),
        [],
        {"a": "InsufficientNodes"},
    ),
    Case(
        "alternatives spread over regions like the primary",
        clusters(a={"labels": US, "nodes": 8}, c={"labels": EU}),
        ask(
            3,
            engines=[single(WIDE)],
            alternatives=[four_nodes()],
            placement={"topologySpread": [{"topologyKey": "region"}]},
        ),
        ["a/four-nodes", "a/four-nodes", "c/four-nodes"],
    ),
]


def fabric(pool: Plain, of: str) -> Plain:
    return pool | {"fabric": {"type": "InfiniBand", "infiniband": {"fabric": of}}}


def attribute(pool: Plain, of: str) -> Plain:
    return pool | {"attributes": {"modelplane.ai/fabric": {"string": of}}}


def gang(**more: Any) -> Plain:
    return build.gang(nodes=2) | {"poolPolicy": "SameFabric"} | more


def two(first: Plain, second: Plain) -> list[Plain]:
    return [one("a", pools=[first, second])]


ONE, TWO = build.pool("p0", 1), build.pool("p1", 2)
FABRICS = [
    Case("equal InfiniBand ids", two(fabric(ONE, "f"), fabric(TWO, "f")), ask(engines=[gang()]), ["a"]),
    Case("equal attributes", two(attribute(ONE, "f"), attribute(TWO, "f")), ask(engines=[gang()]), ["a"]),
    Case(
        "different ids",
        two(fabric(ONE, "f"), fabric(TWO, "g")),
        ask(engines=[gang()]),
        [],
        {"a": "InsufficientNodes"},
    ),
    Case("no id proves nothing", two(ONE, TWO), ask(engines=[gang()]), [], {"a": "InsufficientNodes"}),
    Case(
        "empty ids prove nothing",
        two(fabric(ONE, ""), fabric(TWO, "")),
        ask(engines=[gang()]),
        [],
        {"a": "InsufficientNodes"},
    ),
    Case(
        "an id and an attribute that read alike prove nothing",
        two(fabric(ONE, "f"), attribute(TWO, "f")),
        ask(engines=[gang()]),
        [],
        {"a": "InsufficientNodes"},
    ),
    Case(
        "SinglePool is the default",
        two(fabric(ONE, "f"), fabric(TWO, "f")),
        ask(engines=[build.gang(nodes=2)]),
        [],
        {"a": "InsufficientNodes"},
    ),
    Case(
        "members that fit different pools of different fabrics only",
        two(
            fabric(build.pool("p0", 4, [BIG]), "f"),
            fabric(build.pool("p1", 4, [build.nic(8, claim="DRA")]), "g"),
        ),
        ask(
            engines=[
                build.engine(
                    members=[
                        build.member("Leader", [build.request("gpu", 4)]),
                        build.member("Worker", [build.request("nic", 8, NIC)], nodes=1),
                    ]
                )
                | {"poolPolicy": "SameFabric"}
            ]
        ),
        [],
        {"a": "FabricMismatch"},
    ),
]

SHARED = {"accounting": "Device"}
ACCOUNTING = [
    Case(
        "Node is the default: a pod takes a node",
        clusters(a=2),
        ask(9, gpus=1),
        ["a"] * 2,
        {"a": "InsufficientNodes"},
    ),
    Case(
        "Device: pods share a node",
        clusters(a=SHARED | {"nodes": 2}),
        ask(17, gpus=1),
        ["a"] * 16,
        {"a": "InsufficientDevices"},
    ),
    Case(
        "Device: whole-node pods count as nodes", clusters(a=SHARED | {"nodes": 2}), ask(3, gpus=8), ["a"] * 2
    ),
    Case("Device: 5 of 8 fit once on a node", clusters(a=SHARED | {"nodes": 2}), ask(9, gpus=5), ["a"] * 2),
    Case(
        "replicas of others count with what is stamped on them",
        clusters(a=SHARED | {"nodes": 1}),
        ask(9, gpus=2),
        ["a"] * 3,
        others=[
            build.replica(
                build.deployment("other", engines=[single(build.request("gpu", 2))]), "a", 0, pools="p0"
            )
        ],
    ),
    Case(
        "one that is being deleted counts until it is gone",
        clusters(a=SHARED | {"nodes": 1}),
        ask(9, gpus=4),
        ["a"],
        others=[
            build.replica(
                build.deployment("other", engines=[single(build.request("gpu", 4))]),
                "a",
                0,
                pools="p0",
                terminating=True,
            )
        ],
    ),
    Case(
        "the half-node pods of a gang share nodes",
        clusters(a=SHARED | {"nodes": 2}),
        ask(2, engines=[build.gang(nodes=2, gpus=4)]),
        ["a"],
        {"a": "InsufficientDevices"},
    ),
    Case(
        "a later way of a prioritized list serves where the first finds its devices taken",
        [
            one(
                "a",
                pools=[
                    build.pool("p0", 1, [BIG, build.gpu(4, name="old", memory="40Gi", device_class="old")])
                ],
                accounting="Device",
            )
        ],
        ask(
            3,
            engines=[
                single(
                    first_available(
                        "gpu",
                        (4, H200),
                        (2, 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("50Gi")) < 0'),
                    )
                )
            ],
        ),
        ["a"] * 3,
    ),
    Case(
        "MostFree counts nodes' worth of devices",
        clusters(a=SHARED | {"nodes": 2}, b=SHARED | {"nodes": 3}),
        ask(1, gpus=1, placement={"tieBreak": "MostFree"}),
        ["b"],
    ),
    Case(
        "a replica that grows beyond what can be packed is mismatched, and held",
        clusters(a=SHARED | {"nodes": 1}),
        ask(1, engines=[build.engine(members=[build.member(devices=[build.request("gpu", 4)])], copies=3)]),
        ["a"],
        status="ReplacementBlocked",
        running=[build.replica(ask(1, gpus=4), "a", 0, pools="p0", ready=True)],
    ),
    Case(
        "and one that grows within it is updated in place",
        clusters(a=SHARED | {"nodes": 1}),
        ask(1, engines=[build.engine(members=[build.member(devices=[build.request("gpu", 4)])], copies=2)]),
        ["a"],
        status="ReplicasCreated",
        running=[build.replica(ask(1, gpus=4), "a", 0, pools="p0", ready=True)],
    ),
]

ALL = [*FIRST_AVAILABLE, *CONSTRAINTS, *ALTERNATIVES, *FABRICS, *ACCOUNTING]


@pytest.mark.parametrize("case", ALL, ids=str)
def test_case(case: Case) -> None:
    case.check()


def test_only_the_chosen_way_is_emitted_under_the_name_of_the_request() -> None:
    answer = Case("", FLEET, ask(1, engines=[single(PREFER)]), ["b"]).check()
    assert members(the(answer))[0]["deviceRequests"] == [
        {"name": "gpu", "deviceClassName": build.GPU, "count": 4, "selectors": [{"cel": H200}]}
    ]


def test_a_running_replica_keeps_the_way_it_was_placed_with() -> None:
    deployment = ask(1, engines=[single(PREFER)])
    placed = the(Case("", FLEET[:1], deployment, ["a"]).check())
    running = build.replica_object(deployment, "a", 0, placed["spec"], ready=True)
    answer = Case("", FLEET, deployment, ["a"], status="ReplicasCreated", running=[running]).check()
    assert the(answer)["spec"] == placed["spec"]


def test_constraints_go_to_the_claim_and_name_only_what_it_claims() -> None:
    answer = Case("", sided("r1", "r1"), aligned("gpu", "nic"), ["a"]).check()
    assert members(the(answer))[0]["deviceConstraints"] == [
        {"requests": ["gpu", "nic"], "matchAttribute": ROOT}
    ]
    answer = Case("", sided("r1", "r1", claim="Synthetic"), aligned("gpu", "nic"), ["a"]).check()
    assert members(the(answer))[0]["deviceConstraints"] == [{"requests": ["gpu"], "matchAttribute": ROOT}]
    answer = Case("", sided("r1", "r1", claim="Synthetic"), aligned("nic"), ["a"]).check()
    assert "deviceConstraints" not in members(the(answer))[0]


def test_constraints_refer_to_the_name_of_a_prioritized_request() -> None:
    request = first_available("gpu", (16, ANY), (8, ANY))
    stated = {"requests": ["gpu", "nic"], "matchAttribute": ROOT}
    engine = single(request, build.request("nic", 8, NIC), constraints=[stated])
    answer = Case("", sided("r1", "r1"), ask(1, engines=[engine]), ["a"]).check()
    assert [entry["name"] for entry in members(the(answer))[0]["deviceRequests"]] == ["gpu", "nic"]
    assert members(the(answer))[0]["deviceConstraints"] == [stated]


def test_a_constraint_chooses_the_way_of_a_prioritized_list() -> None:
    """The first way is on the wrong side of the machine, so the second is taken."""
    left, right = build.gpu(4, name="left", memory="143771Mi"), build.gpu(8, name="right", memory="81559Mi")
    nic = build.nic(8, claim="DRA")
    for device, root in ((left, "r1"), (right, "r2"), (nic, "r2")):
        device["attributes"][ROOT] = {"string": root}
    fleet = [one("a", pools=[build.pool("p0", 1, [left, right, nic])])]
    engine = single(PREFER, build.request("nic", 8, NIC), constraints=[{"matchAttribute": ROOT}])
    answer = Case("", fleet, ask(1, engines=[engine]), ["a"]).check()
    assert members(the(answer))[0]["deviceRequests"][0]["count"] == 8


def test_a_running_replica_keeps_the_constraints_it_was_stamped_with() -> None:
    deployment = aligned("gpu", "nic")
    placed = the(Case("", sided("r1", "r1"), deployment, ["a"]).check())
    running = build.replica_object(deployment, "a", 0, placed["spec"], ready=True)
    edited = aligned()
    answer = Case("", sided("r1", "r1"), edited, ["a"], status="ReplicasCreated", running=[running]).check()
    assert members(the(answer))[0]["deviceConstraints"] == [
        {"requests": ["gpu", "nic"], "matchAttribute": ROOT}
    ]


def test_a_constraint_that_its_pool_no_longer_meets_is_a_mismatch() -> None:
    deployment = aligned("gpu", "nic")
    placed = the(Case("", sided("r1", "r1"), deployment, ["a"]).check())
    running = build.replica_object(deployment, "a", 0, placed["spec"], ready=True)
    Case("", sided("r1", "r2"), deployment, ["a"], status="ReplacementBlocked", running=[running]).check()


def as_placed(deployment: Plain, on: str, placed: Plain) -> Plain:
    """A placed replica as it is observed later."""
    running = build.replica_object(deployment, on, 0, placed["spec"], ready=True)
    running["metadata"]["labels"] = placed["metadata"]["labels"]
    return running


def test_a_running_replica_is_matched_against_its_own_alternative() -> None:
    deployment = ask(1, engines=[single(WIDE)], alternatives=[four_nodes()])
    placed = the(Case("", clusters(a=4), deployment, ["a/four-nodes"]).check())
    running = as_placed(deployment, "a", placed)
    better = [one("a", pools=[build.pool("p0", 4), build.pool("p9", 4, [build.gpu(16)])])]
    Case("", better, deployment, ["a/four-nodes"], status="ReplicasCreated", running=[running]).check()


def test_a_running_replica_whose_alternative_is_gone_is_replaced() -> None:
    deployment = ask(1, engines=[single(WIDE)], alternatives=[four_nodes()])
    running = as_placed(deployment, "a", the(Case("", clusters(a=4), deployment, ["a/four-nodes"]).check()))
    renamed = ask(1, engines=[single(WIDE)], alternatives=[four_nodes("other")])
    answer = Case("", clusters(a=8), renamed, ["a/other"], running=[running]).check()
    assert set(answer.replicas) == {"replica-a-1"}


def test_one_pool_is_tried_before_several_of_a_fabric() -> None:
    pools = [fabric(ONE, "f"), fabric(TWO, "f"), build.pool("p2", 3)]
    answer = Case("", [one("a", pools=pools)], ask(engines=[gang()]), ["a"]).check()
    assert [member["nodePoolName"] for member in members(the(answer))] == ["p2", "p2"]


def test_a_member_without_claims_may_sit_on_any_pool_of_the_fabric() -> None:
    """One pool is tried first for it too; the fabric only opens what one pool cannot host."""
    leader = build.member("Leader")
    worker = build.member("Worker", [build.request("gpu", 8)], nodes=2)
    engine = build.engine(members=[leader, worker]) | {"poolPolicy": "SameFabric"}
    answer = Case("", two(fabric(ONE, "f"), fabric(TWO, "f")), ask(engines=[engine]), ["a"]).check()
    assert [member["nodePoolName"] for member in members(the(answer))] == ["p1", "p1"]


def test_a_running_replica_on_two_pools_stays_when_the_policy_is_edited_back() -> None:
    fleet = two(fabric(ONE, "f"), fabric(TWO, "f"))
    deployment = ask(engines=[gang()])
    placed = the(Case("", fleet, deployment, ["a"]).check())
    assert [member["nodePoolName"] for member in members(placed)] == ["p0", "p1"]
    edited = ask(engines=[build.gang(nodes=2)])
    running = as_placed(edited, "a", placed)
    answer = Case("", fleet, edited, ["a"], status="ReplicasCreated", running=[running]).check()
    assert the(answer)["spec"] == placed["spec"]


def test_no_part_2_field_is_emitted_unless_it_was_asked_for() -> None:
    answer = Case("", sided("r1", "r1"), ask(1), ["a"]).check()
    replica = the(answer)
    assert set(members(replica)[0]) == {"role", "nodePoolName", "deviceRequests", "template"}
    assert not any("alternative" in label for label in replica["metadata"]["labels"])
    assert set(replica["metadata"]) == {"name", "namespace", "labels"}
