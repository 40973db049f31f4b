"""A verdict in whole: the headline of a cluster, and under it every engine and pool with its numbers."""

from __future__ import annotations

from typing import Any

import pytest

from function.api.reasons import Reason, Rejection
from function.scheduler.budget import OutOfSteps, TooManyCases
from function.scheduler.ledger import NodeCapacity
from tests.support import build
from tests.support.cases import ask, gap_of, one, single
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]
NIC = build.nic(1, claim="DRA")
OTHER = NIC | {"driver": "other.io"}
NICS = 'device.driver == "dra.net"'


def engine(name: str, count: int = 8, copies: int = 1) -> Plain:
    return {**single(build.request("gpu", count), name=name), "copies": copies}


def gang(policy: str = "SinglePool") -> Plain:
    """A leader of GPUs and a worker of network cards."""
    members = [
        build.member("Leader", [build.request("gpu", 8)]),
        build.member("Worker", [build.request("nic", 1, NICS)], nodes=1),
    ]
    return build.engine("main", members) | {"poolPolicy": policy}


def essence(rejection: Rejection) -> Any:
    """A rejection as nested tuples: what it says, and what is below it."""
    numbers = (rejection.needs, rejection.free, rejection.total)
    return (
        rejection.reason.name,
        rejection.engine,
        rejection.pool,
        rejection.member,
        rejection.has,
        numbers,
        [essence(part) for part in rejection.parts],
    )


NONE = (None, None, None)
NO_NIC = ("NoMatchingDevice", "main", "p0", "Worker", "driver gpu.nvidia.com", NONE, [])
NO_GPU = ("NoMatchingDevice", "main", "p1", "Leader", "driver dra.net", NONE, [])


def short(name: str, pool: str, needs: int, free: int, total: int, parts: list[Any] | None = None) -> Any:
    return ("InsufficientNodes", name, pool, "", "", (needs, free, total), parts or [])


UNBOUND = ("NothingClaimable", "main", "p0", "", "no member would bind a device", NONE, [])
SPLIT = ("NoSinglePool", "main", "", "", "Leader fits p0, Worker fits p1", NONE, [NO_NIC, NO_GPU])
CASES = [
    (
        [engine("main", copies=4)],
        [build.pool("p0", 1), build.pool("p1", 3), build.pool("p2", 2)],
        short(
            "main",
            "p1",
            4,
            3,
            3,
            [
                short(
                    "main",
                    "p1",
                    4,
                    3,
                    3,
                    [
                        short("main", "p0", 4, 1, 1),
                        short("main", "p1", 4, 3, 3),
                        short("main", "p2", 4, 2, 2),
                    ],
                )
            ],
        ),
        "the pool with the fewest nodes missing speaks for its engine",
    ),
    (
        [engine("main", copies=2)],
        [build.pool("p0", 0), build.pool("p1", 1)],
        short(
            "main",
            "p1",
            2,
            1,
            1,
            [short("main", "p1", 2, 1, 1, [short("main", "p0", 2, 0, 0), short("main", "p1", 2, 1, 1)])],
        ),
        "an empty pool is further than one with a node",
    ),
    (
        [engine("x", 16), engine("y", copies=9)],
        [build.pool("p0", 1)],
        (
            "DeviceCountShort",
            "x",
            "p0",
            "Standalone",
            "",
            (16, 8, None),
            [
                (
                    "DeviceCountShort",
                    "x",
                    "p0",
                    "Standalone",
                    "",
                    (16, 8, None),
                    [("DeviceCountShort", "x", "p0", "Standalone", "", (16, 8, None), [])],
                ),
                short("y", "p0", 9, 1, 1, [short("y", "p0", 9, 1, 1)]),
            ],
        ),
        "the engine that is further from fitting speaks for the cluster",
    ),
    (
        [engine("x"), engine("y")],
        [build.pool("p0", 1)],
        ("JointCapacity", "", "", "", "x + y", NONE, []),
        "each engine fits alone: no single one stands in the way",
    ),
    (
        [gang()],
        [build.pool("p0", 4), build.pool("p1", 4, [NIC])],
        ("NoSinglePool", "main", "", "", "Leader fits p0, Worker fits p1", NONE, [SPLIT]),
        "members that fit pools apart",
    ),
    (
        [gang("SameFabric")],
        [build.pool("p0", 4), build.pool("p1", 4, [NIC])],
        (
            "FabricMismatch",
            "main",
            "",
            "",
            "Leader fits p0, Worker fits p1",
            NONE,
            [("FabricMismatch", *SPLIT[1:])],
        ),
        "and are not proven to be of one fabric",
    ),
    (
        [gang()],
        [build.pool("p0", 4)],
        (*NO_NIC[:6], [(*NO_NIC[:6], [NO_NIC])]),
        "a member that fits nowhere is not split",
    ),
    (
        [engine("main", 16)],
        [build.pool("p0", 4, [build.gpu(12)]), build.pool("p1", 4, [build.gpu(8)])],
        (
            "DeviceCountShort",
            "main",
            "p0",
            "Standalone",
            "",
            (16, 12, None),
            [
                (
                    "DeviceCountShort",
                    "main",
                    "p0",
                    "Standalone",
                    "",
                    (16, 12, None),
                    [
                        ("DeviceCountShort", "main", "p0", "Standalone", "", (16, 12, None), []),
                        ("DeviceCountShort", "main", "p1", "Standalone", "", (16, 8, None), []),
                    ],
                )
            ],
        ),
        "the node with the fewest devices missing",
    ),
    (
        [engine("main", 8)],
        [build.pool("p0", 4, [build.gpu(claim="Synthetic")]), build.pool("p1", 4, [NIC])],
        (
            *UNBOUND[:6],
            [(*UNBOUND[:6], [UNBOUND, ("NoMatchingDevice", "main", "p1", "Standalone", *NO_GPU[4:])])],
        ),
        "a pool that binds nothing, and what the one behind it lacks",
    ),
    (
        [gang()],
        [build.pool("p0", 4, [OTHER]), build.pool("p1", 4)],
        (
            *NO_NIC[:2],
            "p1",
            *NO_NIC[3:6],
            [
                (
                    *NO_NIC[:2],
                    "p1",
                    *NO_NIC[3:6],
                    [
                        (
                            "NoMatchingDevice",
                            "main",
                            "p0",
                            "Leader",
                            "driver other.io",
                            NONE,
                            [
                                ("NoMatchingDevice", "main", "p0", "Leader", "driver other.io", NONE, []),
                                ("NoMatchingDevice", "main", "p0", "Worker", "driver other.io", NONE, []),
                            ],
                        ),
                        (*NO_NIC[:2], "p1", *NO_NIC[3:]),
                    ],
                )
            ],
        ),
        "the pool that is no match for the fewest members",
    ),
]


