"""The remedy of every headline reason, applied to a world: what opens the gate that it names (P15)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tests.support import build
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


def _untainted(world: World, cluster: Plain) -> None:
    for pool in cluster["status"]["gpuPools"]:
        for device in pool["devices"]:
            device.pop("taints", None)


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


def _published(world: World, cluster: Plain) -> None:
    """Publish the pools that the cluster declares."""
    declared = cluster["spec"].get("nodePools") or [{"name": "p0"}]
    cluster["status"]["gpuPools"] = [build.pool(pool["name"]) for pool in declared]


def _any_cluster(world: World, cluster: Plain) -> None:
    world.deployment["spec"]["template"]["spec"]["clusterSelector"].pop("cel")


def _unlimited(world: World, cluster: Plain) -> None:
    world.deployment["spec"]["placement"].pop("maxReplicasPerCluster")


def _spread(world: World, cluster: Plain) -> None:
    """Give the cluster a domain of its own for every key."""
    for spread in world.deployment["spec"]["placement"]["topologySpread"]:
        cluster["metadata"]["labels"][spread["topologyKey"]] = cluster["metadata"]["name"]


REMEDIES: dict[str, Callable[[World, Plain], Any]] = {
    "MalformedCluster": _published,
    "ClusterSelectorError": _any_cluster,
    "StackCannotExpress": lambda _, cluster: cluster["spec"].pop("stack"),
    "ChargeNotPublished": lambda world, _: world.input.pop("capacity"),
    "MaxReplicasPerCluster": _unlimited,
    "TopologySpread": _spread,
    "ClusterDeleting": lambda _, cluster: cluster["metadata"].pop("deletionTimestamp"),
    "ClusterSelectorMismatch": _labels,
    "OutsideCacheFootprint": _footprint,
    "CacheNotReady": _hydrated,
    "UntoleratedTaint": lambda _, cluster: cluster["spec"].pop("taints"),
    "ClusterNotReady": _ready,
    "ClusterLost": lambda _, cluster: cluster["status"].pop("heartbeat"),
    "NoGatewayAddress": lambda _, cluster: cluster["status"].update(gateway={"address": "203.0.113.1"}),
    "NoPoolsPublished": _published,
    "NoMatchingDevice": _any_device,
    "DeviceSelectorError": _any_device,
    "DeviceCountShort": _counts,
    "UntoleratedDeviceTaint": _untainted,
    "DeviceContention": _counts,
    "NothingClaimable": _claimable,
    "NoSinglePool": _one_pool,
    "InsufficientNodes": _nodes,
    "JointCapacity": _nodes,
    "PoolOvercommitted": _nodes,
    "QuotaExceeded": lambda world, _: world.input.pop("quotas"),
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
            yield f"{name}: {reason} has no remedy in tests/support/remedies.py"
            continue
        mended = copy.deepcopy(world)
        cluster = next(manifest for manifest in mended.clusters or () if manifest["metadata"]["name"] == name)
        cluster.setdefault("status", {})
        REMEDIES[reason](mended, cluster)
        if headlines(run(mended, level="plain")).get(name) == reason:
            yield f"{name}: the remedy of {reason} does not open the gate"
