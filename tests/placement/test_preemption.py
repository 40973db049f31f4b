"""Preemption: a waiting replica of a class that preempts, and those that give way to it."""

from __future__ import annotations

from typing import Any

import pytest

from function.api.fault import Malformed
from function.api.inputs import ClusterConfig, SchedulerConfig
from tests.cluster.build import Case as ClusterCase, replica as on_cluster
from tests.support import build
from tests.support.cases import clusters, one, pools_of, single, sized
from tests.support.drive import run
from tests.support.preempting import (
    CHAT,
    CLASSES,
    LABEL,
    ON,
    PREFIX,
    SPARE,
    arbitrating,
    asked,
    certified,
    named,
    of,
    placed_on,
    running,
    waiting,
)
from tests.support.world import World

Plain = dict[str, Any]


TRAIN, WEB = of("train", "batch"), of("web", "standard")


def test_it_is_placed_where_the_least_is_lost_and_says_so() -> None:
    full = [running(WEB, "a", value=100), running(TRAIN, "b")]
    answer = asked(CHAT, arbitrating(a=1, b=1), full)
    assert placed_on(answer) == ["b"]
    metadata = answer.replicas["replica-b-0"]["metadata"]
    assert metadata["labels"][LABEL] == "true"
    assert metadata["annotations"] == {
        f"{PREFIX}priority-class": "production",
        f"{PREFIX}priority": "1000",
        SPARE: "all",
    }
    assert [text for _, reason, text in answer.events if reason == "ReplicasPreempting"] == [
        f"Placed 1 replica where others are to give way: b/{metadata['name']} (ml-team/train, class batch)"
    ]


OLD = [running(of(f"old-{at}", "batch"), "a") for at in range(4)]
"""Four replicas that may have to give way."""


AWAITED: list[tuple[str, list[Plain], list[Plain], Plain, list[str]]] = [
    (
        "one waits for one",
        [waiting(CHAT, "a")],
        arbitrating(named(OLD[0]), a=4),
        ON,
        ["1 on a waits for 1 replica of lower classes to give way"],
    ),
    (
        "two wait for three, and one beside them is not there yet",
        [waiting(CHAT, "a", 0), waiting(CHAT, "a", 1), waiting(CHAT, "b", 2)],
        arbitrating(*map(named, OLD[:3]), a=4, b=1),
        ON,
        ["2 on a wait for 3 replicas of lower classes to give way"],
    ),
    (
        "of those that are named some give way to others, who may have lent what they ask for",
        [waiting(CHAT, "a")],
        arbitrating(named(OLD[0]), named(OLD[1], "ml-team/web") | {"quota": "a"}, a=4),
        ON,
        ["1 on a waits for 1 replica of lower classes to give way"],
    ),
    (
        "what is borrowed",
        [waiting(CHAT, "a")],
        arbitrating(named(OLD[0], class_name="") | {"quota": "a"}, a=4),
        ON,
        ["1 on a waits for 1 replica that borrows to give way"],
    ),
    (
        "two that are borrowed",
        [waiting(CHAT, "a")],
        arbitrating(*(named(old, class_name="") | {"quota": "a"} for old in OLD[:2]), a=4),
        ON,
        ["1 on a waits for 2 replicas that borrow to give way"],
    ),
    (
        "one that is Ready waits no more, whatever its label and its cluster say",
        [waiting(CHAT, "a") | {"status": {"conditions": [build.condition("Ready", status=True)]}}],
        arbitrating(named(OLD[0]), a=4),
        ON,
        [],
    ),
    (
        "one that never asked for it",
        [running(CHAT, "a", ready=False)],
        arbitrating(named(OLD[0]), a=4),
        ON,
        [],
    ),
    (
        "a cluster that cannot be read names nobody",
        [waiting(CHAT, "a")],
        [{**arbitrating(named(OLD[0]), a=4)[0], "status": {"gpuPools": 3}}],
        ON,
        [],
    ),
    (
        "an input whose classes do not preempt",
        [waiting(CHAT, "a")],
        arbitrating(named(OLD[0]), a=9),
        ON | {"priorityClasses": [{"name": "production", "value": 1000}]},
        [],
    ),
]


