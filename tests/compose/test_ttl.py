"""How long an answer holds: short exactly while only a change of the fleet can help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import build
from tests.support.drive import run
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Plain = dict[str, Any]

WAITING, PENDING, SETTLED = 5, 15, 60
POOLS = [build.pool("h100", 4)]
A, B = build.cluster("a", POOLS), build.cluster("b", POOLS)
DRAINED = build.cluster("a", POOLS, taints=[build.taint("maintenance", "NoExecute")])


def world(
    running: int = 1,
    clusters: Sequence[Plain] | None = (A,),
    *,
    replicas: int | None = None,
    ready: bool = True,
    routed: bool = True,
    cache: str | None = None,
) -> World:
    """A deployment whose replicas run on cluster a; `routed`: their endpoints are Ready."""
    deployment = build.deployment(replicas=running if replicas is None else replicas, cache=cache)
    own_replicas = [build.replica(deployment, "a", index, ready=ready) for index in range(running)]
    listed = None if clusters is None else list(clusters)
    endpoints = [build.endpoint(replica, ready=routed) for replica in own_replicas if ready]
    return World(
        deployment, listed, own_replicas, observed=build.observed(*own_replicas, endpoints=endpoints)
    )


def paced() -> World:
    """Two replicas on a cluster being drained, of which one may leave at a time."""
    made = world(2, (DRAINED, B))
    made.deployment["spec"]["placement"] = {"disruption": {"maxUnavailable": 1}}
    return made


def mistyped() -> World:
    made = world()
    member = made.deployment["spec"]["template"]["spec"]["engines"][0]["members"][0]
    member["nodeSelector"]["devices"][0]["selectors"] = [{"cel": "nonsense("}]
    return made


def pool_gone() -> World:
    """A pool that is published and no longer declared: its replica must move."""
    cluster = build.cluster("a", [build.pool("h100", 0)])
    cluster["spec"]["nodePools"] = [{"name": "renamed"}]
    return world(1, [cluster])


@dataclass(frozen=True)
class Case:
    reason: str
    made: Callable[[], World]
    seconds: int


CASES = [
    Case("all is well", world, SETTLED),
    Case(
        "a replica loads its model: Crossplane watches what is composed", lambda: world(ready=False), PENDING
    ),
    Case(
        "an endpoint has no Service yet, so the deployment is not Ready", lambda: world(routed=False), PENDING
    ),
    Case("a selector does not compile: the user is awaited, not the fleet", mistyped, PENDING),
    Case("there is no room for another", lambda: world(4, replicas=5), WAITING),
    Case("the last cluster that would do is drained", lambda: world(1, (DRAINED,)), WAITING),
    Case("the cluster is gone and there is no other place", lambda: world(1, [full()]), WAITING),
    Case("a drain is paced", paced, WAITING),
    Case("a replica must move and has no place to go", pool_gone, WAITING),
    Case("its cluster is not Ready", lambda: world(1, [build.cluster("a", POOLS, ready=False)]), WAITING),
    Case("the fleet is empty", lambda: world(0, [], replicas=1), WAITING),
    Case("the fleet was not delivered", lambda: world(1, None), WAITING),
    Case("the cache was not created yet", lambda: world(1, cache="weights").but(cache=[]), WAITING),
]


def full() -> Plain:
    return build.cluster("b", [build.pool("h100", 0)])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_how_long_an_answer_holds(case: Case) -> None:
    asked = case.made().but(input={"ttl": {"waiting": WAITING, "pending": PENDING, "settled": SETTLED}})
    assert run(asked, level="wire").raw.meta.ttl.seconds == case.seconds


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_pending_stands_for_waiting_where_that_is_not_set(case: Case) -> None:
    expected = PENDING if case.seconds == WAITING else case.seconds
    assert run(case.made(), level="wire").raw.meta.ttl.seconds == expected