@pytest.mark.parametrize(("engines", "pools", "expected", "reason"), CASES, ids=[case[-1] for case in CASES])
def test_a_verdict_in_whole(engines: list[Plain], pools: list[Plain], expected: Any, reason: str) -> None:
    [rejection] = decide(World(ask(engines=engines), [one("a", pools=pools)])).rejections.values()
    assert essence(rejection) == expected, reason


@pytest.mark.parametrize(
    ("devices", "selector", "reason"),
    [
        (([NIC], [build.gpu(architecture="Ada")]), 1, "the one whose devices come to a later selector"),
        (([], [NIC]), 0, "one that has devices, before one that has none to select"),
    ],
)
def test_of_two_pools_without_a_match_the_nearer_speaks_for_its_engine(
    devices: tuple[list[Plain], list[Plain]], selector: int, reason: str
) -> None:
    published = [build.pool(f"p{at}", 4, listed) for at, listed in enumerate(devices)]
    asked = single(build.request("gpu", 8, build.GPUS, build.HOPPER))
    [rejection] = decide(World(ask(engines=[asked]), [one("a", pools=published)])).rejections.values()
    assert (rejection.pool, rejection.selector) == ("p1", selector), reason


def test_a_budget_that_runs_out_is_no_verdict_on_any_engine() -> None:
    engines = [engine(f"e{at}") for at in range(6)]
    made = World(
        ask(engines=engines),
        [one("a", pools=[build.pool(f"p{at}", 1) for at in range(5)])],
        input={"searchBudget": 20},
    )
    [rejection] = decide(made).rejections.values()
    assert (rejection.reason, rejection.detail) == (
        Reason.SearchBudgetExceeded,
        "e0 + e1 + e2 + e3 + e4 + e5",
    )


