"""One small world for every reason code, in which cluster `here` is rejected for it and for nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support import build
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]

EIGHTY = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0'
EXPENSIVE = "[" + ",".join("0" * 60) + "]"
COSTLY = f"{EXPENSIVE}.all(a, {EXPENSIVE}.all(b, {EXPENSIVE}.all(c, {EXPENSIVE}.all(d, a + b + c + d == 0))))"


@dataclass(frozen=True)
class Case:
    """A world and what must be said about its cluster `here`."""

    world: World
    says: str
    """Part of the condition's message."""


def wants(*requests: Plain, **more: Any) -> Plain:
    """Return a deployment of one Standalone engine with these requests."""
    return build.deployment(engines=[build.engine(members=[build.member(devices=list(requests))])], **more)


def here(*pools: Plain, **more: Any) -> Plain:
    """Return the cluster in question."""
    return build.cluster("here", list(pools) or [build.pool("p", 2)], **more)


def placing(made: Plain, **policy: Any) -> Plain:
    """Return a deployment with a placement policy."""
    made["spec"]["placement"] = policy
    return made


def selecting(made: Plain, **selector: Any) -> Plain:
    """Return a deployment with a clusterSelector."""
    made["spec"]["template"]["spec"]["clusterSelector"] = selector
    return made


def on_nodes(cel: str) -> Plain:
    """Return a deployment that selects pools."""
    made = wants(build.request("gpu", 1))
    node = made["spec"]["template"]["spec"]["engines"][0]["members"][0]["nodeSelector"]
    node["selectors"] = [{"cel": cel}]
    return made


def one(made: Plain, *clusters: Plain, **more: Any) -> World:
    """Return a world."""
    return World(made, list(clusters) or [here()], more.pop("replicas", []), {}, **more)


def malformed() -> Case:
    broken = here()
    broken["status"]["gpuPools"] = "three"
    return Case(one(wants(build.request()), broken), "1 unreadable cluster (status.gpuPools: expected a list")


def deleting() -> Case:
    return Case(one(wants(build.request()), here(deleting=True)), "1 cluster being deleted")


def selector_mismatch() -> Case:
    made = wants(build.request(), match={"tier": "prod"})
    return Case(
        one(made, here(labels={"tier": "dev"})),
        "1 cluster selector mismatch (wants tier=prod, has tier=dev)",
    )


def selector_error() -> Case:
    made = selecting(wants(build.request()), cel=['cluster.attributes["no.example/such"] == "x"'])
    return Case(one(made), "1 cluster selector error (no such key: no.example/such")


def outside_cache() -> Case:
    made = wants(build.request(), cache="weights")
    staged = build.cache("weights", {"region": "eu"})
    world = one(made, here(labels={"region": "us"}), cache=[staged])
    return Case(world, "1 outside the cache's footprint")


def cache_not_ready() -> Case:
    made = placing(wants(build.request(), cache="weights"), cache="Require")
    world = one(made, cache=[build.cache(phases={"here": "Hydrating"})])
    return Case(world, "1 cache not ready (cache weights is Hydrating")


def taint() -> Case:
    tainted = here(taints=[build.taint("maintenance", value="soon")])
    return Case(one(wants(build.request()), tainted), "1 untolerated taint {maintenance: NoSchedule}")


def inexpressible() -> Case:
    on_kserve = here()
    on_kserve["spec"]["stack"] = "KServe"
    made = wants(build.request())
    return Case(one(made, on_kserve), "1 not expressible on the cluster's stack (KServe: no model to mount")


def not_ready() -> Case:
    return Case(one(wants(build.request()), here(ready=False)), "1 cluster not ready")


def lost() -> Case:
    made = placing(wants(build.request()), evacuate={"afterSeconds": 3600})
    fleet = [here(), *(build.cluster(name, [build.pool("p", 0)]) for name in ("there", "elsewhere"))]
    for manifest, beat in zip(fleet, ("09:00", "12:00", "12:00"), strict=True):
        manifest["status"]["heartbeat"] = f"2026-03-01T{beat}:00Z"
    return Case(one(made, *fleet), "1 cluster lost (no heartbeat for over 3600 s)")


