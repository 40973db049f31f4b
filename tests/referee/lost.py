"""Take nodes and devices of a world away, and say what the cluster handler makes of what is left.

Nodes, ResourceSlices and ResourceClaims are read from the API server and handed to the handler as
provider-kubernetes does, in Objects. Nodes are removed, cordoned and tainted, devices go or get a taint, one
or all of a pool, and a tenant's pod claims some. The last node of a world stays: an emptied list is doubt,
and the declared number counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.boundary import PlainDocument, Request
from function.cluster import handler
from function.cluster.names import CLAIMS, NODES, SLICES
from function.cluster.snapshot import REPLICAS, class_requirement
from tests.referee import cluster

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from tests.referee.worlds import World

Plain = dict[str, Any]
INPUT: Plain = {"kind": "ClusterConfig", "publish": "Attributes", "capacity": "Usable", "tenants": "Charge"}
SYNCED: Plain = {"type": "Synced", "status": "True"}
READY: Plain = {"type": "Ready", "status": "True"}
PATCH = "application/merge-patch+json"
BROKEN: Plain = {"key": "broken", "effect": "NoSchedule"}
WAYS = ("delete", "cordon", "taint", "fewer", "tainted", "all tainted", "tenant", "tenant")


def nodes_of(pools: Iterable[str]) -> list[Plain]:
    """The nodes of some pools, as they are now."""
    listed = cluster.call("GET", cluster.PATHS["Node"]).get("items", [])
    named = set(pools)
    return [node for node in listed if node["metadata"].get("labels", {}).get("modelplane.ai/pool") in named]


def slices_of(nodes: Iterable[Plain]) -> list[Plain]:
    """The ResourceSlices of nodes."""
    names = {node["metadata"]["name"] for node in nodes}
    listed = cluster.call("GET", cluster.PATHS["ResourceSlice"]).get("items", [])
    return [one for one in listed if one["spec"].get("nodeName") in names]


def lose(draw: random.Random, world: World) -> str:
    """Do something to a node of a world; return what was done."""
    nodes = nodes_of(world.pools)
    node = draw.choice(nodes)
    name, how = node["metadata"]["name"], draw.choice(WAYS)
    where = f"{cluster.PATHS['Node']}/{name}"
    if how == "delete" and len(nodes) > 1:
        for one in slices_of([node]):
            cluster.delete("ResourceSlice", one["metadata"]["name"])
        cluster.delete("Node", name)
        listed = cluster.call("GET", cluster.PATHS["Pod"]).get("items", [])
        for pod in (pod for pod in listed if pod["spec"].get("nodeName") == name):
            cluster.delete("Pod", pod["metadata"]["name"], gracePeriodSeconds=0)
    elif how == "taint":
        taints = [{"key": "repair", "value": "yes", "effect": "NoSchedule"}]
        cluster.call("PATCH", where, {"spec": {"taints": taints}}, PATCH)
    elif how == "all tainted":
        pool = node["metadata"]["labels"]["modelplane.ai/pool"]
        for one in slices_of(nodes_of([pool])):
            _write(one, [device | {"taints": [BROKEN]} for device in one["spec"].get("devices", [])])
        how = f"taint all devices of pool {pool}, from"
    elif how == "tenant":
        how = _claim(draw, world, node)
    elif how in ("fewer", "tainted") and any(one["spec"].get("devices") for one in slices_of([node])):
        one = draw.choice([one for one in slices_of([node]) if one["spec"].get("devices")])
        devices = one["spec"].get("devices", [])
        if how == "fewer":
            devices = devices[1:]
        else:
            devices[0]["taints"] = [BROKEN]
        _write(one, devices)
    else:
        how = "cordon"
        cluster.call("PATCH", where, {"spec": {"unschedulable": True}}, PATCH)
    return f"{how} {name}"


def _write(one: Plain, devices: list[Plain]) -> None:
    """Have a driver publish other devices, as a new generation of its pool."""
    pool = one["spec"]["pool"]
    body = {"spec": {"devices": devices, "pool": pool | {"generation": pool["generation"] + 1}}}
    cluster.call("PATCH", f"{cluster.PATHS['ResourceSlice']}/{one['metadata']['name']}", body, PATCH)


def _claim(draw: random.Random, world: World, node: Plain) -> str:
    """Have a tenant's pod claim devices of a node, beside whatever runs there; it may find none free."""
    name, node_name = f"tenant-{world.name}-{len(world.tenants)}", node["metadata"]["name"]
    wanted = {"deviceClassName": draw.choice(("gpu.nvidia.com", "rdma.dra.net")), "count": 1}
    head = {"metadata": {"name": name, "namespace": "default"}}
    request = {"requests": [{"name": "gpu", "exactly": wanted}]}
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    cluster.apply({**template, **head, "spec": {"spec": {"devices": request}}})
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node_name},
        "containers": [{"name": "c", "image": "tenant:v1", "resources": {"claims": [{"name": "own"}]}}],
        "resourceClaims": [{"name": "own", "resourceClaimTemplateName": name}],
    }
    cluster.apply({"apiVersion": "v1", "kind": "Pod", **head, "spec": spec})
    world.tenants.append(name)

    def bound() -> bool:
        return bool(cluster.call("GET", f"{cluster.PATHS['Pod']}/{name}").get("spec", {}).get("nodeName"))

    if cluster.wait(bound, 8):
        return f"a tenant's claim of {wanted['deviceClassName']} on"
    # It would take the first device that comes free, before anybody has seen that.
    world.without_tenants()
    return "no device for a tenant on"


def observed(world: World) -> dict[str, Plain]:
    """Return what the handler publishes of each pool's nodes and devices."""
    pools = world.pools
    nodes = nodes_of(pools)
    classes = {
        class_requirement(name): (PlainDocument({"metadata": {"name": name}, "spec": {"devices": entries}}),)
        for name, (_, _, entries) in pools.items()
    }
    declared = [
        {"name": name, "className": name, "nodeCount": nodes} for name, (nodes, _, _) in pools.items()
    ]
    existing = {"secretRef": {"name": "byo", "key": "kubeconfig"}}
    composite = {
        "metadata": {"name": "lost"},
        "spec": {"cluster": {"source": "Existing", "existing": existing}, "nodePools": declared},
    }
    head: Plain = {"kind": "ObservedObjectCollection", "status": {"conditions": [SYNCED, READY]}}
    collections = (NODES, SLICES, CLAIMS)
    observed = {key: PlainDocument({**head, "metadata": {"name": key}}) for key in collections}
    claims = cluster.call("GET", cluster.PATHS["ResourceClaim"]).get("items", [])
    seen = {"nodes": nodes, "slices": slices_of(nodes), "claims": claims}
    required = {name: tuple(map(_object, objects)) for name, objects in seen.items()}
    required[REPLICAS] = tuple(PlainDocument(replica) for replica in world.replicas)
    request = Request(PlainDocument(composite), observed, {**classes, **required}, INPUT, frozenset(), {})
    published = handler.run(request).status.get("gpuPools", [])
    return {
        pool["name"]: {"usable": pool["usable"], "devices": pool["devices"]}
        for pool in published
        if "usable" in pool
    }


def _object(manifest: Plain) -> PlainDocument:
    return PlainDocument({"status": {"conditions": [SYNCED], "atProvider": {"manifest": manifest}}})
