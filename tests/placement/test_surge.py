"""Surge: a replacement stands beside what it replaces, which leaves when the others can do without it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from function.api import Malformed, ModelDeployment
from tests.support import build
from tests.support.cases import clusters
from tests.support.drive import Answer, run
from tests.support.rollouts import NEW, OLD, Seen, deployment, running
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Plain = dict[str, Any]

DISRUPTION = "placement.disruption"
OF_SPEC = f"spec.{DISRUPTION}"
PLACE = "there is a place for one more (see ReplicasScheduled)"
ZERO = "must be at least 1 where maxSurge is 0: nothing could ever be replaced, found 0"
WITHIN = ", within placement.rollout.maxUnavailable,"
SURGE: Plain = {"disruption": {"maxUnavailable": 0, "maxSurge": 1}}
BOTH: Plain = {"disruption": {"maxUnavailable": 1, "maxSurge": 1}}
BY_SURGE: Plain = SURGE | {"rollout": {"maxUnavailable": 0}}
DRAINED: Plain = {"nodes": 9, "taints": [build.taint("x", "NoExecute")]}
FULL: Plain = {"nodes": 1, "taints": [build.taint("x", "NoExecute")]}


def answered(
    made: Plain,
    seen: Sequence[Seen],
    fleet: Mapping[str, Any],
    *,
    gpus: int = 8,
    match: Sequence[str] = (),
    **more: Any,
) -> Answer:
    """Ask about replicas that were stamped with `gpus` GPUs each, but for those that match.

    Other than 8 are mismatched.
    """
    own_replicas = running(*seen)
    for manifest in (
        made for item, made in zip(seen, own_replicas, strict=True) if f"{item.on}-{item.index}" not in match
    ):
        manifest["spec"]["engines"][0]["members"][0]["deviceRequests"][0]["count"] = gpus
    return run(World(made, clusters(**fleet), own_replicas, build.observed(*own_replicas), **more))


@dataclass(frozen=True)
class Case:
    """Replicas that are observed, and those that are to stand after this pass."""

    reason: str
    seen: Sequence[Seen]
    stand: Sequence[str]
    """Cluster and index of each desired replica."""
    fleet: Mapping[str, Any]
    status: str = "ReplicasCreated"
    wanted: int = 2
    placement: Plain = field(default_factory=lambda: SURGE)
    gpus: int = 8
    match: Sequence[str] = ()
    """Those that were stamped with 8 GPUs all the same."""
    image: str = OLD
    """The image that is wanted; what is observed runs the old one unless it says otherwise."""
    labels: Plain | None = None

    def __str__(self) -> str:
        """The name of the test: what it proves."""
        return self.reason


ON_A = [Seen("a", 0), Seen("a", 1)]
A_LEAVES = {"a": DRAINED, "b": 9}
DRAINS = [
    Case("a replacement is placed beside", ON_A, ["a-0", "a-1", "b-0"], A_LEAVES),
    Case(
        "nobody leaves while it starts, and no other is placed",
        [*ON_A, Seen("b", 0, ready=False)],
        ["a-0", "a-1", "b-0"],
        A_LEAVES,
    ),
    Case(
        "when it serves one leaves, and the next is placed in the same pass",
        [*ON_A, Seen("b", 0)],
        ["a-0", "b-0", "b-1"],
        A_LEAVES,
    ),
    Case("the last one", [Seen("a", 0), Seen("b", 0), Seen("b", 1)], ["b-0", "b-1"], A_LEAVES),
    Case(
        "no place beside the first one is none beside it alone: another has room where it counts itself",
        [Seen("a", 0), Seen("b", 0)],
        ["a-0", "a-1", "b-0"],
        {"a": 9, "b": 1},
        "ReplacementBlocked",
        placement=SURGE | {"maxReplicasPerCluster": 1},
        gpus=4,
    ),
    Case("no place: it stays and serves", ON_A, ["a-0", "a-1"], {"a": DRAINED}, "ReplacementBlocked"),
    Case(
        "a replacement that serves another deployment's nodes is none: it is charged in full",
        ON_A,
        ["a-0", "a-1"],
        {"a": DRAINED, "b": 0},
        "ReplacementBlocked",
    ),
    Case(
        "one that does not serve stays too, as long as too few serve without it",
        [Seen("a", 0, ready=False), Seen("a", 1)],
        ["a-0", "a-1", "b-0"],
        A_LEAVES,
    ),
    Case(
        "of several that do not serve one leaves when its replacement does: else they held the surge",
        [Seen("a", 0, ready=False), Seen("a", 1, ready=False), Seen("b", 0)],
        ["a-0", "b-0", "b-1"],
        A_LEAVES,
    ),
    Case(
        "not before it serves",
        [Seen("a", 0, ready=False), Seen("a", 1, ready=False), Seen("b", 0, ready=False)],
        ["a-0", "a-1", "b-0"],
        A_LEAVES,
    ),
    Case(
        "two at a time with a surge of two",
        ON_A,
        ["a-0", "a-1", "b-0", "b-1"],
        A_LEAVES,
        placement={"disruption": {"maxSurge": 2}},
    ),
    Case(
        "with maxUnavailable 1 one leaves at once, and one is placed beside the other",
        ON_A,
        ["a-0", "b-0", "b-1"],
        A_LEAVES,
        placement=BOTH,
    ),
    Case(
        "what is missing comes first",
        [Seen("a", 0)],
        ["a-0", "b-0", "b-1"],
        A_LEAVES,
    ),
    Case(
        "the drain is taken back: what was placed and does not serve leaves again",
        [*ON_A, Seen("b", 0, ready=False)],
        ["a-0", "a-1"],
        {"a": 9, "b": 9},
    ),
    Case(
        "scale down in the middle: the new one stays, and as many old ones as surge allows",
        [Seen("a", 0), Seen("a", 1), Seen("a", 2), Seen("b", 0, ready=False)],
        ["a-0", "b-0"],
        A_LEAVES,
        wanted=1,
    ),
    Case(
        "scale down: what serves stays before what does not",
        [Seen("a", 0), Seen("a", 1), Seen("b", 0, ready=False), Seen("b", 1, ready=False)],
        ["a-0", "a-1", "b-0"],
        A_LEAVES,
    ),
    Case(
        "scaled to nothing everything leaves",
        [*ON_A, Seen("b", 0)],
        [],
        A_LEAVES,
        wanted=0,
    ),
    Case(
        "a cluster that is gone takes its replica with it, surge or none",
        [Seen("z", 0), Seen("b", 0)],
        ["a-0", "b-0"],
        {"a": 9, "b": 9},
    ),
]
MISMATCHES = [
    Case(
        "a mismatched replica stays beside its replacement, which is charged in full",
        [Seen("a", 0), Seen("b", 0)],
        ["a-0", "a-1", "b-0"],
        {"a": 2, "b": 1},
        gpus=4,
    ),
    Case(
        "its own nodes are not free for it",
        [Seen("a", 0), Seen("b", 0)],
        ["a-0", "b-0"],
        {"a": 1, "b": 1},
        "ReplacementBlocked",
        gpus=4,
    ),
    Case(
        "with maxUnavailable 1 they are",
        [Seen("a", 0), Seen("b", 0)],
        ["a-0", "b-1"],
        {"a": 1, "b": 1},
        gpus=4,
        placement=BOTH,
    ),
    Case(
        "one on the way out counts for no spreading: its replacement goes where it was",
        [Seen("a", 0), Seen("b", 0)],
        ["a-0", "b-0", "b-1"],
        {"a": 9, "b": 9},
        gpus=4,
    ),
]
A_AND_B = {"a": 9, "b": 9}
MISMATCHES += [
    Case(
        "one that serves nobody stays, too, as long as too few of those that last serve",
        [Seen("a", 0, ready=False), Seen("a", 1)],
        ["a-0", "a-1", "b-0"],
        A_AND_B,
        gpus=4,
    ),
    Case(
        "of several that serve nobody one leaves when its replacement does: else they held the surge",
        [Seen("a", 0, ready=False), Seen("a", 1, ready=False), Seen("b", 0)],
        ["a-0", "a-2", "b-0"],
        A_AND_B,
        gpus=4,
        match=["b-0"],
    ),
    Case(
        "not before it serves",
        [Seen("a", 0, ready=False), Seen("a", 1, ready=False), Seen("b", 0, ready=False)],
        ["a-0", "a-1", "b-0"],
        A_AND_B,
        gpus=4,
        match=["b-0"],
    ),
    Case(
        "one that has its replacement counts for no spreading either",
        [Seen("b", 0), Seen("b", 1), Seen("a", 0, ready=False)],
        ["a-0", "b-0", "b-1", "b-2"],
        A_AND_B,
        gpus=4,
        match=["a-0"],
        placement={"disruption": {"maxUnavailable": 0, "maxSurge": 2}},
    ),
    Case(
        "and each for one",
        [Seen("b", 0), Seen("b", 1), Seen("b", 2), Seen("a", 0, ready=False)],
        ["a-0", "a-1", "b-0", "b-1", "b-2"],
        A_AND_B,
        wanted=3,
        gpus=4,
        match=["a-0"],
        placement={"disruption": {"maxUnavailable": 0, "maxSurge": 2}},
    ),
    Case(
        "also one whose replacement is placed now",
        [Seen("b", 0), Seen("b", 1), Seen("a", 0)],
        ["a-0", "a-1", "b-0", "b-1"],
        A_AND_B,
        wanted=3,
        gpus=4,
    ),
    Case(
        "without a place none leaves, however many there are on the cluster",
        ON_A,
        ["a-0", "a-1"],
        {"a": {"pools": [build.pool("p0", 9, [build.gpu(4)])]}},
        "ReplacementBlocked",
        gpus=4,
        placement=BOTH,
    ),
]
ROLLOUTS = [
    Case(
        "maxUnavailable 0: one that is not in service has nothing to lose, and is updated in place",
        [Seen("a", 0, ready=False), Seen("b", 0)],
        ["a-0", "b-0", "b-1"],
        A_AND_B,
        placement=BY_SURGE,
        image=NEW,
    ),
    Case(
        "maxUnavailable 0: nothing is updated in place, one with the new template is placed beside",
        [Seen("a", 0), Seen("b", 0)],
        ["a-0", "b-0", "b-1"],
        {"a": 9, "b": 9},
        placement=BY_SURGE,
        image=NEW,
    ),
    Case(
        "what may be out of service for a drain may not be for an edit",
        [Seen("a", 0)],
        ["a-0", "a-1"],
        {"a": 9},
        wanted=1,
        placement=BOTH | {"rollout": {"maxUnavailable": 0}},
        image=NEW,
    ),
    Case(
        "one that does not start stops it",
        [Seen("a", 0), Seen("b", 0), Seen("b", 1, NEW, ready=False)],
        ["a-0", "b-0", "b-1"],
        {"a": 9, "b": 9},
        placement=BY_SURGE,
        image=NEW,
    ),
    Case(
        "when it serves one leaves",
        [Seen("a", 0), Seen("b", 0), Seen("b", 1, NEW)],
        ["a-0", "a-1", "b-1"],
        {"a": 9, "b": 9},
        placement=BY_SURGE,
        image=NEW,
    ),
    Case(
        "the edit is taken back: what never served leaves",
        [Seen("a", 0), Seen("b", 0), Seen("b", 1, NEW, ready=False)],
        ["a-0", "b-0"],
        {"a": 9, "b": 9},
        placement=BY_SURGE,
    ),
    Case(
        "no place",
        [Seen("a", 0), Seen("b", 0)],
        ["a-0", "b-0"],
        {"a": 1, "b": 1},
        "ReplacementBlocked",
        placement=BY_SURGE,
        image=NEW,
    ),
    Case(
        "none is wanted any more: nothing is replaced, also while no cluster is known",
        [Seen("a", 0), Seen("b", 0)],
        [],
        {},
        wanted=0,
        placement=BY_SURGE,
        image=NEW,
    ),
    Case(
        "with rollout.maxUnavailable 1 surge is not used: it goes in place",
        [Seen("a", 0), Seen("b", 0)],
        ["a-0", "b-0"],
        {"a": 9, "b": 9},
        placement=SURGE | {"rollout": {"maxUnavailable": 1}},
        image=NEW,
    ),
]


@pytest.mark.parametrize("case", [*DRAINS, *MISMATCHES, *ROLLOUTS], ids=str)
def test_who_stands_after_one_pass(case: Case) -> None:
    made = deployment(case.wanted, case.image, case.placement)
    answer = answered(made, case.seen, case.fleet, gpus=case.gpus, match=case.match)
    stand = sorted(key.removeprefix("replica-") for key in answer.replicas)
    assert stand == sorted(case.stand), answer.conditions
    assert answer.reason() == case.status, answer.conditions


def test_the_next_to_leave_is_the_one_whose_replacement_stands() -> None:
    seen = [*ON_A, Seen("b", 0, ready=False)]
    decision = answered(deployment(2, OLD, SURGE), seen, A_AND_B, gpus=4, match=["b-0"]).decision
    assert [(kept.own_replica.key, kept.waits, kept.covered) for kept in decision.kept] == [
        ("replica-a-0", "replacement", False),
        ("replica-a-1", "replacement", True),
        ("replica-b-0", "", False),
    ]


def test_one_without_a_place_beside_it_counts_as_before() -> None:
    decision = answered(deployment(2, OLD, SURGE), ON_A, {"a": 2}, gpus=4).decision
    assert (len(decision.placed), decision.ledger.counts["a"]) == (0, 2)


def test_a_replica_that_waits_keeps_its_endpoint_and_its_template() -> None:
    own_replicas = running(Seen("a", 0), Seen("b", 0))
    seen = build.observed(*own_replicas, endpoints=[build.endpoint(replica) for replica in own_replicas])
    answer = run(World(deployment(2, NEW, BY_SURGE), clusters(a=9, b=9), own_replicas, seen))
    assert len(answer.endpoints) == 2
    for manifest in own_replicas:
        key = f"replica-{manifest['spec']['clusterName']}-0"
        assert answer.replicas[key]["spec"] == manifest["spec"]


def test_what_the_conditions_say() -> None:
    answer = answered(deployment(2, OLD, SURGE), ON_A, A_LEAVES)
    assert answer.conditions["ReplicasScheduled"] == (
        True,
        "ReplicasCreated",
        (
            f"Scheduled 3 of 2 replicas; 2 wait for drain (x:NoExecute), within {DISRUPTION}.maxUnavailable; "
            f"1 more than wanted until replacements are in service ({DISRUPTION}.maxSurge)"
        ),
    )
    blocked = answered(deployment(2, OLD, SURGE), ON_A, {"a": DRAINED})
    status, reason, message = blocked.conditions["ReplicasScheduled"]
    assert (status, reason) == (False, "ReplacementBlocked")
    assert message.startswith("1 replica needs replacement and none has a place, so they keep running as")
    assert "drain (x:NoExecute); 0/1 clusters can host another: 1 untolerated taint {x: NoExecute}" in message
    said = answered(deployment(2, NEW, BY_SURGE), ON_A, {"a": 9}).conditions["ReplicasUpdated"]
    assert said == (
        False,
        "RollingOut",
        f"1 of 3 replicas updated; 2 wait{WITHIN} for 1 placed now",
    )
    paused = answered(deployment(2, NEW, BY_SURGE), ON_A, {"a": 2}).conditions["ReplicasUpdated"]
    assert paused == (
        False,
        "RolloutPaused",
        f"0 of 2 replicas updated; 2 wait{WITHIN} until {PLACE}",
    )


@pytest.mark.parametrize(
    ("placement", "fault"),
    [
        (
            {"disruption": {"maxUnavailable": 0}},
            f"{OF_SPEC}.maxUnavailable: {ZERO}",
        ),
        (
            {"disruption": {"maxUnavailable": 0, "maxSurge": "one"}},
            f'{OF_SPEC}.maxSurge: expected a whole number, found "one"',
        ),
        (
            {"disruption": {"maxSurge": -1}},
            f"{OF_SPEC}.maxSurge: must be at least 0, found -1",
        ),
        (
            {"rollout": {"maxUnavailable": 0}},
            "spec.placement.rollout: maxUnavailable 0 needs disruption.maxSurge of at least 1",
        ),
        (
            {"rollout": {"maxUnavailable": "25%"}},
            'spec.placement.rollout.maxUnavailable: expected a whole number, found "25%"',
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(placement: Plain, fault: str) -> None:
    with pytest.raises(Malformed) as refused:
        ModelDeployment.parse(deployment(2, OLD, placement))
    assert str(refused.value) == fault


def test_a_default_of_zero_is_one_where_the_deployment_has_no_surge() -> None:
    """Field by field the function's defaults may not go together with the deployment's own policy."""
    made = deployment(2, NEW, {"disruption": {"maxUnavailable": 1}})
    given = {"defaults": {"placement": BY_SURGE}}
    answer = answered(made, [Seen("a", 0), Seen("b", 0)], {"a": 9, "b": 9}, input=given)
    assert answer.conditions["ReplicasUpdated"][1] == "RollingOut"
    assert len(answer.replicas) == 2
