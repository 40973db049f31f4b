"""Short builders for the objects of the API: plain dicts, as `kubectl get -o json` would show them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Plain = dict[str, Any]

API = "modelplane.ai/v1alpha1"
NAMESPACE = "ml-team"
CREATED = "2026-03-01T08:00:00Z"
GPU = "gpu.nvidia.com"
HOPPER = f'device.attributes["{GPU}"].architecture == "Hopper"'
GPUS = f'device.driver == "{GPU}"'


def uid(*parts: object) -> str:
    """Return a uid made of `parts`, the same every time."""
    digest = hashlib.sha256("/".join(str(part) for part in parts).encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def composed_name(deployment: str, cluster: str, index: int) -> str:
    """Return the object name of a replica, for deployment names that need no mending."""
    digest = hashlib.sha256(f"{deployment}-{cluster}-{index}".encode()).hexdigest()
    return f"{deployment[:57].rstrip('-')}-{digest[:5]}"


def gpu(
    count: int = 8,
    *,
    name: str = "gpu",
    memory: str = "80Gi",
    architecture: str | None = "Hopper",
    claim: str | None = "DRA",
    device_class: str | None = GPU,
) -> Plain:
    """Return a device entry of a pool: `count` GPUs."""
    attributes = {} if architecture is None else {"architecture": {"string": architecture}}
    device: Plain = {
        "name": name,
        "driver": GPU,
        "count": count,
        "attributes": attributes,
        "capacity": {"memory": {"value": memory}},
    }
    if claim is not None:
        device["claim"] = claim
    if claim != "Synthetic" and device_class is not None:
        device["deviceClassName"] = device_class
    return device


def nic(count: int = 1, *, name: str = "nic", claim: str = "Synthetic", rdma: bool = True) -> Plain:
    """Return a device entry of a pool: network interfaces."""
    device: Plain = {
        "name": name,
        "driver": "dra.net",
        "claim": claim,
        "count": count,
        "attributes": {"rdma": {"bool": rdma}},
    }
    if claim == "DRA":
        device["deviceClassName"] = "rdma.dra.net"
    return device


def pool(name: str, nodes: int = 4, devices: Sequence[Plain] | None = None) -> Plain:
    """Return a node pool as it is published in a cluster's status."""
    return {"name": name, "nodes": nodes, "devices": [gpu()] if devices is None else list(devices)}


def taint(key: str, effect: str = "NoSchedule", value: str | None = None) -> Plain:
    """Return a taint of a cluster."""
    return {"key": key, "effect": effect} | ({} if value is None else {"value": value})


def condition(kind: str, *, status: bool | str, reason: str = "Tested") -> Plain:
    """Return a condition as a controller writes it."""
    said = status if isinstance(status, str) else str(status)
    return {"type": kind, "status": said, "reason": reason, "lastTransitionTime": CREATED}


def cluster(
    name: str,
    pools: Sequence[Plain] = (),
    *,
    ready: bool | None = True,
    gateway: str | None = "203.0.113.10",
    taints: Sequence[Plain] = (),
    labels: Mapping[str, str] | None = None,
    deleting: bool = False,
) -> Plain:
    """Return an InferenceCluster whose spec and status agree. `ready` None: it has no condition yet."""
    metadata: Plain = {"name": name, "labels": dict(labels or {}), "uid": uid(name), "resourceVersion": "1"}
    if deleting:
        metadata["deletionTimestamp"] = CREATED
    status: Plain = {"gpuPools": list(pools)}
    if ready is not None:
        status["conditions"] = [condition("Ready", status=ready)]
    if gateway is not None:
        status["gateway"] = {"address": gateway}
    spec: Plain = {
        "cluster": {"source": "Existing"},
        "nodePools": [
            {"name": entry["name"], "className": "any", "nodeCount": entry.get("nodes", 0)} for entry in pools
        ],
    }
    if taints:
        spec["taints"] = list(taints)
    head: Plain = {"apiVersion": API, "kind": "InferenceCluster", "metadata": metadata}
    return head | {"spec": spec, "status": status}


def request(name: str = "gpu", count: int | None = 1, *selectors: str) -> Plain:
    """Return a device request; without selectors, any GPU."""
    asked: Plain = {"name": name, "selectors": [{"cel": cel} for cel in selectors or (GPUS,)]}
    return asked if count is None else asked | {"count": count}


