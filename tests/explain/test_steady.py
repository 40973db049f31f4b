"""The report in the status stays as it is while nothing changes that a person would notice."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.circuit import with_circuit
from tests.support.drive import run
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]
STATUS = {"explain": "Status"}
OTHERS = build.deployment("theirs", namespace="ads")


def running(wanted: int = 1, nodes: int = 4) -> World:
    """A deployment of which one replica runs on a, and another deployment's on b."""
    made = ask(wanted)
    own_replica = build.replica(made, "a", 0, pools="p0", ready=True)
    world = World(
        made,
        clusters(a=1, b=nodes, c=nodes),
        [own_replica, theirs("b", 0)],
        build.observed(own_replica, endpoints=[build.endpoint(own_replica)]),
        input=STATUS,
    )
    return answered(world)


def theirs(on: str, index: int) -> Plain:
    """A replica of the other deployment."""
    return build.replica(OTHERS, on, index, pools="p0", ready=True)


def answered(world: World) -> World:
    """The same world once the answer's status has been applied."""
    deployment = copy.deepcopy(world.deployment)
    deployment["status"] = copy.deepcopy(run(world).status)
    return world.but(deployment=deployment)


def placement(world: World) -> Plain:
    """The report in the answer."""
    reported: Plain = run(world).status["placement"]
    return reported


def more_of_theirs(world: World) -> World:
    """The other deployment takes another node."""
    return world.but(replicas=[*(world.replicas or ()), theirs("c", 0)])


def another_cluster(world: World) -> World:
    """The fleet grows."""
    return world.but(clusters=[*(world.clusters or ()), *clusters(d=2)])


def a_full_pool(world: World) -> World:
    """The other deployment takes all that is left on b."""
    return world.but(replicas=[*(world.replicas or ()), *(theirs("b", index) for index in (1, 2, 3))])


def scaled(world: World) -> World:
    """One more replica is wanted."""
    wanted = copy.deepcopy(world.deployment)
    wanted["spec"]["replicas"] += 1
    return world.but(deployment=wanted)


def not_ready(world: World) -> World:
    """The cluster it runs on is not Ready."""
    sick = copy.deepcopy(list(world.clusters or ()))
    sick[0]["status"]["conditions"] = [build.condition("Ready", status=False)]
    return world.but(clusters=sick)


def older_report(world: World) -> World:
    """The report in the status is that of another version."""
    older = copy.deepcopy(world.deployment)
    older["status"]["placement"].pop("lint")
    return world.but(deployment=older)


@pytest.mark.parametrize("event", [more_of_theirs, another_cluster, a_full_pool])
def test_what_others_do_changes_nothing_of_a_deployment_at_rest(event: Callable[[World], World]) -> None:
    world = running()
    before = world.deployment["status"]["placement"]
    after = event(world)
    assert placement(after) == before
    fresh = copy.deepcopy(after.deployment)
    del fresh["status"]
    assert placement(after.but(deployment=fresh)) == before, "it is not in it to begin with"


@pytest.mark.parametrize("event", [scaled, not_ready, older_report])
def test_what_happens_to_the_deployment_itself_is_told(event: Callable[[World], World]) -> None:
    world = event(running())
    fresh = copy.deepcopy(world.deployment)
    del fresh["status"]
    assert placement(world) == placement(world.but(deployment=fresh))
    assert placement(world) != world.deployment["status"]["placement"]


@pytest.mark.parametrize("event", [more_of_theirs, another_cluster, a_full_pool])
def test_a_deployment_that_waits_for_a_node_is_told_what_is_free(event: Callable[[World], World]) -> None:
    made = ask(9, gpus=8)
    world = event(answered(running().but(deployment=made, clusters=clusters(a=1, b=4, c=2))))
    assert placement(world)["clusters"] != world.deployment["status"]["placement"]["clusters"]


def test_the_digests_alone_are_no_reason() -> None:
    """Another deployment's replica becomes Ready: an input of the decision, and nothing in the report."""
    world = running()
    listed = copy.deepcopy(list(world.replicas or ()))
    listed[1]["status"]["conditions"] = []
    assert placement(world.but(replicas=listed)) == world.deployment["status"]["placement"]


@pytest.mark.parametrize("odd", [None, "placed", [], {"replicas": None}, {"summary": 1}])
def test_a_status_that_nobody_can_read_is_written_anew(odd: object) -> None:
    world = running()
    expected = placement(world)
    broken = copy.deepcopy(world.deployment)
    broken["status"]["placement"] = odd
    assert placement(world.but(deployment=broken))["replicas"] == expected["replicas"]


def test_while_the_circuit_is_open_the_answer_holds_as_short_as_it_may() -> None:
    """Crossplane lets no events through then, so an edit is only seen when the ttl has run out."""
    world = running()
    assert run(world).settled
    assert not run(world.but(deployment=with_circuit(world.deployment, opened=True))).settled
    assert run(world.but(deployment=with_circuit(world.deployment, opened=False))).settled
