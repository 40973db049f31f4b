"""A replica that grows in place: what it takes beyond what is stamped on it, and when it is mismatched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from function.scheduler.device_accounting import Claim, Copies, Demand, Pods
from function.scheduler.ledger import Ledger, NodeCapacity
from function.scheduler.outcomes import Mismatch
from tests.support import build
from tests.support.cases import ask, one
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]


def gang(nodes: int, copies: int = 1, leader: int | None = None) -> list[Plain]:
    """A leader and so many workers of 8 GPUs each, in so many copies."""
    made = build.gang(nodes=nodes, copies=copies)
    if leader is not None:
        made["members"][0]["nodeSelector"]["devices"][0]["count"] = leader
    return [made]


@dataclass(frozen=True)
class Case:
    reason: str
    was: list[Plain]
    now: list[Plain]
    nodes: int
    free: int
    """What is left of the pool."""
    detail: str = ""
    """Why it is mismatched: what its pool lacks."""


CASES = [
    Case("as it was: nothing more is taken", gang(1), gang(1), 2, 0),
    Case("more workers take more nodes", gang(1), gang(3), 5, 1),
    Case("to the last", gang(1), gang(3), 4, 0),
    Case("one node too few makes it mismatched", gang(1), gang(3), 3, 1, "pool p0 needs 2 more"),
    Case("more copies take each of their pods", gang(1), gang(1, 2), 5, 1),
    Case("and are mismatched without room for all", gang(1), gang(1, 3), 5, 3, "pool p0 needs 4 more"),
    Case("fewer workers give nothing back before they are gone", gang(3), gang(1), 5, 1),
    Case("fewer copies neither", gang(1, 2), gang(1), 5, 1),
]


@pytest.mark.parametrize("accounting", ["Node", "Device"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_growth_in_place(case: Case, accounting: str) -> None:
    own_replica = build.replica(ask(engines=case.was), "a", 0, pools="p0", ready=True)
    fleet = [one("a", case.nodes, accounting=accounting)]
    decision = decide(World(ask(engines=case.now), fleet, [own_replica], build.observed(own_replica)))
    [kept] = decision.kept
    assert kept.mismatch is (Mismatch.CostGrew if case.detail else None)
    if accounting == "Node":
        assert kept.detail == case.detail
        assert not any(demand.gangs for demand in kept.growth.values()), "devices are not counted there"
    else:
        assert bool(kept.detail) == bool(case.detail)
    assert decision.ledger.capacity("a", "p0").free_nodes == case.free


@pytest.mark.parametrize(
    ("accounting", "nodes", "detail", "reason"),
    [
        ("Device", 4, "", "there is a node for one more while both stand"),
        ("Device", 3, "pool p0 needs 1 more", "and none: the pods of both may stand at a time"),
        ("Node", 3, "", "as many nodes as before"),
        ("Node", 2, "", "the pool has too few, which is no fault of who takes none of it"),
    ],
)
def test_one_engine_grows_by_what_another_shrinks(
    accounting: str, nodes: int, detail: str, reason: str
) -> None:
    def shaped(one_has: int, other_has: int) -> Plain:
        pods = [build.member(devices=[build.request("gpu", 8)])]
        copies = {"one": one_has, "other": other_has}
        return ask(engines=[build.engine(name, pods, copies=number) for name, number in copies.items()])

    own_replica = build.replica(shaped(2, 1), "a", 0, pools="p0", ready=True)
    fleet = [one("a", pools=[build.pool("p0", nodes), build.pool("p1", 1)], taints=[build.taint("x")])]
    for pool, counted in zip(fleet[0]["spec"]["nodePools"], (accounting, "Device"), strict=True):
        pool["accounting"] = counted
    [kept] = decide(World(shaped(1, 2), fleet, [own_replica], build.observed(own_replica))).kept
    assert kept.detail == detail, reason


@pytest.mark.parametrize(("nodes", "mismatch"), [(3, None), (2, Mismatch.CostGrew)])
def test_pods_that_may_share_no_node_grow_by_a_node_each(nodes: int, mismatch: Mismatch | None) -> None:
    """Though the devices of two nodes would do: a quarter of a node for each of three."""
    quarter = build.member(devices=[build.request("gpu", 2)])
    was, now = (ask(engines=[build.engine("main", [quarter], copies=copies)]) for copies in (2, 3))
    own_replica = build.replica(was, "a", 0, pools="p0", ready=True)
    fleet = [one("a", nodes, accounting="Device", taints=[build.taint("x")])]
    fleet[0]["spec"]["nodePools"][0]["acrossNodes"] = "Required"
    [kept] = decide(World(now, fleet, [own_replica], build.observed(own_replica))).kept
    assert kept.mismatch is mismatch
    grown = [
        (copies.gang[0].number, copies.number) for demand in kept.growth.values() for copies in demand.gangs
    ]
    assert grown == ([] if mismatch else [(2, -1), (3, 1)]), "one gang in place of another"


def test_two_that_grow_share_what_is_free() -> None:
    """The first in the order of cluster and index has it."""
    was, now = ask(2, engines=gang(1)), ask(2, engines=gang(2))
    own_replicas = [build.replica(was, "a", at, pools="p0", ready=True) for at in range(2)]
    decision = decide(World(now, [one("a", 5)], own_replicas, build.observed(*own_replicas)))
    assert [replica.mismatch for replica in decision.kept] == [None, Mismatch.CostGrew]
    assert decision.kept[0].growth == {"p0": Demand(1)}


def test_who_is_scaled_down_gives_its_growth_back() -> None:
    """And keeps what it holds until it is gone."""
    was, now = ask(2, engines=gang(1)), ask(1, engines=gang(2))
    own_replicas = [build.replica(was, "a", at, pools="p0", ready=True) for at in range(2)]
    for accounting in ("Node", "Device"):
        fleet = [one("a", 6, accounting=accounting)]
        decision = decide(World(now, fleet, own_replicas, build.observed(*own_replicas)))
        assert [replica.own_replica.key for replica in decision.dropped] == ["replica-a-1"]
        assert decision.ledger.capacity("a", "p0").free_nodes == 1


@pytest.mark.parametrize("accounting", ["Node", "Device"])
def test_what_is_withheld_is_given_back_as_it_was_taken(accounting: str) -> None:
    decision = decide(World(ask(4, least=3), [one("a", 2, accounting=accounting)]))
    assert (decision.withheld, decision.ledger.capacity("a", "p0").free_nodes) == (2, 2)


@pytest.mark.parametrize(
    ("labels", "mismatch", "detail", "reason"),
    [
        ({"disk": "slow"}, Mismatch.CacheMoved, "cache weights", "not staged where the replica runs"),
        ({"disk": "fast"}, None, "", "staged there too"),
    ],
)
def test_another_cache(labels: dict[str, str], mismatch: Mismatch | None, detail: str, reason: str) -> None:
    own_replica = build.replica(ask(cache="before"), "a", 0, pools="p0", ready=True)
    fleet = [one("a", 1, labels=labels)]
    made = World(
        ask(cache="weights"),
        fleet,
        [own_replica],
        build.observed(own_replica),
        cache=[build.cache("weights", {"disk": "fast"})],
    )
    [kept] = decide(made).kept
    assert (kept.mismatch, kept.detail) == (mismatch, detail), reason


def test_a_pool_that_is_not_published_has_nothing_and_cannot_be_overcommitted() -> None:
    """Charging it changes nothing."""
    ledger = Ledger([])
    ledger.charge("a", {"p0": Demand(3, (Copies((Pods((Claim("gpu", 8),), 1),), 1),))})
    assert ledger.capacity("a", "p0") == NodeCapacity(0) == ledger.initial("a", "p0")
    assert not ledger.overcommitted("a", "p0")
    assert not ledger.by_devices("a", "p0")
    assert ledger.holding("a", "p0") == []


def test_who_holds_a_pool_is_told_most_first_and_then_by_name() -> None:
    held = {"one": 1, "few": 2, "many": 3, "also": 2}
    existing = []
    for name, copies in held.items():
        other = build.deployment(name, engines=[build.engine("main", copies=copies)])
        existing.append(build.replica(other, "a", 0, pools="p0"))
    decision = decide(World(ask(0), [one("a", 9)], existing))
    assert list(decision.ledger.holders("a", "p0").items()) == [
        (f"{build.NAMESPACE}/many", 3),
        (f"{build.NAMESPACE}/also", 2),
        (f"{build.NAMESPACE}/few", 2),
        (f"{build.NAMESPACE}/one", 1),
    ]


def test_a_budget_that_does_not_tell_if_there_is_room_is_doubt() -> None:
    """Four pods on one node take a look at their packing. With fewer steps nothing is mismatched."""
    two = build.member(devices=[build.request("gpu", 2)])
    was, now = (ask(engines=[build.engine("main", [two], copies=copies)]) for copies in (2, 4))
    own_replica = build.replica(was, "a", 0, pools="p0", ready=True)
    made = World(now, [one("a", 1, accounting="Device")], [own_replica], build.observed(own_replica))
    doubts = set()
    for steps in range(1, 20):
        [kept] = decide(made.but(input={"searchBudget": steps})).kept
        assert kept.mismatch is None, steps
        steps_enough = ("steps are enough to tell if pool p0 has room",) if kept.doubt else ()
        assert kept.withheld_until == steps_enough
        doubts.add(kept.doubt.partition(" steps")[0])
    assert doubts == {"", "pool p0: search budget exceeded: 1"}