def template(image: str = "vllm/vllm-openai:v0.23.0") -> Plain:
    """Return the pod template of a member."""
    return {"spec": {"containers": [{"name": "engine", "image": image, "args": ["--model=small"]}]}}


def member(
    role: str | None = "Standalone",
    devices: Sequence[Plain] | None = None,
    *,
    nodes: int | None = None,
    image: str = "vllm/vllm-openai:v0.23.0",
) -> Plain:
    """Return a member of an engine; `devices` None leaves its nodeSelector out."""
    made: Plain = {"template": template(image)}
    if role is not None:
        made["role"] = role
    if devices is not None:
        made["nodeSelector"] = {"devices": list(devices)}
    if nodes is not None:
        made["worker"] = {"nodes": nodes}
    return made


def engine(
    name: str = "main",
    members: Sequence[Plain] | None = None,
    *,
    copies: int | None = None,
    phase: str | None = None,
) -> Plain:
    """Return an engine; without members, one Standalone that asks for a GPU."""
    made: Plain = {"name": name, "members": list(members or [member(devices=[request()])])}
    if copies is not None:
        made["copies"] = copies
    if phase is not None:
        made["phase"] = phase
    return made


def gang(name: str = "main", *, nodes: int = 1, gpus: int = 8, copies: int | None = None) -> Plain:
    """Return an engine of a leader and a worker of `nodes` nodes, all asking for `gpus` GPUs."""
    leader = member("Leader", [request("gpu", gpus)])
    worker = member("Worker", [request("gpu", gpus)], nodes=nodes)
    return engine(name, [leader, worker], copies=copies)


def deployment(
    name: str = "my-model",
    replicas: int = 1,
    engines: Sequence[Plain] | None = None,
    *,
    namespace: str = NAMESPACE,
    labels: Mapping[str, str] | None = None,
    match: Mapping[str, str] | None = None,
    cache: str | None = None,
    tolerations: Sequence[Plain] = (),
    conditions: Sequence[Plain] = (),
) -> Plain:
    """Return a ModelDeployment, as the composite of a request."""
    inner: Plain = {"engines": list(engines or [engine()])}
    if match is not None:
        inner["clusterSelector"] = {"matchLabels": dict(match)}
    if cache is not None:
        inner["modelCacheRef"] = {"name": cache}
    if tolerations:
        inner["tolerations"] = list(tolerations)
    outer: Plain = {"spec": inner}
    if labels is not None:
        outer["metadata"] = {"labels": dict(labels)}
    made = {
        "apiVersion": API,
        "kind": "ModelDeployment",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid(namespace, name),
            "creationTimestamp": CREATED,
            "resourceVersion": "1",
        },
        "spec": {"replicas": replicas, "template": outer},
    }
    return made | ({"status": {"conditions": list(conditions)}} if conditions else {})


def cache(
    name: str = "weights",
    match: Mapping[str, str] | None = None,
    *,
    namespace: str = NAMESPACE,
    phases: Mapping[str, str] | None = None,
) -> Plain:
    """Return a ModelCache; `phases`: its phase by cluster."""
    spec = {} if match is None else {"clusterSelector": {"matchLabels": dict(match)}}
    listed = [{"name": cluster, "phase": phase} for cluster, phase in (phases or {}).items()]
    status = {"status": {"clusters": listed}} if phases is not None else {}
    return status | {
        "apiVersion": API,
        "kind": "ModelCache",
        "metadata": {"name": name, "namespace": namespace, "uid": uid(namespace, name)},
        "spec": spec,
    }


