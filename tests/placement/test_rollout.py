"""Staged rollout: which replicas an edit of the template reaches in one pass, and what the condition says."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from function.api import ModelDeployment
from function.scheduler.stamp import template_of, updated_spec
from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.drive import Answer, run
from tests.support.rollouts import NEW, NEWER, OLD, Seen, deployment, images, running
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Plain = dict[str, Any]

ONE: Plain = {"rollout": {"maxUnavailable": 1}}
SURGE: Plain = {"rollout": {"maxUnavailable": 0}, "disruption": {"maxUnavailable": 0, "maxSurge": 1}}
TWO: Plain = {"rollout": {"maxUnavailable": 2}}


def answered(made: Plain, seen: Sequence[Seen], fleet: Sequence[Plain] | None = None, **more: Any) -> Answer:
    own_replicas = running(*seen)
    return run(World(made, fleet or clusters(a=9, b=9), own_replicas, build.observed(*own_replicas), **more))


@dataclass(frozen=True)
class Case:
    """Replicas that are observed with an old image, or not, and those that get the new one in this pass."""

    reason: str
    seen: Sequence[Seen]
    updated: set[str]
    """Those that are to run the new image when the answer is applied."""
    status: str
    wanted: int | None = None
    placement: Plain | None = None
    fleet: Mapping[str, Any] = field(default_factory=lambda: {"a": 9, "b": 9})

    def __str__(self) -> str:
        """The name of the test: what it proves."""
        return self.reason


DRAINED = {"nodes": 9, "taints": [build.taint("x", "NoExecute")]}
THREE = [Seen("a", 0), Seen("a", 1), Seen("b", 0)]
STALE = {
    "metadata": {"generation": 3},
    "status": {"conditions": [build.condition("Ready", status=True) | {"observedGeneration": 2}]},
}
FRESH = {
    "metadata": {"generation": 3},
    "status": {"conditions": [build.condition("Ready", status=True) | {"observedGeneration": 3}]},
}
UNKNOWN = {"status": {"engines": [{"name": "main", "copies": 1, "available": 1, "updated": 0}]}}
HALF = {"status": {"engines": [{"name": "main", "copies": 2, "available": 1, "updated": 1}]}}
SILENT = Seen("a", 1, ready=None, was_ready=True)
HALF_BEFORE = {**STALE, "status": {**STALE["status"], **HALF["status"]}}
CASES = [
    Case("the first in the order of scale down", THREE, {"a-1"}, "RollingOut"),
    Case(
        "one that was updated and does not start stops it",
        [Seen("a", 0), Seen("a", 1, NEW, ready=False), Seen("b", 0)],
        {"a-1"},
        "RolloutPaused",
    ),
    Case(
        "when it is in service the next one follows: the later cluster among equals",
        [Seen("a", 0), Seen("a", 1, NEW), Seen("b", 0, NEW)],
        {"a-0", "a-1", "b-0"},
        "RollingOut",
    ),
    Case(
        "Ready with the digest of the old template is not in service yet",
        [Seen("a", 0), Seen("a", 1, NEW, serves=OLD), Seen("b", 0)],
        {"a-1"},
        "RolloutPaused",
    ),
    Case(
        "with its own digest it is",
        [Seen("a", 0), Seen("a", 1, NEW, serves=NEW), Seen("b", 0)],
        {"a-1", "b-0"},
        "RollingOut",
    ),
    Case(
        "whose platform says how its engines are and no digest is not known to be",
        [Seen("a", 0), Seen("a", 1, NEW, more=UNKNOWN), Seen("b", 0)],
        {"a-1"},
        "RolloutPaused",
    ),
    Case(
        "the last one is not known to run its template: that is no end yet",
        [Seen("a", 0, NEW), Seen("a", 1, NEW, more=UNKNOWN), Seen("b", 0, NEW)],
        {"a-0", "a-1", "b-0"},
        "RollingOut",
    ),
    Case(
        "those of which it is not known what they run are not taken for idle: all could serve",
        [Seen("a", 0, more=UNKNOWN), Seen("a", 1, more=UNKNOWN), Seen("b", 0, more=UNKNOWN)],
        set(),
        "RolloutPaused",
    ),
    Case(
        "one of which it is not known is updated within the budget, before one that serves",
        [Seen("a", 0), Seen("a", 1), Seen("b", 0, more=UNKNOWN)],
        {"b-0"},
        "RollingOut",
    ),
    Case(
        "one that takes requests half updated is mended, though two are: else neither ever would be",
        [Seen("a", 0), Seen("a", 1, more=HALF), Seen("b", 0, more=HALF)],
        {"a-1"},
        "RollingOut",
    ),
    Case(
        "how many copies were updated of the spec of before says nothing of this one's: it may all serve",
        [Seen("a", 0), Seen("a", 1, more=HALF_BEFORE), Seen("b", 0, more=UNKNOWN)],
        set(),
        "RolloutPaused",
    ),
    Case(
        "not while one that has the template is not in service",
        [Seen("a", 0, NEW, ready=False), Seen("a", 1, more=HALF), Seen("b", 0, more=HALF)],
        {"a-0"},
        "RolloutPaused",
    ),
    Case(
        "by surge what is not known to serve is no more touched than what does",
        [Seen("a", 0, more=UNKNOWN)],
        set(),
        "RollingOut",
        wanted=1,
        placement={"rollout": {"maxUnavailable": 0}, "disruption": {"maxUnavailable": 0, "maxSurge": 1}},
    ),
    Case(
        "a Ready that is about an older generation is not",
        [Seen("a", 0), Seen("a", 1, NEW, more=STALE), Seen("b", 0)],
        {"a-1"},
        "RolloutPaused",
    ),
    Case(
        "one about this generation is",
        [Seen("a", 0), Seen("a", 1, NEW, more=FRESH), Seen("b", 0)],
        {"a-1", "b-0"},
        "RollingOut",
    ),
    Case(
        "outdated and not Ready: at once, and it uses the budget up",
        [Seen("a", 0, ready=False), Seen("a", 1), Seen("b", 0)],
        {"a-0"},
        "RollingOut",
    ),
    Case(
        "all that are not Ready at once",
        [Seen("a", 0, ready=False), Seen("a", 1, ready=None), Seen("b", 0)],
        {"a-0", "a-1"},
        "RollingOut",
    ),
    Case(
        "one that was Ready and says nothing any more may serve: not beside another that is out of service",
        [Seen("a", 0), SILENT, Seen("b", 0, NEW, ready=False)],
        {"b-0"},
        "RolloutPaused",
    ),
    Case(
        "what may serve is updated within the budget, before what serves",
        [Seen("a", 0), SILENT, Seen("b", 0)],
        {"a-1"},
        "RollingOut",
    ),
    Case(
        "what has nothing to lose is updated all the same",
        [Seen("a", 0, ready=False, was_ready=True), SILENT, Seen("b", 0, NEW, ready=False)],
        {"a-0", "b-0"},
        "RollingOut",
    ),
    Case(
        "by surge what may serve is not touched",
        [SILENT],
        set(),
        "RollingOut",
        wanted=1,
        placement=SURGE,
    ),
    Case("two at a time, each from the fullest cluster", THREE, {"a-1", "b-0"}, "RollingOut", placement=TWO),
    Case(
        "a wanted replica that has no place uses the budget up",
        THREE,
        set(),
        "RolloutPaused",
        wanted=4,
        fleet={"a": 2, "b": 1},
    ),
    Case(
        "a cluster that is not Ready goes first",
        [Seen("a", 0), Seen("b", 0)],
        {"b-0"},
        "RollingOut",
        fleet={"a": 9, "b": {"nodes": 9, "ready": False}},
    ),
    Case(
        "those that wait to leave come last",
        [Seen("a", 0), Seen("b", 0), Seen("b", 1)],
        {"a-0"},
        "RollingOut",
        fleet={"a": 9, "b": DRAINED, "c": 0},
        placement=TWO | {"disruption": {"maxUnavailable": 1}},
        wanted=4,
    ),
    Case(
        "a second edit: what was updated and serves the first one loses nothing by the second",
        [Seen("a", 0), Seen("a", 1, NEWER, serves=OLD), Seen("b", 0)],
        {"a-1"},
        "RollingOut",
    ),
    Case(
        "an edit that is taken back reaches the one that it had reached",
        [Seen("a", 0, NEW), Seen("a", 1, "vllm:broken", ready=False), Seen("b", 0, NEW)],
        {"a-0", "a-1", "b-0"},
        "RollingOut",
    ),
    Case("nothing to do", [Seen("a", 0, NEW), Seen("b", 0, NEW)], {"a-0", "b-0"}, "AllReplicasUpdated"),
    Case(
        "the last one is seen to run the old template",
        [Seen("a", 0, NEW), Seen("b", 0, NEW, serves=OLD)],
        {"a-0", "b-0"},
        "RollingOut",
    ),
    Case(
        "a replica that dies afterwards is no rollout",
        [Seen("a", 0, NEW), Seen("b", 0, NEW, ready=False)],
        {"a-0", "b-0"},
        "AllReplicasUpdated",
    ),
    Case("one replica, one at a time: it goes down", [Seen("a", 0)], {"a-0"}, "RollingOut"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_updated_in_one_pass(case: Case) -> None:
    made = deployment(case.wanted or len(case.seen), NEW, case.placement or ONE)
    answer = answered(made, case.seen, clusters(**case.fleet))
    own_replicas = {f"{replica.on}-{replica.index}" for replica in case.seen}
    assert {
        key for key, image in images(answer).items() if image == NEW and key in own_replicas
    } == case.updated
    assert answer.conditions["ReplicasUpdated"][:2] == (case.status == "AllReplicasUpdated", case.status)


def test_without_the_field_every_replica_is_updated_at_once() -> None:
    answer = answered(deployment(3, NEW), THREE)
    assert set(images(answer).values()) == {NEW}
    assert "ReplicasUpdated" not in answer.conditions


def test_a_condition_that_the_composite_has_is_kept_true_when_the_field_is_taken_away() -> None:
    made = deployment(3, NEW)
    made["status"] = {"conditions": [build.condition("ReplicasUpdated", status=False)]}
    answer = answered(made, THREE)
    assert answer.conditions["ReplicasUpdated"][1] == "AllReplicasUpdated"


def test_defaults_of_the_function_stage_it_too() -> None:
    answer = answered(deployment(3, NEW), THREE, input={"defaults": {"placement": ONE}})
    assert images(answer) == {"a-0": OLD, "a-1": NEW, "b-0": OLD}
    assert answer.conditions["ReplicasUpdated"][1] == "RollingOut"


def test_one_that_waits_keeps_its_spec_byte_for_byte_and_gets_the_labels_of_now() -> None:
    made = deployment(3, NEW, ONE, labels={"team": "ml"})
    own_replicas = running(*THREE)
    own_replicas[0]["spec"]["engines"][0]["members"][0]["template"]["spec"]["containers"][0]["odd"] = {
        "x": []
    }
    answer = run(World(made, clusters(a=9, b=9), own_replicas, build.observed(*own_replicas)))
    waits = answer.replicas["replica-a-0"]
    assert waits["spec"] == own_replicas[0]["spec"]
    assert waits["metadata"]["labels"]["team"] == "ml"
    assert "annotations" not in waits["metadata"]


def test_copies_and_labels_do_not_wait() -> None:
    """They restart no pod: only the template is staged."""
    made = deployment(3, OLD, ONE, labels={"team": "ml"})
    made["spec"]["template"]["spec"]["engines"][0]["copies"] = 2
    answer = answered(made, THREE)
    assert answer.conditions["ReplicasUpdated"][1] == "AllReplicasUpdated"
    assert {replica["spec"]["engines"][0]["copies"] for replica in answer.replicas.values()} == {2}
    made = deployment(3, NEW, ONE)
    made["spec"]["template"]["spec"]["engines"][0]["copies"] = 2
    answer = answered(made, THREE)
    assert images(answer) == {"a-0": OLD, "a-1": NEW, "b-0": OLD}
    assert {replica["spec"]["engines"][0]["copies"] for replica in answer.replicas.values()} == {2}


@pytest.mark.parametrize(
    ("workers", "copies", "waiting", "reason"),
    [
        (2, 4, (4, 2), "fewer workers in more copies: 4 with 4 workers would hold 20 of 12 nodes"),
        (2, 1, (4, 1), "fewer copies hold less, whatever their workers"),
        (5, 1, (4, 1), "nor do copies that are to have more workers wait"),
        (3, 2, (4, 2), "as many copies as there are"),
    ],
)
@pytest.mark.parametrize("placement", [ONE, SURGE])
def test_more_copies_wait_where_fewer_pods_in_each_do(
    workers: int, copies: int, waiting: tuple[int, int], reason: str, placement: Plain
) -> None:
    """What is charged is copies as they will be, so a replica that waits holds no more than that."""

    def made(workers: int, copies: int) -> Plain:
        return ask(3, engines=[build.gang(nodes=workers, copies=copies)], placement=placement)

    own_replicas = [build.replica(made(4, 2), name, 0, pools="p0", ready=True) for name in "abc"]
    fleet = clusters(a=12, b=12, c=12)
    answer = run(World(made(workers, copies), fleet, own_replicas, build.observed(*own_replicas)))
    engine = answer.replicas["replica-a-0"]["spec"]["engines"][0]
    assert (engine["members"][1]["worker"]["nodes"], engine["copies"]) == waiting, reason


@pytest.mark.parametrize(
    ("stamped", "workers", "copies", "expected", "reason"),
    [
        (None, None, 2, 2, "workers that state no nodes are one pod, before and after"),
        (4, 4, 2, 2, "as many workers as before give nothing back"),
        (4, 2, 3, 1, "copies that the stamp leaves out are one"),
    ],
)
def test_what_a_stamp_leaves_out_is_one(
    stamped: int | None, workers: int | None, copies: int, expected: int, reason: str
) -> None:
    def made(workers: int | None, image: str, copies: int | None = None) -> Plain:
        members = [
            build.member("Leader", [build.request("gpu", 8)], image=image),
            build.member("Worker", [build.request("gpu", 8)], nodes=workers, image=image),
        ]
        return ask(3, engines=[build.engine("main", members, copies=copies)], placement=ONE)

    own_replicas = [build.replica(made(stamped, OLD), name, 0, pools="p0", ready=True) for name in "abc"]
    for replica in own_replicas:
        replica["spec"]["engines"][0].pop("copies", None)
    fleet = clusters(a=20, b=20, c=20)
    wanted = made(workers, NEW, copies)
    answer = run(World(wanted, fleet, own_replicas, build.observed(*own_replicas)))
    assert images(answer)["a-0"] == OLD, "it waits for its turn"
    assert answer.replicas["replica-a-0"]["spec"]["engines"][0]["copies"] == expected, reason


@pytest.mark.parametrize(
    ("workers", "nodes", "waiting", "reason"),
    [
        (1, 12, [2, 1], "10 nodes of the gang of before and 8 beside it would be 18 of 12"),
        (5, 20, [2, 8], "where no engine is to have fewer pods, what is charged has room for all copies"),
    ],
)
def test_more_copies_wait_where_another_engine_is_to_have_fewer_pods(
    workers: int, nodes: int, waiting: list[int], reason: str
) -> None:
    """Nodes are charged by pool: what one engine gives back another may take."""

    def made(workers: int, copies: int) -> Plain:
        engines = [build.gang(nodes=workers, copies=2), build.engine("side", copies=copies)]
        return ask(2, engines=engines, placement=ONE)

    own_replicas = [build.replica(made(4, 1), name, 0, pools="p0", ready=True) for name in "ab"]
    fleet = clusters(a=nodes, b=nodes)
    answer = run(World(made(workers, 8), fleet, own_replicas, build.observed(*own_replicas)))
    engines = answer.replicas["replica-a-0"]["spec"]["engines"]
    assert engines[0]["members"][1]["worker"]["nodes"] == 4, "it waits for its turn"
    assert [engine["copies"] for engine in engines] == waiting, reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda spec: spec["engines"][0]["members"][0].pop("role"), "Standalone is the default"),
        (lambda spec: spec.update(serving={"mode": "Unified"}), "Unified is the default"),
        (lambda spec: spec.update(crossplane={"compositionRef": {"name": "x"}}), "it is Crossplane's"),
        (
            lambda spec: spec["engines"][0]["members"][0]["template"].update(metadata={"labels": {}}),
            "an empty map says nothing",
        ),
    ],
)
def test_what_an_api_server_adds_or_leaves_out_is_no_edit(change: Any, reason: str) -> None:
    own_replicas = running(*(Seen(replica.on, replica.index, NEW) for replica in THREE))
    for manifest in own_replicas:
        change(manifest["spec"])
    answer = run(
        World(deployment(3, NEW, ONE), clusters(a=9, b=9), own_replicas, build.observed(*own_replicas))
    )
    assert answer.conditions["ReplicasUpdated"][1] == "AllReplicasUpdated", reason


def test_the_note_that_a_replica_was_ready_is_written_and_is_no_template() -> None:
    answer = answered(deployment(3, NEW, ONE), THREE, input={"overcommit": "Yield"})
    assert images(answer) == {"a-0": OLD, "a-1": NEW, "b-0": OLD}
    notes = [replica["metadata"].get("annotations") for replica in answer.replicas.values()]
    assert [note.keys() for note in notes] == [{"modelplane.ai/was-ready"}] * 3


def test_an_edit_of_the_shape_is_paced_by_the_rollout_too() -> None:
    """Selector and image at once: what does not match any more is replaced one at a time."""
    made = deployment(3, NEW, ONE, gpus=4)
    answer = answered(made, THREE)
    assert answer.decision is not None
    assert [replica.own_replica.key for replica in answer.decision.dropped] == ["replica-a-1"]
    assert len(answer.decision.placed) == 1
    unlimited = answered(deployment(3, NEW, gpus=4), THREE)
    assert len(unlimited.decision.dropped if unlimited.decision else ()) == 3


def test_what_does_not_match_and_does_not_serve_is_replaced_at_once() -> None:
    """It takes nothing with it; with all of them out of service the budget would never let one go."""
    seen = [Seen("a", 0, ready=False), Seen("a", 1, ready=False), Seen("b", 0, ready=False)]
    answer = answered(deployment(3, NEW, ONE, gpus=4), seen)
    assert answer.decision is not None
    assert len(answer.decision.dropped) == len(answer.decision.placed) == 3
    paced = {"disruption": {"maxUnavailable": 1}}
    assert not answered(deployment(3, NEW, paced, gpus=4), seen).decision.dropped, "without a rollout as ever"


def test_an_alternative_is_updated_to_its_own_engines() -> None:
    def alternatives(image: str) -> list[Plain]:
        member = build.member(devices=[build.request("gpu", 8)], image=f"{image}-small")
        return [{"name": "small", "engines": [build.engine(members=[member])]}]

    was, now = (deployment(2, image, ONE, alternatives=alternatives(image)) for image in (OLD, NEW))
    own_replicas = [build.replica(was, "a", 0, pools="p0", ready=True)]
    small = was["spec"]["template"]["spec"]["alternatives"][0]["engines"]
    own_replicas.append(build.replica(was, "b", 0, small, pools="p0", ready=True))
    own_replicas[1]["metadata"]["labels"]["modelplane.ai/alternative"] = "small"
    answer = run(World(now, clusters(a=9, b=9), own_replicas, build.observed(*own_replicas)))
    assert images(answer) == {"a-0": OLD, "b-0": f"{NEW}-small"}


def test_a_scale_down_in_a_rollout_takes_what_is_not_in_service_first() -> None:
    seen = [Seen("a", 0), Seen("a", 1, NEW, serves=OLD), Seen("b", 0)]
    answer = answered(deployment(2, NEW, ONE), seen)
    assert images(answer) == {"a-0": OLD, "b-0": NEW}, "the rollout begins again with what stays"


def test_an_endpoint_of_one_that_is_updated_follows_its_readiness_only() -> None:
    own_replicas = running(*THREE)
    seen = build.observed(*own_replicas, endpoints=[build.endpoint(replica) for replica in own_replicas])
    answer = run(World(deployment(3, NEW, ONE), clusters(a=9, b=9), own_replicas, seen))
    assert len(answer.endpoints) == 3
    assert images(answer)["a-1"] == NEW


@pytest.mark.parametrize("late", ["clusters", "replicas"])
def test_nothing_is_updated_while_something_is_undelivered(late: str) -> None:
    answer = answered(deployment(3, NEW, ONE), THREE)
    own_replicas = running(*THREE)
    made = World(
        deployment(3, NEW, ONE), clusters(a=9, b=9), own_replicas, build.observed(*own_replicas)
    ).but(**{late: None})
    assert set(images(run(made)).values()) == {OLD}
    assert run(made).conditions["ReplicasUpdated"] == (
        False,
        "InputsUnresolved",
        "Unknown: the fleet has not been delivered",
    )
    assert set(images(answer).values()) == {OLD, NEW}


WITHIN = ", within placement.rollout.maxUnavailable,"
SAYS = [
    (
        THREE,
        f"0 of 3 replicas updated; updating a/my-model-{{a1}}; 2 wait{WITHIN} for that",
        "a step",
    ),
    (
        [Seen("a", 0), Seen("a", 1, NEW, ready=False), Seen("b", 0)],
        f"1 of 3 replicas updated; 2 wait{WITHIN} until a/my-model-{{a1}} is in service (Tested)",
        "who is waited for, and what it says itself",
    ),
    ([Seen("a", 0, NEW), Seen("b", 0, NEW)], "2 of 2 replicas updated", "the end"),
    (
        [Seen("a", 0, NEW), Seen("a", 1, NEW, more=UNKNOWN)],
        "1 of 2 replicas updated; a/my-model-{a1} does not run the template yet",
        "the last one has the template, and is not known to run it",
    ),
    (
        [Seen("a", 1, NEW, more=UNKNOWN), Seen("b", 0, NEW, serves=OLD)],
        "0 of 2 replicas updated; a/my-model-{a1}, b/my-model-{b0} do not run the template yet",
        "the last two, one of which runs another",
    ),
    ([Seen("a", 1)], "0 of 1 replica updated; updating a/my-model-{a1}", "the only one: nobody waits for it"),
    (
        [Seen("a", 0), Seen("a", 1, NEW, ready=None)],
        f"1 of 2 replicas updated; 1 waits{WITHIN} until a/my-model-{{a1}} is in service",
        "one that says nothing itself",
    ),
]


@pytest.mark.parametrize(("seen", "said", "reason"), SAYS, ids=[say[2] for say in SAYS])
def test_what_the_condition_says(seen: Sequence[Seen], said: str, reason: str) -> None:
    answer = answered(deployment(len(seen), NEW, ONE), seen)
    digests = {
        f"{on}{index}": build.composed_name("my-model", on, index).rpartition("-")[2]
        for on, index in (("a", 1), ("b", 0))
    }
    assert answer.conditions["ReplicasUpdated"][2] == said.format(**digests), reason


PULLING = {"type": "Ready", "status": "False", "reason": "ModelStarting", "message": "pulling the image"}


@pytest.mark.parametrize(
    ("condition", "quoted"),
    [
        (PULLING, "ModelStarting: pulling the image"),
        (PULLING | {"message": ""}, "ModelStarting"),
        (PULLING | {"reason": None}, "pulling the image"),
        (PULLING | {"message": "long " * 99}, f"ModelStarting: {'long ' * 28}long…"),
    ],
    ids=["reason and message", "a reason alone", "a message alone", "as much as leaves room for others"],
)
def test_what_a_replica_says_of_itself_is_quoted(condition: Plain, quoted: str) -> None:
    starting = Seen("a", 1, NEW, ready=False, more={"status": {"conditions": [condition]}})
    answer = answered(deployment(3, NEW, ONE), [Seen("a", 0), starting, Seen("b", 0)])
    assert answer.conditions["ReplicasUpdated"][2].endswith(f"is in service ({quoted})")


@pytest.mark.parametrize(
    ("wanted", "said"),
    [(3, "until 1 more is placed and in service"), (4, "until 2 more are placed and in service")],
)
def test_those_that_have_no_place_are_waited_for(wanted: int, said: str) -> None:
    answer = answered(deployment(wanted, NEW, ONE), [Seen("a", 0), Seen("a", 1, NEW)], clusters(a=2))
    status, reason, message = answer.conditions["ReplicasUpdated"]
    assert (status, reason) == (False, "RolloutPaused")
    assert message.endswith(said)


@pytest.mark.parametrize(("number", "verb"), [(1, "is"), (2, "are")])
def test_what_is_kept_in_doubt_is_not_updated(number: int, verb: str) -> None:
    observed = running(*(Seen("a", index) for index in range(number)))
    for manifest in observed:
        del manifest["spec"]["engines"][0]["members"][0]["nodePoolName"]
    answer = run(World(deployment(number, NEW, ONE), clusters(a=4), observed, build.observed(*observed)))
    status, reason, message = answer.conditions["ReplicasUpdated"]
    assert (status, reason) == (False, "UpdateHeld")
    assert f" {verb} held as observed, see ReplicasScheduled" in message


def test_it_is_said_on_the_wire_too() -> None:
    """There a document gives what it is asked for, and nothing else."""
    observed = running(*THREE)
    answer = run(
        World(deployment(3, NEW, ONE), clusters(a=9, b=9), observed, build.observed(*observed)), level="wire"
    )
    assert answer.conditions["ReplicasUpdated"][1] == "RollingOut"


def test_an_update_is_an_event_and_a_pause_is_none() -> None:
    step = answered(deployment(3, NEW, ONE), THREE)
    assert [event for event in step.events if event[1] == "ReplicasUpdating"]
    paused = answered(deployment(3, NEW, ONE), [Seen("a", 0), Seen("a", 1, NEW, ready=False)])
    assert not [event for event in paused.events if event[1] == "ReplicasUpdating"]


CONSTRAINTS = [{"matchAttribute": "numa", "requests": ["gpu"]}]
STAMPED_GANG: Plain = {
    "clusterName": "a",
    "modelCacheRef": {"name": "weights"},
    "serving": {"mode": "PrefillDecode"},
    "engines": [
        {
            "name": "main",
            "copies": 2,
            "phase": "Prefill",
            "adapters": {"slots": 2},
            "members": [
                {
                    "role": role,
                    "nodePoolName": "p0",
                    "deviceRequests": [{"name": "gpu", "count": 8}],
                    "deviceConstraints": CONSTRAINTS,
                    "template": build.template(OLD),
                    **more,
                }
                for role, more in (("Leader", {}), ("Worker", {"worker": {"nodes": 2}}))
            ],
        }
    ],
}
ENGINE, WORKER = ("engines", 0), ("engines", 0, "members", 1)


def put(plain: Plain, path: Sequence[str | int], value: Any) -> Plain:
    """Return a copy with one value put at a path, or taken away by None."""
    made = copy.deepcopy(plain)
    inner: Any = made
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    if value is None:
        del inner[path[-1]]
    return made


@pytest.mark.parametrize(
    ("reason", "path", "value", "restarts"),
    [
        ("another image", (*WORKER, "template"), build.template(NEW), True),
        ("another cache", ("modelCacheRef", "name"), "other", True),
        ("no cache", ("modelCacheRef",), None, True),
        ("another mode of serving", ("serving", "mode"), "Unified", True),
        ("another name of an engine", (*ENGINE, "name"), "other", True),
        ("another phase", (*ENGINE, "phase"), "Decode", True),
        ("other adapters", (*ENGINE, "adapters", "slots"), 3, True),
        ("another role", (*WORKER, "role"), "Standalone", True),
        ("another size of a gang", (*WORKER, "worker", "nodes"), 3, True),
        ("one worker, stated or not", (*WORKER, "worker"), None, True),
        ("an engine less", ("engines",), [], True),
        ("a member less", (*ENGINE, "members"), [STAMPED_GANG["engines"][0]["members"][0]], True),
        ("more copies", (*ENGINE, "copies"), 3, False),
        ("another pool", (*WORKER, "nodePoolName"), "p1", False),
        ("other requests", (*WORKER, "deviceRequests"), [], False),
        ("no constraints", (*WORKER, "deviceConstraints"), None, False),
        ("another cluster", ("clusterName",), "b", False),
        ("a field left out that was empty", (*ENGINE, "members", 0, "worker"), {}, False),
    ],
)
def test_what_of_a_spec_restarts_pods(
    reason: str,
    path: Sequence[str | int],
    value: Any,
    restarts: bool,  # noqa: FBT001
) -> None:
    edited = put(STAMPED_GANG, path, value)
    assert (template_of(edited) != template_of(STAMPED_GANG)) is restarts, reason


@pytest.mark.parametrize(
    ("reason", "path", "filled_in"),
    [
        ("one worker", (*WORKER, "worker"), {"nodes": 1}),
        ("a Standalone", (*WORKER, "role"), "Standalone"),
        ("the default mode", ("serving", "mode"), "Unified"),
    ],
)
def test_a_default_that_is_filled_in_restarts_nothing(
    reason: str, path: Sequence[str | int], filled_in: Any
) -> None:
    filled, without = (put(STAMPED_GANG, path, value) for value in (filled_in, None))
    assert template_of(filled) == template_of(without), reason


def test_an_update_keeps_what_was_stamped_and_takes_the_rest_from_the_deployment() -> None:
    members = [build.member("Leader", [], image=NEW), build.member("Worker", [], nodes=3, image=NEW)]
    wanted = build.engine("main", members, copies=4, phase="Decode") | {"adapters": {"slots": 3}}
    made = build.deployment("m", engines=[wanted], cache="other")
    made["spec"]["template"]["spec"]["serving"] = {"mode": "PrefillDecode", "parallelism": {"tensor": 8}}
    parsed = ModelDeployment.parse(made)
    expected = put(STAMPED_GANG, ("modelCacheRef", "name"), "other")
    expected = put(expected, ("serving", "parallelism"), {"tensor": 8})
    for key, value in (("copies", 4), ("phase", "Decode"), ("adapters", {"slots": 3})):
        expected = put(expected, (*ENGINE, key), value)
    for at in range(2):
        expected = put(expected, (*ENGINE, "members", at, "template"), build.template(NEW))
    expected = put(expected, (*WORKER, "worker", "nodes"), 3)
    assert updated_spec(parsed, "a", parsed.shapes[0], STAMPED_GANG) == expected
    bare = put(put(made, ("spec", "template", "spec", "engines", 0, "phase"), None), (*AT_SERVING,), None)
    parsed = ModelDeployment.parse(put(bare, (*AT_SERVING[:-1], "engines", 0, "adapters"), None))
    observed = put(put(STAMPED_GANG, (*ENGINE, "members", 0, "deviceConstraints"), None), ("serving",), None)
    updated = updated_spec(parsed, "a", parsed.shapes[0], observed)
    assert updated.keys() == {"clusterName", "modelCacheRef", "engines"}, "what is not set is left out"
    [engine] = updated["engines"]
    assert engine.keys() == {"name", "copies", "members"}
    assert "deviceConstraints" not in engine["members"][0]


AT_SERVING = ("spec", "template", "spec", "serving")