def no_gateway() -> Case:
    return Case(one(wants(build.request()), here(gateway=None)), "1 no gateway address")


def no_pools() -> Case:
    empty = here()
    empty["status"]["gpuPools"] = []
    return Case(one(wants(build.request()), empty), "1 no pools published")


def no_charge() -> Case:
    published = one(wants(build.request("gpu", 1)), input={"capacity": "Published"})
    return Case(published.but(more={"own-replicas": []}), "1 charge not published (pool p: no charge)")


def max_per_cluster() -> Case:
    made = placing(wants(build.request(), replicas=2), maxReplicasPerCluster=1)
    return Case(one(made), "1 at the limit of replicas per cluster")


def topology_spread() -> Case:
    spread = [{"topologyKey": "region", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    made = placing(wants(build.request()), topologySpread=spread)
    return Case(one(made), "1 topology spread (has no label region)")


def node_mismatch() -> Case:
    return Case(one(on_nodes('node.name == "other"')), "1 node selector mismatch (has name p, wants other)")


def node_error() -> Case:
    made = on_nodes('node.attributes["no.example/such"] == "x"')
    return Case(one(made), "1 node selector error (no such key: no.example/such")


def no_device() -> Case:
    made = wants(build.request("gpu", 1, build.GPUS, EIGHTY))
    small = here(build.pool("p", 2, [build.gpu(memory="40Gi")]))
    return Case(
        one(made, small), "1 no matching device (gpu: has memory 40Gi, wants at least 80Gi, selector 1)"
    )


def device_error() -> Case:
    made = wants(build.request("gpu", 1, 'device.attributes["gpu.nvidia.com"].nvlink == true'))
    return Case(one(made), "1 device selector error (gpu: no such key: nvlink")


def too_costly() -> Case:
    return Case(one(wants(build.request("gpu", 1, COSTLY))), "1 selector cost exceeded (gpu: ")


def count_short() -> Case:
    made, small = wants(build.request("gpu", 8)), here(build.pool("p", 2, [build.gpu(4)]))
    return Case(one(made, small), "1 too few devices per node (gpu: needs 8, has 4)")


def device_taint() -> Case:
    made = wants(build.request("gpu", 8))
    burning = build.gpu(8) | {"taints": [{"key": "burn-in", "value": "yes", "effect": "NoSchedule"}]}
    return Case(
        one(made, here(build.pool("p", 2, [burning]))),
        "1 untolerated device taint (gpu: {burn-in=yes:NoSchedule}, needs 8, has 0)",
    )


def contention() -> Case:
    made = wants(build.request("gpu", 6), build.request("draft", 4))
    return Case(one(made), "1 device contention (gpu+draft: gpu takes 6, draft takes 4)")


def too_large() -> Case:
    made, big = wants(build.request("gpu", 33)), here(build.pool("p", 2, [build.gpu(64)]))
    return Case(one(made, big), "1 claim too large (gpu: 33 devices, a claim holds 32)")


def constraint() -> Case:
    made = wants(build.request("gpu", 1), build.request("nic", 1, 'device.driver == "dra.net"'))
    node = made["spec"]["template"]["spec"]["engines"][0]["members"][0]["nodeSelector"]
    node["constraints"] = [{"requests": ["gpu", "nic"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}]
    both = here(build.pool("p", 2, [build.gpu(), build.nic()]))
    return Case(
        one(made, both),
        "1 constraint unsatisfied (gpu+nic: no common resource.kubernetes.io/pcieRoot)",
    )


def nothing_claimable() -> Case:
    synthetic = here(build.pool("p", 2, [build.gpu(claim="Synthetic")]))
    return Case(one(wants(build.request()), synthetic), "1 nothing claimable (no member would bind a device)")


def _gang() -> Plain:
    """Return a gang whose leader and worker fit different pools only."""
    leader = build.member("Leader", [build.request("gpu", 1, EIGHTY)])
    forty = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) < 0'
    worker = build.member("Worker", [build.request("gpu", 1, forty)], nodes=1)
    return build.deployment(engines=[build.engine(members=[leader, worker])])


def _two_pools() -> Plain:
    return here(build.pool("big", 2), build.pool("small", 2, [build.gpu(memory="40Gi")]))


def no_single_pool() -> Case:
    return Case(one(_gang(), _two_pools()), "1 no single pool (Leader fits big, Worker fits small)")


def fabric_mismatch() -> Case:
    made = _gang()
    made["spec"]["template"]["spec"]["engines"][0]["poolPolicy"] = "SameFabric"
    return Case(one(made, _two_pools()), "1 fabric mismatch (Leader fits big, Worker fits small)")


def overcommitted() -> Case:
    stranger = build.deployment("stranger")
    taking = [build.replica(stranger, "here", index, pools="p") for index in range(3)]
    world = one(wants(build.request()), replicas=taking)
    return Case(world, "1 pool overcommitted (nearest: here/p needs 1, 0 free of 2)")


def nodes_short() -> Case:
    made = wants(build.request(), replicas=3)
    return Case(one(made), "1 insufficient nodes (nearest: here/p needs 1, 0 free of 2)")


def devices_short() -> Case:
    shared = build.pool("p", 1, [build.gpu(8)]) | {"accounting": "Device"}
    made = wants(build.request("gpu", 5), replicas=2)
    return Case(one(made, here(shared)), "1 insufficient devices (nearest: here/p needs 1, 0 free of 1)")


def joint() -> Case:
    made = build.deployment(engines=[build.engine("main", copies=2), build.engine("draft")])
    return Case(one(made), "1 insufficient joint capacity (main + draft)")


def budget() -> Case:
    two = build.deployment(engines=[build.engine("main"), build.engine("draft")])
    return Case(one(two, input={"searchBudget": 1}), "1 search budget exceeded (main + draft)")


def quota() -> Case:
    limit = {"name": "team", "namespaces": [build.NAMESPACE], "atMost": {"nodes": 1}}
    world = one(wants(build.request(), replicas=2), input={"quotas": [limit]})
    return Case(world, "1 quota exceeded (quota team holds 1 of 1 nodes, one more takes 1)")


CASES: dict[str, Callable[[], Case]] = {
    "MalformedCluster": malformed,
    "ClusterDeleting": deleting,
    "ClusterSelectorMismatch": selector_mismatch,
    "ClusterSelectorError": selector_error,
    "OutsideCacheFootprint": outside_cache,
    "CacheNotReady": cache_not_ready,
    "UntoleratedTaint": taint,
    "StackCannotExpress": inexpressible,
    "ClusterNotReady": not_ready,
    "ClusterLost": lost,
    "NoGatewayAddress": no_gateway,
    "NoPoolsPublished": no_pools,
    "ChargeNotPublished": no_charge,
    "MaxReplicasPerCluster": max_per_cluster,
    "TopologySpread": topology_spread,
    "NodeSelectorMismatch": node_mismatch,
    "NodeSelectorError": node_error,
    "NoMatchingDevice": no_device,
    "DeviceSelectorError": device_error,
    "SelectorCostExceeded": too_costly,
    "DeviceCountShort": count_short,
    "UntoleratedDeviceTaint": device_taint,
    "DeviceContention": contention,
    "ClaimTooLarge": too_large,
    "ConstraintUnsatisfied": constraint,
    "NothingClaimable": nothing_claimable,
    "NoSinglePool": no_single_pool,
    "FabricMismatch": fabric_mismatch,
    "PoolOvercommitted": overcommitted,
    "InsufficientNodes": nodes_short,
    "InsufficientDevices": devices_short,
    "JointCapacity": joint,
    "SearchBudgetExceeded": budget,
    "QuotaExceeded": quota,
}
