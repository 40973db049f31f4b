"""Take nodes and devices of a world away, and say what the cluster handler makes of what is left.

Nodes and ResourceSlices are read from the API server and handed to the handler as provider-kubernetes does,
in Objects. The last node of a world stays: an emptied list is doubt, and the declared number counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.boundary import PlainDocument, Request
from function.cluster import handler
from function.cluster.names import NODES, SLICES
from function.cluster.snapshot import class_requirement
from tests.referee import cluster

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping

Plain = dict[str, Any]
INPUT: Plain = {"kind": "ClusterConfig", "publish": "Attributes", "capacity": "Usable"}
SYNCED: Plain = {"type": "Synced", "status": "True"}
READY: Plain = {"type": "Ready", "status": "True"}
PATCH = "application/merge-patch+json"


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


def lose(draw: random.Random, pools: Iterable[str]) -> str:
    """Do something to a node of some pools; return what was done."""
    nodes = nodes_of(pools)
    node = draw.choice(nodes)
    name, how = node["metadata"]["name"], draw.choice(("delete", "cordon", "taint", "fewer", "tainted"))
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
    elif how in ("fewer", "tainted") and any(one["spec"].get("devices") for one in slices_of([node])):
        one = draw.choice([one for one in slices_of([node]) if one["spec"].get("devices")])
        devices = one["spec"].get("devices", [])
        if how == "fewer":
            devices = devices[1:]
        else:
            devices[0]["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
        body = {"spec": {"devices": devices, "pool": one["spec"]["pool"] | {"generation": 2}}}
        cluster.call("PATCH", f"{cluster.PATHS['ResourceSlice']}/{one['metadata']['name']}", body, PATCH)
    else:
        how = "cordon"
        cluster.call("PATCH", where, {"spec": {"unschedulable": True}}, PATCH)
    return f"{how} {name}"


def usable(pools: Mapping[str, tuple[int, str, list[Plain]]]) -> dict[str, Plain]:
    """Return what the handler publishes of each pool's nodes."""
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
    observed = {key: PlainDocument({**head, "metadata": {"name": key}}) for key in (NODES, SLICES)}
    members = {"nodes": tuple(map(_object, nodes)), "slices": tuple(map(_object, slices_of(nodes)))}
    request = Request(PlainDocument(composite), observed, {**classes, **members}, INPUT, frozenset(), {})
    published = handler.run(request).status.get("gpuPools", [])
    return {pool["name"]: pool["usable"] for pool in published if "usable" in pool}


def _object(manifest: Plain) -> PlainDocument:
    return PlainDocument({"status": {"conditions": [SYNCED], "atProvider": {"manifest": manifest}}})
