"""What is kept is composed and written once, for as long as nothing it is made of changes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from function import wire
from function.api import ModelDeployment
from function.boundary.memory import Memory, Session
from function.deployment import handler
from function.deployment.compose import replicas
from function.deployment.compose.replicas import largest
from tests.support import build
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from function.boundary import Desired

Plain = dict[str, Any]


@pytest.fixture
def memory() -> Memory:
    return Memory(1 << 24)


def settled() -> World:
    """Two Ready replicas, on a and on b."""
    deployment = build.deployment(
        "chat", 2, [build.engine("main", [build.member(devices=[build.request()])])]
    )
    deployment["metadata"]["resourceVersion"] = "1"
    own_replicas = [build.replica(deployment, on, 0, ready=True) for on in "ab"]
    clusters = [build.cluster(on, [build.pool("h100", 2)]) for on in "ab"]
    return World(deployment, clusters, own_replicas, build.observed(*own_replicas))


def desired(world: World, memory: Memory, *, annotated: bool = False) -> Mapping[str, Desired]:
    """Ask, and write the answer; return what is desired."""
    made = world.but(input={**INPUT, "overcommit": "Yield"}) if annotated else world
    call = wire.decode(made.message().SerializeToString())
    response = handler.run(call.request, reuse=Session(memory, handler.COSTS))
    wire.encode(call, response, wire.Ttl())
    return response.desired


INPUT: Plain = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"}
A, B = "replica-a-0", "replica-b-0"


def test_what_has_not_changed_is_the_same_object_written_before(memory: Memory) -> None:
    first, second = (desired(settled(), memory) for _ in range(2))
    assert all(second[key] is first[key] and first[key].written is not None for key in (A, B))


def _unready(world: World) -> None:
    manifest = world.observed[A]
    manifest["status"] = {"conditions": [build.condition("Ready", status=False)]}
    manifest["metadata"]["resourceVersion"] = "8"


def _edited(world: World) -> None:
    spec = world.deployment["spec"]["template"]["spec"]
    spec["engines"][0]["members"][0]["template"] = build.template("vllm/vllm-openai:v0.30.0")
    world.deployment["metadata"]["resourceVersion"] = "2"


def unplaced() -> World:
    """Two replicas to be placed, on a and on b."""
    made = settled()
    return made.but(deployment=copy.deepcopy(made.deployment), replicas=[], observed={})


def _another_pool(world: World) -> None:
    for part, pools in (("spec", "nodePools"), ("status", "gpuPools")):
        world.clusters[0][part][pools][0]["name"] = "b200"
    world.clusters[0]["metadata"]["resourceVersion"] = "9"


def _another_device(world: World) -> None:
    world.clusters[0]["status"]["gpuPools"][0]["devices"][0]["deviceClassName"] = "h100.example.com"
    world.clusters[0]["metadata"]["resourceVersion"] = "9"


def _nothing(_: World) -> None:
    pass


PLACED_AGAIN = "until it has been applied, the same replica is placed in every call"
ONLY_THAT = "a replica that is another one than before is composed anew, and only that one"


@pytest.mark.parametrize(
    ("make", "change", "renewed", "reason"),
    [
        (settled, _unready, {A}, ONLY_THAT),
        (settled, _edited, {A, B}, "another deployment has other templates"),
        (unplaced, _nothing, set(), PLACED_AGAIN),
        (unplaced, _another_pool, {A}, "it goes on a pool of another name"),
        (unplaced, _another_device, {A}, "it claims another class"),
        (unplaced, _edited, {A, B}, "another deployment has other templates"),
    ],
)
def test_only_what_has_changed_is_composed_anew(
    make: Callable[[], World],
    change: Callable[[World], None],
    renewed: set[str],
    reason: str,
    memory: Memory,
) -> None:
    first, world = desired(make(), memory), make()
    change(world)
    second = desired(world, memory)
    assert {key for key in (A, B) if second[key] is not first[key]} == renewed, reason
    assert {key: resource.resource for key, resource in second.items()} == {
        key: resource.resource for key, resource in desired(world, Memory(1 << 24)).items()
    }


def test_what_the_input_adds_is_not_left_out(memory: Memory) -> None:
    plain, noted = desired(settled(), memory), desired(settled(), memory, annotated=True)
    assert "annotations" not in plain[A].resource["metadata"]
    assert noted[A].resource["metadata"]["annotations"].keys() == {"modelplane.ai/was-ready"}
    assert "annotations" not in desired(settled(), memory)[A].resource["metadata"]


def test_without_a_memory_nothing_is_remembered() -> None:
    first, second = (desired(settled(), Memory(0)) for _ in range(2))
    assert first[A] is not second[A]
    assert first[A] == second[A]


def test_no_more_is_remembered_than_its_bound(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    size = largest(ModelDeployment.parse(settled().deployment))
    monkeypatch.setattr(replicas, "BOUND", 2 * size - 1)  # Room for one.
    first, second = desired(settled(), memory), desired(settled(), memory)
    assert [second[key] is first[key] for key in (A, B)] == [True, False]
