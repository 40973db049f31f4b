"""What a place costs: prices of pools, wishes that name one, and the dearest place given up first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from function.api import InferenceCluster
from function.api.replica import ModelReplica, StampedEngine, StampedMember, StampedRequest
from function.scheduler.price import Price, amount, devices_of, price_of
from tests.support import build
from tests.support.cases import Case, ask, one
from tests.support.drive import run
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

Plain = dict[str, Any]
NODE, DEVICE = "modelplane.ai/centsPerNodeHour", "modelplane.ai/centsPerDeviceHour"


def priced(name: str, cents: object, of: str = NODE, nodes: int = 4) -> Plain:
    """A cluster whose pool states a price."""
    pool = build.pool("p0", nodes) | ({} if cents is None else {"attributes": {of: {"int": cents}}})
    return one(name, pools=[pool])


def wish(most: int, weight: int = 10) -> Plain:
    return {"weight": weight, "maxCentsPerHour": most}


FLEET = [priced("a", 9_000), priced("b", 700, DEVICE), priced("c", None)]
PLACES = [
    Case("by node", FLEET, ask(1, placement={"preferences": [wish(9_000)]}), ["a"]),
    Case(
        "by device: eight of 7.00 are 56.00", FLEET, ask(1, placement={"preferences": [wish(5_600)]}), ["b"]
    ),
    Case("one cent less matches nobody", FLEET, ask(1, placement={"preferences": [wish(5_599)]}), ["a"]),
    Case(
        "only what is claimed counts by device: one of 7.00",
        [priced("a", 100), priced("b", 700, DEVICE)],
        ask(1, gpus=1, placement={"preferences": [wish(99), wish(700, 20)]}),
        ["a"],
    ),
    Case(
        "in steps: each price that is undercut adds its weight",
        [priced("a", 300), priced("b", 100), priced("c", 200)],
        ask(6, placement={"preferences": [wish(300), wish(200), wish(100)]}),
        ["b", "b", "b", "b", "c", "c"],
    ),
    Case(
        "together with a label, both must hold",
        [priced("a", 100), one("b", labels={"tier": "prod"})],
        ask(1, placement={"preferences": [wish(100) | {"matchLabels": {"tier": "prod"}}]}),
        ["a"],
    ),
    Case("never makes an unfit cluster fit", FLEET, ask(1, gpus=9, placement={"preferences": [wish(1)]}), []),
    *(
        Case(f"{bad!r} is no price", [priced("a", bad), one("b")], ask(1, placement=placement), ["a"])
        for bad in (-1,)
        for placement in ({"preferences": [wish(100)]},)
    ),
]


@pytest.mark.parametrize("case", PLACES, ids=str)
def test_where_a_wish_for_a_price_places(case: Case) -> None:
    case.check()


def scaled(
    fleet: Sequence[Plain], wanted: int, placement: Plain | None, on: Sequence[str], **more: Any
) -> list[str]:
    """The clusters of those that stay when a deployment with a Ready replica on each is scaled down."""
    parent = ask(wanted, placement=placement)
    running = [
        build.replica(parent, name, on[:at].count(name), pools="p0", ready=more.get(name, True))
        for at, name in enumerate(on)
    ]
    answer = run(World(parent, fleet, running, build.observed(*running)))
    return sorted(kept.own_replica.cluster for kept in answer.decision.kept)


THREE = [priced("a", 300), priced("b", 100), priced("c", 200)]
STEPS = {"preferences": [wish(300), wish(200), wish(100)]}
TIERS = [
    one("a", labels={"tier": "spot"}),
    one("b", labels={"tier": "prod"}),
    one("c", labels={"tier": "prod"}),
]
LABELLED = {"preferences": [{"weight": 10, "matchLabels": {"tier": "prod"}}]}
SCALES: list[tuple[str, list[Plain], Plain | None, list[str], dict[str, Any], list[str]]] = [
    ("the dearest goes first", THREE, STEPS, ["a", "b", "c"], {}, ["b", "c"]),
    ("without preferences the last name goes", THREE, None, ["a", "b", "c"], {}, ["a", "b"]),
    (
        "before load: the less preferred, however few are there",
        TIERS,
        LABELLED,
        ["a", "b", "b"],
        {},
        ["b", "b"],
    ),
    (
        "after health: what is not Ready goes first",
        TIERS,
        LABELLED,
        ["a", "b", "c"],
        {"b": False},
        ["a", "c"],
    ),
    ("equals go by load, then by name", TIERS, LABELLED, ["b", "c", "c"], {}, ["b", "c"]),
]


@pytest.mark.parametrize(
    ("reason", "fleet", "placement", "on", "more", "stay"), SCALES, ids=[s[0] for s in SCALES]
)
def test_scale_down_gives_up_the_least_preferred_place_first(
    reason: str,
    fleet: list[Plain],
    placement: Plain | None,
    on: list[str],
    more: dict[str, Any],
    stay: list[str],
) -> None:
    assert scaled(fleet, 2, placement, on, **more) == stay, reason


def test_a_cluster_of_which_nothing_is_known_is_not_the_least_preferred() -> None:
    """Doubt gives no place up before another."""
    fleet = [one("a", labels={"tier": "spot"}), {**one("b"), "spec": {"taints": "?"}}]
    assert scaled(fleet, 1, LABELLED, ["a", "b"]) == ["b"]


@pytest.mark.parametrize(
    ("prices", "text"),
    [
        ((), ""),
        ((None, None), ""),
        ((3_120,), "31.20 an hour"),
        ((100_000, 5), "1,000.05 an hour"),
        ((3_120, None, None), "31.20 an hour and 2 without a price"),
        ((0,), "0.00 an hour"),
    ],
)
def test_a_sum_says_what_it_leaves_out(prices: tuple[int | None, ...], text: str) -> None:
    assert str(Price.of(prices)) == text


@pytest.mark.parametrize(
    ("cents", "text"), [(0, "0.00"), (-5, "-0.05"), (-123_456, "-1,234.56"), (123_456, "1,234.56")]
)
def test_cents_are_written_as_people_do(cents: int, text: str) -> None:
    assert amount(cents) == text


KINDS = {int: "int", str: "string"}


@pytest.mark.parametrize(
    ("stated", "nodes", "devices", "cents", "reason"),
    [
        ([{NODE: 300}, {NODE: 50}], {"p0": 2, "p1": 1}, {}, 650, "pools are added"),
        (
            [{NODE: 300}, {NODE: 50}],
            {"p1": 1},
            {"p0": 8},
            50,
            "a pool of which no node is taken costs nothing",
        ),
        ([{NODE: 300, DEVICE: 7}], {"p0": 2}, {"p0": 16}, 712, "nodes and devices are added"),
        ([{DEVICE: 7}], {"p0": 2}, {}, 0, "no device is claimed there"),
        ([{NODE: 0}], {"p0": 2}, {}, 0, "nothing is a price"),
        ([{NODE: 300}, {}], {"p0": 1, "p1": 1}, {}, None, "one pool without a price leaves the sum unknown"),
        ([{NODE: 300}], {"gone": 1}, {}, None, "a pool that is not published states none"),
        ([{NODE: -1}], {"p0": 1}, {}, None, "less than nothing is none"),
        ([{NODE: "300"}], {"p0": 1}, {}, None, "nor is a text"),
    ],
)
def test_what_nodes_and_devices_cost(
    stated: list[dict[str, Any]],
    nodes: dict[str, int],
    devices: dict[str, int],
    cents: int | None,
    reason: str,
) -> None:
    pools = [
        build.pool(f"p{at}")
        | {"attributes": {name: {KINDS[type(value)]: value} for name, value in prices.items()}}
        for at, prices in enumerate(stated)
    ]
    assert price_of(InferenceCluster.parse(one("a", pools=pools)), nodes, devices) == cents, reason


def test_the_devices_of_all_pods_of_all_copies_are_counted_by_pool() -> None:
    """A Leader with 2 + 1 devices and three Workers with 4, in 2 copies; beside them one with 8."""
    two, one_more, four, eight = (StampedRequest(f"r{count}", "", count) for count in (2, 1, 4, 8))
    gang = StampedEngine(
        "gang",
        2,
        (StampedMember("Leader", "p", 1, (two, one_more)), StampedMember("Worker", "p", 3, (four,))),
    )
    single = StampedEngine("single", 1, (StampedMember("Standalone", "q", 1, (eight,)),))
    more = StampedEngine("more", 3, (StampedMember("Standalone", "p", 1, (one_more,)),))
    held = ModelReplica(name="m", engines=(gang, single, more))
    assert devices_of(held) == {"p": 2 * (2 + 1 + 3 * 4) + 3 * 1, "q": 8}
