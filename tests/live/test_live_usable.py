"""The nodes that can be used, with provider-kubernetes itself: one dies, and the next placement knows.

The nodes and ResourceSlices are written as kubelets and drivers would, into the API server of the plane.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.live import fleet, workload
from tests.live.plane import ControlPlane, condition, is_true, name_of, until

if TYPE_CHECKING:
    from tests.live.day import Day

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("cluster_controllers")]

Plain = dict[str, Any]

NAMESPACE, CLUSTER, GROUP, COMPOSITION = "usable", "seen-1", "seen", "inferenceclusters-usable"
NODES = 3
PATIENCE = 240.0
"""Seconds: the provider looks each minute here, and a settled cluster is answered again each minute."""
MODEL = fleet.small_deployment("seen", GROUP, NODES, NAMESPACE)


def pool(plane: ControlPlane) -> Plain:
    cluster = plane.get("InferenceCluster", CLUSTER) or {}
    return dict(next(iter(cluster.get("status", {}).get("gpuPools", [])), {}))


def usable(plane: ControlPlane) -> Any:
    return pool(plane).get("usable", {}).get("nodes")


def said(plane: ControlPlane, kind: str) -> str:
    return str(condition(plane.get("InferenceCluster", CLUSTER), kind).get("message", ""))


def test_a_cluster_publishes_what_can_be_used(living: ControlPlane, day: Day) -> None:
    shipped = json.loads(
        living.kubectl("get", "composition", "inferenceclusters.modelplane.ai", "-o", "json")
    )
    spec = shipped["spec"]
    spec["pipeline"][0]["input"] |= {"capacity": "Usable", "accounting": "Node"}
    head = {"apiVersion": shipped["apiVersion"], "kind": "Composition", "metadata": {"name": COMPOSITION}}
    living.kubectl("apply", "-f", "-", stdin=yaml.safe_dump({**head, "spec": spec}))
    living.apply(fleet.applicable(workload.declared_class()))
    workload.add_nodes(living, 0, NODES)
    cluster = workload.declared_cluster(CLUSTER, GROUP, NODES)
    cluster["spec"]["crossplane"] = {"compositionRef": {"name": COMPOSITION}}
    with day.step(f"declare a cluster of {NODES} nodes, capacity: Usable", f"usable: {NODES}"):
        living.apply(cluster)
        until(lambda: usable(living) == NODES, "the nodes that can be used", PATIENCE)
    until(lambda: is_true(living.get("InferenceCluster", CLUSTER), "CapacityUsable"), "all read", PATIENCE)


def test_a_node_dies_and_the_next_placement_knows(living: ControlPlane, day: Day) -> None:
    with day.step("a node dies", f"usable: {NODES - 1}, CapacityUsable names it"):
        workload.turn(living, "seen-1", "Unknown")
        until(lambda: usable(living) == NODES - 1, "one less can be used", PATIENCE)
    # Up to 2.3 Crossplane writes fields and conditions of a status one after the other.
    until(lambda: "seen-1 is not Ready" in said(living, "CapacityUsable"), "it is named", PATIENCE)
    assert pool(living)["nodes"] == NODES, "what is declared"
    fleet.create_namespace(living, NAMESPACE)
    with day.step(f"create a deployment of {NODES} replicas there", f"{NODES - 1} placed, (1 unusable)"):
        living.apply(MODEL)
        fleet.until_placed(living, MODEL, NODES - 1)
        fleet.until_reason(living, MODEL, "PartiallyScheduled")
    short = f"needs 1, 0 free of {NODES} (1 unusable)"
    until(lambda: short in str(deployment(living)), "the deployment says which", PATIENCE)
    with day.step("the node is back", "the last replica has a place"):
        workload.turn(living, "seen-1", "True")
        until(lambda: len(fleet.replicas(living, MODEL)) == NODES, "the last replica", PATIENCE)
    with day.step("a node dies under a replica", "NodesUnusable names replicas, all stay"):
        workload.turn(living, "seen-0", "Unknown")
        until(lambda: "NodesUnusable" in str(deployment(living)), "the deployment says it", PATIENCE)
    assert len(fleet.replicas(living, MODEL)) == NODES


def deployment(plane: ControlPlane) -> Plain:
    return condition(plane.get("ModelDeployment", name_of(MODEL), NAMESPACE), "ReplicasScheduled")


def test_nothing_of_it_is_left(living: ControlPlane) -> None:
    """In the order of install.md: what still has pods on a cluster cannot take them away without it."""
    living.kubectl("delete", "modeldeployment", name_of(MODEL), "-n", NAMESPACE, "--wait=false")
    until(lambda: not workload.remains(living, NAMESPACE), "nothing remains", PATIENCE)
    fleet.leave(living, NAMESPACE)
    living.kubectl("delete", "inferencecluster", CLUSTER, "--wait=false")
    until(lambda: living.get("InferenceCluster", CLUSTER) is None, "the cluster gone", PATIENCE)
    until(lambda: not workload.members(living), "its observations gone", PATIENCE)
    until(lambda: not living.list("ClusterProviderConfig"), "its provider configuration gone", PATIENCE)
    nodes = living.kubectl("get", "nodes", "-l", "modelplane.ai/pool=l4", "-o", "name").split()
    slices = [f"{node.removeprefix('node/')}-gpu.nvidia.com" for node in nodes]
    living.kubectl("delete", "resourceslices", *slices)
    living.kubectl("delete", *nodes)
    living.kubectl("delete", "composition", COMPOSITION)
