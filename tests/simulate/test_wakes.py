"""One write, and whom it wakes: reconciles, calls and tokens of every handler but the deployment's.

The Compositions are those that are shipped, and Crossplane is the one of `tests.support.crossplane`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from function.cluster.names import GUARD
from tests.cluster.build import cluster, inference_class
from tests.replica.provider import observed
from tests.routing.build import endpoint, gateway, service
from tests.support import build
from tests.support.crossplane import DYING, VERSIONS, WATCHING, ControlPlane, Name, shipped

if TYPE_CHECKING:
    from collections.abc import Sequence

Plain = dict[str, Any]

KINDS = ("InferenceCluster", "ModelReplica", "ModelService")
CLASS, GATEWAY = Name("InferenceClass", "", "h200"), Name("Gateway", "modelplane-system", "modelplane")
EAST, WEST = (Name("InferenceCluster", "", name) for name in ("east", "west"))
SERVICE, ROUTE = Name("ModelService", "ml-team", "chat"), "httproute"
ENDPOINTS = [Name("ModelEndpoint", "ml-team", f"chat-{number}") for number in range(2)]
REPLICAS = 3
MANY = 200
"""Replicas on one cluster."""
LOADING = 30.0
"""Seconds until a replica of a burst is Ready."""


def replica(number: int) -> Plain:
    """Return a replica on the cluster, as its deployment applies it."""
    made = build.replica(build.deployment(f"model-{number:03}"), "east", 0, pools="gpu")
    made["metadata"] = {key: made["metadata"][key] for key in ("name", "namespace", "labels")}
    return made


def name_of(number: int) -> Name:
    """Return the name of a replica."""
    metadata = replica(number)["metadata"]
    return Name("ModelReplica", metadata["namespace"], metadata["name"])


def empty(version: str, kinds: Sequence[str] = KINDS, **how: Any) -> ControlPlane:
    """Return a control plane at rest: two clusters, and a service of two endpoints; no replicas."""
    made = ControlPlane(shipped(kinds), version, **how)
    east = cluster(gateway={"address": "203.0.113.7"})
    west = {**east, "metadata": {"name": "west"}}
    endpoints = [endpoint(name.name) for name in ENDPOINTS]
    for plain in (inference_class(), gateway(), east, west, *endpoints, service()):
        made.write(plain)
    made.run(300.0)
    provide(made)
    return made


def provide(made: ControlPlane) -> None:
    """Take the part of provider-kubernetes and of the gateway: all that was composed is available."""
    for _ in range(6):
        for composite in list(made.composites.values()):
            for key, name in composite.composed.items():
                if name.kind in ("Object", "HTTPRoute") and "status" not in made.objects[name]:
                    made.patch(name, status=observed(key, made.objects[name])["status"])
        made.run(100.0)


def serving(version: str) -> ControlPlane:
    """Return a control plane at rest with replicas that serve."""
    made = empty(version)
    for number in range(REPLICAS):
        made.write(replica(number))
        made.run(30.0)
    provide(made)
    for number in range(REPLICAS):
        rows = made.objects[name_of(number)]["status"]["conditions"]
        assert {row["type"]: row["status"] for row in rows}["Ready"] == "True"
    made.forget_counts()
    return made


class Case(NamedTuple):
    """A write, and what it costs each composite: reconciles, calls of each, tokens; {} wakes nobody."""

    reason: str
    written: Name
    before: dict[str, tuple[int, int, int]]
    """Up to 2.3."""
    watching: dict[str, tuple[int, int, int]]
    """From 2.4 on."""


FIRST, SECOND = name_of(0).name, name_of(1).name
ALL = {name_of(number).name: (1, 1, 2) for number in range(REPLICAS)}
CASES = [
    Case("a class: the clusters that have it", CLASS, {}, {"east": (1, 3, 2), "west": (1, 3, 2)}),
    Case("a cluster: itself and its replicas", EAST, {"east": (1, 3, 2)}, {"east": (1, 3, 2), **ALL}),
    Case("another cluster: nobody's replicas", WEST, {"west": (1, 3, 2)}, {"west": (1, 3, 2)}),
    Case(
        "a replica: itself, which it looks for its namesakes by as well",
        name_of(1),
        {SECOND: (1, 2, 2)},
        {SECOND: (1, 1, 4)},
    ),
    Case(
        "the replica that its cluster knows by name",
        name_of(0),
        {FIRST: (1, 2, 2)},
        {FIRST: (1, 1, 4), "east": (1, 3, 2)},
    ),
    Case("an endpoint: its service", ENDPOINTS[0], {}, {"chat": (1, 1, 2)}),
    Case("a gateway: its services", GATEWAY, {}, {"chat": (1, 1, 2)}),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_whom_a_write_wakes(case: Case, version: str) -> None:
    made = at_rest(version)
    made.forget_counts()
    made.touch(case.written)
    made.run(0.0)
    spent = {
        name.name: (composite.counts["reconciles"], composite.counts["calls"], composite.counts["tokens"])
        for name, composite in made.composites.items()
        if composite.counts
    }
    assert spent == (case.watching if version >= WATCHING else case.before)


@cache
def at_rest(version: str) -> ControlPlane:
    """Return the control plane of a version, set up once."""
    return serving(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_to_another_service_s_endpoint_or_to_nothing_required_wakes_nobody(version: str) -> None:
    made = at_rest(version)
    made.forget_counts()
    made.write(endpoint("other", labels={"app": "other"}))
    made.write(inference_class("unused"))
    made.run(0.0)
    assert not made.counted("tokens")


@pytest.mark.parametrize(("version", "seconds"), [("2.0", 11.0), ("2.3", 11.0), ("2.4", 0.0)])
def test_a_service_leaves_an_endpoint_that_is_gone_by_watch_or_by_its_ttl(
    version: str, seconds: float
) -> None:
    made = serving(version)
    made.delete(ENDPOINTS[0])
    made.run(DYING + seconds)
    (rule,) = made.objects[made.composites[SERVICE].composed[ROUTE]]["spec"]["rules"]
    assert [reference["name"] for reference in rule["backendRefs"]] == ["svc-chat-1"]


def start(made: ControlPlane, number: int) -> None:
    """Create a replica with what Crossplane and its platform write to it until it is Ready."""
    made.write(replica(number))
    for at in (0.1, 0.2, 0.3, 0.5, LOADING / 2, LOADING):
        made.after(at, lambda: made.touch(name_of(number)))


@pytest.mark.parametrize("within", [5.0, 20.0, 60.0])
@pytest.mark.parametrize("queue", [(0.1, 0.5), (1.0, 10.0)], ids=["calm", "busy"])
def test_replicas_in_a_burst_leave_the_breaker_of_their_cluster_closed(
    queue: tuple[float, float], within: float
) -> None:
    made = empty("2.4", ["InferenceCluster"], queue=queue)
    made.forget_counts()
    for number in range(MANY):
        made.after(number * within / MANY, lambda number=number: start(made, number))
    made.run(within + LOADING + 70.0)
    counts = made.composites[EAST].counts
    assert counts["opened"] == 0
    assert counts["tokens"] <= 2 * (6 + 8), "one replica's writes, and its own status"
    assert GUARD in made.composites[EAST].composed
    made.forget_counts()
    made.resync()
    assert counts["tokens"] <= 20, "itself, its class, what it composed, and one replica"


def test_a_cluster_learns_at_once_that_its_last_replica_is_gone() -> None:
    made = serving("2.4")
    for number in range(REPLICAS):
        assert GUARD in made.composites[EAST].composed
        made.delete(name_of(number))
        made.run(DYING + 0.1)
    assert GUARD not in made.composites[EAST].composed
