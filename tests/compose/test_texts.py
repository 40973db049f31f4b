"""What is said, in whole: the status, reason and message of conditions that are put together from details."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from function.compose.notes import noted
from tests.explain.scarce import decide
from tests.part2.cases import ask, clusters
from tests.support import build
from tests.support.drive import run
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Plain = dict[str, Any]
Said = tuple[bool, str, str]
EIGHT = build.member(devices=[build.request("gpu", 8)])
TYPO = "engines[0].members[0].nodeSelector.devices[0].selectors[0]: 1:10: Syntax error: the expression ends"
NOTHING_PLACED: Said = (False, "NoReplicasScheduled", "No replica is placed")
FULL = "0/1 clusters can host another: 1 insufficient nodes (nearest: a/p0"


def running(deployment: Plain, wanted: Plain, *, count: int = 1, nodes: int = 4) -> World:
    """A world in which replicas of a deployment run that is now another."""
    own = [build.replica(deployment, "a", index, pools="p0", ready=True) for index in range(count)]
    return World(wanted, clusters(a=nodes), own, build.observed(*own))


def broken(*selectors: str) -> Plain:
    return ask(engines=[build.engine(members=[build.member(devices=[build.request("gpu", 1, *selectors)])])])


@dataclass(frozen=True)
class Case:
    reason: str
    world: Callable[[], World]
    says: dict[str, Said]


CASES = [
    Case(
        "a cache that is there",
        lambda: World(ask(cache="weights"), clusters(a=4), cache=[build.cache("weights")]),
        {"ModelCacheResolved": (True, "ModelCacheResolved", "")},
    ),
    Case(
        "a cache that is not there: nothing is looked for until it is",
        lambda: World(ask(cache="weights"), clusters(a=4), cache=[]),
        {
            "ModelCacheResolved": (
                False,
                "ModelCacheNotFound",
                "ModelCache weights does not exist; nothing new is placed",
            ),
            "ReplicasScheduled": (
                False,
                "InsufficientCapacity",
                "Scheduled 0 of 1 replica; nothing new is placed until ModelCache weights exists",
            ),
            "ReplicasReady": NOTHING_PLACED,
        },
    ),
    Case(
        "a cache that is not delivered yet",
        lambda: World(ask(cache="weights"), clusters(a=4), cache=None),
        {
            "ModelCacheResolved": (False, "ModelCacheUnresolved", "Waiting for ModelCache weights"),
            "ReplicasScheduled": (
                False,
                "InputsUnresolved",
                "Waiting for required resources: cache; everything running is kept",
            ),
        },
    ),
    Case(
        "one selector that does not compile is named, and no others are counted",
        lambda: World(broken("nonsense("), clusters(a=4)),
        {
            "ReplicasScheduled": (
                False,
                "InvalidNodeSelector",
                f"{TYPO} too early; every running replica is kept, nothing new is placed",
            )
        },
    ),
    Case(
        "of several the first is named, and the others are counted",
        lambda: World(broken("nonsense(", "true", "worse("), clusters(a=4)),
        {
            "ReplicasScheduled": (
                False,
                "InvalidNodeSelector",
                f"{TYPO} too early (and 1 more); every running replica is kept, nothing new is placed",
            )
        },
    ),
    Case(
        "too few for minReplicas, and none had a place",
        lambda: World(ask(4, least=3), clusters(a=0)),
        {
            "ReplicasScheduled": (
                False,
                "MinReplicasNotMet",
                (
                    f"Scheduled 0 of 4 replicas; {FULL} needs 1, 0 free of 0); minReplicas is 3,"
                    " no place was found for more, so nothing new is placed"
                ),
            ),
            "ReplicasReady": NOTHING_PLACED,
        },
    ),
    Case(
        "too few for minReplicas, and it says how many had a place",
        lambda: World(ask(4, least=3), clusters(a=2)),
        {
            "ReplicasScheduled": (
                False,
                "MinReplicasNotMet",
                (
                    f"Scheduled 0 of 4 replicas; {FULL} needs 1, 0 free of 2); minReplicas is 3,"
                    " 2 more had a place, so nothing new is placed"
                ),
            )
        },
    ),
    Case(
        "a replacement that has no place: why, without a particular where there is none",
        lambda: running(ask(), ask(engines=[build.engine("other", copies=9)])),
        {
            "ReplicasScheduled": (
                False,
                "ReplacementBlocked",
                (
                    "1 replica needs replacement and none has a place, so they keep running as they are:"
                    f" a/my-model-4718f: the engines changed shape; {FULL} needs 9, 3 free of 4)"
                ),
            ),
            "ReplicasReady": (True, "AllReplicasReady", "1 of 1 ready"),
        },
    ),
    Case(
        "several replacements that have no place: the first is told of, with its particular",
        lambda: running(ask(2), ask(2, engines=[build.engine("main", [EIGHT], copies=9)]), count=2),
        {
            "ReplicasScheduled": (
                False,
                "ReplacementBlocked",
                (
                    "2 replicas need replacement and none has a place, so they keep running as they are:"
                    " a/my-model-4718f: it needs more nodes than its pool has free (pool p0 needs 8 more);"
                    f" {FULL} needs 9, 2 free of 4)"
                ),
            ),
        },
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_what_a_condition_says(case: Case) -> None:
    answer = run(case.world())
    assert {kind: answer.conditions[kind] for kind in case.says} == case.says
    for status, _, _ in answer.conditions.values():
        assert isinstance(status, bool), "a status is true or false, never unset"


def test_a_pool_of_several_nodes_is_told_of_in_the_plural() -> None:
    wanted = ask(3)
    own = [build.replica(wanted, "a", at, pools="p0", ready=True) for at in range(3)]
    message = run(World(wanted, clusters(a=2), own, build.observed(*own))).conditions["ReplicasScheduled"][2]
    assert message == "Scheduled 3 of 3 replicas; PoolOvercommitted: a/p0 holds 3 of 2 nodes"


def crowded(pools: Sequence[str], held: int) -> World:
    """Pools of one node, each with a replica of ours and another deployment's on it."""
    engines = [build.engine(f"e{at}") for at in range(len(pools))]
    wanted = ask(engines=engines)
    own = build.replica(wanted, "a", 0, pools=pools, ready=True)
    other = ask(engines=engines[:held])
    other["metadata"] = {**other["metadata"], "name": "other", "uid": build.uid("other")}
    foreign = build.replica(other, "a", 0, pools=pools[:held], ready=True)
    fleet = clusters(a={"pools": [build.pool(name, 1) for name in pools]})
    return World(wanted, fleet, [own, foreign], build.observed(own))


