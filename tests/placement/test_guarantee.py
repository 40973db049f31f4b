"""Guarantee: what a team holds beyond it is borrowed, and given back to a team that is below its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from function.api.inputs import SchedulerConfig
from function.scheduler.schedule import schedule
from tests.support import build
from tests.support.cases import clusters
from tests.support.drive import Answer, run
from tests.support.preempting import (
    CLASSES,
    LABEL,
    PREFIX,
    arbitrating,
    asked,
    certified,
    named,
    of,
    placed_on,
    running,
    waiting,
)
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]
NOTE = f"{PREFIX}guarantee"
A, B = "ml-team", "team-b"
"""The namespaces of two teams."""


def guaranteed(name: str, *namespaces: str, cel: str = "", **amounts: int) -> Plain:
    made: Plain = {"name": name, "namespaces": [*namespaces], "guaranteed": amounts}
    return made | ({"cel": cel} if cel else {})


def given(*quotas: Plain, **more: Any) -> Plain:
    return {"overcommit": "Yield", "priorityClasses": CLASSES, "quotas": [*quotas], **more}


BOTH = given(guaranteed("a", A, nodes=2), guaranteed("b", B, nodes=1))


def called(name: str, namespace: str = A, class_name: str | None = None, replicas: int = 1) -> Plain:
    made = of(name, class_name, replicas)
    made["metadata"]["namespace"] = namespace
    return made


def held(
    parent: Plain, cluster: str, index: int = 0, note: str = "", second: int = 0, value: int = 0, **more: Any
) -> Plain:
    """A Ready replica with what its deployment noted."""
    made = running(parent, cluster, index, value, **more)
    made["metadata"]["creationTimestamp"] = f"2026-03-01T08:00:{second:02}Z"
    if note:
        made["metadata"]["annotations"][NOTE] = note
    return made


def reclaiming(parent: Plain, cluster: str, note: str = "Reclaims a") -> Plain:
    """A replica that waits for what others borrow."""
    made = waiting(parent, cluster)
    made["metadata"]["annotations"] |= {f"{PREFIX}priority": "0", NOTE: note}
    del made["metadata"]["annotations"][f"{PREFIX}priority-class"]
    return made


def notes(answer: Answer) -> list[str]:
    """What the replicas of an answer note of guarantees, by key."""
    return [
        manifest["metadata"].get("annotations", {}).get(NOTE, "")
        for _, manifest in sorted(answer.replicas.items())
    ]


# What is borrowed

TRAIN = called("train", B)
"""Of the team that borrows."""
CHAT = called("chat")
"""Of the team that is below its guarantee."""


NOTED: list[tuple[str, Plain, list[Plain], Plain, list[str]]] = [
    (
        "beyond it the youngest is borrowed",
        called("train", B, replicas=2),
        [held(TRAIN, "a", 0, second=1), held(TRAIN, "a", 1, second=2)],
        BOTH,
        ["Within b", "Borrowed b"],
    ),
    (
        "of several deployments, too",
        TRAIN,
        [held(called("older", B), "b", second=1), held(TRAIN, "a", second=2)],
        BOTH,
        ["Borrowed b"],
    ),
    (
        "a higher class is within before all of lower ones",
        called("train", B, "standard"),
        [held(called("older", B), "b", second=1), held(TRAIN, "a", second=2)],
        BOTH,
        ["Within b"],
    ),
    (
        "what is being deleted counts no more",
        TRAIN,
        [held(called("older", B), "b", second=1, terminating=True), held(TRAIN, "a", second=2)],
        BOTH,
        ["Within b"],
    ),
    (
        "on a pool that no guarantee covers nothing is noted",
        TRAIN,
        [held(TRAIN, "a")],
        given(guaranteed("b", B, cel='node.name == "other"', nodes=0)),
        [""],
    ),
    (
        "beyond one of several is beyond",
        TRAIN,
        [held(TRAIN, "a")],
        given(guaranteed("b", B, nodes=1), guaranteed("c", B, devices=4)),
        ["Borrowed b,c"],
    ),
    (
        "money is guaranteed on pools that have a price",
        TRAIN,
        [held(TRAIN, "a")],
        given(guaranteed("b", B, centsPerHour=0)),
        [""],
    ),
    (
        "of several that are new the later ones see the first",
        called("train", B, replicas=2),
        [],
        BOTH,
        ["Within b", "Borrowed b"],
    ),
    (
        "what is new is within before all of lower classes, too",
        called("train", B, "standard"),
        [held(called("older", B), "b", second=1)],
        BOTH,
        ["Within b"],
    ),
    ("another namespace notes nothing", CHAT, [held(CHAT, "a")], given(guaranteed("b", B, nodes=1)), [""]),
    ("without a guarantee it is taken off", TRAIN, [held(TRAIN, "a", note="Borrowed b")], given(), [""]),
    (
        "what is new says so at once",
        called("train", B, replicas=2),
        [held(TRAIN, "a")],
        BOTH,
        ["Within b", "Borrowed b"],
    ),
]


@pytest.mark.parametrize(
    ("reason", "ours", "listed", "config", "noted"), NOTED, ids=[one[0] for one in NOTED]
)
def test_what_is_borrowed(
    reason: str, ours: Plain, listed: list[Plain], config: Plain, noted: list[str]
) -> None:
    config = config | {"overcommit": "Yield", "priorityClasses": CLASSES}
    assert notes(asked(ours, clusters(a=2, b=2), listed, config)) == noted, reason


def test_a_deployment_under_a_guarantee_reads_all_replicas() -> None:
    """Else a note would stand that another deployment of the team has made wrong."""
    fleet, mine = arbitrating(a=2), held(TRAIN, "a")
    request = {"cluster/a": fleet, "own-replicas/train": [mine]}
    for config, reads in ((BOTH, True), (given(guaranteed("a", A, nodes=2)), False)):
        world = World(TRAIN, None, None, build.observed(mine), input=config)
        answer = run(world.but(more=request))
        assert any(needed["name"] == "fleet-replicas" for needed in answer.requirements) is reads


# Who makes others give way

TAKEN = [held(TRAIN, "a", 0, "Within b", 1), held(TRAIN, "a", 1, "Borrowed b", 2)]
"""A cluster that the other team fills."""


def test_a_team_below_its_guarantee_takes_back_what_another_borrowed() -> None:
    answer = asked(CHAT, arbitrating(a=2), TAKEN, BOTH)
    [replica] = answer.replicas.values()
    assert replica["metadata"]["labels"][LABEL] == "true"
    assert replica["metadata"]["annotations"][NOTE] == "Reclaims a"
    name = replica["metadata"]["name"]
    assert [text for _, reason, text in answer.events if reason == "ReplicasPreempting"] == [
        f"Placed 1 replica where others are to give way: a/{name} (team-b/train, borrowed)"
    ]


WAITS: list[tuple[str, Plain, list[Plain], list[Plain], Plain]] = [
    ("no cluster arbitrates", CHAT, clusters(a=2), TAKEN, BOTH),
    (
        "its own team holds all that is guaranteed",
        CHAT,
        arbitrating(a=2, b=2),
        [*TAKEN, held(called("old"), "b", 0, "Within a"), held(called("old"), "b", 1, "Within a")],
        BOTH,
    ),
    ("what the other holds is within", CHAT, arbitrating(a=1), TAKEN[:1], BOTH),
    (
        "what the other holds is under no guarantee",
        CHAT,
        arbitrating(a=1),
        [held(called("x", "third"), "a")],
        BOTH,
    ),
    (
        "nor by its class does it take what is under none: that does not preempt",
        called("chat", A, "standard"),
        arbitrating(a=1),
        [held(called("x", "third"), "a", value=10)],
        BOTH,
    ),
    (
        "its own team holds all that is guaranteed, by replicas of a lower class",
        called("chat", A, "standard"),
        arbitrating(a=2, b=2),
        [*TAKEN, *(held(called("old"), "b", index, "Within a", value=10) for index in range(2))],
        BOTH,
    ),
    (
        "what was borrowed cannot be spared",
        CHAT,
        arbitrating(a=2),
        [TAKEN[0], held(TRAIN, "a", 1, "Borrowed b", 2, spare="0")],
        BOTH,
    ),
    ("a note that cannot be read is doubt", CHAT, arbitrating(a=1), [held(TRAIN, "a", 0, "Loaned b")], BOTH),
    (
        "its pools are not those that are guaranteed to it",
        CHAT,
        arbitrating(a=2),
        TAKEN,
        given(guaranteed("a", A, cel='node.name == "other"', nodes=2), guaranteed("b", B, nodes=1)),
    ),
    (
        "a class that preempts takes nothing of what is guaranteed to another team",
        called("chat", "third", "production"),
        arbitrating(a=1),
        TAKEN[:1],
        BOTH,
    ),
    (
        "a class that preempts and would borrow",
        called("chat", A, "production"),
        arbitrating(a=2),
        TAKEN,
        given(guaranteed("a", A, nodes=0), guaranteed("b", B, nodes=1)),
    ),
]


@pytest.mark.parametrize(
    ("reason", "ours", "fleet", "listed", "config"), WAITS, ids=[one[0] for one in WAITS]
)
def test_it_waits(reason: str, ours: Plain, fleet: list[Plain], listed: list[Plain], config: Plain) -> None:
    answer = asked(ours, fleet, listed, config)
    assert not answer.replicas, reason
    assert answer.reason() == "InsufficientCapacity", reason


TAKES: list[tuple[str, Plain, list[Plain], Plain]] = [
    (
        "what is borrowed ranks below none",
        called("chat", "third", "production"),
        [held(TRAIN, "b", 0, "Borrowed b"), held(called("x", "third"), "a")],
        BOTH,
    ),
    (
        "a class that preempts takes of its own team",
        called("chat", A, "production"),
        [held(called("old", A), "b", 0, "Within a"), held(TRAIN, "a", 0, "Within b")],
        given(guaranteed("a", A, nodes=1), guaranteed("b", B, nodes=1)),
    ),
]


@pytest.mark.parametrize(("reason", "ours", "listed", "config"), TAKES, ids=[one[0] for one in TAKES])
def test_where_the_least_is_lost(reason: str, ours: Plain, listed: list[Plain], config: Plain) -> None:
    assert placed_on(asked(ours, arbitrating(a=1, b=1), listed, config)) == ["b"], reason


def test_what_waits_says_how_much_is_guaranteed_and_who_borrows_it() -> None:
    answer = asked(CHAT, clusters(a=2), TAKEN, BOTH)
    assert answer.conditions["ReplicasScheduled"][2].endswith(
        "; a holds 0 of 2 guaranteed nodes; 1 more when team-b returns what it borrows"
    )
    answer = asked(called("train", B, replicas=2), clusters(a=2), TAKEN, BOTH)
    assert answer.conditions["ReplicasScheduled"][2].endswith(
        "; 1 replica borrowed beyond what b guarantees, the first to give way"
    )


# Who gives way


def returning(replica: Plain, **more: Any) -> Plain:
    return named(replica, "ml-team/chat", "") | {"quota": "a", **more}


def test_it_gives_back_what_it_borrowed_where_its_cluster_names_it() -> None:
    ours = called("train", B, replicas=2)
    answer = asked(ours, arbitrating(returning(TAKEN[1]), a=2), [*TAKEN, reclaiming(CHAT, "a")], BOTH)
    assert [*answer.replicas] == ["replica-a-0"]
    [event] = [text for _, reason, text in answer.events if reason == "ReplicaReturned"]
    assert event == (
        "Removing 1 replica, gave back what was borrowed beyond a guarantee (to ml-team/chat, quota a):"
        f" a/{TAKEN[1]['metadata']['name']}"
    )


STAYS: list[tuple[str, Plain, list[Plain], Plain]] = [
    ("nobody waits", arbitrating(returning(TAKEN[1]), a=2), TAKEN, BOTH),
    ("it is not named", arbitrating(a=2), [*TAKEN, reclaiming(CHAT, "a")], BOTH),
    (
        "by now it is within",
        arbitrating(returning(TAKEN[1]), a=2),
        [*TAKEN, reclaiming(CHAT, "a")],
        given(guaranteed("a", A, nodes=2), guaranteed("b", B, nodes=2)),
    ),
    (
        "by now the other would borrow",
        arbitrating(returning(TAKEN[1]), a=2),
        [*TAKEN, reclaiming(CHAT, "a")],
        given(guaranteed("a", A, nodes=0), guaranteed("b", B, nodes=1)),
    ),
    (
        "nothing is guaranteed any more",
        arbitrating(returning(TAKEN[1]), a=2),
        [*TAKEN, reclaiming(CHAT, "a")],
        given(),
    ),
    (
        "it was named for a class that is none",
        arbitrating(returning(TAKEN[1], quota="", priorityClassName="standard"), a=2),
        [*TAKEN, reclaiming(CHAT, "a")],
        BOTH,
    ),
]


@pytest.mark.parametrize(("reason", "fleet", "listed", "config"), STAYS, ids=[one[0] for one in STAYS])
def test_it_stays(reason: str, fleet: list[Plain], listed: list[Plain], config: Plain) -> None:
    answer = asked(called("train", B, replicas=2), fleet, listed, config)
    assert len(answer.replicas) == 2, reason


def higher(namespace: str, note: str = "") -> Plain:
    """A replica that waits, of a class that preempts."""
    made = waiting(called("vip", namespace, "production"), "a")
    if note:
        made["metadata"]["annotations"][NOTE] = note
    return made


WIDER = given(guaranteed("a", A, nodes=2), guaranteed("b", B, nodes=2))
DEAR = [held(TRAIN, "a", 0, "Within b", 1, 1000), held(TRAIN, "a", 1, "Borrowed b", 2, 1000)]
RANKED: list[tuple[str, Plain, list[Plain], Plain, Plain, int]] = [
    (
        "what is borrowed ranks below every class",
        called("train", B, "production", 2),
        DEAR,
        higher("third"),
        BOTH,
        1,
    ),
    (
        "what is within by now is no stranger's",
        called("train", B, "batch", 2),
        TAKEN,
        higher("third"),
        WIDER,
        2,
    ),
    ("nor another team's", called("train", B, "batch", 2), TAKEN, higher(A, "Within a"), WIDER, 2),
    ("but its own team's", called("train", B, "batch", 2), TAKEN, higher(B, "Within b"), WIDER, 1),
]


@pytest.mark.parametrize(
    ("reason", "ours", "listed", "first", "config", "left"), RANKED, ids=[row[0] for row in RANKED]
)
def test_to_whose_class_it_gives_way(
    reason: str, ours: Plain, listed: list[Plain], first: Plain, config: Plain, left: int
) -> None:
    """By what it is now; that it was borrowed is all that the notes say."""
    to = f"{first['metadata']['namespace']}/vip"
    answer = asked(ours, arbitrating(named(listed[1], to), a=2), [*listed, first], config)
    assert len(answer.replicas) == left, reason


def lost(fleet: list[Plain], how: str) -> list[Plain]:
    """The fleet, and of its last cluster nothing that can be read."""
    *others, last = fleet
    if how == "malformed":
        return [*others, last | {"spec": 7}]
    return [*others, {key: value for key, value in last.items() if key != "status"}]


@pytest.mark.parametrize("how", ["malformed", "without a status"])
def test_what_a_team_holds_on_a_cluster_that_cannot_be_read_is_doubt(how: str) -> None:
    """Its pools may be covered, or not. So nobody of the team is judged, and nobody gives way to it."""
    config = given(guaranteed("a", A, nodes=1), guaranteed("b", B, nodes=1))
    mine = held(TRAIN, "a", 0, "Within b", 2)
    older = held(called("old", B), "c", second=1)
    fleet = lost(arbitrating(returning(mine), a=1, c=1), how)
    answer = asked(TRAIN, fleet, [mine, older, reclaiming(CHAT, "a")], config)
    assert notes(answer) == ["Within b"], "as it was noted"
    theirs = held(called("old", A), "c", 0, "Within a", 1)
    borrowed = [held(TRAIN, "a", 0, "Within b", 1), held(TRAIN, "a", 1, "Borrowed b", 2)]
    fleet = lost(arbitrating(returning(borrowed[1]), a=2, c=1), how)
    ours = called("train", B, replicas=2)
    answer = asked(ours, fleet, [*borrowed, theirs, reclaiming(CHAT, "a")], config)
    assert notes(answer) == ["Within b", "Borrowed b"], "the other team may have all that is guaranteed"
    first = waiting(called("chat", A, "production"), "a")
    first["metadata"]["annotations"][NOTE] = "Within a"
    ours, mine = called("x", "third", "batch"), held(called("x", "third"), "a", value=10)
    naming = named(mine, "ml-team/chat", "production")
    config = given(guaranteed("a", A, nodes=2))
    whole = arbitrating(naming, a=1, c=1)
    assert not asked(ours, whole, [mine, first, theirs], config).replicas, (
        "it gives way, were it not for that"
    )
    assert asked(ours, lost(whole, how), [mine, first, theirs], config).replicas


def test_one_that_reclaims_gives_way_itself_where_it_would_borrow() -> None:
    config = given(guaranteed("a", A, nodes=0), guaranteed("b", B, nodes=1))
    answer = asked(CHAT, arbitrating(a=2), [*TAKEN, reclaiming(CHAT, "a", "Borrowed a")], config)
    assert not answer.replicas


def test_the_checker_certifies_and_refuses() -> None:
    ours, full = called("train", B, replicas=2), [*TAKEN, reclaiming(CHAT, "a")]
    fleet = arbitrating(returning(TAKEN[1]), a=2)
    answer = asked(ours, fleet, full, BOTH)
    assert certified(ours, fleet, full, [*answer.replicas.values()], BOTH["quotas"]) == []
    assert certified(ours, fleet, TAKEN, [*answer.replicas.values()], BOTH["quotas"]) == ["Lost"], (
        "nobody waits"
    )
    more = [guaranteed("a", A, nodes=2), guaranteed("b", B, nodes=2)]
    assert "Lost" in certified(ours, fleet, full, [*answer.replicas.values()], more), "it borrows nothing"
    placed = asked(CHAT, arbitrating(a=2), TAKEN, BOTH)
    assert certified(CHAT, arbitrating(a=2), TAKEN, [*placed.replicas.values()], BOTH["quotas"]) == []


BAD = [
    ({"quotas": [{"name": "q", "namespaces": ["x"]}]}, "expected atMost or guaranteed"),
    ({"quotas": [guaranteed("q", "x")]}, "expected nodes, devices, replicas or centsPerHour"),
    (
        {"quotas": [guaranteed("q", "x", nodes=2) | {"atMost": {"nodes": 1}}]},
        "guaranteed.nodes: 2 is more than atMost.nodes: 1",
    ),
    ({"overcommit": "Report", "priorityClasses": []}, '"a" has guaranteed, which needs overcommit: Yield'),
]


@pytest.mark.parametrize(("change", "text"), BAD)
def test_a_bad_guarantee_is_an_invalid_input(change: Plain, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        SchedulerConfig.parse(given(guaranteed("a", A, nodes=2)) | change)


@pytest.mark.parametrize(
    ("namespace", "dropped", "reason"),
    [
        ("third", [], "what its own team holds elsewhere may be within its guarantee, or not: doubt keeps"),
        (A, ["replica-a-0"], "what another team is guaranteed says nothing of it"),
    ],
)
def test_who_gives_way_where_only_its_own_clusters_were_read(
    namespace: str, dropped: list[str], reason: str
) -> None:
    ours, mine = called("x", "third", "batch"), held(called("x", "third"), "a", value=10)
    naming = named(mine, "ml-team/chat", "production")
    first = waiting(called("chat", A, "production"), "a")
    config = given(guaranteed("a", namespace, nodes=2))
    observed = {"replica-a-0": mine}
    decision = decide(World(ours, arbitrating(naming, a=1), [mine, first], observed, input=config))
    inputs = replace(decision.inputs, fleet=replace(decision.inputs.fleet, whole=False))
    assert [left.own_replica.key for left in schedule(inputs).dropped] == dropped, reason
