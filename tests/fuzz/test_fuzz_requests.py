"""The invariant: whatever a request holds, the function answers it, and nothing that runs is dropped
without a reason that the law lists.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.message import DecodeError

from function import wire
from function.boundary.memory import Memory
from function.fail_static import INTERNAL_ERROR_TEXT
from function.runner import Function
from tests.cluster import build as clusters
from tests.fuzz.mutate import mutated, mutated_bytes, mutated_world
from tests.replica import generate as replicas
from tests.replica.provider import applied
from tests.routing import generate as routes
from tests.routing.build import applied as routed
from tests.support import drive, generate, law, scale

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.replica.build import Scene
    from tests.support.any_request import AnyRequest
    from tests.support.world import World

BUSY = generate.Taste(doubt=0.1, oddity=0.1, own_replicas=1.0)
STEADY = generate.Taste(doubt=0.0, oddity=0.0, own_replicas=0.9, edits=0.0)
MEBI = 1024 * 1024

each_batch = pytest.mark.parametrize("number", range(scale.BATCHES))


class Silent:
    """A log that nobody reads."""

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None


@pytest.fixture
def function() -> Function:
    return Function(log=Silent(), memory=Memory(MEBI))


@each_batch
def test_requests_with_one_to_three_mutations_are_answered_and_drop_nothing(number: int) -> None:
    for seed in scale.batch(number, quick=800, gate=10_000):
        draw = random.Random(seed)
        world = mutated_world(draw, generate.world(seed, BUSY), draw.choice((1, 2, 3)))
        broken_laws = complaints(world)
        if broken_laws:
            pytest.fail(f"seed {seed}: {broken_laws}", pytrace=False)


def complaints(world: World) -> list[str]:
    """Return what is wrong with the answer to a mutated world."""
    try:
        answer = drive.run(world, level="plain")
    except Exception as error:  # noqa: BLE001 - that nothing is raised is what is looked at
        return [f"raised {error!r}"]
    return law.unexplained(world, answer)


@each_batch
def test_the_same_through_the_wire(number: int, function: Function) -> None:
    for seed in scale.batch(number, quick=160, gate=2_000):
        draw = random.Random(seed)
        world = mutated_world(draw, generate.world(seed, BUSY), draw.choice((1, 2, 3)))
        content = encoded(world)
        if too_deep(content):
            continue
        answer = drive.answer(drive.pb.RunFunctionResponse.FromString(function.answer(content)))
        assert all(message != INTERNAL_ERROR_TEXT for _, _, message in answer.events), f"seed {seed}"
        complaints = law.unexplained(world, answer)
        if complaints:
            pytest.fail(f"seed {seed}: {complaints}", pytrace=False)


def too_deep(content: bytes) -> bool:
    """Say whether a message is nested deeper than Python's protobuf reads, which this test needs to."""
    try:
        drive.pb.RunFunctionRequest.FromString(content)
    except DecodeError:
        return True
    return False


def encoded(world: World) -> bytes:
    return bytes(world.message().SerializeToString())


@each_batch
def test_one_unreadable_cluster_equals_that_cluster_unavailable(number: int) -> None:
    """What is decided for the others is the same; a mutation that leaves the cluster readable is an edit."""
    for seed in scale.batch(number, quick=400, gate=5_000, soak=20_000):
        draw = random.Random(seed)
        world = generate.world(seed, STEADY)
        broken, others = spoil(draw, world)
        result = drive.run(world.but(clusters=[*others, broken]), level="plain")
        assert not law.unexplained(world.but(clusters=[*others, broken]), result), f"seed {seed}"
        if not result.counts.get("clusters_unreadable"):
            continue
        bare = {"metadata": {"name": broken["metadata"]["name"]}, "kind": "InferenceCluster"}
        expected = drive.run(world.but(clusters=[*others, bare]), level="plain")
        assert result.desired == expected.desired, f"seed {seed}"


def spoil(draw: random.Random, world: World) -> tuple[dict[str, Any], list[Any]]:
    """Return one cluster of a world with mutations anywhere but in its name, and the others."""
    others = list(world.clusters or ())
    cluster = others.pop(draw.randrange(len(others)))
    for _ in range(draw.choice((1, 2, 3))):
        cluster = mutated(draw, cluster, keep=(("metadata", "name"),))
    return cluster, others


@each_batch
def test_mutated_bytes_are_answered_or_refused(number: int, function: Function) -> None:
    refused = 0
    for seed in scale.batch(number, quick=400, gate=4_000, soak=20_000):
        draw = random.Random(seed)
        content = mutated_bytes(draw, encoded(generate.world(seed, BUSY)))
        try:
            response = drive.pb.RunFunctionResponse.FromString(function.answer(content))
        except wire.MalformedRequest:
            refused += 1
            continue
        assert all(result.message != INTERNAL_ERROR_TEXT for result in response.results), f"seed {seed}"
    assert refused


CHAIN: dict[str, Callable[[int], AnyRequest]] = {
    "ModelReplica": lambda seed: replica_on_its_way(replicas.scene(seed)),
    "ModelReplica on KServe": lambda seed: replica_on_its_way(replicas.kserve_scene(seed)),
    "InferenceCluster": lambda seed: clusters.running(random.Random(seed)).asked,
    "ModelEndpoint and ModelService": lambda seed: routed(routes.random_request(seed)),
}
"""Requests about the other kinds, everything that they compose observed."""


def replica_on_its_way(scene: Scene) -> AnyRequest:
    return scene.but(observed=applied(scene.asked.answer())).asked


@pytest.mark.parametrize("kind", CHAIN)
@each_batch
def test_mutated_bytes_of_the_other_kinds_are_answered_or_refused(
    number: int, kind: str, function: Function
) -> None:
    for seed in scale.batch(number, quick=160, gate=4_000, soak=20_000):
        draw = random.Random(seed)
        content = mutated_bytes(draw, CHAIN[kind](seed).message().SerializeToString())
        try:
            answer = function.answer(content)
        except wire.MalformedRequest:
            continue
        if too_deep(content):  # Or no text in what is passed on as it came: nobody can send that.
            continue
        response = drive.pb.RunFunctionResponse.FromString(answer)
        assert all(result.message != INTERNAL_ERROR_TEXT for result in response.results), f"seed {seed}"
