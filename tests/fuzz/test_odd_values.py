"""Odd statuses and numbers, by name: what each costs, and that it costs that object only.

A replica runs on cluster `a`. Two are wanted, and cluster `b`, with room for more, is spoilt in one way.
`open`: it takes the second replica all the same. Any other word is the headline reason why it does not.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support import build, law
from tests.support.drive import Answer, run
from tests.support.world import World

Plain = dict[str, Any]
GONE = object()
OPEN = "open"
MALFORMED = "MalformedCluster"


@dataclass(frozen=True)
class Case:
    """One odd value at one path of a cluster, why it may arrive, and what comes of it."""

    path: str
    value: Any
    effect: str
    reason: str


POOL = "status.gpuPools.0"
DEVICE = f"{POOL}.devices.0"

CLUSTERS = (
    Case("status", GONE, "ClusterNotReady", "nothing has reported yet"),
    Case("status", None, "ClusterNotReady", "null is nothing, as everywhere in Kubernetes"),
    Case("status", "Ready", MALFORMED, "a string for a map"),
    Case("status", [], MALFORMED, "a list for a map"),
    Case("status.conditions", GONE, "ClusterNotReady", "no condition has been written"),
    Case("status.conditions", [], "ClusterNotReady", "told: there is no condition"),
    Case("status.conditions", "Ready", MALFORMED, "a string for a list"),
    Case("status.conditions", [None], MALFORMED, "null in a list"),
    Case("status.conditions.0.type", GONE, "ClusterNotReady", "a condition without its type says nothing"),
    Case("status.conditions.0.status", GONE, "ClusterNotReady", "Ready is unknown"),
    Case("status.conditions.0.status", "Unknown", "ClusterNotReady", "not True is not Ready"),
    Case("status.conditions.0.status", True, MALFORMED, "bool for the string True"),
    Case("status.conditions.0.status", "true", "ClusterNotReady", "the word is True, not true"),
    Case("status.gateway", GONE, "NoGatewayAddress", "the gateway is not up yet"),
    Case("status.gateway.address", "", "NoGatewayAddress", "an empty address is none"),
    Case("status.gateway.address", 10, MALFORMED, "a number for an address"),
    Case("status.gateway", "203.0.113.1", MALFORMED, "a string for a map"),
    Case("status.gpuPools", GONE, "NoPoolsPublished", "pools are not published yet"),
    Case("status.gpuPools", None, "NoPoolsPublished", "null is nothing"),
    Case("status.gpuPools", [], "NoPoolsPublished", "told: there is no pool"),
    Case("status.gpuPools", {}, MALFORMED, "a map for a list"),
    Case("status.gpuPools", [None], MALFORMED, "null for a pool"),
    Case(f"{POOL}.name", GONE, MALFORMED, "a pool without a name cannot be pinned to"),
    Case(f"{POOL}.name", 7, MALFORMED, "a number for a name"),
    Case(f"{POOL}.nodes", GONE, "InsufficientNodes", "a missing count reads as 0"),
    Case(f"{POOL}.nodes", None, "InsufficientNodes", "null is nothing"),
    Case(f"{POOL}.nodes", 0, "InsufficientNodes", "a pool scaled to zero"),
    Case(f"{POOL}.nodes", -3, "InsufficientNodes", "a negative count reads as 0"),
    Case(f"{POOL}.nodes", 1.5, MALFORMED, "half a node"),
    Case(f"{POOL}.nodes", 3.0, OPEN, "every number arrives as a double: 3.0 is 3"),
    Case(f"{POOL}.nodes", float("nan"), MALFORMED, "not a number"),
    Case(f"{POOL}.nodes", float("inf"), MALFORMED, "not a count"),
    Case(f"{POOL}.nodes", 2**53 + 1, MALFORMED, "beyond what a double tells apart"),
    Case(f"{POOL}.nodes", True, MALFORMED, "bool for int"),
    Case(f"{POOL}.nodes", "4", MALFORMED, "string for int"),
    Case(f"{POOL}.devices", GONE, "NoMatchingDevice", "devices are not published yet"),
    Case(f"{POOL}.devices", [], "NoMatchingDevice", "told: there is no device"),
    Case(f"{POOL}.devices", "gpu", MALFORMED, "string for list"),
    Case(f"{DEVICE}.count", GONE, OPEN, "one is the default, and enough"),
    Case(f"{DEVICE}.count", 0, "DeviceCountShort", "an entry of no devices may be published"),
    Case(f"{DEVICE}.count", -1, "MalformedCluster", "fewer than none"),
    Case(f"{DEVICE}.count", 1.5, MALFORMED, "half a device"),
    Case(f"{DEVICE}.driver", GONE, MALFORMED, "a device without a driver"),
    Case(f"{DEVICE}.claim", GONE, OPEN, "DRA is the default"),
    Case(f"{DEVICE}.claim", "Magic", MALFORMED, "an unknown way to claim"),
    Case(f"{DEVICE}.deviceClassName", GONE, MALFORMED, "required for DRA"),
    Case(f"{DEVICE}.attributes", GONE, OPEN, "the request reads only the driver"),
    Case(f"{DEVICE}.attributes", [], MALFORMED, "a list for a map"),
    Case(f"{DEVICE}.attributes.architecture", {"string": "a", "int": 1}, MALFORMED, "exactly one type"),
    Case(f"{DEVICE}.attributes.v", {"version": "1.0.0-" + "9" * 5_000}, "DeviceSelectorError", "no version"),
    Case(f"{DEVICE}.capacity.memory", {"value": "80 Gi"}, "DeviceSelectorError", "not a quantity"),
    Case("spec.taints", {"key": "x"}, MALFORMED, "a map for a list"),
    Case(
        "spec.taints", [{"key": "x", "effect": "NoFun"}], MALFORMED, "an unknown effect could mean anything"
    ),
    Case("spec.taints", [{"effect": "NoSchedule"}], MALFORMED, "a taint without a key"),
    Case("spec.nodePools", GONE, OPEN, "nothing is told of the pools"),
    Case("spec.nodePools", "h100", MALFORMED, "a string for a list"),
    Case("metadata.labels", GONE, OPEN, "no label is asked for"),
    Case("metadata.labels", ["a"], MALFORMED, "a list for a map"),
    Case("metadata.deletionTimestamp", "2026-03-01T08:00:00Z", "ClusterDeleting", "on its way out"),
)


def spoilt(plain: Plain, path: str, value: Any) -> Plain:
    """Return a copy of an object with something else, or nothing, at a path."""
    made = copy.deepcopy(plain)
    *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
    holder: Any = made
    for step in way:
        holder = holder[step]
    if value is GONE:
        del holder[last]
    else:
        holder[last] = value
    return made


def world(changed: Plain | None = None) -> World:
    parent = build.deployment(replicas=2)
    running = build.replica(parent, "a", 0, ready=True)
    other = build.cluster("b", [build.pool("h100")])
    return World(
        parent,
        [build.cluster("a", [build.pool("h100", 1)]), changed or other],
        [running],
        build.observed(running, endpoints=[build.endpoint(running)]),
    )


def verdict(answer: Answer) -> str:
    """Return what became of cluster `b`."""
    if "replica-b-0" in answer.desired:
        return OPEN
    return str(answer.decision.rejections["b"].reason.name)


@pytest.mark.parametrize("case", CLUSTERS, ids=lambda case: f"{case.path}={str(case.value)[:20]}")
def test_an_odd_cluster_costs_what_is_odd_about_it(case: Case) -> None:
    changed = world(spoilt(build.cluster("b", [build.pool("h100")]), case.path, case.value))
    answer = run(changed, level="plain")
    assert verdict(answer) == case.effect, case.reason
    assert answer.desired["replica-a-0"] == run(world()).desired["replica-a-0"]
    assert answer.desired["endpoint-a-0"] == run(world()).desired["endpoint-a-0"]
    assert not law.unexplained(changed, answer)


REPLICAS = (
    Case("spec", GONE, "", "it says nothing of itself"),
    Case("spec", "h100", "", "a string for a map"),
    Case("spec.engines", None, "", "null for its engines"),
    Case("spec.engines", {}, "", "a map for a list"),
    Case("spec.engines.0.copies", 1.5, "", "half a copy"),
    Case("spec.engines.0.copies", -1, "", "fewer than none"),
    Case("spec.engines.0.members", [], "", "an engine of nobody"),
    Case("spec.engines.0.members.0.nodePoolName", GONE, "", "pinned to nothing"),
    Case("spec.engines.0.members.0.nodePoolName", 4, "", "pinned to a number"),
    Case("spec.engines.0.members.0.role", "Chief", "", "an unknown role"),
    Case("spec.engines.0.members.0.deviceRequests", "gpu", "", "a string for a list"),
    Case("spec.engines.0.members.0.deviceRequests.0.count", True, "", "bool for int"),
    Case("metadata.labels", GONE, "", "its key tells who it is"),
    Case("metadata.labels", "mine", "", "its key tells who it is"),
    Case("metadata.ownerReferences", "me", "", "it is observed, so it is ours"),
    Case("status", "Ready", "", "nobody can tell whether it is Ready"),
    Case("status.conditions", [None], "", "nobody can tell whether it is Ready"),
    Case("status.conditions.0.status", 1, "", "nobody can tell whether it is Ready"),
)


@pytest.mark.parametrize("case", REPLICAS, ids=lambda case: f"{case.path}={str(case.value)[:20]}")
def test_an_odd_replica_of_ours_stays(case: Case) -> None:
    before = world()
    odd = spoilt(before.observed["replica-a-0"], case.path, case.value)
    changed = before.but(observed=dict(before.observed) | {"replica-a-0": odd})
    for seen in (changed, changed.but(replicas=[odd]), changed.but(replicas=[])):
        answer = run(seen, level="plain")
        assert "replica-a-0" in answer.desired, case.reason
        assert not law.unexplained(seen, answer), case.reason


@pytest.mark.parametrize("case", REPLICAS, ids=lambda case: f"{case.path}={str(case.value)[:20]}")
def test_an_odd_replica_of_another_changes_nothing_of_ours(case: Case) -> None:
    before = world()
    other = build.deployment("other", namespace="ads")
    odd = spoilt(build.replica(other, "a", 0, ready=True), case.path, case.value)
    answer = run(before.but(replicas=[*(before.replicas or ()), odd]), level="plain")
    expected = run(before, level="plain").desired
    assert answer.desired.keys() == expected.keys(), case.reason
    assert all(answer.desired[key] == value for key, value in expected.items()), case.reason