@pytest.mark.parametrize(
    ("reason", "ours", "fleet", "config", "said"), AWAITED, ids=[row[0] for row in AWAITED]
)
def test_who_waits_says_how_many_are_to_give_way_to_it(
    reason: str, ours: list[Plain], fleet: list[Plain], config: Plain, said: list[str]
) -> None:
    answer = asked(of("chat", replicas=len(ours)), fleet, [*ours, *OLD], config)
    notes = answer.conditions["ReplicasScheduled"][2].split("; ")
    assert [note for note in notes if note.endswith("to give way")] == said, reason


TWO_NODES = [build.engine(members=[build.member(devices=[build.request("gpu", 8)])], copies=2)]
PAIR, LARGE = of("chat", engines=TWO_NODES), of("large", "batch", engines=TWO_NODES)


def on_kserve() -> tuple[Plain, list[Plain]]:
    """A deployment whose first shape KServe cannot express, and a cluster of that stack."""
    [cluster] = arbitrating(b=1)
    cluster["spec"]["stack"] = "KServe"
    engines = [single(build.request("gpu", 8), name=name) for name in ("main", "draft")]
    shapes: Plain = {"engines": engines, "alternatives": [{"name": "small", "engines": engines[:1]}]}
    ours = of("chat", placement={"alternativePolicy": "ClusterFirst"}, **shapes)
    ours["spec"]["template"]["spec"]["serving"] = {"model": {"uri": "hf://org/model"}}
    return ours, [cluster]


LEAST: list[tuple[str, Plain, list[Plain], list[Plain]]] = [
    (
        "the dearest that goes counts first, whatever else goes",
        PAIR,
        arbitrating(a=2, b=2),
        [
            running(of(f"x{at}"), on, value=value)
            for at, (on, value) in enumerate(zip("aabb", (10, 100, 50, 50), strict=True))
        ],
    ),
    (
        "a class of the value 0 is a class",
        CHAT,
        arbitrating(a=1, b=1),
        [running(TRAIN, "a", value=1), running(WEB, "b", value=0)],
    ),
    (
        "of those that never were Ready the fewest go",
        PAIR,
        arbitrating(a=2, b=2),
        [
            *(running(of("new", "batch"), "a", index, ready=False) for index in range(2)),
            running(LARGE, "b", ready=False),
        ],
    ),
    (
        "where none is Ready less is lost than where one of the lowest class is",
        PAIR,
        arbitrating(a=2, b=2),
        [
            running(LARGE, "a"),
            *(running(of("new", "batch"), "b", index, ready=False) for index in range(2)),
        ],
    ),
    (
        "a cluster that does not arbitrate is passed over, and one that another rule closes",
        of("chat", replicas=2, placement={"maxReplicasPerCluster": 1}),
        [*arbitrating(a=2, b=1), *clusters(aa=1)],
        [running(CHAT, "a", value=1000), *(running(of(f"x-{on}"), on) for on in ("a", "aa", "b"))],
    ),
    (
        "between equals as any place is chosen: packing leaves the fewest nodes free",
        of("chat", engines=TWO_NODES, placement={"strategy": "BinPack"}),
        arbitrating(a=3, b=2),
        [running(LARGE, "a"), running(LARGE, "b")],
    ),
    ("a shape that the stack cannot express leaves the next", *on_kserve(), [running(TRAIN, "b")]),
]


@pytest.mark.parametrize(("reason", "ours", "fleet", "listed"), LEAST, ids=[row[0] for row in LEAST])
def test_where_the_least_is_lost(reason: str, ours: Plain, fleet: list[Plain], listed: list[Plain]) -> None:
    replicas = asked(ours, fleet, listed).replicas.values()
    preempting = [made for made in replicas if LABEL in made["metadata"]["labels"]]
    assert [made["spec"]["clusterName"] for made in preempting] == ["b"], reason


