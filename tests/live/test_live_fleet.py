"""How soon a change of the fleet is acted on: as shipped, and with the WatchOperations of example/operate."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.live import fleet, install
from tests.live.plane import is_true, until
from tests.live.scene import NAMESPACE, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from tests.live.day import Day
    from tests.live.plane import ControlPlane, Plain

pytestmark = pytest.mark.live

WATCHES = ("fleet-scheduler-clusters", "fleet-scheduler-replicas")


@pytest.fixture(scope="module", autouse=True)
def namespace(living: ControlPlane) -> Iterator[None]:
    yield
    fleet.leave(living, NAMESPACE)


def test_a_change_of_the_fleet_is_acted_on(unasked: Future[dict[str, float]], day: Day) -> None:
    for what, seconds in unasked.result().items():
        day.record(what, "the replica has a place, nobody asked", seconds)


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
