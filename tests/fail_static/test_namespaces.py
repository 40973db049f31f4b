"""Deployments of one name in two namespaces: never each other's replicas, never one name on one cluster,
and each other's nodes are charged."""

from __future__ import annotations

from typing import Any

from tests.support import build
from tests.support.drive import run
from tests.support.world import World

Plain = dict[str, Any]


def _placed(namespace: str, replicas: list[Plain], nodes: int) -> dict[str, Plain]:
    deployment = build.deployment("my-model", 2, namespace=namespace)
    clusters = [build.cluster("a", [build.pool("h100", nodes)])]
    return dict(run(World(deployment, clusters, replicas)).replicas)


def _existing(namespace: str, placed: dict[str, Plain]) -> list[Plain]:
    owner = build.owner(build.deployment("my-model", namespace=namespace))
    return [
        {
            **manifest,
            "metadata": {**manifest["metadata"], "uid": f"{namespace}-{key}", "ownerReferences": [owner]},
        }
        for key, manifest in placed.items()
    ]


def test_a_namesake_is_foreign_and_charged() -> None:
    first = _placed("team-1", [], nodes=3)
    second = _placed("team-2", _existing("team-1", first), nodes=3)
    assert len(first) == 2
    assert len(second) == 1, "two of three nodes are held by the namesake"


def test_namesakes_never_share_an_object_name_on_a_cluster() -> None:
    """Objects of all namespaces may meet in one namespace of the workload cluster."""
    first = _placed("team-1", [], nodes=8)
    second = _placed("team-2", _existing("team-1", first), nodes=8)
    names = [manifest["metadata"]["name"] for manifest in (*first.values(), *second.values())]
    assert len(set(names)) == 4


def test_a_replica_of_a_namesake_is_never_emitted_or_dropped() -> None:
    first = _placed("team-1", [], nodes=8)
    deployment = build.deployment("my-model", 0, namespace="team-2")
    world = World(deployment, [build.cluster("a", [build.pool("h100", 8)])], _existing("team-1", first))
    answer = run(world)
    assert answer.desired == {}
    assert answer.events == ()


def test_a_recreated_deployment_does_not_adopt_its_predecessors_replicas() -> None:
    """Same name, same namespace, another uid: the controller reference tells them apart."""
    first = _existing("team-1", _placed("team-1", [], nodes=8))
    for manifest in first:
        manifest["metadata"]["ownerReferences"] = [
            {**manifest["metadata"]["ownerReferences"][0], "uid": "before"}
        ]
    second = _placed("team-1", first, nodes=8)
    names = [manifest["metadata"]["name"] for manifest in (*first, *second.values())]
    assert len(second) == 2
    assert len(set(names)) == 4