OFF: list[tuple[str, Plain, list[Plain], Plain, list[Plain]]] = [
    ("nobody preempts", CHAT, arbitrating(a=1), {"overcommit": "Yield"}, [running(TRAIN, "a")]),
    (
        "its class does not preempt",
        of("chat", "standard"),
        arbitrating(a=1),
        ON,
        [running(TRAIN, "a")],
    ),
    ("no cluster arbitrates", CHAT, clusters(a=1), ON, [running(TRAIN, "a")]),
    ("of its own value", CHAT, arbitrating(a=1), ON, [running(TRAIN, "a", value=1000)]),
    ("of a class that is not noted", CHAT, arbitrating(a=1), ON, [running(TRAIN, "a", value=None)]),
    ("its deployment can spare none", CHAT, arbitrating(a=1), ON, [running(TRAIN, "a", spare="0")]),
    (
        "enough is promised to another already",
        CHAT,
        arbitrating(a=1),
        ON,
        [running(TRAIN, "a"), waiting(of("vip"), "a")],
    ),
    (
        "a quota has no room",
        CHAT,
        arbitrating(a=1),
        ON | {"quotas": [{"name": "q", "namespaces": [build.NAMESPACE], "atMost": {"nodes": 1}}]},
        [running(TRAIN, "a")],
    ),
]


@pytest.mark.parametrize(("reason", "ours", "fleet", "config", "listed"), OFF, ids=[row[0] for row in OFF])
def test_it_waits_where_nobody_may_give_way(
    reason: str, ours: Plain, fleet: list[Plain], config: Plain, listed: list[Plain]
) -> None:
    answer = asked(ours, fleet, listed, config)
    assert not answer.replicas, reason
    assert answer.reason() == "InsufficientCapacity", reason


def test_where_there_is_room_nobody_gives_way() -> None:
    answer = asked(CHAT, arbitrating(a=1, b=1), [running(TRAIN, "a")])
    assert placed_on(answer) == ["b"]
    assert LABEL not in answer.replicas["replica-b-0"]["metadata"]["labels"]


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ((2, 1, 1), "both engines would stand on the pool that is closed"),
        ((1, 1, 1), "the other pool that it would take is covered by no quota, and stays open"),
    ],
)
def test_what_a_quota_closes_is_left_for_the_other_pools_of_a_cluster(
    nodes: tuple[int, ...], reason: str
) -> None:
    """Two engines would take the first pool, which is under a quota, and others where one has no room."""
    cluster = one("a", pools=pools_of(*nodes))
    cluster["status"]["givesWay"] = []
    listed = [running(of(f"x{at}", "batch"), "a", value=at) for at in range(3)]
    for at, replica in enumerate(listed):
        replica["spec"]["engines"][0]["members"][0]["nodePoolName"] = f"p{at}"
    quota = {"name": "q", "namespaces": [build.NAMESPACE], "atMost": {"nodes": 1}, "cel": 'node.name == "p0"'}
    answer = asked(of("chat", engines=sized(1, 1)), [cluster], listed, ON | {"quotas": [quota]})
    [replica] = answer.replicas.values()
    pools = [engine["members"][0]["nodePoolName"] for engine in replica["spec"]["engines"]]
    assert pools == ["p1", "p2"], reason


FEWER: list[tuple[str, list[Plain], Plain]] = [
    ("none of its own gives way, whatever class it was placed with", [running(CHAT, "a")], ON),
    (
        "as many as a quota lets in, wherever others could give way",
        [running(TRAIN, "a"), running(WEB, "b")],
        ON | {"quotas": [{"name": "q", "namespaces": [build.NAMESPACE], "atMost": {"nodes": 3}}]},
    ),
]


@pytest.mark.parametrize(("reason", "listed", "config"), FEWER, ids=[row[0] for row in FEWER])
def test_fewer_are_placed_than_there_are_nodes(reason: str, listed: list[Plain], config: Plain) -> None:
    fleet = arbitrating(**{replica["spec"]["clusterName"]: 1 for replica in listed})
    assert placed_on(asked(of("chat", replicas=2), fleet, listed, config)) == ["a"], reason


