"""P15: every cluster that is not eligible has one headline reason; applying its remedy opens that gate."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tests.properties.worlds import each_batch, hold
from tests.support import build, generate
from tests.support.drive import Answer, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.world import World

Plain = dict[str, Any]


def _ready(world: World, cluster: Plain) -> None:
    kept = [
        condition for condition in cluster["status"].get("conditions", []) if condition["type"] != "Ready"
    ]
    cluster["status"]["conditions"] = [*kept, build.condition("Ready", status=True)]


def _labels(world: World, cluster: Plain) -> None:
    inner = world.deployment["spec"]["template"]["spec"]
    cluster["metadata"]["labels"] |= inner.get("clusterSelector", {}).get("matchLabels", {})


def _footprint(world: World, cluster: Plain) -> None:
    for manifest in world.cache or ():
        cluster["metadata"]["labels"] |= manifest["spec"].get("clusterSelector", {}).get("matchLabels", {})


def _hydrated(world: World, cluster: Plain) -> None:
    for manifest in world.cache or ():
        manifest["status"] = {"clusters": [{"name": cluster["metadata"]["name"], "phase": "Ready"}]}


def _nodes(world: World, cluster: Plain) -> None:
    for pool in cluster["status"]["gpuPools"]:
        pool["nodes"] = 1000


def _counts(world: World, cluster: Plain) -> None:
    for pool in cluster["status"]["gpuPools"]:
        for device in pool["devices"]:
            device["count"] = 64


def _any_device(world: World, cluster: Plain) -> None:
    """Give every request selectors that hold everywhere."""
    for engine in world.deployment["spec"]["template"]["spec"]["engines"]:
        for member in engine["members"]:
            for device in member.get("nodeSelector", {}).get("devices", []):
                device["selectors"] = [{"cel": "true"}]


def _claimable(world: World, cluster: Plain) -> None:
    for pool in cluster["status"]["gpuPools"]:
        for device in pool["devices"]:
            device |= {"claim": "DRA", "deviceClassName": device.get("deviceClassName", "any")}


def _one_pool(world: World, cluster: Plain) -> None:
    """Publish one pool that has all the devices of the cluster."""
    pools = cluster["status"]["gpuPools"]
    entries = [
        device | {"name": f"{pool['name']}-{device['name']}"} for pool in pools for device in pool["devices"]
    ]
    pools[:] = [build.pool("p0", 1000, entries)]


REMEDIES: dict[str, Callable[[World, Plain], Any]] = {
    "ClusterDeleting": lambda _, cluster: cluster["metadata"].pop("deletionTimestamp"),
    "ClusterSelectorMismatch": _labels,
    "OutsideCacheFootprint": _footprint,
    "CacheNotReady": _hydrated,
    "UntoleratedTaint": lambda _, cluster: cluster["spec"].pop("taints"),
    "ClusterNotReady": _ready,
    "ClusterLost": lambda _, cluster: cluster["status"].pop("heartbeat"),
    "NoGatewayAddress": lambda _, cluster: cluster["status"].update(gateway={"address": "203.0.113.1"}),
    "NoPoolsPublished": lambda _, cluster: cluster["status"].update(gpuPools=[build.pool("p0")]),
    "NoMatchingDevice": _any_device,
    "DeviceSelectorError": _any_device,
    "DeviceCountShort": _counts,
    "DeviceContention": _counts,
    "NothingClaimable": _claimable,
    "NoSinglePool": _one_pool,
    "InsufficientNodes": _nodes,
    "JointCapacity": _nodes,
    "PoolOvercommitted": _nodes,
}


def headlines(answer: Answer) -> dict[str, str]:
    """Return the headline reason of each cluster that was rejected."""
    decision = answer.decision
    return (
        {}
        if decision is None
        else {name: rejection.reason.name for name, rejection in decision.rejections.items()}
    )


def unopened(world: World, answer: Answer) -> Iterator[str]:
    reasons = headlines(answer)
    if not reasons:
        return
    if sum(answer.raw.rejections.values()) != len(reasons):
        yield "the counts of the reasons are not one for each rejected cluster"
    for name, reason in reasons.items():
        if reason not in REMEDIES:
            yield f"{name}: {reason} has no remedy in this test"
            continue
        mended = copy.deepcopy(world)
        cluster = next(manifest for manifest in mended.clusters or () if manifest["metadata"]["name"] == name)
        cluster.setdefault("status", {})
        REMEDIES[reason](mended, cluster)
        if headlines(run(mended, level="plain")).get(name) == reason:
            yield f"{name}: the remedy of {reason} does not open the gate"


@each_batch
def test_the_remedy_of_a_headline_opens_its_gate(number: int) -> None:
    def unlocked(world: World, _: Answer) -> Iterator[str]:
        yield from unopened(world, run(world, level="plain"))

    hold(number, unlocked, quick=240, taste=generate.Taste(doubt=0.0, oddity=0.3, own_replicas=0.4))


@each_batch
def test_a_cluster_is_rejected_if_and_only_if_it_has_a_reason(number: int) -> None:
    """While something is missing for want of a place, no cluster is without a reason."""

    def silent(world: World, _: Answer) -> Iterator[str]:
        decision = run(world, level="plain").decision
        if decision is None or decision.total >= decision.wanted or decision.stopped or not world.clusters:
            return
        for cluster in world.clusters:
            if cluster["metadata"]["name"] not in decision.rejections:
                yield f"{cluster['metadata']['name']} takes nothing and no reason is given"

    hold(number, silent, taste=generate.Taste(doubt=0.0, oddity=0.2, own_replicas=0.5))
