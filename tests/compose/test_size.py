"""An answer never outgrows what Crossplane receives: filling stops before, and nothing kept is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from function.deployment.compose.replicas import LIMIT, OVERHEAD, room_for
from function.scheduler.schedule import schedule
from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.drive import run, run_bytes
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]
CLUSTER = build.cluster("a", [build.pool("p", 4)])


def room(engines: list[Plain], running: int = 0) -> int:
    """Say how many replicas of these engines may be added to those that run."""
    deployment = build.deployment(replicas=1, engines=engines)
    own_replicas = [build.replica(deployment, "a", index, pools="p") for index in range(running)]
    inputs = decide(World(deployment, [CLUSTER], own_replicas, build.observed(*own_replicas))).inputs
    return room_for(inputs.deployment, inputs.fleet)


def one(*selectors: str, image: str = "i") -> Plain:
    return build.engine("main", [build.member(devices=[build.request("gpu", 1, *selectors)], image=image)])


def test_a_replica_counts_with_its_templates_and_its_selectors() -> None:
    """Selectors are stamped on every replica next to its templates, each with some bytes around it."""
    template = len('{"spec": {"containers": [{"name": "engine", "image": "i", "args": ["--model=small"]}]}}')
    selector = "true" + " " * 10_000
    bytes_of_one = template + 2 * (len(selector) + 100) + OVERHEAD
    assert room([one(selector, selector)]) == LIMIT // bytes_of_one


@pytest.mark.parametrize("running", [1, 3])
def test_replicas_that_run_take_their_share_of_the_answer(running: int) -> None:
    engines = [one(image="i" * 400_000)]
    assert room(engines, running) == room(engines) - running


def test_an_answer_that_is_full_already_has_no_room_and_no_debt() -> None:
    assert room([one(image="i" * 1_200_000)], running=3) == 0


def test_every_member_of_every_engine_counts() -> None:
    alone, twice = one(image="i" * 100_000), build.gang()
    for member in twice["members"]:
        member["template"] = build.template("i" * 100_000)
    assert LIMIT // 3 // 103_000 <= room([{**alone, "name": "x"}, twice]) <= LIMIT // 3 // 100_000


def test_the_largest_alternative_decides() -> None:
    """Which shape a replica will have is not known before it is placed."""
    deployment = build.deployment(engines=[one()])
    large = [one(image="i" * 200_000)]
    deployment["spec"]["template"]["spec"]["alternatives"] = [{"name": "large", "engines": large}]
    inputs = decide(World(deployment, [CLUSTER])).inputs
    assert room_for(inputs.deployment, inputs.fleet) == room(large)


def test_with_the_room_used_up_the_answer_fits_in_four_mebibytes_on_the_wire() -> None:
    selector = "true" + " " * 9_000
    deployment = build.deployment(replicas=200, engines=[one(selector, image="i" * 9_000)])
    world = World(deployment, [build.cluster("a", [build.pool("p", 200)])])
    answer = run_bytes(world.message().SerializeToString())
    assert LIMIT / 2 < len(answer) < 4 * 1024 * 1024


def test_filling_stops_where_the_room_ends_and_says_so() -> None:
    engines = [one(image="i" * 700_000)]
    deployment = build.deployment(replicas=6, engines=engines)
    answer = run(World(deployment, [build.cluster("a", [build.pool("p", 99)])]))
    placed = room(engines)
    assert len(answer.replicas) == placed < 6
    assert answer.conditions["ReplicasScheduled"][1:] == (
        "PartiallyScheduled",
        f"Scheduled {placed} of 6 replicas; the response would grow too large",
    )


FULL = "the response would grow too large"


@pytest.mark.parametrize(
    ("reason", "world", "room", "placed", "stopped"),
    [
        ("without a bound all are placed", (4, 0, 0, 9), None, 4, ""),
        ("as many as the answer can carry", (4, 0, 0, 9), 2, 2, FULL),
        ("none where it can carry none", (4, 0, 0, 9), 0, 0, FULL),
        ("just all of them: nothing was stopped", (4, 0, 0, 9), 4, 4, ""),
        ("more room than is wanted places no more", (2, 0, 0, 9), 9, 2, ""),
        ("what ended it was the fleet", (4, 0, 0, 2), 3, 2, ""),
        ("surge is beyond those wanted", (3, 2, 2, 9), None, 3, ""),
        ("and shares their room", (3, 2, 2, 9), 2, 2, ""),
        ("which those that are missing take first", (3, 2, 2, 9), 1, 1, ""),
        ("nothing beside what runs without room", (2, 2, 1, 9), 0, 0, ""),
        ("one that leaves makes room for its own replacement", (2, 2, 0, 9), 0, 2, ""),
    ],
)
def test_what_is_placed_within_the_room_of_an_answer(
    reason: str, world: tuple[int, int, int, int], room: int | None, placed: int, stopped: str
) -> None:
    """Wanted, running, surge and nodes. What runs has 4 GPUs and is replaced: beside it, as surge allows."""
    wanted, running, surge, nodes = world
    placement = {"disruption": {"maxUnavailable": 0, "maxSurge": surge}} if surge else None
    was = [build.replica(ask(wanted, gpus=4), "a", at, pools="p0", ready=True) for at in range(running)]
    made = World(ask(wanted, placement=placement), clusters(a=nodes), was, build.observed(*was))
    decision = schedule(decide(made).inputs, room=room)
    assert (len(decision.placed), decision.stopped, decision.withheld) == (placed, stopped, 0), reason