@pytest.mark.parametrize(
    ("held", "named", "reason"),
    [
        (1, "a/p0 holds 2 of 1 node", "one pool is named"),
        (3, "a/p0 holds 2 of 1 node, a/p1 holds 2 of 1 node, a/p2 holds 2 of 1 node", "three are"),
        (
            5,
            "a/p0 holds 2 of 1 node, a/p1 holds 2 of 1 node, a/p2 holds 2 of 1 node and 2 more",
            "of more, the rest is counted",
        ),
    ],
)
def test_overcommitted_pools_are_told_of(held: int, named: str, reason: str) -> None:
    answer = run(crowded([f"p{at}" for at in range(5)], held))
    assert answer.conditions["ReplicasScheduled"] == (
        True,
        "ReplicasCreated",
        f"Scheduled 1 of 1 replica; PoolOvercommitted: {named}",
    ), reason


@pytest.mark.parametrize(
    ("waiting", "said", "reason"),
    [
        (1, "1 waits for drain (x:NoExecute)", "one waits"),
        (2, "2 wait for drain (x:NoExecute)", "two wait"),
    ],
)
def test_replicas_that_wait_for_the_disruption_budget_are_counted(
    waiting: int, said: str, reason: str
) -> None:
    wanted = ask(3, placement={"disruption": {"maxUnavailable": 1}})
    own = [
        build.replica(wanted, "a" if at < waiting else "b", at, pools="p0", ready=at < 2) for at in range(3)
    ]
    fleet = clusters(a={"taints": [build.taint("x", "NoExecute")]}, b=4)
    message = run(World(wanted, fleet, own, build.observed(*own))).conditions["ReplicasScheduled"][2]
    assert message == f"Scheduled 3 of 3 replicas; {said}, within placement.disruption.maxUnavailable", reason


LONG = ("p" * 62, "q" * 62, "r" * 62)
SHORT_NOTE = "PoolOvercommitted: a/p0 holds 2 of 1 node"


@pytest.mark.parametrize(
    ("pools", "text", "said", "reason"),
    [
        (["p0"], 20, f"{'x' * 20}; {SHORT_NOTE}", "what fits is said in whole"),
        (["p0"], 600, f"{'x' * 468}…; {SHORT_NOTE}", "a long message is cut, and the note is not"),
        (LONG, 300, f"{'x' * 300}; {'@' * 209}…", "a long note takes what the message leaves"),
        (LONG, 600, f"{'x' * 349}…; {'@' * 159}…", "and of a long message as much as notes have at least"),
    ],
)
def test_message_and_notes_share_the_characters_of_a_condition(
    pools: Sequence[str], text: int, said: str, reason: str
) -> None:
    found = noted(decide(crowded(pools, len(pools))), "x" * text)
    note = ", ".join(f"a/{pool} holds 2 of 1 node" for pool in pools)
    whole = f"PoolOvercommitted: {note}"
    cut = said.count("@")
    assert found == (said.replace("@" * cut, whole[:cut]) if cut else said), reason
    assert len(found) <= 512, reason
