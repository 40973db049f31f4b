"""What a place costs: prices of pools, wishes that name one, and the dearest place given up first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from function.scheduler.price import Price
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
