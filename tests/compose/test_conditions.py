"""Conditions: of several reasons the first of the contract's order is reported, and none of them flaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import build
from tests.support.drive import run
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]


def world(replicas: int = 1, nodes: int = 1, running: int = 0, *, ready: bool | None = None) -> World:
    """A deployment of one-node replicas on a cluster of so many nodes, some of them running."""
    deployment = build.deployment("my-model", replicas)
    own_replicas = [build.replica(deployment, "a", index, ready=ready) for index in range(running)]
    return World(
        deployment,
        [build.cluster("a", [build.pool("h100", nodes)])],
        own_replicas,
        observed=build.observed(*own_replicas),
    )


def _broken_selector(made: World) -> World:
    member = made.deployment["spec"]["template"]["spec"]["engines"][0]["members"][0]
    member["nodeSelector"]["devices"][0]["selectors"] = [{"cel": "nonsense("}]
    return made


def _cluster_selector(made: World) -> World:
    made.deployment["spec"]["template"]["spec"]["clusterSelector"] = {"cel": ["nonsense("]}
    return made


def _least(made: World, least: int) -> World:
    made.deployment["spec"]["minReplicas"] = least
    return made


def _pool_gone(made: World) -> World:
    made.clusters[0]["spec"]["nodePools"] = [{"name": "renamed"}]
    made.clusters[0]["status"]["gpuPools"] = [build.pool("h100", 0)]
    return made


@dataclass(frozen=True)
class Case:
    reason: str
    made: Callable[[], World]
    says: str
    status: bool = False
    ready: tuple[bool, str] = (False, "ModelStarting")
    unready: bool = False
    settled: bool = False
    words: tuple[str, ...] = field(default=())


CASES = [
    Case(
        "nothing is delivered, and nothing else that is wrong is known to be wrong",
        lambda: _broken_selector(world()).but(clusters=None, replicas=None),
        "InputsUnresolved",
        ready=(False, "NoReplicasScheduled"),
        unready=True,
        words=("own-replicas/my-model, fleet-clusters, fleet-replicas",),
    ),
    Case(
        "the clusters are chosen before the pools",
        lambda: _cluster_selector(_broken_selector(world())),
        "InvalidClusterSelector",
        ready=(False, "NoReplicasScheduled"),
        unready=True,
        words=("clusterSelector.cel[0]: 1:",),
    ),
    Case(
        "an invalid selector outweighs an empty fleet",
        lambda: _broken_selector(world()).but(clusters=[]),
        "InvalidNodeSelector",
        ready=(False, "NoReplicasScheduled"),
        unready=True,
        words=("engines[0].members[0].nodeSelector.devices[0].selectors[0]: 1:",),
    ),
    Case(
        "an empty fleet is no lack of capacity",
        lambda: world().but(clusters=[]),
        "NoClusters",
        ready=(False, "NoReplicasScheduled"),
        unready=True,
    ),
    Case(
        "a held replica outweighs a shortfall",
        lambda: _pool_gone(world(3, 1, running=1)),
        "ReplacementBlocked",
        unready=True,
        words=("1 replica needs replacement", "no longer declared"),
    ),
    Case(
        "below minReplicas nothing new is placed",
        lambda: _least(world(4, 2), 3),
        "MinReplicasNotMet",
        ready=(False, "NoReplicasScheduled"),
        unready=True,
        words=("minReplicas is 3", "2 more had a place"),
    ),
    Case(
        "no place for any",
        lambda: world(2, 0),
        "InsufficientCapacity",
        ready=(False, "NoReplicasScheduled"),
        unready=True,
        words=("0/1 clusters can host another", "1 insufficient nodes", "needs 1, 0 free of 0"),
    ),
    Case(
        "a place for some",
        lambda: world(3, 2),
        "PartiallyScheduled",
        unready=True,
        words=("Scheduled 2 of 3 replicas",),
    ),
    Case(
        "a place for as many as are required",
        lambda: _least(world(3, 2), 2),
        "PartiallyScheduled",
        status=True,
        words=("Scheduled 2 of 3 replicas",),
    ),
    Case("all have a place, none exists yet", lambda: world(1, 1), "Scheduling"),
    Case(
        "all are placed and one exists",
        lambda: world(2, 2, running=1),
        "ReplicasCreated",
        status=True,
    ),
    Case(
        "all exist and are routed to",
        lambda: world(1, 1, running=1, ready=True),
        "ReplicasCreated",
        status=True,
        ready=(True, "AllReplicasReady"),
        settled=True,
    ),
    Case(
        "none wanted, none placed: that is success",
        lambda: world(0),
        "ReplicasCreated",
        status=True,
        ready=(True, "AllReplicasReady"),
        settled=True,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_the_first_reason_of_the_order_is_reported(case: Case) -> None:
    answer = run(case.made())
    status, reason, message = answer.conditions["ReplicasScheduled"]
    assert (status, reason) == (case.status, case.says)
    assert answer.conditions["ReplicasReady"][:2] == case.ready
    assert answer.unready is case.unready
    assert answer.settled is case.settled
    placed, routed = len(answer.replicas), len(answer.endpoints)
    assert answer.status["replicas"] == {"total": placed, "ready": routed}, "the status is on every path"
    for word in case.words:
        assert word in message


def _reconciled(made: World) -> World:
    """The world after Crossplane wrote the conditions back; nothing else happened."""
    answer = run(made)
    listed = [
        {"type": kind, "status": str(status), "reason": reason, "message": message}
        for kind, (status, reason, message) in answer.conditions.items()
    ]
    again = made.copy()
    again.deployment["status"] = {"conditions": listed}
    return again


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_an_unchanged_problem_is_no_event(case: Case) -> None:
    once = _reconciled(case.made())
    assert [event for event in run(once).events if event[1] != "ReplicasPlaced"] == []
    assert run(once).conditions == run(case.made()).conditions


def test_an_invalid_input_of_the_function_places_nothing_and_says_so() -> None:
    answer = run(world(2, 4, running=1).but(input={"explian": "Status"}))
    assert answer.reason() == "InvalidInput"
    assert "explian: no such field" in answer.conditions["ReplicasScheduled"][2]
    assert set(answer.replicas) == {"replica-a-0"}
    assert answer.unready