def owner(parent: Plain) -> Plain:
    """Return the ownerReference of an object that `parent` composes."""
    metadata = parent["metadata"]
    return {
        "apiVersion": API,
        "kind": parent["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def replica(
    parent: Plain,
    on: str,
    index: int,
    engines: Sequence[Plain] | None = None,
    *,
    pools: str | Sequence[str] = "h100",
    name: str | None = None,
    ready: bool | str | None = None,
    terminating: bool = False,
    device_class: str = GPU,
) -> Plain:
    """Return a ModelReplica of deployment `parent` on cluster `on`.

    `engines` are those of the deployment it was stamped from (default: the present ones), `pools` one pool
    for all of them or one for each. Every device request is taken to have matched a DRA device.
    """
    inner = parent["spec"]["template"]["spec"]
    shape = list(engines if engines is not None else inner["engines"])
    pinned = [pools] * len(shape) if isinstance(pools, str) else list(pools)
    stamped = [stamp(item, where, device_class) for item, where in zip(shape, pinned, strict=True)]
    spec: Plain = {"clusterName": on, "engines": stamped}
    if "modelCacheRef" in inner:
        spec["modelCacheRef"] = {"name": inner["modelCacheRef"]["name"]}
    return replica_object(parent, on, index, spec, name=name, ready=ready, terminating=terminating)


def stamp(entry: Plain, pinned: str, device_class: str = GPU) -> Plain:
    """Return `each` engine of a deployment as it is stamped on a replica whose pool is `pinned`."""
    made: Plain = {
        "name": entry["name"],
        "copies": entry.get("copies", 1),
        "members": [stamp_member(one, pinned, device_class) for one in entry["members"]],
    }
    return made | ({"phase": entry["phase"]} if "phase" in entry else {})


def stamp_member(one: Plain, pinned: str, device_class: str = GPU) -> Plain:
    """Return `one` member as it is stamped on a replica."""
    made: Plain = {"role": one.get("role", "Standalone"), "nodePoolName": pinned, "template": one["template"]}
    claims = [
        {
            "name": asked["name"],
            "deviceClassName": device_class,
            "count": asked.get("count", 1),
            "selectors": asked["selectors"],
        }
        for asked in one.get("nodeSelector", {}).get("devices", [])
    ]
    if claims:
        made["deviceRequests"] = claims
    return made | ({"worker": one["worker"]} if "worker" in one else {})


def replica_object(
    parent: Plain,
    on: str,
    index: int,
    spec: Plain,
    *,
    name: str | None = None,
    ready: bool | str | None = None,
    terminating: bool = False,
) -> Plain:
    """Return the object around a replica's `spec`."""
    of = parent["metadata"]
    called = name or composed_name(of["name"], on, index)
    metadata: Plain = {
        "name": called,
        "namespace": of["namespace"],
        "uid": uid(of["namespace"], called, on),
        "resourceVersion": "7",
        "creationTimestamp": CREATED,
        "labels": identity_labels(parent, on, index),
        "ownerReferences": [owner(parent)],
    }
    if terminating:
        metadata |= {"deletionTimestamp": CREATED, "finalizers": ["foregroundDeletion"]}
    made: Plain = {"apiVersion": API, "kind": "ModelReplica", "metadata": metadata, "spec": spec}
    return made if ready is None else made | {"status": {"conditions": [condition("Ready", status=ready)]}}


def identity_labels(parent: Plain, on: str, index: int) -> dict[str, str]:
    """Return the labels of a replica and of its endpoint."""
    template_labels = parent["spec"]["template"].get("metadata", {}).get("labels", {})
    return dict(template_labels) | {
        "modelplane.ai/deployment": parent["metadata"]["name"],
        "modelplane.ai/cluster": on,
        "modelplane.ai/replica-index": str(index),
    }


def endpoint(of: Plain, address: str = "203.0.113.10", *, ready: bool | None = True) -> Plain:
    """Return the ModelEndpoint of replica `of`, as it is observed."""
    metadata = of["metadata"]
    path = f"/{metadata['namespace']}/{metadata['name']}"
    made: Plain = {
        "apiVersion": API,
        "kind": "ModelEndpoint",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": dict(metadata["labels"]),
            "ownerReferences": list(metadata["ownerReferences"]),
            "uid": uid("endpoint", metadata["name"]),
            "resourceVersion": "3",
        },
        "spec": {"url": f"http://{address}{path}/v1", "rewritePath": f"{path}/"},
    }
    return made if ready is None else made | {"status": {"conditions": [condition("Ready", status=ready)]}}


def key(kind: str, on: str, index: int) -> str:
    """Return the desired-map key of a replica or an endpoint (`kind`)."""
    return f"{kind}-{on}-{index}"


def observed(*replicas: Plain, endpoints: Iterable[Plain] = ()) -> dict[str, Plain]:
    """Return composed resources by the key their labels say."""
    return {
        key(kind, manifest["metadata"]["labels"]["modelplane.ai/cluster"], _index(manifest)): manifest
        for kind, group in (("replica", replicas), ("endpoint", endpoints))
        for manifest in group
    }


def _index(manifest: Plain) -> int:
    return int(manifest["metadata"]["labels"]["modelplane.ai/replica-index"])
