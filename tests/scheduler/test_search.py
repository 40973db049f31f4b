"""The choice of pools for all engines together: exact, in few steps, the preferred first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import build
from tests.support.cases import ask, one, pools_of, single, sized
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]
HOPPER, ADA = [build.gpu()], [build.gpu(architecture="Ada")]


def ranked(*ways: str) -> Plain:
    listed = [{"name": f"w{at}", "count": 8, "selectors": [{"cel": cel}]} for at, cel in enumerate(ways)]
    return {"name": "gpu", "firstAvailable": listed}


def chosen(engines: list[Plain], published: list[Plain], **more: Any) -> list[str]:
    """The pool of every engine; none when the replica has no place."""
    placement = more.pop("placement", None)
    made = World(ask(engines=engines, placement=placement), [one("a", pools=published)], **more)
    return [
        published[option.pools[0]]["name"]
        for placed in decide(made).placed
        for _, option in placed.candidate.engines
    ]


BEST, ANY = build.HOPPER, build.GPUS
ADAS = build.HOPPER.replace("Hopper", "Ada")
BIN_PACK = {"strategy": "BinPack"}


@pytest.mark.parametrize(
    ("engines", "published", "placement", "expected", "reason"),
    [
        (sized(1, 1), pools_of(9, 9), None, ["p0", "p0"], "the first pools in declaration order"),
        (sized(1, 2), pools_of(2, 1), None, ["p1", "p0"], "the first engine gives way to the second"),
        (sized(1, 1, 2), pools_of(2, 2), None, ["p0", "p0", "p1"], "and only as far as it must"),
        (sized(2, 2), pools_of(3, 1), None, [], "or there is no place"),
        (sized(1), pools_of(3, 1, 2), BIN_PACK, ["p1"], "packing takes the pool with the least left"),
        (sized(1), pools_of(2, 2), BIN_PACK, ["p0"], "between equals the first"),
        (sized(1, 1), pools_of(4, 2), BIN_PACK, ["p1", "p1"], "engine by engine"),
        (
            [single(ranked(BEST, ANY))],
            [build.pool("p0", 9, ADA), build.pool("p1", 9, HOPPER)],
            None,
            ["p1"],
            "better devices come before declaration order",
        ),
        (
            [single(ranked(BEST, ANY))],
            [build.pool("p0", 9, ADA), build.pool("p1", 0, HOPPER)],
            None,
            ["p0"],
            "where there are any",
        ),
        (
            [single(ranked(BEST, ANY)), single(build.request("gpu", 8, BEST), name="second")],
            [build.pool("p0", 9, ADA), build.pool("p1", 1, HOPPER)],
            None,
            ["p0", "p1"],
            "and the others still have a place",
        ),
        (
            [single(ranked(BEST, ANY)), single(ranked(BEST, ANY), name="second")],
            [build.pool("p0", 9, ADA), build.pool("p1", 1, HOPPER)],
            None,
            ["p1", "p0"],
            "the first engine is settled first",
        ),
        (
            [single(ranked(BEST, ANY))],
            [build.pool("p0", 9, HOPPER), build.pool("p1", 1, HOPPER), build.pool("p2", 1, ADA)],
            BIN_PACK,
            ["p1"],
            "packing is among the best devices",
        ),
    ],
)
def test_which_pools_are_taken(
    engines: list[Plain], published: list[Plain], placement: Plain | None, expected: list[str], reason: str
) -> None:
    assert chosen(engines, published, placement=placement) == expected, reason


def test_a_dead_end_is_not_tried_from_every_side() -> None:
    """Eight engines on seven nodes: which of them stand where makes no difference to the eighth."""
    made = World(
        ask(engines=sized(*[1] * 8)), [one("a", pools=pools_of(*[1] * 7))], input={"searchBudget": 2_000}
    )
    [rejection] = decide(made).rejections.values()
    assert rejection.reason.name == "JointCapacity"


def test_the_engines_with_the_fewest_pools_left_are_tried_first() -> None:
    """The last two need one node, and the others may stand on four pools in 16,000 ways before them."""
    others = [single(build.request("gpu", 8, ADAS), name=f"e{at}") | {"copies": 2**at} for at in range(7)]
    last = [single(build.request("gpu", 8, BEST), name=name) for name in ("x", "y")]
    published = [*(build.pool(f"p{at}", 200, ADA) for at in range(4)), build.pool("p4", 1, HOPPER)]
    made = World(ask(engines=[*others, *last]), [one("a", pools=published)], input={"searchBudget": 200})
    [rejection] = decide(made).rejections.values()
    assert rejection.reason.name == "JointCapacity"


def test_a_replacement_is_placed_as_if_what_it_replaces_were_gone() -> None:
    """It does not count for spreading, and its nodes are free for its own replacement."""
    was, now = ask(), ask(engines=[build.engine("other")])
    own_replica = build.replica(was, "a", 0, pools="p0", ready=True)
    decision = decide(World(now, [one("a", 1), one("b", 1)], [own_replica], build.observed(own_replica)))
    assert [placement.identity.cluster for placement in decision.placed] == ["a"]


def test_a_replacement_stands_where_nothing_else_had_a_place() -> None:
    """The second replica found the cluster full; then the first gives its node up to its own replacement."""
    was, now = ask(), ask(2, engines=[build.engine("other")])
    own_replica = build.replica(was, "a", 0, pools="p0", ready=True)
    decision = decide(World(now, [one("a", 1)], [own_replica], build.observed(own_replica)))
    assert [placement.identity.cluster for placement in decision.placed] == ["a"]
    assert [drop.cause.name for drop in decision.dropped] == ["Replaced"]


def test_one_that_has_to_wait_keeps_no_other_from_being_replaced() -> None:
    """The Ready one is used up by the budget; the one that is not Ready serves nobody."""
    budget = {"disruption": {"maxUnavailable": 1}}
    was, now = ask(2), ask(2, engines=[build.engine("other")], placement=budget)
    own_replicas = [build.replica(was, name, 0, pools="p0", ready=name == "a") for name in "ab"]
    fleet = [one("a", 1, taints=[build.taint("x")]), one("b", 1)]
    decision = decide(World(now, fleet, own_replicas, build.observed(*own_replicas)))
    assert [(replica.own_replica.key, replica.waits) for replica in decision.kept] == [
        ("replica-a-0", "replacement")
    ]
    assert [replica.own_replica.key for replica in decision.dropped] == ["replica-b-0"]


def test_what_blocks_a_replacement_is_told_as_it_is_with_what_is_held() -> None:
    """With the held node free, each engine would fit alone; with it held, neither does."""
    own_replica = build.replica(ask(), "a", 0, pools="p0", ready=True)
    made = World(ask(engines=sized(2, 2)), [one("a", 2)], [own_replica], build.observed(own_replica))
    [rejection] = decide(made).rejections.values()
    assert (rejection.reason.name, rejection.needs, rejection.free) == ("InsufficientNodes", 2, 1)
