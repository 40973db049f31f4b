"""How soon a change of the fleet is acted on: as shipped, and with the WatchOperations of example/operate."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.live import fleet, install
from tests.live.plane import is_true, name_of, until, until_all

if TYPE_CHECKING:
    from tests.live.day import Day
    from tests.live.plane import ControlPlane, Plain

pytestmark = pytest.mark.live

NAMESPACE = "fleet"
WATCHES = ("fleet-scheduler-clusters", "fleet-scheduler-replicas")
MAINTENANCE = {"key": "maintenance", "effect": "NoExecute"}
SETTLED = 90.0
"""Seconds until a deployment with the long ttl, 60 s and a tenth, has been asked again on a busy machine."""


@dataclass(frozen=True)
class Scene:
    """Four groups of clusters, a deployment on each, and one that waits for room."""

    suffix: str

    @property
    def clusters(self) -> list[Plain]:
        return [
            *(fleet.small_cluster(f"taint-{self.suffix}-{number}", self.group("taint")) for number in (1, 2)),
            *(fleet.small_cluster(f"gone-{self.suffix}-{number}", self.group("gone")) for number in (1, 2)),
            fleet.small_cluster(f"room-{self.suffix}", self.group("room")),
        ]

    def group(self, name: str) -> str:
        return f"{name}-{self.suffix}"

    def deployment(self, name: str, group: str = "") -> Plain:
        full = f"{name}-{self.suffix}"
        return fleet.small_deployment(full, self.group(group or name), namespace=NAMESPACE)

    def set_up(self, plane: ControlPlane) -> None:
        """Create it all; every replica that has a place serves, and all is settled."""
        fleet.create_namespace(plane, NAMESPACE)
        fleet.create_fleet(plane, self.clusters)
        running = [self.deployment("taint"), self.deployment("gone"), self.deployment("holds", "room")]
        for replica in running:
            plane.apply(replica)
        for replica in running:
            fleet.until_placed(plane, replica, 1)
            fleet.until_serving(plane, replica)
        plane.apply(self.deployment("waits", "room"))
        fleet.until_reason(plane, self.deployment("waits"), "InsufficientCapacity")

    def change(self, plane: ControlPlane, command: str = "") -> dict[str, float]:
        """Taint one cluster, delete another, free a node, and run a command once the node is free.

        Return the seconds until each change was acted on, counted from the command if there is one.
        """
        taint, gone, waits = (self.deployment(name) for name in ("taint", "gone", "waits"))
        looks = {
            "a NoExecute taint": lambda: on(plane, taint) == [f"taint-{self.suffix}-2"],
            "a cluster deleted": lambda: on(plane, gone) == [f"gone-{self.suffix}-2"],
            "a node freed": lambda: on(plane, waits) == [f"room-{self.suffix}"],
        }
        since = time.monotonic()
        fleet.taint(plane, f"taint-{self.suffix}-1", MAINTENANCE)
        plane.kubectl("delete", "inferencecluster", f"gone-{self.suffix}-1", "--wait=false")
        holder = name_of(self.deployment("holds"))
        plane.kubectl("delete", "modeldeployment", holder, "-n", NAMESPACE, "--wait=false")
        if command:
            holds = self.deployment("holds")
            until(lambda: not fleet.replicas(plane, holds, leaving=True), "the node is free")
            since = time.monotonic()
            plane.shell(command)
        return until_all(looks, since, SETTLED)


def on(plane: ControlPlane, deployment: Plain) -> list[str]:
    return fleet.clusters_of(fleet.replicas(plane, deployment))


def test_a_change_of_the_fleet_is_acted_on(living: ControlPlane, day: Day) -> None:
    scene = Scene("ttl")
    scene.set_up(living)
    for what, seconds in scene.change(living).items():
        day.record(what, "the replica has a place, by the ttl", seconds)


def test_a_change_of_the_fleet_is_acted_on_by_hand(living: ControlPlane, day: Day) -> None:
    scene = Scene("hand")
    scene.set_up(living)
    collect = "kubectl get inferenceclusters,modelreplicas,modeldeployments -A -o json"
    command = f"{collect} | {sys.prefix}/bin/fleet-scheduler reconcile - --cluster taint-hand-1 | sh"
    for what, seconds in scene.change(living, command).items():
        day.record(what, "the same, after fleet-scheduler reconcile | sh", seconds)


def test_a_change_of_the_fleet_is_acted_on_with_watch_operations(living: ControlPlane, day: Day) -> None:
    scene = Scene("watch")
    living.shell("\n".join(install.commands("operations.md", "example/operate/watch-")))
    for name in WATCHES:
        until(lambda name=name: is_true(living.get("WatchOperation", name), "Watching"), f"{name} watching")
    scene.set_up(living)
    for what, seconds in scene.change(living).items():
        day.record(what, "the same, with WatchOperations", seconds)
    assert not [manifest for manifest in living.list("Operation") if failed(manifest)]
    living.kubectl("delete", "watchoperation", *WATCHES)


def failed(operation: Plain) -> bool:
    return bool((operation.get("status") or {}).get("failures"))


def test_the_namespace_is_deleted(living: ControlPlane) -> None:
    living.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    until(lambda: living.get("Namespace", NAMESPACE) is None, "the namespace gone", 120)
