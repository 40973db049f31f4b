"""A change of the fleet, and the deployments that have to act on it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.live import fleet
from tests.live.plane import name_of, until, until_all

if TYPE_CHECKING:
    from tests.live.plane import ControlPlane, Plain

NAMESPACE = "fleet"
MAINTENANCE = {"key": "maintenance", "effect": "NoExecute"}
SETTLED = 90.0
"""Seconds until a deployment with the long ttl, 60 s and a tenth, has been asked again on a busy machine."""


@dataclass(frozen=True)
class Scene:
    """Four groups of clusters, a deployment on each, and one that waits for room."""

    suffix: str

    @property
    def clusters(self) -> list[Plain]:
        """Two clusters to taint one of, two to delete one of, and one with a single node."""
        return [
            *(fleet.small_cluster(f"taint-{self.suffix}-{number}", self.group("taint")) for number in (1, 2)),
            *(fleet.small_cluster(f"gone-{self.suffix}-{number}", self.group("gone")) for number in (1, 2)),
            fleet.small_cluster(f"room-{self.suffix}", self.group("room")),
        ]

    def group(self, name: str) -> str:
        """The group of clusters of a name."""
        return f"{name}-{self.suffix}"

    def deployment(self, name: str, group: str = "") -> Plain:
        """A deployment of one replica on a group of clusters, by default its namesake."""
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
    """The clusters that a deployment's replicas are on."""
    return fleet.clusters_of(fleet.replicas(plane, deployment))
