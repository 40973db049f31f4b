"""A staged rollout and a surge in a real control plane; the platform is played.

The API server counts the generations here: what is Ready about an older one is not in service.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.live import fleet
from tests.live.plane import condition, name_of, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.day import Day
    from tests.live.plane import ControlPlane, Plain

pytestmark = pytest.mark.live

NAMESPACE = GROUP = "rollout"
CLUSTERS = ("rollout-1", "rollout-2")
OLD, NEW = "vllm/vllm-openai:v0.11.0", "vllm/vllm-openai:v0.12.0"
COLLECT = "kubectl get inferenceclusters,modelreplicas,modeldeployments -A -o json"
TTL = 120.0
"""Seconds: where the request comes before Crossplane has seen the taint, it is acted on after a minute."""


def deployment(name: str, replicas: int, image: str, placement: Plain, labels: Plain | None = None) -> Plain:
    """A deployment whose image is given; `labels` are those of its pods."""
    made = fleet.small_deployment(name, GROUP, replicas, NAMESPACE)
    made["spec"]["placement"] = placement
    template = made["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"]
    template["spec"]["containers"][0]["image"] = image
    if labels:
        made["spec"]["template"]["metadata"] = {"labels": labels}
    return made


def serving(plane: ControlPlane, made: Plain) -> list[Plain]:
    """Create a deployment and make its replicas serve."""
    plane.apply(made)
    standing = fleet.until_placed(plane, made, made["spec"]["replicas"])
    for replica in standing:
        fleet.say_ready(plane, replica)
    fleet.until_reason(plane, made, "AllReplicasUpdated", "ReplicasUpdated")
    return standing


def updated(plane: ControlPlane, made: Plain, wanted: str) -> dict[str, Plain]:
    """The replicas of a deployment that have an image, by name."""
    manifests = fleet.replicas(plane, made)
    return {name_of(replica): replica for replica in manifests if fleet.image(replica) == wanted}


def until_updated(plane: ControlPlane, made: Plain, wanted: str, count: int) -> dict[str, Plain]:
    """Wait until so many replicas have an image, and return them."""
    return until(
        lambda: following if len(following := updated(plane, made, wanted)) == count else {},
        f"{count} replicas of {name_of(made)} with {wanted}",
    )


def until_paused(plane: ControlPlane, made: Plain, name: str) -> None:
    """Wait until the rollout waits for a replica."""

    def waits() -> bool:
        progress = condition(fleet.current(plane, made), "ReplicasUpdated")
        return progress.get("reason") == "RolloutPaused" and name in progress["message"]

    until(waits, f"RolloutPaused, naming {name}")


@pytest.fixture(scope="module")
def clusters(living: ControlPlane) -> Iterator[ControlPlane]:
    fleet.create_namespace(living, NAMESPACE)
    fleet.create_fleet(living, [fleet.small_cluster(name, GROUP, nodes=8) for name in CLUSTERS])
    yield living
    living.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    living.kubectl("delete", "inferencecluster", *CLUSTERS, "--wait=false")


ONE: Plain = {"rollout": {"maxUnavailable": 1}}


def test_an_edit_goes_replica_by_replica(clusters: ControlPlane, day: Day) -> None:
    before = serving(clusters, deployment("staged", 3, OLD, ONE))
    edited = deployment("staged", 3, NEW, ONE)
    served: set[str] = set()
    with day.step("edit the image, placement.rollout", "one of three replicas has it, RolloutPaused"):
        clusters.apply(edited)
        served |= serve_the_next(clusters, edited, served)
    with day.step("each of them serves", "the next one has the image, AllReplicasUpdated at the end"):
        while len(served) < len(before):
            served |= serve_the_next(clusters, edited, served)
        fleet.until_reason(clusters, edited, "AllReplicasUpdated", "ReplicasUpdated")
    assert uids(fleet.replicas(clusters, edited)) == uids(before)


def serve_the_next(plane: ControlPlane, made: Plain, served: set[str]) -> set[str]:
    """Wait until one more replica has the new image, and the rollout waits for it; make it serve."""
    following = until_updated(plane, made, NEW, len(served) + 1)
    (name,) = following.keys() - served
    if len(following) < made["spec"]["replicas"]:
        until_paused(plane, made, name)
    fleet.say_ready(plane, following[name])
    return {name}


def test_an_image_that_does_not_start_stops_at_the_first_replica_and_is_taken_back(
    clusters: ControlPlane, day: Day
) -> None:
    before = serving(clusters, deployment("stopped", 3, OLD, ONE))
    edited = deployment("stopped", 3, NEW, ONE, {"seen": "yes"})
    with day.step("edit the image, the first one does not start", "RolloutPaused names it"):
        clusters.apply(edited)
        (first,) = until_updated(clusters, edited, NEW, 1).values()
        fleet.say_ready(clusters, first, ready=False)
        until_paused(clusters, edited, name_of(first))
    # A label waits for nobody: whoever has this one was looked at after the first replica failed.
    clusters.apply(deployment("stopped", 3, NEW, ONE, {"seen": "again"}))
    until(lambda: all(map(is_labelled, fleet.replicas(clusters, edited))), "the label on every replica")
    assert updated(clusters, edited, NEW).keys() == {name_of(first)}
    with day.step("take the edit back", "it has the old image again"):
        clusters.apply(deployment("stopped", 3, OLD, ONE))
        until_updated(clusters, edited, OLD, 3)
    assert uids(fleet.replicas(clusters, edited)) == uids(before)


def is_labelled(replica: Plain) -> bool:
    return replica["metadata"].get("labels", {}).get("seen") == "again"


def uids(manifests: list[Plain]) -> set[str]:
    return {replica["metadata"]["uid"] for replica in manifests}


def test_a_drained_replica_leaves_when_its_replacement_serves(clusters: ControlPlane, day: Day) -> None:
    surge = {"disruption": {"maxUnavailable": 0, "maxSurge": 1}, "rollout": {"maxUnavailable": 1}}
    made = deployment("surging", 1, OLD, surge)
    (old,) = serving(clusters, made)
    with day.step("drain a cluster, disruption.maxSurge", "a second replica beside the one that serves"):
        taint = {"key": "maintenance", "effect": "NoExecute"}
        cluster, mark = old["spec"]["clusterName"], {"key": fleet.GROUP, "effect": "NoSchedule"}
        fleet.taint(clusters, cluster, mark, taint)
        clusters.shell(f"{COLLECT} | {sys.prefix}/bin/fleet-scheduler reconcile - --cluster {cluster} | sh")
        manifests = fleet.until_placed(clusters, made, 2, TTL)
    assert name_of(old) in {name_of(replica) for replica in manifests}
    (replacement,) = [replica for replica in manifests if name_of(replica) != name_of(old)]
    assert replacement["spec"]["clusterName"] != old["spec"]["clusterName"]
    with day.step("the second one serves", "the drained one leaves"):
        fleet.say_ready(clusters, replacement)
        (left,) = fleet.until_placed(clusters, made, 1)
    assert name_of(left) == name_of(replacement)
