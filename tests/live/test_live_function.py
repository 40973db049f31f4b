"""A function that stops: alone, and as one of two copies."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.live import fleet, install
from tests.live.plane import condition, is_true, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.day import Day
    from tests.live.plane import ControlPlane, Plain

pytestmark = pytest.mark.live

NAMESPACE = "function"
MODEL = fleet.small_deployment("model", "function", 1, NAMESPACE)
LATE = fleet.small_deployment("late", "function", 1, NAMESPACE)
NEXT = fleet.small_deployment("next", "function", 1, NAMESPACE)
TIMED_OUT = 200.0
"""Seconds until a call of two minutes has failed, and perhaps one before it."""
RECONNECTED = 180.0
"""Seconds until Crossplane's client, which doubles its pauses up to 120 s, has tried again."""


@pytest.fixture(scope="module", autouse=True)
def namespace(living: ControlPlane) -> Iterator[None]:
    fleet.create_namespace(living, NAMESPACE)
    yield
    fleet.leave(living, NAMESPACE)


def test_a_deployment_serves(living: ControlPlane) -> None:
    fleet.create_fleet(living, [fleet.small_cluster("function-1", "function", nodes=4)])
    living.apply(MODEL)
    fleet.until_placed(living, MODEL, 1)
    fleet.until_serving(living, MODEL)


def test_a_stopped_function_removes_nothing(living: ControlPlane, day: Day) -> None:
    """A new deployment waits: what a call says of one that was edited meanwhile is dropped."""
    before = uids(living)
    install.stop(living)
    with day.step(
        "the only copy of the function stops, create a deployment", "Synced=False, nothing removed"
    ):
        living.apply(LATE)
        # A call that was just being sent may fail at once; the next one waits for a connection.
        until(lambda: "DeadlineExceeded" in synced(living).get("message", ""), "a call timed out", TIMED_OUT)
    assert synced(living)["status"] == "False"
    assert uids(living) == before
    with day.step("it is back", "Synced=True, placed"):
        install.start(living)
        fleet.until_placed(living, LATE, 1, RECONNECTED)
        until(lambda: synced(living).get("status") == "True", "Synced=True", RECONNECTED)
    assert uids(living) == before


def uids(plane: ControlPlane) -> set[str]:
    return {replica["metadata"]["uid"] for replica in fleet.replicas(plane, MODEL)}


def synced(plane: ControlPlane) -> Plain:
    return condition(fleet.current(plane, LATE), "Synced")


SECOND = "127.0.0.2"
SYSTEM = "crossplane-system"


@contextmanager
def second_copy(plane: ControlPlane) -> Iterator[subprocess.Popen[bytes]]:
    """Another copy of the function on an address of its own, which the Service's name then has too."""
    words = (f"{sys.prefix}/bin/function", "--address", f"{SECOND}:9443")
    certificates = ("--tls-certs-dir", str(plane.state / "tls-server"))
    log = (plane.state / "logs" / "function-2.log").open("wb")
    with log, subprocess.Popen([*words, *certificates], stdout=log, stderr=log) as process:
        hosts = plane.state / "hosts"
        text = hosts.read_text()
        hosts.write_text(f"{text}{text.replace('127.0.0.1 localhost', SECOND)}")
        try:
            yield process
        finally:
            hosts.write_text(text)
            process.kill()


def test_one_of_two_copies_stops(living: ControlPlane, day: Day) -> None:
    """Crossplane's client balances over the addresses that the Service's name has."""
    install.stop(living)
    install.start(living, "--max-connection-age", "5")
    with second_copy(living):
        answered = living.state / "logs" / "function-2.log"
        until(lambda: "answered" in answered.read_text(), "a call reaches the second copy", RECONNECTED)
        install.stop(living)
        with day.step("one of two copies stops, create a deployment", "placed as if nothing had happened"):
            living.apply(NEXT)
            fleet.until_placed(living, NEXT, 1)
        until(lambda: is_true(fleet.current(living, NEXT), "Synced"), "Synced=True")
        install.start(living)


def test_the_runtime_config_is_taken(living: ControlPlane) -> None:
    living.kubectl("apply", "-f", "example/operate/runtime.yaml")
    patch = '{"spec":{"runtimeConfigRef":{"name":"function-fleet-scheduler"}}}'
    living.kubectl("patch", "function.pkg.crossplane.io", install.FUNCTION, "--type=merge", "-p", patch)
    until(
        lambda: [manifest["spec"]["replicas"] for manifest in deployments(living)] == [2],
        "two copies are wanted",
    )
    (deployment,) = deployments(living)
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["--metrics-address", "0.0.0.0:8080"]
    assert container["readinessProbe"]["httpGet"]["port"] in {port["name"] for port in container["ports"]}
    (spread,) = pod["spec"]["topologySpreadConstraints"]
    labels = pod["metadata"]["labels"]
    assert spread["labelSelector"]["matchLabels"].items() <= labels.items()
    budget = living.request("GET", f"/apis/policy/v1/namespaces/{SYSTEM}/poddisruptionbudgets")
    (only,) = (budget or {})["items"]
    assert only["spec"]["selector"]["matchLabels"].items() <= labels.items()


def deployments(plane: ControlPlane) -> list[Plain]:
    listed = plane.request("GET", f"/apis/apps/v1/namespaces/{SYSTEM}/deployments")
    return [item for item in (listed or {})["items"] if install.FUNCTION in item["metadata"]["name"]]
