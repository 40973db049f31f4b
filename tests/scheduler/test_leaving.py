"""Who leaves first, what it gives back, and what is put back when nothing comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from function.api.reasons import Reason
from function.scheduler.disruption import Leaving
from tests.support import build
from tests.support.cases import ask, clusters, pools_of, sized
from tests.support.coordinated import EARLY, called, coordinated
from tests.support.scarce import decide
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.scheduler.decision import Decision

Plain = dict[str, Any]


@dataclass(frozen=True)
class Case:
    reason: str
    running: Sequence[tuple[str, int, bool | None]]
    """Cluster, index, Ready of each replica that runs."""
    leave: list[str]
    wanted: int = 0
    fleet: dict[str, Any] = field(default_factory=lambda: {"a": 9, "b": 9})
    placement: Plain | None = None
    tolerations: Sequence[Plain] = ()


def took(case: Case) -> Decision:
    wanted = ask(case.wanted, placement=case.placement, tolerations=case.tolerations)
    own_replicas = [
        build.replica(wanted, on, index, pools="p0", ready=ready) for on, index, ready in case.running
    ]
    return decide(World(wanted, clusters(**case.fleet), own_replicas, build.observed(*own_replicas)))


def keys(replicas: Sequence[Any]) -> list[str]:
    return [replica.own_replica.key.removeprefix("replica-") for replica in replicas]


def test_a_queue_of_those_that_leave_looks_at_each_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in counts: looking at all that stay for each that leaves takes 500 times as many."""
    looked, real = [0], Leaving._entry

    def entry(self: Leaving[Any], *key: Any) -> tuple[object, ...]:
        looked[0] += 1
        return real(self, *key)

    monkeypatch.setattr(Leaving, "_entry", entry)
    running = [(f"c{at % 20:02}", at // 20, True) for at in range(1_000)]
    taken = took(Case("", running, [], 0, {f"c{at:02}": 99 for at in range(20)}))
    assert len(taken.dropped) == 1_000
    assert looked[0] <= 10 * 1_000
    looked[0] = 0
    tainted = {f"c{at:02}": {"nodes": 99, **DRAINED} for at in range(20)}
    drained = took(Case("", running, [], 200, tainted))
    assert len(drained.dropped) == 1_000
    assert looked[0] <= 10 * 1_000


DRAINED = {"taints": [build.taint("x", "NoExecute")]}
ONE_AT_A_TIME = {"disruption": {"maxUnavailable": 1}}
TAINTED = {"nodes": 9, "taints": [build.taint("x")]}
TOLERATED = [{"key": "x", "operator": "Exists"}]
SILENT = {"nodes": 9, "ready": None}
SCALED_DOWN = [
    Case("the highest index", [("a", 0, True), ("a", 1, True), ("a", 2, True)], ["a-2", "a-1"], 1),
    Case("on whichever of equal clusters", [("a", 5, True), ("b", 0, True)], ["a-5"], 1),
    Case(
        "the cluster with most of them before the highest index",
        [("a", 0, True), ("a", 1, True), ("b", 7, True)],
        ["a-1"],
        2,
    ),
    Case(
        "indices with gaps: the survivors end spread",
        [("a", 0, True), ("a", 1, True), ("a", 2, True), ("b", 4, True), ("b", 5, True), ("b", 6, True)],
        ["b-6", "a-2", "b-5", "a-1"],
        2,
    ),
    Case("one that is not Ready before that", [("a", 0, False), ("a", 1, True)], ["a-0"], 1),
    Case("one that does not say is not Ready", [("a", 0, None), ("a", 1, True)], ["a-0"], 1),
    Case(
        "one on a tainted cluster before that",
        [("a", 1, False), ("b", 0, True)],
        ["b-0"],
        1,
        {"a": 9, "b": TAINTED},
    ),
    Case(
        "a taint that is tolerated is none",
        [("a", 1, True), ("b", 0, True)],
        ["a-1"],
        1,
        {"a": 9, "b": TAINTED},
        tolerations=TOLERATED,
    ),
    Case(
        "one on a cluster that is not Ready",
        [("a", 1, False), ("b", 0, True)],
        ["b-0"],
        1,
        {"a": 9, "b": {"nodes": 9, "ready": False}},
    ),
    Case(
        "not a Ready one on a cluster that does not say whether it is Ready",
        [("a", 5, True), ("b", 0, True)],
        ["a-5"],
        1,
        {"a": 9, "b": SILENT},
    ),
    Case(
        "one that is not Ready before a Ready one on such a cluster",
        [("a", 0, False), ("b", 0, True), ("b", 1, True)],
        ["a-0"],
        2,
        {"a": 9, "b": SILENT},
    ),
    Case(
        "one that is not Ready there like any other",
        [("a", 0, True), ("a", 1, True), ("b", 0, False)],
        ["b-0"],
        2,
        {"a": 9, "b": SILENT},
    ),
    Case(
        "a taint there counts all the same",
        [("a", 5, True), ("b", 0, True)],
        ["b-0"],
        1,
        {"a": 9, "b": {**SILENT, **TAINTED}},
    ),
    Case(
        "what a cluster has is counted again after each",
        [("a", 0, True), ("a", 1, True), ("b", 1, True), ("c", 1, True)],
        ["a-1", "c-1", "b-1"],
        1,
        {"a": 9, "b": 9, "c": 9},
    ),
    Case(
        "by one for each",
        [("a", 0, True), ("a", 4, True), ("a", 5, True), ("b", 0, True), ("b", 1, True)],
        ["a-5", "a-4"],
        3,
    ),
    Case(
        "with surge, one that is not in service before one on a tainted cluster",
        [("a", 1, False), ("b", 0, True)],
        ["a-1"],
        1,
        {"a": 9, "b": TAINTED},
        {"disruption": {"maxUnavailable": 0, "maxSurge": 1}},
    ),
    Case(
        "surge is for replacements: without any no more stay than are wanted",
        [("a", 0, True), ("a", 1, True), ("a", 2, True)],
        ["a-2", "a-1"],
        1,
        placement={"disruption": {"maxUnavailable": 0, "maxSurge": 1}},
    ),
    Case(
        "one where it is preferred least, before the cluster with most of them",
        [("a", 0, True), ("a", 1, True), ("b", 0, True)],
        ["b-0", "a-1"],
        1,
        {"a": {"labels": {"tier": "reserved"}}, "b": 9},
        {"preferences": [{"weight": 9, "matchLabels": {"tier": "reserved"}}]},
    ),
    Case(
        "one that is not Ready before that",
        [("a", 0, False), ("b", 0, True)],
        ["a-0"],
        1,
        {"a": {"labels": {"tier": "reserved"}}, "b": 9},
        {"preferences": [{"weight": 9, "matchLabels": {"tier": "reserved"}}]},
    ),
    Case("then the later name", [("a", 0, True), ("b", 0, True)], ["b-0"], 1),
    Case("all of them", [("a", 0, True), ("b", 0, True)], ["b-0", "a-0"], 0),
    Case("none where no more are kept than wanted", [("a", 0, True), ("b", 0, True)], [], 2),
]


@pytest.mark.parametrize("case", SCALED_DOWN, ids=lambda case: case.reason)
def test_who_is_scaled_down(case: Case) -> None:
    assert keys(took(case).dropped) == case.leave


def test_one_that_is_mismatched_is_scaled_down_before_one_on_a_tainted_cluster() -> None:
    """It is replaced in any case; of the others none moves."""
    wanted = ask(1)
    running = [
        build.replica(ask(1, gpus=4), "a", 0, pools="p0", ready=True),
        build.replica(wanted, "b", 5, pools="p0", ready=False),
    ]
    decision = decide(World(wanted, clusters(a=9, b=TAINTED), running, build.observed(*running)))
    assert keys(decision.dropped) == ["a-0"]


def test_of_those_on_the_way_out_as_many_stay_as_surge_allows() -> None:
    """One for each that is wanted, and one whose replacement may stand: it counts as that."""
    placement = {"disruption": {"maxUnavailable": 0, "maxSurge": 1}}
    running = [build.replica(ask(gpus=4), "a", at, pools="p0", ready=True) for at in range(4)]
    made = World(ask(1, placement=placement), clusters(a=9), running, build.observed(*running))
    left = [(*keys([dropped]), dropped.cause.name) for dropped in decide(made).dropped]
    assert left == [("a-3", "ScaledDown"), ("a-2", "ScaledDown"), ("a-1", "Replaced")]


@pytest.mark.parametrize(
    "status", [None, 3, {}, {"gpuPools": []}], ids=["gone", "a number", "empty", "no pools"]
)
def test_a_cluster_that_loses_its_status_does_not_lose_its_replicas_first(status: Any) -> None:
    wanted = ask(1)
    running = [build.replica(wanted, on, at, pools="p0", ready=True) for on, at in (("a", 5), ("b", 0))]
    fleet = clusters(a=9, b=9)
    fleet[1]["status"] = status
    decision = decide(World(wanted, fleet, running, build.observed(*running)))
    assert keys(decision.dropped) == ["a-5"]


DRAINS = [
    Case("all at once without a budget", [("a", 0, True), ("a", 1, True)], ["a-0", "a-1"], 2, {"a": DRAINED}),
    Case(
        "with one, the highest index first",
        [("a", 0, True), ("a", 1, True), ("a", 2, True)],
        ["a-2"],
        3,
        {"a": DRAINED},
        ONE_AT_A_TIME,
    ),
    Case(
        "the cluster with most of them before the highest index",
        [("a", 0, True), ("a", 1, True), ("b", 7, True)],
        ["a-1"],
        3,
        {"a": DRAINED, "b": DRAINED},
        ONE_AT_A_TIME,
    ),
    Case(
        "one that is not Ready serves nobody: it leaves, and the budget is used up",
        [("a", 0, False), ("a", 1, True), ("a", 2, True)],
        ["a-0"],
        3,
        {"a": DRAINED},
        ONE_AT_A_TIME,
    ),
    Case(
        "between equals the later cluster",
        [("a", 0, True), ("b", 0, True)],
        ["b-0"],
        2,
        {"a": DRAINED, "b": DRAINED},
        ONE_AT_A_TIME,
    ),
    Case(
        "it leaves first, and counts no longer for the load of its cluster",
        [("a", 0, False), ("a", 1, True), ("b", 5, True), ("c", 9, True)],
        ["a-0", "b-5"],
        3,
        {"a": DRAINED, "b": DRAINED, "c": 9},
        ONE_AT_A_TIME,
    ),
    Case(
        "one that is not Ready elsewhere uses the budget up",
        [("a", 0, True), ("b", 0, False)],
        [],
        2,
        {"a": DRAINED, "b": 9},
        ONE_AT_A_TIME,
    ),
    Case(
        "one that is wanted and missing does too",
        [("a", 0, True), ("b", 0, True)],
        [],
        3,
        {"a": DRAINED, "b": 9},
        ONE_AT_A_TIME,
    ),
    Case(
        "one more than wanted leaves room",
        [("a", 0, True), ("a", 1, True), ("b", 0, True)],
        ["a-1", "a-0"],
        2,
        {"a": DRAINED, "b": 9},
        ONE_AT_A_TIME,
    ),
]


@pytest.mark.parametrize("case", DRAINS, ids=lambda case: case.reason)
def test_who_leaves_a_drained_cluster_now(case: Case) -> None:
    decision = took(case)
    assert sorted(keys(decision.dropped)) == sorted(case.leave)
    waits = {replica.own_replica.key.removeprefix("replica-") for replica in decision.kept if replica.waits}
    drained = {name for name, given in case.fleet.items() if given is DRAINED}
    assert waits == {f"{on}-{index}" for on, index, _ in case.running if on in drained} - set(case.leave)


def test_beyond_the_budget_those_that_are_too_many_are_scaled_down_and_not_drained() -> None:
    """Without surge no replacement stands beside them, so who serves nobody waits for the budget, too."""
    running = [("a", 0, False), ("a", 1, False), ("a", 2, False), ("b", 0, True), ("b", 1, True)]
    dropped = took(Case("", running, [], 4, {"a": DRAINED, "b": 9}, ONE_AT_A_TIME)).dropped
    assert [(keys([leaves]), leaves.cause.name) for leaves in dropped] == [(["a-2"], "ScaledDown")]


def test_one_whose_key_cannot_be_read_keeps_nobody_from_being_scaled_down() -> None:
    wanted = ask(1)
    own_replicas = [build.replica(wanted, "a", at, pools="p0", ready=True) for at in range(3)]
    observed = {**build.observed(*own_replicas[1:]), "replica-!": own_replicas[0]}
    decision = decide(World(wanted, clusters(a=9), own_replicas, observed))
    assert (keys(decision.dropped), keys(decision.kept)) == (["a-2", "a-1"], ["!"])


def test_what_is_withheld_is_given_back() -> None:
    """Below minReplicas nothing new is placed: nodes and counts are as if it had not been tried."""
    decision = decide(World(ask(4, least=3), clusters(a=2)))
    assert (decision.placed, decision.withheld, decision.matched) == ((), 2, 1)
    assert decision.survey()["a"].reason is Reason.InsufficientNodes, "as it was with the two placed"
    assert decision.ledger.capacity("a", "p0").free_nodes == 2
    assert decision.placer is not None
    assert decision.ledger.counts["a"] == 0


def reshaped(nodes: dict[str, int], running: Sequence[str], *, copies: int = 1) -> Decision:
    """Replicas of an engine that is called otherwise now, and needs `copies` nodes."""
    was = ask(len(running))
    own_replicas = [build.replica(was, on, at, pools="p0", ready=True) for at, on in enumerate(running)]
    asked = build.member(devices=[build.request("gpu", 8)])
    now = ask(len(running), engines=[build.engine("other", [asked], copies=copies)])
    return decide(World(now, clusters(**nodes), own_replicas, build.observed(*own_replicas)))


def test_a_replacement_names_what_it_replaces() -> None:
    decision = reshaped({"a": 1, "b": 1}, ["a"])
    [placed], [dropped] = decision.placed, decision.dropped
    assert placed.replaces is not None
    assert placed.replaces.key == dropped.own_replica.key == "replica-a-0"
    assert dropped.detail == "the engines changed shape"


def test_what_is_replaced_is_charged_until_it_is_gone() -> None:
    """Its own replacement stands on its nodes; what it holds beyond that is nobody's yet."""
    decision = reshaped({"a": 1}, ["a"])
    assert [placement.identity.cluster for placement in decision.placed] == ["a"]
    assert decision.ledger.capacity("a", "p0").free_nodes == 0
    decision = reshaped({"a": 1, "b": 1}, ["b"])
    assert [placement.identity.cluster for placement in decision.placed] == ["a"]
    assert (
        decision.ledger.capacity("a", "p0").free_nodes,
        decision.ledger.capacity("b", "p0").free_nodes,
    ) == (0, 0)


def test_what_is_drained_is_charged_until_it_is_gone() -> None:
    wanted = ask(1)
    own_replica = build.replica(wanted, "a", 0, pools="p0", ready=True)
    decision = decide(World(wanted, clusters(a=DRAINED, b=1), [own_replica], build.observed(own_replica)))
    assert keys(decision.dropped) == ["a-0"]
    assert decision.ledger.capacity("a", "p0").free_nodes == 3, "of 4"


def test_what_finds_no_replacement_is_charged_and_counted_as_before() -> None:
    decision = reshaped({"a": 2}, ["a"], copies=3)
    assert keys(decision.held) == ["a-0"]
    assert (decision.placed, decision.dropped) == ((), ())
    assert decision.ledger.capacity("a", "p0").free_nodes == 1
    assert decision.placer is not None
    assert decision.ledger.counts["a"] == 1


def test_nobody_is_scaled_down_while_something_is_not_told() -> None:
    """Two are kept of one that is wanted: which of them is in a better place is not known yet."""
    wanted = ask(1)
    own_replicas = [build.replica(wanted, "a", at, pools="p0", ready=True) for at in range(2)]
    made = World(wanted, clusters(a=2), own_replicas, build.observed(*own_replicas))
    assert keys(decide(made).dropped) == ["a-1"]
    for late in (made.but(clusters=None), made.but(replicas=None)):
        assert decide(late).dropped == ()


def test_a_replica_that_only_the_list_knows_to_be_leaving_overcommits_nothing() -> None:
    """What Crossplane observes may be older than the list."""
    wanted = ask(2)
    own_replicas = [build.replica(wanted, "a", at, pools="p0", ready=True) for at in range(2)]
    dying = build.replica(wanted, "a", 0, pools="p0", ready=True, terminating=True)
    decision = decide(World(wanted, clusters(a=1), [dying, own_replicas[1]], build.observed(*own_replicas)))
    assert keys(decision.dropped) == ["a-0"]
    assert decision.overcommitted == ()
    assert decision.ledger.capacity("a", "p0").free_nodes == -1, "it is charged until it is gone"


TEAM = {"name": "team", "namespaces": [build.NAMESPACE], "atMost": {"nodes": 1}}
RECORDS: list[tuple[str, dict[str, Any], Plain | None, tuple[str, str]]] = [
    ("of a cluster that is gone, which", {"b": 4}, None, ("ClusterGone", "cluster a")),
    ("of a drain, the taint", {"a": DRAINED}, None, ("Drained", "x:NoExecute")),
    ("of one that yields, the pool", {"a": 1}, {"overcommit": "Yield"}, ("Yielded", "pool p0")),
    (
        "of one that a quota has no room for, the quota",
        {"a": 4},
        {"overcommit": "Yield", "quotas": [TEAM]},
        ("OverQuota", "quota team"),
    ),
]


@pytest.mark.parametrize(("reason", "fleet", "config", "record"), RECORDS, ids=[row[0] for row in RECORDS])
def test_why_one_leaves_is_on_record(
    reason: str, fleet: dict[str, Any], config: Plain | None, record: tuple[str, str]
) -> None:
    """One whose key cannot be read comes first on its cluster, and never leaves."""
    wanted = ask(3)
    own_replicas = [build.replica(wanted, "a", at, pools="p0") for at in range(2)]
    strange = build.replica(wanted, "a", 2, pools="p0", ready=True)
    observed = {**build.observed(*own_replicas), "replica-!": strange}
    made = World(wanted, clusters(**fleet), [*own_replicas, strange], observed, input=config)
    decision = decide(made)
    assert {(dropped.cause.name, dropped.detail) for dropped in decision.dropped} == {record}, reason
    assert "!" in keys(decision.kept)


@pytest.mark.parametrize("typo", [False, True])
def test_what_leaves_is_on_record_though_nothing_new_may_be_placed(*, typo: bool) -> None:
    """Scaling down needs no place, and so no valid selector."""
    wanted = ask(1)
    own_replicas = [build.replica(wanted, "a", at, pools="p0", ready=True) for at in range(2)]
    if typo:
        asked = build.request("gpu", 8, "typo(")
        wanted = ask(1, engines=[build.engine("main", [build.member(devices=[asked])])])
    decision = decide(World(wanted, clusters(a=2), own_replicas, build.observed(*own_replicas)))
    assert [(replica.own_replica.key, replica.cause.name) for replica in decision.dropped] == [
        ("replica-a-1", "ScaledDown")
    ]


@pytest.mark.parametrize("accounting", ["Node", "Device"])
@pytest.mark.parametrize(
    ("a", "b", "copies", "places", "reason"),
    [
        (2, 0, 1, 0, "it is replaced where it stands, and both are charged"),
        (3, 0, 1, 1, "a third node is nobody's"),
        (2, 3, 3, 1, "it moves, and what it leaves is charged once: the node next to it is nobody's"),
        (1, 3, 3, 0, "and its own is taken until it is gone"),
        (3, 0, 2, 0, "a larger replacement on the same nodes"),
        (4, 0, 2, 1, "and a node more"),
    ],
)
def test_what_an_earlier_deployment_gives_up_is_charged_once_until_it_is_gone(
    a: int, b: int, copies: int, places: int, reason: str, accounting: str
) -> None:
    asked = build.member(devices=[build.request("gpu", 8)])
    before, mine = called("earlier", created=EARLY), called("mine")
    earlier = called("earlier", created=EARLY, engines=[build.engine("other", [asked], copies=copies)])
    old = build.replica(before, "a", 0, pools="p0", ready=True)
    fleet = clusters(a={"nodes": a, "accounting": accounting}, b={"nodes": b, "accounting": accounting})
    answer = coordinated(mine, [earlier, mine], fleet, listed=[old])
    assert len(answer.replicas) == places, reason


def test_what_an_earlier_deployment_leaves_on_another_pool_is_all_that_is_charged_there() -> None:
    """It grows from the first pool to the second of its cluster; the node next to what it leaves is ours."""
    before, mine = called("earlier", created=EARLY), called("mine")
    grown = called("earlier", created=EARLY, engines=[{**sized(3)[0], "name": "other"}])
    old = build.replica(before, "a", 0, pools="p0", ready=True)
    for nodes, places in ((2, 1), (1, 0)):
        fleet = clusters(a={"pools": pools_of(nodes, 3)})
        answer = coordinated(mine, [grown, mine], fleet, listed=[old])
        assert len(answer.replicas) == places, nodes
