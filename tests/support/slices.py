"""Nodes and ResourceSlices, in the shape that the NVIDIA, AMD, TPU and network drivers publish."""

from __future__ import annotations

from typing import Any

Plain = dict[str, Any]

H200: Plain = {
    "attributes": {
        "type": {"string": "gpu"},
        "productName": {"string": "NVIDIA H200"},
        "architecture": {"string": "Hopper"},
        "cudaComputeCapability": {"version": "9.0.0"},
    },
    "capacity": {"memory": {"value": "143771Mi"}},
}
MIG: Plain = {
    "attributes": {
        "type": {"string": "mig"},
        "profile": {"string": "1g.18gb"},
        "productName": {"string": "NVIDIA H200"},
        "parentUUID": {"string": "GPU-0"},
    },
    "capacity": {"memory": {"value": "16384Mi"}, "multiprocessors": {"value": "16"}},
}
AMD: Plain = {"attributes": {"productName": {"string": "MI300X"}}, "capacity": {"memory": {"value": "192Gi"}}}
TPU: Plain = {"attributes": {"tpuGen": {"string": "v5e"}}}
NIC: Plain = {"attributes": {"rdma": {"bool": True}, "resource.kubernetes.io/pciBusID": {"string": "0000:1"}}}


def devices(kind: Plain, count: int, **more: Any) -> list[Plain]:
    return [
        {
            "name": f"device-{at}",
            **kind,
            "attributes": {**kind["attributes"], "uuid": {"string": f"u-{at}"}, "index": {"int": at}},
            **more,
        }
        for at in range(count)
    ]


def resource_slice(
    node: str, published: list[Plain], driver: str = "gpu.nvidia.com", generation: int = 1, of: int = 1
) -> Plain:
    pool = {"name": node, "generation": generation, "resourceSliceCount": of}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": published}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": spec}


def resource_claim(pod: str, pool: str, number: int = 1, **result: Any) -> Plain:
    """Return the ResourceClaim of a pod that holds so many devices of a node."""
    results = [
        {"request": "gpu", "driver": "gpu.nvidia.com", "pool": pool, "device": f"device-{at}", **result}
        for at in range(number)
    ]
    metadata = {"name": f"{pod}-devices", "ownerReferences": [{"kind": "Pod", "name": pod}]}
    return {"metadata": metadata, "status": {"allocation": {"devices": {"results": results}}}}


def node(name: str, pool: str | None = "h200") -> Plain:
    labels = {"modelplane.ai/pool": pool} if pool else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def slice_name(content: Plain) -> str:
    """Return a name for a ResourceSlice, as drivers make one of the node and of themselves."""
    return f"{content['spec']['nodeName']}-{content['spec']['driver']}"