def test_nodes_of_what_is_being_deleted_are_counted_on() -> None:
    listed = [running(TRAIN, "a", terminating=True), running(of("other", "batch"), "b")]
    answer = asked(CHAT, arbitrating(a=1, b=1), listed)
    assert placed_on(answer) == ["a"]


def test_without_a_class_that_preempts_nothing_is_noted() -> None:
    plain = [{key: value for key, value in row.items() if key != "preempts"} for row in CLASSES]
    answer = asked(CHAT, arbitrating(a=1), [], {"overcommit": "Yield", "priorityClasses": plain})
    assert "annotations" not in answer.replicas["replica-a-0"]["metadata"]


SPARED: list[tuple[str, Plain, list[bool], str]] = [
    ("all where nothing limits it", {}, [True, True], "all"),
    ("what minReplicas leaves", {"minReplicas": 1}, [True, True, True], "2"),
    ("none below it", {"minReplicas": 2}, [True, True, False], "0"),
    ("maxUnavailable, of those wanted", {"maxUnavailable": 1}, [True, True], "1"),
    ("what is out of service counts", {"maxUnavailable": 1}, [True, False], "0"),
    ("both", {"maxUnavailable": 2, "minReplicas": 2}, [True, True, True], "1"),
    ("at most so many, or each change would be a write", {"minReplicas": 0}, [True] * 12, "8"),
]


@pytest.mark.parametrize(("reason", "stated", "ready", "spare"), SPARED, ids=[row[0] for row in SPARED])
def test_how_many_a_deployment_can_spare(reason: str, stated: Plain, ready: list[bool], spare: str) -> None:
    most = stated.get("maxUnavailable")
    disruption = {} if most is None else {"disruption": {"maxUnavailable": most}}
    ours = of("train", "batch", len(ready), placement=disruption, least=stated.get("minReplicas"))
    listed = [running(ours, "a", index, ready=is_ready) for index, is_ready in enumerate(ready)]
    answer = asked(ours, arbitrating(a=20), listed)
    noted = {replica["metadata"]["annotations"][SPARE] for replica in answer.replicas.values()}
    assert noted == {spare}, reason


def test_while_a_rollout_is_under_way_nothing_is_spared() -> None:
    ours = of("train", "batch", 2, placement={"rollout": {"maxUnavailable": 2}})
    listed = [running(ours, "a", index) for index in range(2)]
    ours["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"] = build.template("new")
    answer = asked(ours, arbitrating(a=20), listed)
    assert {replica["metadata"]["annotations"][SPARE] for replica in answer.replicas.values()} == {"0"}


# The one that gives way


def test_it_gives_way_where_its_cluster_names_it_and_both_sides_say_so() -> None:
    victim = running(TRAIN, "a")
    answer = asked(TRAIN, arbitrating(named(victim), a=1), [victim, waiting(CHAT, "a")])
    assert not answer.replicas
    [event] = [text for _, reason, text in answer.events if reason == "ReplicaGaveWay"]
    name = victim["metadata"]["name"]
    expected = "Removing 1 replica, gave way to a higher priority class (to ml-team/chat, class production)"
    assert event == f"{expected}: a/{name}"


