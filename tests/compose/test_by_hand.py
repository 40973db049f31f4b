"""Conditions that are asked for, notes, and the words of a replica: of decisions put together by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from function.api.cluster import NamedVictim
from function.api.priority import Priority
from function.boundary import Condition, PlainDocument, Request, Resolution, Unreadable
from function.deployment.compose import conditions
from function.scheduler.ledger import Overcommitted
from function.scheduler.outcomes import Cause
from function.wire import write
from function.wire.request import WireDocument
from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]


def bag(**of: Any) -> Any:
    """A decision, or a part of one, with these fields alone."""
    return SimpleNamespace(**of)


def fleet(*, delivered: bool = True, **of: Any) -> Any:
    return bag(fleet=bag(inputs_delivered=delivered, **of))


# CapacityRespected

HOLDS = [Overcommitted("a", f"p{at}", 3, 2) for at in range(5)]
ONE, REST = (
    "a/p0 holds 3 of 2 nodes",
    "a/p0 holds 3 of 2 nodes, a/p1 holds 3 of 2 nodes, a/p2 holds 3 of 2 nodes",
)
OTHERS = [bag(cause=Cause.ScaledDown)]
YIELDED = bag(cause=Cause.Yielded)


@pytest.mark.parametrize(
    ("decision", "expected", "reason"),
    [
        (
            bag(inputs=fleet(delivered=False), overcommitted=HOLDS, dropped=[]),
            (False, "InputsUnresolved", "Unknown: the fleet has not been delivered"),
            "nothing is known",
        ),
        (
            bag(inputs=fleet(), overcommitted=[], dropped=[YIELDED]),
            (True, "CapacityRespected", ""),
            "no pool holds too much",
        ),
        (
            bag(inputs=fleet(), overcommitted=HOLDS[:1], dropped=OTHERS),
            (False, "PoolOvercommitted", ONE),
            "nobody gives way",
        ),
        (
            bag(inputs=fleet(), overcommitted=HOLDS[:1], dropped=[YIELDED, *OTHERS]),
            (False, "PoolOvercommitted", f"{ONE}; 1 of its replicas gives way"),
            "one does",
        ),
        (
            bag(inputs=fleet(), overcommitted=HOLDS, dropped=[YIELDED, YIELDED]),
            (False, "PoolOvercommitted", f"{REST} and 2 more; 2 of its replicas give way"),
            "two do, and three pools are named",
        ),
    ],
)
def test_whether_pools_hold_no_more_than_they_have(decision: Any, expected: Any, reason: str) -> None:
    assert conditions.capacity_respected(decision) == Condition("CapacityRespected", *expected), reason


# PriorityResolved


def classed(priority: Priority, *names: str, fault: str = "") -> Any:
    config = bag(priority_classes=[bag(name=name) for name in names])
    return bag(
        inputs=bag(config_fault=fault, priority=priority, config=config, deployment=bag(namespace="ml-team"))
    )


UNKNOWN = Priority("gold", exists=False)
LOWEST = "it counts as the lowest"


@pytest.mark.parametrize(
    ("decision", "expected", "reason"),
    [
        (
            classed(UNKNOWN, fault="odd"),
            (False, "InputsUnresolved", "Unknown: the function's input is invalid"),
            "nothing of the input counts",
        ),
        (
            classed(UNKNOWN),
            (
                *(False, "PriorityClassUnknown"),
                f'There is no priority class "gold" (the function\'s input has none): {LOWEST}',
            ),
            "there are none",
        ),
        (
            classed(UNKNOWN, "d", "c", "b", "a"),
            (
                *(False, "PriorityClassUnknown"),
                f'There is no priority class "gold" (the classes are a, b, c and 1 more): {LOWEST}',
            ),
            "there are others",
        ),
        (
            classed(Priority("gold", allowed=False), "gold"),
            (
                *(False, "PriorityClassForbidden"),
                f'Priority class "gold" is not for namespace ml-team: {LOWEST}',
            ),
            "it is not theirs",
        ),
        (classed(Priority("gold", 9), "gold"), (True, "PriorityResolved", "gold, value 9"), "it has one"),
        (
            classed(Priority(), "gold"),
            (True, "PriorityResolved", "No class, which is the lowest"),
            "it names none",
        ),
    ],
)
def test_which_class_a_deployment_has(decision: Any, expected: Any, reason: str) -> None:
    assert conditions.priority_resolved(decision) == Condition("PriorityResolved", *expected), reason


# Who is asked for


def of(composite: Plain, given: Plain | None = None) -> Request:
    """A request as it comes from the wire, cut to what is asked of it."""
    return Request(WireDocument(write.struct(composite)), input=given or {})


def having(*kinds: str) -> Plain:
    return {"status": {"conditions": [{"type": kind} for kind in kinds]}}


def placing(**placement: Any) -> Plain:
    return {"spec": {"placement": placement}}


UPDATED, CAPACITY, PRIORITY = "ReplicasUpdated", "CapacityRespected", "PriorityResolved"
ASKED: list[tuple[Plain, Plain | None, list[str], str]] = [
    ({}, None, [], "nothing is asked for"),
    ({"spec": 3, "status": 3}, {"defaults": 3}, [], "what cannot be read asks for nothing"),
    (placing(rollout={}), None, [UPDATED], "its own rollout"),
    (placing(), {"defaults": {"placement": {"rollout": {}}}}, [UPDATED], "that of the input"),
    (placing(rollout=None), {"defaults": {"placement": {"rollout": {}}}}, [], "its own is none"),
    (placing(disruption={}), None, [], "another policy"),
    ({}, {"coordination": "GlobalOrder"}, [CAPACITY], "coordination"),
    ({}, {"capacity": "Published"}, [CAPACITY], "published sums"),
    ({}, {"overcommit": "Yield"}, [CAPACITY], "who gives way"),
    ({}, {"overcommit": "Keep"}, [], "nobody gives way"),
    ({}, {"priorityClasses": [{"name": "gold"}]}, [PRIORITY], "there are classes"),
    ({}, {"priorityClasses": []}, [], "there are none"),
    ({}, {"defaults": {"placement": {"priorityClassName": "gold"}}}, [PRIORITY], "the input names one"),
    (placing(priorityClassName="gold"), None, [PRIORITY], "the deployment names one"),
    (placing(priorityClassName=""), {}, [], "it names none"),
    (having("ReplicasReady"), None, [], "another condition"),
    *(
        (having("Ready", kind), {}, [kind], "one that was told stays")
        for kind in (UPDATED, CAPACITY, PRIORITY)
    ),
    (
        placing(rollout={}, priorityClassName="x") | having(CAPACITY),
        None,
        [UPDATED, CAPACITY, PRIORITY],
        "all, in their order",
    ),
]


@pytest.mark.parametrize(("composite", "given", "expected", "reason"), ASKED)
def test_which_conditions_are_told(
    composite: Plain, given: Plain | None, expected: list[str], reason: str
) -> None:
    assert conditions.optional(of(composite, given)) == tuple(expected), reason
    tells = (conditions.tells_rollout, conditions.tells_capacity, conditions.tells_priority)
    asked = [asks(of(composite, given)) for asks in tells]
    assert asked == [kind in expected for kind in (UPDATED, CAPACITY, PRIORITY)], reason


def test_a_composite_that_cannot_be_decoded_asks_for_nothing() -> None:
    class Broken(PlainDocument):
        def project(self, _shape: Any) -> Any:
            raise Unreadable("odd")

    for given in (None, {"defaults": {"placement": {"rollout": {}}}}):
        assert conditions.optional(Request(Broken({}), input=given or {})) == ()
    stated = conditions.optional(Request(Broken({}), input={"capacity": "Published", "priorityClasses": [1]}))
    assert stated == (CAPACITY, PRIORITY), "but for what the input asks for"


def test_conditions_that_are_not_asked_for_are_not_returned() -> None:
    decision = decide(World(ask(cache="weights"), clusters(a=4), cache=[build.cache("weights")]))
    always = ["ModelCacheResolved", "ReplicasScheduled", "ReplicasReady"]
    for requested in ([], [UPDATED], [CAPACITY], [PRIORITY], [PRIORITY, CAPACITY, UPDATED]):
        stated = conditions.conditions(decision, (), requested)
        optional = [kind for kind in (UPDATED, CAPACITY, PRIORITY) if kind in requested]
        assert [condition.type for condition in stated] == always + optional
    without = conditions.conditions(decide(World(ask(), clusters(a=4))), (), ())
    assert [condition.type for condition in without] == always[1:]


# ModelCacheResolved


@pytest.mark.parametrize(
    ("resolution", "fault", "expected"),
    [
        (None, "", None),
        (Resolution.DELIVERED, "", (True, "ModelCacheResolved", "")),
        (
            Resolution.ABSENT,
            "",
            (False, "ModelCacheNotFound", "ModelCache a/b does not exist; nothing new is placed"),
        ),
        (Resolution.UNRESOLVED, "", (False, "ModelCacheUnresolved", "Waiting for ModelCache a/b")),
        (Resolution.UNRESOLVED, "odd", (False, "ModelCacheUnresolved", "ModelCache a/b cannot be read: odd")),
    ],
)
def test_whether_the_cache_is_there(resolution: Resolution | None, fault: str, expected: Any) -> None:
    made = conditions.cache_resolved("a/b", resolution, fault)
    assert made == (expected and Condition("ModelCacheResolved", *expected))


# Notes

DEAR = "counted as no match, because evaluating it costs too much"


@pytest.mark.parametrize(
    ("left_out", "unjudged", "said", "reason"),
    [
        ((), {}, [], "nothing is too dear"),
        (
            ("a/x",),
            {},
            ["nothing is reserved for a/x: their selectors cost more than a call spends on others"],
            "an earlier deployment",
        ),
        (
            ("a/w", "a/x", "a/y", "a/z"),
            {1: {"a"}, 0: {"a", "b"}},
            [
                (
                    "nothing is reserved for a/w, a/x, a/y and 1 more: their selectors cost more than a call "
                    "spends on others"
                ),
                (f"{DEAR}: preferences[0] on 2 clusters, preferences[1] on 1 cluster"),
            ],
            "several, and preferences of its own",
        ),
        (
            (),
            {at: {"a"} for at in range(4)},
            [
                (
                    f"{DEAR}: preferences[0] on 1 cluster, "
                    "preferences[1] on 1 cluster, preferences[2] on 1 cluster and 1 more"
                )
            ],
            "more than are named",
        ),
    ],
)
def test_selectors_that_cost_too_much_are_named(
    left_out: Any, unjudged: Any, said: list[str], reason: str
) -> None:
    decision = bag(left_out=left_out, inputs=bag(evaluations=bag(unjudged=unjudged)))
    assert list(conditions._too_dear(decision)) == said, reason


def victim(to: str = "ml-team/my-model", quota: str = "") -> NamedVictim:
    return NamedVictim("uid", to, "gold", quota)


def waiting(number: int, ready: bool | None = None, *, preempting: bool = True, on: str = "a") -> list[Any]:  # noqa: FBT001
    replica = bag(preempting=preempting, ready=ready)
    return [bag(own_replica=bag(cluster=on, replica=replica))] * number


@pytest.mark.parametrize(
    ("kept", "victims", "preempts", "said", "reason"),
    [
        (
            waiting(1),
            [victim()],
            True,
            "1 on a waits for 1 replica of lower classes to give way",
            "one for one",
        ),
        (waiting(2), [victim()] * 2, True, "2 on a wait for 2 replicas of lower classes to give way", "two"),
        (
            waiting(1),
            [victim(quota="q")],
            True,
            "1 on a waits for 1 replica that borrows to give way",
            "what is borrowed",
        ),
        (
            waiting(1),
            [victim(quota="q"), victim()],
            True,
            "1 on a waits for 2 replicas that borrow to give way",
            "some of them borrow",
        ),
        (waiting(1), [victim("ml-team/other")], True, "", "they give way to another"),
        (waiting(1), [], True, "", "nobody does"),
        (waiting(1), [victim()], False, "", "the input no longer says that anybody preempts"),
        (waiting(1, ready=True), [victim()], True, "", "it is Ready"),
        (waiting(1, preempting=False), [victim()], True, "", "it was placed where there was room"),
        (waiting(1, on="gone"), [victim()], True, "", "its cluster is not there"),
    ],
)
def test_who_waits_for_others_to_give_way(
    kept: list[Any],
    victims: list[NamedVictim],
    preempts: bool,  # noqa: FBT001
    said: str,
    reason: str,
) -> None:
    of_fleet = bag(clusters={"a": bag(gives_way=dict(enumerate(victims)))})
    deployment = bag(namespace="ml-team", name="my-model")
    inputs = bag(deployment=deployment, fleet=of_fleet, config=bag(preempts=preempts))
    assert list(conditions._preempting(bag(inputs=inputs, kept=kept))) == [said] * bool(said), reason


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        (
            "exceeded",
            "NodesUnusable: a/p can use 7 of 9 nodes and holds more; r may stand on nodes that are gone",
        ),
        (
            "awaiting",
            "NodesToCome: a/p has 4 of 9 nodes yet and holds more; r may wait for nodes to be added",
        ),
    ],
)
def test_nodes_that_are_gone_or_to_come_are_counted(mark: str, said: str) -> None:
    pool = bag(nodes=9, unusable=2, to_come=3)
    marked = {"exceeded": frozenset(), "awaiting": frozenset()} | {mark: frozenset("p")}
    replica = bag(cluster="a", name="r", nodes={"p": 1}, ready=None)
    decision = bag(
        overcommitted=(),
        inputs=bag(fleet=bag(clusters={"a": bag(marked=marked, by_name={"p": pool})})),
        kept=[bag(own_replica=bag(replica=replica))],
    )
    assert list(conditions._held_beyond(decision)) == [said.format("gone" if mark == "exceeded" else "added")]


# The words of a replica


def reporting(*stated: tuple[str, str, str, str]) -> Any:
    parts = ("type", "status", "reason", "message")
    listed = [dict(zip(parts, row, strict=True)) for row in stated]
    return bag(own_replica=bag(document=WireDocument(write.struct({"status": {"conditions": listed}}))))


WORDS = [
    (reporting(), "", "it says nothing"),
    (reporting(("ModelReady", "True", "Serving", "x")), "", "all is well"),
    (reporting(("Odd", "False", "Odd", "x")), "", "a condition that tells nothing about it"),
    (reporting(("ModelReady", "False", "Starting", "not yet")), "Starting: not yet", "reason and message"),
    (reporting(("ModelReady", "False", "Starting", "")), "Starting", "no message"),
    (reporting(("ModelReady", "False", "", "not yet")), "not yet", "no reason"),
    (
        reporting(*((kind, "False", kind, "") for kind in ("Ready", "Synced", "ModelReady", "ModelUpdated"))),
        "ModelUpdated",
        "the most telling: an update that waits",
    ),
    (
        reporting(("Ready", "False", "R", ""), ("ModelReady", "True", "M", ""), ("Synced", "False", "S", "")),
        "S",
        "of those that are False",
    ),
    (reporting(("Ready", "False", "R", "x" * 400)), f"R: {'x' * 156}…", "a long one is cut"),
]


@pytest.mark.parametrize(("kept", "said", "reason"), WORDS)
def test_a_replica_says_why_it_is_not_in_service(kept: Any, said: str, reason: str) -> None:
    assert conditions.own_words(kept) == said, reason


NOT_YET = ("ModelReady", "False", "Starting", "not yet")


@pytest.mark.parametrize(
    ("ready", "room", "said", "reason"),
    [
        (False, 400, "; replicas say: a/r (Starting: not yet)", "it is not Ready"),
        (None, 400, "; replicas say: a/r (Starting: not yet)", "it does not say"),
        (True, 400, "", "it is Ready, and what it says is of before"),
        (False, 40, "; replicas say: a/r (Starting: not yet)", "as few characters as tell something"),
        (False, 39, "", "too few"),
    ],
)
def test_replicas_are_quoted_while_there_is_room(
    ready: bool | None,  # noqa: FBT001
    room: int,
    said: str,
    reason: str,
) -> None:
    kept = reporting(NOT_YET)
    kept.own_replica.cluster, kept.own_replica.replica = "a", bag(name="r", ready=ready)
    assert conditions._remarks(bag(kept=[kept]), room) == said, reason


def held(*, evacuates: bool | None = None, waits: str = "", blocked: bool = False) -> Any:
    """A replica that needs replacement, for a mismatch if it is said whether that evacuates it."""
    mismatch = (
        None if evacuates is None else bag(evacuates=evacuates, value="lost" if evacuates else "changed")
    )
    own_replica = bag(cluster="a", replica=bag(name="r"))
    return bag(own_replica=own_replica, mismatch=mismatch, detail="", waits=waits, blocked=blocked)


DRAINED = held(waits="drain")


@pytest.mark.parametrize(
    ("replicas", "said", "reason"),
    [
        ([], "", "none"),
        ([DRAINED], "", "it waits for others"),
        ([held(evacuates=False)], "1 replica needs {} keep running as they are: a/r: changed", "an edit"),
        (
            [held(evacuates=True)] * 2,
            "2 replicas need {} stay where they are: a/r: lost",
            "they are not well",
        ),
        (
            [held(evacuates=True), DRAINED, held(evacuates=False)],
            "2 replicas need {} keep running as they are: a/r: lost",
            "one of them is",
        ),
        ([held(waits="x", blocked=True)], "1 replica needs {} keep running as they are: a/r: x", "beside it"),
    ],
)
def test_who_needs_replacement_and_has_no_place(replicas: list[Any], said: str, reason: str) -> None:
    problems = list(conditions._held(bag(held=replicas, rejections={}, total=1, wanted=1)))
    text = said.format("replacement and none has a place, so they")
    assert problems == [("ReplacementBlocked", f"{text}; Scheduled 1 of 1 replica")] * bool(said), reason
