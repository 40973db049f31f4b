"""Events are told on a transition, never on every call; and an unreadable deployment leaves what is ours."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.drive import run
from tests.support.world import World

Plain = dict[str, Any]
SHORT = (
    "Scheduled 1 of 2 replicas; 0/1 clusters can host another: 1 insufficient nodes (nearest: a/p0 needs 1,"
)
MESSAGE = f"{SHORT} 0 free of 1)"
PLACED = (
    "NORMAL",
    "ReplicasPlaced",
    f"Placed 1 replica on 1 cluster: a/{build.composed_name('my-model', 'a', 0)}",
)
PROBLEM = ("WARNING", "PartiallyScheduled", MESSAGE)


def before(status: str, reason: str, message: str | None) -> Plain:
    condition = build.condition("ReplicasScheduled", status=status, reason=reason)
    return condition if message is None else {**condition, "message": message}


@pytest.mark.parametrize(
    ("conditions", "events", "why"),
    [
        ([], (PLACED, PROBLEM), "the first call: what is new, and what is wrong"),
        (
            [before("False", "PartiallyScheduled", MESSAGE)],
            (),
            "the same again, before the new one is observed",
        ),
        ([before("False", "PartiallyScheduled", "other")], (PLACED,), "the same problem in other words"),
        ([before("False", "PartiallyScheduled", None)], (PLACED,), "or without words"),
        ([before("False", "Scheduling", MESSAGE)], (PLACED, PROBLEM), "another reason"),
        ([before("True", "PartiallyScheduled", MESSAGE)], (PLACED, PROBLEM), "another status"),
        (
            [build.condition("Ready", status="True"), before("False", "PartiallyScheduled", MESSAGE)],
            (),
            "conditions of others are not compared",
        ),
    ],
)
def test_placing_and_problems_are_told_when_they_are_new(
    conditions: list[Plain], events: tuple[Any, ...], why: str
) -> None:
    answer = run(World(ask(2, conditions=conditions), clusters(a=1)))
    assert answer.conditions["ReplicasScheduled"][1:] == ("PartiallyScheduled", MESSAGE)
    assert answer.events == events, why
    assert all(reason for _, reason, _ in answer.events), "an event without a reason cannot be filtered"


def test_a_condition_that_only_lost_its_message_is_no_transition() -> None:
    """An empty message and none are the same."""
    condition = build.condition("ReplicasScheduled", status="True", reason="ReplicasCreated")
    for message in ({}, {"message": None}, {"message": "Scheduled 0 of 0 replicas"}):
        answer = run(World(ask(0, conditions=[{**condition, **message}]), clusters(a=1)))
        assert answer.events == ()


def test_what_leaves_and_what_comes_for_it_are_told_together() -> None:
    """Though the condition says the same as before."""
    was = ask()
    own_replica = build.replica(was, "a", 0, pools="p0", ready=True)
    said = before("True", "ReplicasCreated", "Scheduled 1 of 1 replica")
    now = ask(engines=[build.engine("other")], conditions=[said])
    answer = run(World(now, clusters(a=4, b=4), [own_replica], build.observed(own_replica)))
    assert [reason for _, reason, _ in answer.events] == ["ReplicaReplaced", "ReplicasPlaced"]


NO_CACHE = build.condition("ModelCacheResolved", status="False", reason="ModelCacheNotFound")
CACHE_THERE = build.condition("ModelCacheResolved", status="True", reason="ModelCacheResolved")
DEGRADED = build.condition("ReplicasReady", status="False", reason="ClusterDegraded")
ALL_READY = build.condition("ReplicasReady", status="True", reason="AllReplicasReady")
CREATED = {**before("True", "ReplicasCreated", "Scheduled 1 of 1 replica")}


@pytest.mark.parametrize(
    ("conditions", "events", "why"),
    [
        (
            [CREATED, CACHE_THERE],
            (
                (
                    "WARNING",
                    "ModelCacheNotFound",
                    "ModelCache ml-team/weights does not exist; nothing new is placed",
                ),
            ),
            "a cache that was there is gone",
        ),
        ([CREATED, NO_CACHE], (), "it is still not there"),
    ],
)
def test_a_cache_that_is_not_there_is_told_when_that_is_new(
    conditions: list[Plain], events: tuple[Any, ...], why: str
) -> None:
    wanted = ask(cache="weights", conditions=conditions)
    own_replica = build.replica(wanted, "a", 0, pools="p0", ready=True)
    assert (
        run(World(wanted, clusters(a=1), [own_replica], build.observed(own_replica), cache=[])).events
        == events
    ), why


@pytest.mark.parametrize(
    ("conditions", "events", "why"),
    [
        (
            [CREATED, ALL_READY],
            (("WARNING", "ClusterDegraded", "1 of 1 ready; cluster a is not Ready"),),
            "a cluster that was Ready is not",
        ),
        ([CREATED, DEGRADED], (), "it is still not Ready"),
    ],
)
def test_a_degraded_cluster_is_told_when_that_is_new(
    conditions: list[Plain], events: tuple[Any, ...], why: str
) -> None:
    wanted = ask(conditions=conditions)
    own_replica = build.replica(wanted, "a", 0, pools="p0", ready=True)
    fleet = clusters(a={"ready": False})
    assert run(World(wanted, fleet, [own_replica], build.observed(own_replica))).events == events, why


@pytest.mark.parametrize(
    ("key", "kind", "kept", "why"),
    [
        ("replica-a-0", "ModelReplica", True, "ours by its key"),
        ("endpoint-a-0", "ModelEndpoint", True, "ours by its key"),
        ("replica-a-0", None, True, "ours by its key, whatever it is"),
        ("replica-!", "ModelReplica", True, "ours by its kind, though its key cannot be read"),
        ("somehow", "ModelEndpoint", True, "ours by its kind"),
        ("settings", "ConfigMap", False, "another step's, which emits it by itself"),
        ("settings", None, False, "nobody knows what it is"),
    ],
)
def test_under_an_unreadable_deployment_exactly_what_is_ours_is_emitted(
    key: str, kind: str | None, why: str, *, kept: bool
) -> None:
    wanted = ask()
    wanted["spec"]["replicas"] = 1.5
    seen: Plain = {"apiVersion": "v1", "metadata": {"name": "it"}, "spec": {"x": 1}}
    answer = run(World(wanted, clusters(a=1), [], {key: seen if kind is None else {**seen, "kind": kind}}))
    assert set(answer.desired) == ({key} if kept else set()), why
    if kept:
        expected = kind or "ModelReplica"
        assert (answer.desired[key]["kind"], answer.desired[key]["spec"]) == (expected, {"x": 1}), why