VICTIM = running(TRAIN, "a")
PINNED = of("train", "batch", least=1)
KEPT: list[tuple[str, Plain, list[Plain], list[Plain], Plain]] = [
    ("not named", TRAIN, arbitrating(a=1), [VICTIM, waiting(CHAT, "a")], ON),
    (
        "named by another uid",
        TRAIN,
        arbitrating(named(VICTIM) | {"uid": "other"}, a=1),
        [VICTIM, waiting(CHAT, "a")],
        ON,
    ),
    ("nobody waits any more", TRAIN, arbitrating(named(VICTIM), a=1), [VICTIM], ON),
    ("there is room", TRAIN, arbitrating(named(VICTIM), a=2), [VICTIM, waiting(CHAT, "a")], ON),
    (
        "the class is not strictly higher",
        of("train", "production"),
        arbitrating(named(VICTIM), a=1),
        [VICTIM, waiting(CHAT, "a")],
        ON,
    ),
    (
        "the class does not preempt here",
        TRAIN,
        arbitrating(named(VICTIM, class_name="standard"), a=1),
        [VICTIM, waiting(CHAT, "a")],
        ON,
    ),
    (
        "its deployment cannot spare it",
        PINNED,
        arbitrating(named(VICTIM), a=1),
        [VICTIM, waiting(CHAT, "a")],
        ON,
    ),
    (
        "nor can it beside one that is being deleted, Ready or not",
        of("train", "batch", 2, least=1),
        arbitrating(named(VICTIM), a=1),
        [VICTIM, running(TRAIN, "a", 1, terminating=True), waiting(CHAT, "a")],
        ON,
    ),
    (
        "nor beside one that leaves with its cluster in the same pass",
        of("train", "batch", 2, least=1),
        arbitrating(named(VICTIM), a=1),
        [VICTIM, running(TRAIN, "gone", 1), waiting(CHAT, "a")],
        ON,
    ),
    (
        "nor beside one that is drained in the same pass",
        of("train", "batch", 2, least=1),
        arbitrating(named(VICTIM), a=1, b={"taints": [build.taint("x", "NoExecute")]}),
        [VICTIM, running(TRAIN, "b", 1), waiting(CHAT, "a")],
        ON,
    ),
    (
        "it noted that it could not",
        TRAIN,
        arbitrating(named(VICTIM), a=1),
        [running(TRAIN, "a", spare="0"), waiting(CHAT, "a")],
        ON,
    ),
    (
        "preemption is off",
        TRAIN,
        arbitrating(named(VICTIM), a=1),
        [VICTIM, waiting(CHAT, "a")],
        {"overcommit": "Yield"},
    ),
    (
        "the input cannot be read",
        TRAIN,
        arbitrating(named(VICTIM), a=1),
        [VICTIM, waiting(CHAT, "a")],
        ON | {"typo": 1},
    ),
]


@pytest.mark.parametrize(("reason", "ours", "fleet", "listed", "config"), KEPT, ids=[row[0] for row in KEPT])
def test_it_stays(reason: str, ours: Plain, fleet: list[Plain], listed: list[Plain], config: Plain) -> None:
    answer = asked(ours, fleet, listed, config)
    assert [*answer.replicas] == ["replica-a-0"], reason


ROOM = ON | {"quotas": [{"name": "q", "namespaces": [build.NAMESPACE], "atMost": {"nodes": 9}}]}
OTHER = running(of("other", "batch"), "a", value=1)
GOES: list[tuple[str, Plain, list[Plain], list[Plain], Plain]] = [
    (
        "one can be spared, and no more",
        of("train", "batch", 2, least=1),
        arbitrating(named(VICTIM), a=1, b=1),
        [VICTIM, running(TRAIN, "b", 1), waiting(CHAT, "a")],
        ON,
    ),
    (
        "its team has a quota, and nothing is guaranteed",
        TRAIN,
        arbitrating(named(VICTIM), a=1),
        [VICTIM, waiting(CHAT, "a")],
        ROOM,
    ),
    (
        "one of another deployment goes first, in the same pass",
        TRAIN,
        arbitrating(named(OTHER), named(VICTIM, "ml-team/vip"), a=2),
        [OTHER, VICTIM, waiting(CHAT, "a"), waiting(of("vip"), "a", 1)],
        ON,
    ),
]


@pytest.mark.parametrize(("reason", "ours", "fleet", "listed", "config"), GOES, ids=[row[0] for row in GOES])
def test_it_goes(reason: str, ours: Plain, fleet: list[Plain], listed: list[Plain], config: Plain) -> None:
    assert "replica-a-0" not in asked(ours, fleet, listed, config).replicas, reason