def test_an_engine_that_is_short_alone_is_told_of_below_a_budget_that_ran_out() -> None:
    engines = [engine("x"), engine("y"), engine("z", copies=9)]
    made = World(ask(engines=engines), [one("a", pools=[build.pool("p0", 1)])], input={"searchBudget": 2})
    [rejection] = decide(made).rejections.values()
    lack = short("z", "p0", 9, 1, 1)
    parts = [(*lack[:6], [lack])]
    assert essence(rejection) == ("SearchBudgetExceeded", "", "", "", "x + y + z", NONE, parts)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (TooManyCases("more ways than are told apart"), "more ways than are told apart"),
        (OutOfSteps(), "7 steps"),
    ],
    ids=["a look with too many cases says so", "a budget that ran out says what it was"],
)
def test_a_pool_that_was_not_looked_at_to_the_end_is_doubt(
    ended: OutOfSteps, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shortage(*_: object) -> None:
        raise ended

    monkeypatch.setattr(NodeCapacity, "shortage", shortage)
    made = World(ask(), [one("a", pools=[build.pool("p0", 0)])], input={"searchBudget": 7})
    [rejection] = decide(made).rejections.values()
    leaf = Rejection(Reason.SearchBudgetExceeded, detail=said, pool="p0", engine="main")
    assert rejection.leaves == (leaf,)


def test_a_member_may_fit_several_pools_and_another_member_none_of_them() -> None:
    published = [build.pool("p0", 4), build.pool("p1", 4), build.pool("p2", 4, [NIC])]
    [rejection] = decide(World(ask(engines=[gang()]), [one("a", pools=published)])).rejections.values()
    assert rejection.detail == "Leader fits p0 or p1, Worker fits p2"


def test_every_engine_on_every_pool_is_told_in_order() -> None:
    """With what it would take where it fits, and why not where it does not."""
    pools = [build.pool("p0", 1), build.pool("p1", 9), build.pool("p2", 9, [NIC])]
    decision = decide(World(ask(engines=[engine("x", copies=2), engine("y")]), [one("a", pools=pools)]))
    assert decision.placer is not None
    cluster = decision.inputs.fleet.clusters["a"]
    verdicts = [item for _, item in decision.placer.on_pools(cluster)]
    assert [(match.engine, match.pools, match.nodes) for match in verdicts] == [
        ("x", ("p0",), 2),
        ("x", ("p1",), 2),
        ("x", ("p2",), None),
        ("y", ("p0",), 1),
        ("y", ("p1",), 1),
        ("y", ("p2",), None),
    ]
    said = [
        item.rejection and (item.rejection.reason.name, item.rejection.engine, item.rejection.pool)
        for item in verdicts
    ]
    assert said[2] == ("NoMatchingDevice", "x", "p2")
    assert said[5] == ("NoMatchingDevice", "y", "p2")


def test_a_node_selector_that_does_not_match_is_told_with_its_member() -> None:
    asked = single(build.request("gpu", 8), selectors=[{"cel": "true"}, {"cel": 'node.name == "fast"'}])
    [rejection] = decide(World(ask(engines=[asked]), [one("a")])).rejections.values()
    assert rejection.leaves == (
        Rejection(
            Reason.NodeSelectorMismatch,
            gap=gap_of("name p0", "fast"),
            pool="p0",
            engine="main",
            member="Standalone",
            selector=1,
        ),
    )


@pytest.mark.parametrize(
    ("budget", "says"), [(2, Reason.SearchBudgetExceeded), (100, Reason.InsufficientDevices)]
)
def test_what_was_not_tried_to_the_end_is_not_called_full(budget: int, says: Reason) -> None:
    """With Device accounting every claim that would do is looked for; one that was not found may be free."""
    devices = [build.gpu(8, name=name, device_class=name) for name in "xyz"]
    fleet = [one("a", pools=[build.pool("p0", 1, devices)], accounting="Device")]
    there = build.deployment("there", engines=[build.engine(name) for name in "xyz"])
    existing = build.replica(there, "a", 0, pools="p0")
    for one_engine, name in zip(existing["spec"]["engines"], "xyz", strict=True):
        one_engine["members"][0]["deviceRequests"][0]["deviceClassName"] = name
    [rejection] = decide(World(ask(), fleet, [existing], input={"searchBudget": budget})).rejections.values()
    assert rejection.reason is says


TWO_OF_ANY = [build.request("x"), build.request("y")]


@pytest.mark.parametrize(
    ("engine", "classes", "says", "reason"),
    [
        (single(build.request()), [16], Reason.InsufficientDevices, "as many ways as are tried"),
        (single(*TWO_OF_ANY), [6], Reason.InsufficientDevices, "fifteen pairs"),
        (single(*TWO_OF_ANY), [7], Reason.SearchBudgetExceeded, "twenty-one are more than are tried"),
        (build.gang(gpus=1), [4], Reason.InsufficientDevices, "four ways of each member, sixteen together"),
        (build.gang(gpus=1), [5], Reason.SearchBudgetExceeded, "five of each are too many together"),
        (single(*TWO_OF_ANY), [7, 2], Reason.SearchBudgetExceeded, "on the first of several pools"),
        (single(*TWO_OF_ANY), [2, 7], Reason.SearchBudgetExceeded, "on the last"),
    ],
)
def test_more_ways_to_claim_than_are_tried_are_not_called_full(
    engine: Plain, classes: list[int], says: Reason, reason: str
) -> None:
    pools = [
        build.pool(f"p{at}", 0, [build.gpu(1, name=f"g{way}", device_class=f"c{way}") for way in range(many)])
        for at, many in enumerate(classes)
    ]
    fleet = [one("a", pools=pools, accounting="Device")]
    [rejection] = decide(World(ask(engines=[engine]), fleet)).rejections.values()
    assert rejection.reason is says, reason


def test_a_pool_of_whole_nodes_next_to_one_of_devices_is_searched_to_the_end() -> None:
    published = [build.pool("p0", 0), build.pool("p1", 0, [build.gpu(4)])]
    fleet = [one("a", pools=published)]
    fleet[0]["spec"]["nodePools"][1]["accounting"] = "Device"
    [rejection] = decide(World(ask(), fleet)).rejections.values()
    assert (rejection.reason, rejection.pool) == (Reason.InsufficientNodes, "p0")


def test_a_pool_that_would_strand_a_member_says_which() -> None:
    """The worker could bind its network card on the other pool, which is full."""
    published = [build.pool("p0", 9, [build.gpu(), build.nic()]), build.pool("p1", 0, [build.gpu(), NIC])]
    decision = decide(World(ask(engines=[gang()]), [one("a", pools=published)]))
    assert decision.placer is not None
    first, second = decision.placer.on_pools(decision.inputs.fleet.clusters["a"])
    assert first[1].rejection == Rejection(
        Reason.NothingClaimable,
        detail="could bind a device on another pool",
        pool="p0",
        engine="main",
        member="Worker",
    )
    assert second[1].nodes == 2


def test_of_pools_of_one_fabric_the_one_that_is_short_is_told_of() -> None:
    """The leader has its node on the first; the workers lack one on the second."""
    published = [
        build.pool(name, nodes, devices) | {"attributes": {"modelplane.ai/fabric": {"string": "f"}}}
        for name, nodes, devices in (("p0", 9, [build.gpu()]), ("p1", 0, [NIC]))
    ]
    [rejection] = decide(
        World(ask(engines=[gang("SameFabric")]), [one("a", pools=published)])
    ).rejections.values()
    assert (rejection.reason, rejection.pool, rejection.needs, rejection.free) == (
        Reason.InsufficientNodes,
        "p1",
        1,
        0,
    )


@pytest.mark.parametrize(
    ("copies", "nodes", "said", "reason"),
    [
        (1, (0, 0), ("p0", 1, 0), "of two that lack as many the first"),
        (2, (1, 0), ("p1", 2, 0), "the one that lacks most"),
        (2, (0, 1), ("p0", 2, 0), "however many the other one has and needs together"),
    ],
)
def test_of_pools_of_one_fabric_that_are_short_one_is_told_of(
    copies: int, nodes: tuple[int, int], said: tuple[str, int, int], reason: str
) -> None:
    published = [
        build.pool(name, number, devices) | {"attributes": {"modelplane.ai/fabric": {"string": "f"}}}
        for name, number, devices in zip(("p0", "p1"), nodes, ([build.gpu()], [NIC]), strict=True)
    ]
    asked = gang("SameFabric") | {"copies": copies}
    [rejection] = decide(World(ask(engines=[asked]), [one("a", pools=published)])).rejections.values()
    assert (rejection.pool, rejection.needs, rejection.free) == said, reason


def test_an_engine_of_one_member_is_never_said_to_be_split() -> None:
    """It fits the pool of Synthetic devices, which binds nothing; the other pool has no such device."""
    pools = [
        build.pool("cpu", 1, [build.gpu(claim="Synthetic")]),
        build.pool("small", 1, [build.nic(claim="DRA")]),
    ]
    made = decide(World(ask(engines=[single(build.request("gpu", 1))]), [one("a", pools=pools)]))
    assert made.rejections["a"].reason is Reason.NothingClaimable
    assert made.rejections["a"].detail == "no member would bind a device"
