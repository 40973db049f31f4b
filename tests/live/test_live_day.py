"""The day of a user, in order: each step stands on the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.live import fleet

if TYPE_CHECKING:
    from tests.live.day import Day
    from tests.live.plane import ControlPlane

pytestmark = pytest.mark.live

MODEL = fleet.example_deployment("small-model")


def test_a_fleet_is_published(living: ControlPlane, day: Day) -> None:
    with day.step("publish the example fleet", "8 clusters with their status"):
        fleet.create_fleet(living, fleet.example_fleet())
    found = living.list("InferenceCluster")
    assert len(found) == 8
    assert all(each["status"]["gpuPools"] for each in found)


def test_replicas_are_placed(living: ControlPlane, day: Day) -> None:
    fleet.create_namespace(living, MODEL["metadata"]["namespace"])
    with day.step("create a deployment of 3 replicas", "3 ModelReplicas, ReplicasCreated"):
        living.apply(MODEL)
        found = fleet.until_placed(living, MODEL, 3)
        fleet.until_reason(living, MODEL, "ReplicasCreated")
    assert fleet.clusters_of(found) == ["eks-us-east-1", "eks-us-east-1", "gke-europe-west4"]


def test_traffic_reaches_ready_replicas(living: ControlPlane, day: Day) -> None:
    with day.step("replicas and endpoints turn Ready", "an endpoint each, AllReplicasReady"):
        fleet.until_serving(living, MODEL)