@pytest.mark.parametrize(
    ("key", "stays", "reason"),
    [
        ("replica-a-0", False, "it is who its cluster names"),
        ("replica-!", True, "which replica it is cannot be read"),
        ("replica-b-0", True, "its key says another cluster than its spec"),
    ],
)
def test_only_one_that_can_be_read_gives_way(key: str, reason: str, *, stays: bool) -> None:
    fleet = arbitrating(named(VICTIM), a=1, b=0)
    made = World(TRAIN, fleet, [VICTIM, waiting(CHAT, "a")], {key: VICTIM}, input=ON)
    assert (key in run(made).desired) == stays, reason


def test_one_a_pass_gives_way() -> None:
    ours = of("train", "batch", 2)
    both = [running(ours, "a", 0), running(ours, "a", 1)]
    listed = [*both, waiting(CHAT, "a"), waiting(of("vip"), "a", 1)]
    answer = asked(ours, arbitrating(*map(named, both), a=2), listed)
    assert len([key for key in answer.replicas if key in ("replica-a-0", "replica-a-1")]) == 1


def test_what_is_noted_stays_while_the_input_cannot_be_read() -> None:
    answer = asked(TRAIN, arbitrating(a=1), [VICTIM], ON | {"typo": 1})
    assert answer.replicas["replica-a-0"]["metadata"]["annotations"] == VICTIM["metadata"]["annotations"]


# The one that preempts


def test_it_stays_while_somebody_is_to_give_way_and_keeps_its_label() -> None:
    answer = asked(CHAT, arbitrating(a=1), [VICTIM, waiting(CHAT, "a")])
    assert answer.replicas["replica-a-0"]["metadata"]["labels"][LABEL] == "true"


def test_it_gives_way_itself_where_nobody_does() -> None:
    listed = [running(TRAIN, "a", spare="0"), waiting(CHAT, "a")]
    answer = asked(CHAT, arbitrating(a=1), listed)
    assert not answer.replicas
    assert [reason for _, reason, _ in answer.events if reason.startswith("Replica")] == ["ReplicaYielded"]


def test_where_no_class_preempts_it_gives_way_like_any_other() -> None:
    listed = [VICTIM, waiting(CHAT, "a")]
    plain = [{**row, "preempts": False} for row in CLASSES]
    for classes, stays in ((CLASSES, 1), (plain, 0)):
        answer = asked(CHAT, arbitrating(a=1), listed, ON | {"priorityClasses": classes})
        assert len(answer.replicas) == stays


def test_the_label_goes_once_it_is_ready() -> None:
    ready = waiting(CHAT, "a")
    ready["status"]["conditions"] = [build.condition("Ready", status=True)]
    answer = asked(CHAT, arbitrating(a=1), [ready])
    metadata = answer.replicas["replica-a-0"]["metadata"]
    assert LABEL not in metadata["labels"]
    assert metadata["annotations"][f"{PREFIX}was-ready"] == ready["metadata"]["uid"]


# The cluster


ARBITRATE = {"publish": "Attributes", "charges": "Overcommitted", "preemption": "Arbitrate"}


def on_east(*replicas: tuple[str, int, bool]) -> list[Plain]:
    """Replicas on the cluster of the cluster's tests: name, value, whether it preempts."""
    made = []
    for name, value, preempts in replicas:
        replica = on_cluster(f"{name}-1")
        noted = {"priority-class": f"c{value}", "priority": str(value), "spare": "all"}
        replica["metadata"]["annotations"] = {PREFIX + key: text for key, text in noted.items()}
        if preempts:
            replica["metadata"]["labels"][LABEL] = "true"
        else:
            replica["status"] = {"conditions": [build.condition("Ready", status=True)]}
        made.append(replica)
    return made


