"""The platform's part, played: publish what clusters have, and say what became of replicas."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING

from example import caller
from tests.live import install
from tests.live.plane import Plain, condition, name_of, until

if TYPE_CHECKING:
    from tests.live.plane import ControlPlane

GROUP = "example.com/group"
SINCE = "2026-01-01T00:00:00Z"
GIVEN = ("uid", "creationTimestamp", "ownerReferences", "resourceVersion", "generation")
"""What the API server gives an object: in a file it would be wrong."""


def publish_example(plane: ControlPlane) -> None:
    """Publish the example fleet with the commands of docs/install.md, as far as this kubectl knows them."""
    plane.shell("\n".join(install.commands("install.md", "create namespace ml-search")))
    applied, published = install.commands("install.md", "-f example/fleet")
    plane.shell(applied)
    if "--subresource" in plane.kubectl("apply", "--help"):
        plane.shell(published)
        return
    for plain in caller.objects(caller.FLEET):
        if "status" in plain:
            plane.publish(plain)


def example_fleet() -> list[Plain]:
    """The classes and clusters of `example/fleet`, with the status that their platform publishes."""
    return [manifest for manifest in caller.objects(caller.FLEET) if manifest["kind"].startswith("Inference")]


def example_deployment(folder: str) -> Plain:
    """The ModelDeployment of an example."""
    return applicable(caller.objects(caller.HERE / folder / "xr.yaml")[0])


def small_cluster(name: str, group: str, nodes: int = 1) -> Plain:
    """A cluster of one pool of L4 nodes, for the deployments of a group only (`small_deployment`)."""
    plain = deepcopy(next(manifest for manifest in example_fleet() if name_of(manifest) == "eks-us-east-1"))
    plain["metadata"] = {"name": name, "labels": {GROUP: group}}
    for pools in (plain["spec"]["nodePools"], plain["status"]["gpuPools"]):
        pools[:] = [pool for pool in pools if pool["name"] == "l4"]
    plain["spec"]["taints"] = [{"key": GROUP, "effect": "NoSchedule"}]
    plain["spec"]["nodePools"][0] |= {"nodeCount": nodes, "minNodeCount": nodes, "maxNodeCount": nodes}
    plain["status"]["gpuPools"][0]["nodes"] = nodes
    return plain


def small_deployment(name: str, group: str, replicas: int = 1, namespace: str = "day") -> Plain:
    """The small example model under another name, on the clusters of a group; a replica takes a node."""
    plain = example_deployment("small-model")
    plain["metadata"] = {"name": name, "namespace": namespace}
    plain["spec"]["replicas"] = replicas
    plain["spec"]["template"]["spec"] |= {
        "clusterSelector": {"matchLabels": {GROUP: group}},
        "tolerations": [{"key": GROUP, "operator": "Exists"}],
    }
    return plain


def taint(plane: ControlPlane, name: str, *taints: Plain) -> None:
    """Set the taints of a cluster, as `kubectl edit` would."""
    patch = json.dumps({"spec": {"taints": list(taints)}})
    plane.kubectl("patch", "inferencecluster", name, "--type=merge", "-p", patch)


def applicable(plain: Plain) -> Plain:
    """An object as a user applies it: without what the API server gives and without status."""
    bare = deepcopy({key: value for key, value in plain.items() if key != "status"})
    bare["metadata"] = {key: value for key, value in bare["metadata"].items() if key not in GIVEN}
    return bare


def create_fleet(plane: ControlPlane, fleet: list[Plain]) -> None:
    """Apply classes and clusters, then publish each status through its subresource."""
    plane.apply(*map(applicable, fleet))
    for plain in fleet:
        if "status" in plain:
            plane.publish(plain)


def create_namespace(plane: ControlPlane, name: str) -> None:
    """Make a namespace."""
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def leave(plane: ControlPlane, namespace: str) -> None:
    """Delete a namespace; nobody waits for it, as each file has one of its own."""
    plane.kubectl("delete", "namespace", namespace, "--wait=false")


def replicas(plane: ControlPlane, deployment: Plain, *, leaving: bool = False) -> list[Plain]:
    """The replicas of a deployment; those being deleted only when asked for."""
    manifests = plane.list("ModelReplica", deployment["metadata"]["namespace"], labels_of(deployment))
    return [manifest for manifest in manifests if leaving or "deletionTimestamp" not in manifest["metadata"]]


def endpoints(plane: ControlPlane, deployment: Plain) -> list[Plain]:
    """The endpoints of a deployment."""
    return plane.list("ModelEndpoint", deployment["metadata"]["namespace"], labels_of(deployment))


def labels_of(deployment: Plain) -> str:
    """The label selector for what a deployment composes."""
    return f"modelplane.ai/deployment={name_of(deployment)}"


def clusters_of(manifests: list[Plain]) -> list[str]:
    """The cluster of each replica, sorted."""
    return sorted(manifest["spec"]["clusterName"] for manifest in manifests)


def make_ready(plane: ControlPlane, manifests: list[Plain], *, ready: bool = True) -> None:
    """Say that replicas or endpoints became Ready, or ceased to be."""
    for item in manifests:
        plane.publish({**item, "status": {"conditions": [ready_condition(ready=ready)]}})


def say_ready(plane: ControlPlane, replica: Plain, *, ready: bool = True) -> None:
    """Say as its controller would whether a replica is Ready, of the generation that it has now."""
    metadata = replica["metadata"]
    standing = plane.get("ModelReplica", metadata["name"], metadata["namespace"])
    assert standing is not None, f"ModelReplica {metadata['name']} is gone"
    row = ready_condition(ready=ready) | {"observedGeneration": standing["metadata"]["generation"]}
    plane.publish({**standing, "status": {"conditions": [row]}})


def image(replica: Plain) -> str:
    """The image of the first engine of a replica."""
    template = replica["spec"]["engines"][0]["members"][0]["template"]
    return str(template["spec"]["containers"][0]["image"])


def current(plane: ControlPlane, deployment: Plain) -> Plain:
    """The deployment as it stands. Fails when it is gone."""
    deployed = plane.get("ModelDeployment", name_of(deployment), deployment["metadata"]["namespace"])
    assert deployed is not None, f"ModelDeployment {name_of(deployment)} is gone"
    return deployed


def reason(plane: ControlPlane, deployment: Plain, kind: str = "ReplicasScheduled") -> str:
    """The reason of a condition of a deployment, "" when it has none."""
    return str(condition(current(plane, deployment), kind).get("reason", ""))


def until_reason(
    plane: ControlPlane, deployment: Plain, wanted: str, kind: str = "ReplicasScheduled", seconds: float = 60
) -> Plain:
    """Wait for the reason of a condition, and return the condition."""
    until(lambda: reason(plane, deployment, kind) == wanted, f"{kind} with reason {wanted}", seconds)
    return condition(current(plane, deployment), kind)


def until_placed(plane: ControlPlane, deployment: Plain, count: int, seconds: float = 240) -> list[Plain]:
    """Wait until a deployment has so many replicas, and return them."""
    return until(
        lambda: standing if len(standing := replicas(plane, deployment)) == count else [],
        f"{count} replicas of {name_of(deployment)}",
        seconds,
    )


def until_serving(plane: ControlPlane, deployment: Plain, seconds: float = 60) -> None:
    """Make every replica Ready, wait for its endpoint, make that Ready, and wait for ReplicasReady."""
    standing = replicas(plane, deployment)
    make_ready(plane, standing)
    names = {name_of(item) for item in standing}
    until(
        lambda: names == {name_of(endpoint) for endpoint in endpoints(plane, deployment)},
        f"an endpoint of each replica of {name_of(deployment)}",
        seconds,
    )
    make_ready(plane, endpoints(plane, deployment))
    until_reason(plane, deployment, "AllReplicasReady", "ReplicasReady", seconds)


def ready_condition(*, ready: bool) -> Plain:
    """Return the condition Ready as the platform writes it."""
    return {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "Available" if ready else "Unavailable",
        "lastTransitionTime": SINCE,
    }
