"""placement.cache: clusters where the weights are come first, or are the only ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import build
from tests.support.cases import EU, US, ask, clusters
from tests.support.drive import run
from tests.support.world import World

Plain = dict[str, Any]
CACHE = "weights"
NAMES = "abcde"
FIVE = {
    "a": "Failed",
    "b": "Thawing",
    "c": "Pending",
    "d": "Hydrating",
    "e": "Ready",
}


def asking(replicas: int = 1, cache: str | None = None, **policy: Any) -> Plain:
    """Return a deployment with a cache and a policy."""
    return ask(replicas, cache=CACHE, placement=policy | ({"cache": cache} if cache else {}))


def placed(deployment: Plain, fleet: list[Plain], cache: Plain) -> list[str]:
    """Return the clusters of the new replicas, sorted."""
    answer = run(World(deployment, fleet, [], cache=[cache]))
    return sorted(replica["spec"]["clusterName"] for replica in answer.replicas.values())


ORDER = [
    (None, 5, "abcde", "as today: the phases are not looked at"),
    ("Footprint", 5, "abcde", "the default, spelled out"),
    ("Prefer", 1, "e", "Ready first"),
    ("Prefer", 2, "de", "then Hydrating"),
    ("Prefer", 3, "cde", "then Pending"),
    ("Prefer", 4, "bcde", "then what this build does not know"),
    ("Prefer", 5, "abcde", "Failed last; a preference never leaves a replica without a place"),
    ("Require", 5, "e", "Ready and nothing else"),
]


@pytest.mark.parametrize(("policy", "replicas", "where", "reason"), ORDER, ids=[pair[3] for pair in ORDER])
def test_clusters_are_taken_by_phase(policy: str | None, replicas: int, where: str, reason: str) -> None:
    fleet = clusters(**dict.fromkeys(NAMES, 1))
    assert placed(asking(replicas, policy), fleet, build.cache(phases=FIVE)) == list(where), reason


def test_the_phase_outweighs_the_strategy_and_not_a_preference() -> None:
    fleet = clusters(a={"labels": US}, b={"labels": EU}, c={"labels": EU})
    cache = build.cache(phases={"a": "Ready", "b": "Ready"})
    assert placed(asking(2, "Prefer", strategy="BinPack"), fleet, cache) == ["a", "a"]
    assert placed(asking(4, "Prefer"), fleet, cache) == ["a", "a", "b", "b"]
    wish = [{"weight": 1, "matchLabels": EU}]
    assert placed(asking(2, "Prefer", preferences=wish), fleet, cache) == ["b", "b"]


STATUSES = [
    (None, "no status yet"),
    ({}, "an empty one"),
    ("ready", "no map"),
    ({"clusters": None}, "no list"),
    ({"clusters": {"a": "Ready"}}, "a map instead of a list"),
    ({"clusters": ["a"]}, "names instead of maps"),
    ({"clusters": [{"name": "a"}]}, "no phase"),
    ({"clusters": [{"name": "a", "phase": ["Ready"]}]}, "a list as phase"),
    ({"clusters": [{"name": "a", "phase": "ready"}]}, "another spelling"),
    ({"clusters": [{"name": "a", "phase": "Ready"}, {"name": "a", "phase": "Failed"}]}, "two answers"),
]


@pytest.mark.parametrize(("status", "reason"), STATUSES, ids=[pair[1] for pair in STATUSES])
def test_a_phase_that_cannot_be_read_is_unknown(status: object, reason: str) -> None:
    """Nothing is placed on a guess under Require; nothing is lost under the others."""
    cache = build.cache()
    if status is not None:
        cache["status"] = status
    fleet = clusters(a=1)
    assert placed(asking(1, "Require"), fleet, cache) == [], reason
    assert placed(asking(1, "Prefer"), fleet, cache) == ["a"], reason
    assert placed(asking(1), fleet, cache) == ["a"], reason


@pytest.mark.parametrize("phase", ["Failed", "Pending", None])
def test_a_replica_that_runs_stays_whatever_the_phase(phase: str | None) -> None:
    deployment = asking(1, "Require")
    running = build.replica(deployment, "a", 0, pools="p0", ready=True)
    cache = build.cache(phases={"a": phase} if phase else {})
    answer = run(World(deployment, clusters(a=2, b=2), [running], build.observed(running), [cache]))
    assert set(answer.replicas) == {"replica-a-0"}


def test_without_a_cache_the_policy_says_nothing() -> None:
    assert set(run(World(ask(1, placement={"cache": "Require"}), clusters(a=1), [])).replicas) == {
        "replica-a-0"
    }


def test_the_place_is_explained_by_the_phase() -> None:
    config = {
        "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
        "kind": "SchedulerConfig",
        "explain": "Status",
    }
    cache = build.cache(phases={"b": "Ready"})
    answer = run(World(asking(1, "Prefer"), clusters(a=1, b=1), [], cache=[cache], input=config))
    (replica,) = answer.status["placement"]["replicas"]
    assert (
        replica["because"]
        == "readiness of the cache (Ready); fewest replicas of this deployment (0); next: a"
    )
