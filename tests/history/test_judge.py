"""Every law of `tests/history/judge.py`: a history that keeps it, and one that breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.history.judge import PAUSED, PREEMPTING, REASONS, SAID, WAS_READY, WINDOW
from tests.history.play import CLUSTER, DEPLOYMENT, Play, engine, ready, serving

if TYPE_CHECKING:
    from collections.abc import Callable

DRAIN = {"key": "maintenance", "effect": "NoExecute"}
ROLLOUT = {"rollout": {"maxUnavailable": 1}}
LATER = WINDOW + 60


@dataclass(frozen=True)
class Case:
    reason: str
    begin: Callable[[], Play]
    act: Callable[[Play], object]
    counted: str = ""
    """What is counted, too."""


def acts(*steps: Callable[[Play], object]) -> Callable[[Play], None]:
    def act(play: Play) -> None:
        for step in steps:
            step(play)

    return act


def removed(index: int = 1) -> Callable[[Play], object]:
    return lambda play: play.remove("ModelReplica", f"chat-{index}")


def replaced(play: Play) -> None:
    play.replica(7)


def waited(seconds: float = LATER) -> Callable[[Play], object]:
    return lambda play: play.wait(seconds)


def tainted(play: Play) -> None:
    play.cluster(taints=(DRAIN,))


def untainted(play: Play) -> None:
    play.cluster()


def ended(play: Play) -> None:
    play.wait(LATER)
    play.write("ModelCache", "any")


def crowded(play: Play) -> None:
    play.cluster(nodes=1)


def noted(play: Play) -> None:
    """The replica that is not Ready was, and its deployment noted it."""
    replica = play.objects["ModelReplica", "chat-1"]
    replica["metadata"]["annotations"] = {WAS_READY: replica["metadata"]["uid"]}
    play.write("ModelReplica", "chat-1")


def paused(play: Play) -> None:
    """Nobody is asked about the deployment from now on."""
    play.objects["ModelDeployment", DEPLOYMENT]["metadata"]["annotations"] = {PAUSED: "true"}
    play.write("ModelDeployment", DEPLOYMENT)


def tolerant(play: Play) -> None:
    play.deployment(tolerations=[{"operator": "Exists"}])


def updated(index: int) -> Callable[[Play], object]:
    return lambda play: play.replica(index, "v2")


def served(index: int) -> Callable[[Play], object]:
    return lambda play: play.serve(index)


def failed(index: int) -> Callable[[Play], object]:
    return lambda play: play.serve(index, "False")


def unknown(play: Play) -> None:
    play.write("ModelReplica", "chat-1", status=ready("Unknown"))


def withdrawn(play: Play) -> None:
    play.remove("ModelEndpoint", "chat-1")


def urgent(play: Play) -> None:
    """Another deployment gets a place on the cluster."""
    spec = play.objects["ModelDeployment", DEPLOYMENT]["spec"]
    play.write("ModelDeployment", "urgent", spec=spec | {"placement": {"priorityClassName": "high"}})
    replica = play.objects["ModelReplica", "chat-0"]["spec"]
    play.write("ModelReplica", "urgent-0", owner="urgent", key="replica-use1-0", spec=replica)


def waits(play: Play) -> None:
    """It says that it waits for those that give way to it."""
    play.objects["ModelReplica", "urgent-0"]["metadata"]["labels"] = {PREEMPTING: "true"}
    play.write("ModelReplica", "urgent-0")


def rolling() -> Play:
    play = serving(3, placement=ROLLOUT)
    play.deployment(3, "v2", placement=ROLLOUT)
    return play


def starting(capacity: str = "True") -> Callable[[], Play]:
    def begin() -> Play:
        play = serving()
        conditions = [{"type": "CapacityRespected", "status": capacity}]
        play.write("ModelDeployment", DEPLOYMENT, status={"conditions": conditions})
        play.serve(1, "False")
        return play

    return begin


def chained() -> Play:
    play = serving()
    play.write("Object", "serves", owner="chat-1", spec=managed())
    play.write("Object", "sees", owner="chat-1", spec=managed() | {"managementPolicies": ["Observe"]})
    play.wait(LATER)
    return play


def referring(play: Play) -> None:
    """Crossplane notes in the spec what it composes, which raises the generation."""
    spec = play.objects["ModelReplica", "chat-1"]["spec"]
    play.write("ModelReplica", "chat-1", spec=spec | {"crossplane": {"resourceRefs": [{"name": "serves"}]}})


def managed(name: str = "chat", provider: str = "use1") -> dict[str, object]:
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}}
    return {"forProvider": {"manifest": manifest}, "providerConfigRef": {"name": provider}}


KEPT = [
    Case(
        "reason 1: its cluster is gone",
        serving,
        acts(lambda play: play.end("InferenceCluster", CLUSTER), waited(60), removed()),
        "ModelReplica: its cluster is gone",
    ),
    Case("reason 2: a taint", serving, acts(tainted, waited(60), removed()), "ModelReplica: a taint"),
    Case(
        "a taint that was taken back while the reconcile was on its way",
        serving,
        acts(tainted, untainted, waited(60), removed()),
        "ModelReplica: a taint",
    ),
    Case(
        "reason 3: an edited selector, and a replacement",
        serving,
        acts(lambda play: play.deployment(modelCacheRef={"name": "other"}), removed(), replaced, ended),
        "ModelReplica: a mismatch",
    ),
    Case(
        "reason 3: other devices are published",
        serving,
        acts(lambda play: play.cluster(devices=[]), waited(), removed(), replaced, ended),
        "ModelReplica: a mismatch",
    ),
    Case(
        "reason 4: scaled down",
        serving,
        acts(lambda play: play.deployment(1), removed()),
        "ModelReplica: scaled down",
    ),
    Case(
        "reason 4: decided on a snapshot in which what somebody deletes still stood",
        lambda: serving(3),
        acts(
            lambda play: play.deployment(2),
            lambda play: play.leave("ModelReplica", "chat-0", by_crossplane=False),
            removed(),
        ),
        "ModelReplica: scaled down",
    ),
    Case(
        "reason 5: deleted by a user",
        serving,
        lambda play: play.leave("ModelReplica", "chat-1", by_crossplane=False),
        "ModelReplica: by another hand",
    ),
    Case(
        "its deployment is being deleted",
        serving,
        acts(lambda play: play.leave("ModelDeployment", DEPLOYMENT), removed()),
        "ModelReplica: its owner leaves",
    ),
    Case(
        "reason 6: it gave way",
        serving,
        acts(failed(1), crowded, waited(60), removed()),
        "ModelReplica: it gave way",
    ),
    Case(
        "reason 7: degraded, asked for, and replaced",
        lambda: serving(placement={"evacuate": {"afterSeconds": 1800}}),
        acts(removed(), replaced, ended),
        "ModelReplica: degraded",
    ),
    Case(
        "reason 8: it makes room for a higher priority class",
        serving,
        acts(removed(), urgent),
        "ModelReplica: preempted",
    ),
    Case(
        "reason 8: what makes it give way waits for long",
        serving,
        acts(urgent, waits, waited(), removed()),
        "ModelReplica: preempted",
    ),
    Case(
        "a list stands for what a watch missed",
        serving,
        acts(
            lambda play: play.objects.pop(("ModelReplica", "chat-1")),
            lambda play: play.relist("ModelReplica"),
        ),
        "ModelReplica: between two lists",
    ),
    Case(
        "an endpoint of a replica that is not Ready",
        serving,
        acts(failed(1), withdrawn),
        "ModelEndpoint: its replica is not Ready",
    ),
    Case(
        "an endpoint that leaves a moment before its replica",
        serving,
        acts(lambda play: play.deployment(1), withdrawn, removed()),
        "ModelEndpoint: its replica leaves",
    ),
    Case("an identity that is free again", serving, acts(tainted, removed(), lambda play: play.replica(1))),
    Case(
        "a rollout, one by one",
        rolling,
        acts(updated(0), served(0), updated(1), served(1), updated(2)),
        "ModelReplica: updated within a budget",
    ),
    Case(
        "a rollout updates what is out of service",
        rolling,
        acts(failed(1), failed(2), updated(0), updated(1)),
    ),
    Case(
        "a rollout updates what was out of service when that was decided, and serves by now",
        rolling,
        acts(failed(1), updated(0), served(1), updated(1)),
    ),
    Case(
        "a rollout that may take all",
        rolling,
        acts(
            lambda play: play.deployment(3, "v2", {"rollout": {"maxUnavailable": 3}}), *map(updated, range(3))
        ),
    ),
    Case("an overcommitted pool that is said", starting("False"), acts(crowded, waited(SAID + 60), ended)),
    Case(
        "an overcommitted pool whose deployment is paused",
        starting(),
        acts(crowded, waited(60), paused, waited(SAID), ended),
    ),
    Case(
        "an overcommitted pool where nobody starts",
        starting(),
        acts(noted, crowded, waited(SAID + 60), ended),
    ),
    Case("an overcommitted pool for a moment", starting(), acts(crowded, waited(60), untainted, ended)),
    Case(
        "a pool that charges devices",
        starting(),
        acts(lambda play: play.cluster(nodes=1, accounting="Device"), waited(SAID + 60), ended),
    ),
    Case(
        "an Object leaves with its owner",
        chained,
        acts(
            lambda play: play.leave("ModelReplica", "chat-1", by_crossplane=False),
            lambda play: play.remove("Object", "serves"),
        ),
        "Object: its owner leaves",
    ),
    Case(
        "an Object leaves after an edit of its owner",
        chained,
        acts(updated(1), waited(), lambda play: play.remove("Object", "serves")),
        "Object: its owner was edited",
    ),
    Case(
        "an Object that only observes",
        chained,
        lambda play: play.remove("Object", "sees"),
        "Object: only observed",
    ),
]


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.reason)
def test_what_is_kept_is_no_violation(case: Case) -> None:
    play = case.begin()
    case.act(play)
    verdict = play.verdict()
    assert verdict.violations == []
    assert not case.counted or verdict.counts[case.counted] > 0, verdict.report()


BROKEN = [
    Case("nothing happened", serving, removed(), "R1"),
    Case("its cluster came back long before", serving, acts(tainted, untainted, waited(), removed()), "R1"),
    Case("the deployment tolerates the taint", serving, acts(tolerant, waited(), tainted, removed()), "R1"),
    Case(
        "a taint that keeps only new ones out",
        serving,
        acts(lambda play: play.cluster(taints=({**DRAIN, "effect": "NoSchedule"},)), removed()),
        "R1",
    ),
    Case(
        "a mismatch, and no replacement",
        serving,
        acts(lambda play: play.deployment(modelCacheRef={"name": "other"}), removed(), ended),
        "R1",
    ),
    Case(
        "an edit of the image, and a replacement",
        serving,
        acts(lambda play: play.deployment(image="v2"), removed(), replaced, ended),
        "R1",
    ),
    Case(
        "one more than scaled down to",
        lambda: serving(3),
        acts(lambda play: play.deployment(2), removed(1), removed(2)),
        "R1",
    ),
    Case("it gives way, and it is Ready", serving, acts(crowded, removed()), "R1"),
    Case("it gives way where there is room", serving, acts(failed(1), removed()), "R1"),
    Case("degraded, and nobody asked", serving, acts(failed(1), removed(), replaced, ended), "R1"),
    Case("an endpoint in doubt", serving, acts(unknown, withdrawn), "R2"),
    Case("an endpoint of a replica that serves", serving, withdrawn, "R2"),
    Case(
        "an identity whose object is on its way out",
        serving,
        acts(
            tainted,
            lambda play: play.leave("ModelReplica", "chat-1"),
            lambda play: play.replica(7, key="replica-use1-1"),
        ),
        "R3",
    ),
    Case("a replica on another cluster", serving, lambda play: play.replica(1, cluster="use2"), "R3"),
    Case("a replica on another pool", serving, lambda play: play.replica(1, pool="a100"), "R3"),
    Case("two at a time", rolling, acts(updated(0), updated(1)), "R4"),
    Case(
        "another one that said nothing for a moment",
        rolling,
        acts(updated(0), unknown, served(1), updated(1)),
        "R4",
    ),
    Case("the next one, and the first failed", rolling, acts(updated(0), failed(0), updated(1)), "R4"),
    Case(
        "nobody says that a pool is overcommitted", starting(), acts(crowded, waited(SAID + 60), ended), "R5"
    ),
    Case(
        "an Object leaves, and its owner stands as it did",
        chained,
        lambda play: play.remove("Object", "serves"),
        "R6",
    ),
    Case(
        "an Object leaves, and references of its owner are all that changed",
        chained,
        acts(referring, lambda play: play.remove("Object", "serves")),
        "R6",
    ),
    Case(
        "a manifest that becomes another",
        chained,
        lambda play: play.write("Object", "serves", spec=managed("other")),
        "R6",
    ),
    Case(
        "an Object on another cluster",
        chained,
        lambda play: play.write("Object", "serves", spec=managed(provider="use2")),
        "R6",
    ),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.reason)
def test_what_is_broken_is_named(case: Case) -> None:
    play = case.begin()
    case.act(play)
    assert {violation.law for violation in play.verdict().violations} == {case.counted}


def test_every_reason_of_the_law_has_a_history() -> None:
    counted = {case.counted.removeprefix("ModelReplica: ") for case in KEPT}
    assert REASONS.keys() - counted == set()


def test_events_are_judged_in_the_order_of_the_server() -> None:
    """The watch of deployments was late: the scale came first, whatever the file says."""
    play = serving()
    play.deployment(1)
    scale = play.rows.pop()
    play.remove("ModelReplica", "chat-1")
    play.rows.append(scale)
    assert play.verdict().violations == []


def test_a_gang_holds_a_node_for_every_pod() -> None:
    play = Play()
    play.cluster(nodes=2)
    play.deployment(1)
    play.write(
        "ModelDeployment",
        DEPLOYMENT,
        status={"conditions": [{"type": "CapacityRespected", "status": "True"}]},
    )
    gang = engine(pool="h100")
    gang["members"].append({**gang["members"][0], "role": "Worker", "worker": {"nodes": 2}})
    play.write("ModelReplica", "chat-0", owner=DEPLOYMENT, spec={"clusterName": CLUSTER, "engines": [gang]})
    ended(play)
    ended(play)
    assert [violation.law for violation in play.verdict().violations] == ["R5"]
