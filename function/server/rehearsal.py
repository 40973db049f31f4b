"""Answer a made-up request, some times over, before the first real one arrives.

A process's first call builds what every later call uses: the parser of selectors, the validators of the API,
modules that are imported when they are needed. That takes a quarter of a second, which the first deployment
after a restart would wait for. The request below goes the common ways. It leaves nothing behind: it is
answered by a function without a memory, a recorder or metrics of its own, and nobody logs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.names import API_VERSION
from function.deployment.requirements import CLUSTERS, REPLICAS
from function.wire import messages, write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INPUT = {
    "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
    "kind": "SchedulerConfig",
    "explain": "Status",
}
SELECTORS = (
    'device.driver == "gpu.nvidia.com"',
    'device.attributes["gpu.nvidia.com"].architecture in ["Hopper", "Blackwell"]',
    'device.attributes["gpu.nvidia.com"].productName.lowerAscii().matches("^.*h[12]00.*$")',
    'device.attributes["gpu.nvidia.com"].cudaComputeCapability.compareTo(semver("9.0.0")) >= 0',
    'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0 && has(device.driver)',
)


TIMES = 10
"""How often: the interpreter specialises code that has run about so many times. Each takes 4 ms."""


class Silence:
    """A log that nobody reads."""

    def info(self, *_: Any, **__: Any) -> None:
        """Say nothing."""

    warning = error = info


def rehearse(answer: Callable[[bytes], bytes]) -> None:
    """Have the made-up request answered: three replicas wanted, one there; a full and a tainted cluster."""
    content = _request().SerializeToString()
    for _ in range(TIMES):
        answer(content)


def _request() -> Any:
    deployment = _deployment()
    clusters = [_cluster("first", 1), _cluster("second", 8), _cluster("third", 0, taints=[_TAINT])]
    request = messages.Request()
    request.observed.composite.resource = write.struct(deployment)
    request.observed.resources["replica-first-0"].resource = write.struct(_replica())
    request.input = write.struct(INPUT)
    for name, items in {CLUSTERS: clusters, REPLICAS: [_replica()]}.items():
        for item in items:
            request.required_resources[name].items.add(resource=write.struct(item))
    return request


_TAINT = {"key": "maintenance", "effect": "NoSchedule"}


def _deployment() -> dict[str, Any]:
    selectors = [{"cel": selector} for selector in SELECTORS]
    member = {
        "role": "Standalone",
        "nodeSelector": {"devices": [{"name": "gpu", "count": 8, "selectors": selectors}]},
        "template": {"spec": {"containers": [{"name": "engine", "image": "rehearsal"}]}},
    }
    template = {
        "clusterSelector": {"matchLabels": {"rehearsal": "true"}},
        "engines": [{"name": "main", "members": [member]}],
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "ModelDeployment",
        "metadata": {"name": "rehearsal", "namespace": "rehearsal", "uid": "rehearsal"},
        "spec": {"replicas": 3, "template": {"spec": template}},
    }


def _cluster(name: str, nodes: int, taints: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    gpu = {
        "name": "gpu",
        "driver": "gpu.nvidia.com",
        "deviceClassName": "gpu.nvidia.com",
        "count": 8,
        "attributes": {
            "architecture": {"string": "Hopper"},
            "productName": {"string": "NVIDIA H200"},
            "cudaComputeCapability": {"version": "9.0.0"},
        },
        "capacity": {"memory": {"value": "143771Mi"}},
    }
    pools = [{"name": "pool", "className": "rehearsal", "nodeCount": nodes}]
    return {
        "apiVersion": API_VERSION,
        "kind": "InferenceCluster",
        "metadata": {"name": name, "labels": {"rehearsal": "true"}},
        "spec": {"cluster": {"source": "Existing"}, "nodePools": pools, "taints": list(taints)},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "gateway": {"address": "192.0.2.1"},
            "gpuPools": [{"name": "pool", "nodes": nodes, "devices": [gpu]}],
        },
    }


def _replica() -> dict[str, Any]:
    request = {"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 8}
    member = {"role": "Standalone", "nodePoolName": "pool", "deviceRequests": [request]}
    labels = {
        "modelplane.ai/deployment": "rehearsal",
        "modelplane.ai/cluster": "first",
        "modelplane.ai/replica-index": "0",
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "ModelReplica",
        "metadata": {"name": "rehearsal-0", "namespace": "rehearsal", "labels": labels},
        "spec": {
            "clusterName": "first",
            "engines": [{"name": "main", "copies": 1, "members": [member]}],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
