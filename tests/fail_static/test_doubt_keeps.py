"""Doubt never removes a running replica: one test per way in which something can be unknown or wrong.

Each case takes a settled world, in which two replicas run and are routed to, spoils one thing, and asks
again: both replicas and both endpoints are still desired, byte for byte, and a condition says what is wrong.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import build
from tests.support.calm import FRAGMENT, LABELS, settled
from tests.support.drive import run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.support.world import World

Plain = dict[str, Any]


@dataclass(frozen=True)
class Case:
    reason: str
    spoil: Callable[[World], World]
    says: str
    """The reason of the condition ReplicasScheduled."""
    words: tuple[str, ...] = ()
    """What its message must name."""
    cache: bool = False


def _select(world: World, cel: str) -> World:
    members = world.deployment["spec"]["template"]["spec"]["engines"][0]["members"]
    members[0]["nodeSelector"]["devices"][0]["selectors"] = [{"cel": cel}]
    return world


def _cluster(world: World, change: Callable[[Plain], object]) -> World:
    change(world.clusters[0])
    return world


def _both(world: World, change: Callable[[Plain], object]) -> World:
    for cluster in world.clusters[:2]:
        change(cluster)
    return world


def _foreign(world: World) -> World:
    world.replicas[-1]["spec"]["engines"] = [{"members": "two", "copies": float("nan")}]
    return world


SELECTOR = "engines[0].members[0].nodeSelector.devices[0].selectors[0]"
CASES = [
    Case(
        "a typo in a selector makes the input invalid, it does not make the replicas unwanted",
        lambda world: _select(world, FRAGMENT.replace("device.attributes", "device.atributes")),
        "InvalidNodeSelector",
        (SELECTOR, "1:7"),
    ),
    Case(
        "a selector nested deeper than any compiler takes is a compile error like any other",
        lambda world: _select(world, "(" * 300 + "true" + ")" * 300),
        "InvalidNodeSelector",
        (SELECTOR,),
    ),
    Case(
        "a requirement that Crossplane has not delivered says nothing about the fleet",
        lambda world: world.but(clusters=None),
        "InputsUnresolved",
        ("cluster/a",),
    ),
    Case(
        "nor do replicas that were not delivered",
        lambda world: world.but(replicas=None),
        "InputsUnresolved",
        ("own-replicas",),
    ),
    Case(
        "an emptied fleet list is doubt: if the last cluster is gone, keeping its replicas costs nothing",
        lambda world: world.but(clusters=[]),
        "NoClusters",
        ("no InferenceCluster",),
    ),
    Case(
        "a cluster without status has told nothing yet",
        lambda world: _both(world, lambda item: item.pop("status")),
        "ReplicasCreated",
    ),
    Case(
        "a cluster that publishes an empty list of pools may only be late",
        lambda world: _both(world, lambda manifest: manifest["status"].update(gpuPools=[])),
        "ReplicasCreated",
    ),
    Case(
        "labels gate new placements only: a replica is not moved because a label changed",
        lambda world: _both(world, lambda manifest: manifest["metadata"].update(labels={})),
        "ReplicasCreated",
    ),
    Case(
        "an edited clusterSelector gates new placements only",
        lambda world: (
            world.deployment["spec"]["template"]["spec"].update(
                clusterSelector={"matchLabels": {"modelplane.ai/tier": "nowhere"}}
            )
            or world
        ),
        "ReplicasCreated",
    ),
    Case(
        "the labels of the same cache were narrowed: they gate new placements only",
        lambda world: world.but(cache=[build.cache("weights", {"modelplane.ai/tier": "elsewhere"})]),
        "ReplicasCreated",
        cache=True,
    ),
    Case(
        "the cache was deleted: nothing new is placed, nothing running is touched",
        lambda world: world.but(cache=[]),
        "ReplicasCreated",
        cache=True,
    ),
    Case(
        "the cache was not delivered",
        lambda world: world.but(cache=None),
        "InputsUnresolved",
        ("cache",),
        cache=True,
    ),
    Case(
        "a cluster that cannot be read is not filled, and its replicas stay",
        lambda world: _cluster(world, lambda manifest: manifest["status"].update(gpuPools="none")),
        "ReplicasCreated",
    ),
    Case(
        "a cluster whose name cannot be read may be the one a replica runs on",
        lambda world: _cluster(world, lambda manifest: manifest["metadata"].update(name=7)),
        "ReplicasCreated",
    ),
    Case(
        "a cluster that its name finds and the list of all lacks: read at two moments, it may well exist",
        lambda world: world.but(clusters=world.clusters[1:], more={"cluster/a": world.clusters[:1]}),
        "ReplicasCreated",
    ),
    Case(
        "a foreign replica that cannot be read is charged for what can be read of it",
        _foreign,
        "ReplicasCreated",
    ),
    Case(
        "a cluster that is not Ready keeps its replicas",
        lambda world: _both(
            world,
            lambda manifest: manifest["status"].update(conditions=[build.condition("Ready", status=False)]),
        ),
        "ReplicasCreated",
    ),
    Case(
        "a cluster without a gateway keeps its replicas and their endpoints as they were",
        lambda world: _both(world, lambda manifest: manifest["status"].pop("gateway")),
        "ReplicasCreated",
    ),
    Case(
        "a NoSchedule taint keeps new replicas away, not running ones",
        lambda world: _both(world, lambda manifest: manifest["spec"].update(taints=[build.taint("busy")])),
        "ReplicasCreated",
    ),
    Case(
        "a selector that errs on the pinned pool is doubt, not mismatch",
        lambda world: _select(world, 'device.attributes["gpu.nvidia.com"].nosuch == "x"'),
        "ReplicasCreated",
    ),
    Case(
        "a selector that costs too much is doubt, not mismatch",
        lambda world: _select(
            world,
            "lists.range(1000).all(x, lists.range(1000).all(y, lists.range(1000).all(z, x + y + z >= 0)))",
        ),
        "ReplicasCreated",
    ),
    Case(
        "the pinned pool no longer matches and there is nowhere to go: held exactly as observed",
        lambda world: _select(world, 'device.attributes["gpu.nvidia.com"].architecture == "Rubin"'),
        "ReplacementBlocked",
        ("replacement",),
    ),
]


def _bytes(desired: Mapping[str, Plain]) -> dict[str, str]:
    return {key: json.dumps(manifest, sort_keys=True) for key, manifest in desired.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_doubt_keeps_every_replica_and_endpoint(case: Case) -> None:
    world = settled(cache=case.cache)
    before = run(world)
    after = run(case.spoil(world.copy()))
    assert set(before.desired) == {"replica-a-0", "replica-b-0", "endpoint-a-0", "endpoint-b-0"}
    assert _bytes(after.desired) == _bytes(before.desired)
    assert after.reason() == case.says
    for word in case.words:
        assert word in after.conditions["ReplicasScheduled"][2]
    assert not after.fatal


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_every_condition_is_returned_on_every_path(case: Case) -> None:
    after = run(case.spoil(settled(cache=case.cache)))
    expected = ["ModelCacheResolved"] * case.cache + ["ReplicasScheduled", "ReplicasReady"]
    assert list(after.conditions) == expected
    assert all("\n" not in message and len(message) <= 512 for _, _, message in after.conditions.values())


def test_the_settled_world_is_settled() -> None:
    """The cases above prove something only if nothing was wrong before."""
    answer = run(settled())
    assert answer.reason() == "ReplicasCreated"
    assert answer.settled
    assert not answer.unready
    assert answer.status == {"replicas": {"total": 2, "ready": 2}}
    assert answer.events == ()


def test_a_cluster_without_a_readable_name_is_counted_and_told_of() -> None:
    world = _cluster(settled(), lambda manifest: manifest["metadata"].update(name=7))
    world.deployment["spec"]["replicas"] = 9
    world.deployment["spec"]["template"]["spec"]["engines"][0]["copies"] = 9
    assert "1 unreadable cluster" in run(world).conditions["ReplicasScheduled"][2]


def _edited(world: World, **request: object) -> World:
    members = world.deployment["spec"]["template"]["spec"]["engines"][0]["members"]
    members[0]["nodeSelector"]["devices"][0].update(request)
    members[0]["template"] = build.template("new:1")
    return world


@pytest.mark.parametrize(
    ("count", "updated", "reason"),
    [
        (8, True, "what is stamped is what is wanted, so the new image goes in whatever is unknown"),
        (4, False, "whether the pool has what is wanted now cannot be told, so it stays as it is"),
    ],
)
def test_in_doubt_only_an_edit_that_depends_on_nothing_unknown_is_applied(
    count: int, *, updated: bool, reason: str
) -> None:
    world = _both(_edited(settled(), count=count), lambda item: item.pop("status"))
    (engine,) = run(world).desired["replica-a-0"]["spec"]["engines"]
    assert (engine["members"][0]["template"] == build.template("new:1")) is updated, reason


def test_a_reference_to_a_cache_that_is_not_known_yet_changes_no_running_replica() -> None:
    world = settled(cache=True)
    world.deployment["spec"]["template"]["spec"]["modelCacheRef"]["name"] = "other"
    for cache in (None, []):
        kept = run(world.but(cache=cache)).desired["replica-a-0"]
        assert kept["spec"]["modelCacheRef"] == {"name": "weights"}


def test_a_cache_that_is_not_staged_on_the_cluster_is_a_mismatch() -> None:
    world = settled(cache=True)
    world.deployment["spec"]["template"]["spec"]["modelCacheRef"]["name"] = "other"
    away = run(world.but(cache=[build.cache("other", {"modelplane.ai/tier": "elsewhere"})]))
    assert away.reason() == "ReplacementBlocked"
    assert away.desired["replica-a-0"]["spec"]["modelCacheRef"] == {"name": "weights"}
    here = run(world.but(cache=[build.cache("other", LABELS)]))
    assert here.desired["replica-a-0"]["spec"]["modelCacheRef"] == {"name": "other"}