def test_the_cluster_names_who_gives_way() -> None:
    made = ClusterCase(input=ARBITRATE, replicas=on_east(("a", 1, False), ("b", 2, False), ("chat", 9, True)))
    answer = made.answer()
    low, _, _ = made.replicas
    assert answer.status["givesWay"] == [named(low, "ml-team/chat", "c9")]
    assert not answer.settled, "the next reading comes soon"
    waits = next(needed for needed in answer.requirements if needed.name == "preempting")
    assert waits.match_labels == (("modelplane.ai/cluster", "east"), (LABEL, "true"))
    made.cluster = {**made.cluster, "status": answer.status}
    made.replicas = None
    assert made.answer().status["givesWay"] == answer.status["givesWay"], "doubt: the last word stands"
    made.replicas = []
    assert made.answer().status["givesWay"] == []
    made.input = {"publish": "Attributes", "charges": "Overcommitted"}
    assert "givesWay" not in made.answer().status, "it is off"


# The independent checker


CERTIFIED: list[tuple[str, Plain, list[Plain], list[Plain]]] = [
    ("placed where another gives way", CHAT, arbitrating(a=1), [VICTIM]),
    ("gives way", TRAIN, arbitrating(named(VICTIM), a=1), [VICTIM, waiting(CHAT, "a")]),
    ("stays while somebody gives way", CHAT, arbitrating(a=1), [VICTIM, waiting(CHAT, "a")]),
    ("gives way itself", CHAT, arbitrating(a=1), [running(TRAIN, "a", spare="0"), waiting(CHAT, "a")]),
]


@pytest.mark.parametrize(("reason", "ours", "fleet", "listed"), CERTIFIED, ids=[row[0] for row in CERTIFIED])
def test_the_checker_certifies_it(reason: str, ours: Plain, fleet: list[Plain], listed: list[Plain]) -> None:
    answer = asked(ours, fleet, listed)
    assert certified(ours, fleet, listed, [*answer.replicas.values()]) == [], reason


FORGED: list[tuple[str, Plain, list[Plain], list[Plain], list[Plain], str]] = [
    ("it is not named", TRAIN, arbitrating(a=1), [VICTIM, waiting(CHAT, "a")], [], "Lost"),
    ("nobody waits", TRAIN, arbitrating(named(VICTIM), a=1), [VICTIM], [], "Lost"),
    (
        "its note spares none",
        TRAIN,
        arbitrating(named(VICTIM), a=1),
        [running(TRAIN, "a", spare="0"), waiting(CHAT, "a")],
        [],
        "Lost",
    ),
    (
        "the pool is over and nobody may give way",
        CHAT,
        arbitrating(a=1),
        [running(TRAIN, "a", spare="0")],
        [waiting(CHAT, "a")],
        "Overcommit",
    ),
    ("no label", CHAT, arbitrating(a=1), [VICTIM], [running(CHAT, "a", value=1000)], "Overcommit"),
    ("the cluster does not arbitrate", CHAT, clusters(a=1), [VICTIM], [waiting(CHAT, "a")], "Overcommit"),
]


@pytest.mark.parametrize(
    ("reason", "ours", "fleet", "listed", "desired", "rule"), FORGED, ids=[row[0] for row in FORGED]
)
def test_the_checker_finds_what_no_rule_allows(
    reason: str, ours: Plain, fleet: list[Plain], listed: list[Plain], desired: list[Plain], rule: str
) -> None:
    assert rule in certified(ours, fleet, listed, desired), reason


BAD: list[tuple[type[SchedulerConfig | ClusterConfig], Plain, str]] = [
    (
        SchedulerConfig,
        {"priorityClasses": CLASSES},
        "preempts, which needs overcommit: Yield and capacity: Replicas, found overcommit: Report",
    ),
    (SchedulerConfig, ON | {"capacity": "Published"}, "found overcommit: Yield and capacity: Published"),
    (
        ClusterConfig,
        {"preemption": "Arbitrate"},
        "preemption: Arbitrate is published only with publish: Attributes",
    ),
]


@pytest.mark.parametrize(("kind", "plain", "text"), BAD)
def test_an_input_that_cannot_preempt_says_so(
    kind: type[SchedulerConfig | ClusterConfig], plain: Plain, text: str
) -> None:
    with pytest.raises(Malformed, match=text):
        kind.parse(plain)
