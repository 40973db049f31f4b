"""Requests about an InferenceCluster, built from parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function.boundary import PlainDocument, Request, Response
from function.cluster import handler
from function.cluster.snapshot import REPLICAS, class_requirement
from tests.support import build
from tests.support.any_request import AnyRequest

if TYPE_CHECKING:
    import random

Plain = dict[str, Any]
API_VERSION = "modelplane.ai/v1alpha1"


LEASE = {"namespace": "kube-system", "name": "kube-controller-manager"}
LOOKS: dict[str, Plain] = {
    "see-gateway": {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"namespace": "modelplane-system", "name": "inference-gateway"},
    },
    "see-lws": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "lws-system", "name": "lws-controller-manager"},
    },
    "see-heartbeat": {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": LEASE},
}
"""What is looked at unless the input names something else."""


def inference_class(name: str = "h200", **spec: Any) -> Plain:
    devices = [{"name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com", "count": 8}]
    metadata = {"name": name}
    return {
        "apiVersion": API_VERSION,
        "kind": "InferenceClass",
        "metadata": metadata,
        "spec": {"devices": devices, **spec},
    }


def cluster(*pools: Plain, source: str = "Existing", **existing: Any) -> Plain:
    how = {"existing": {"secretRef": {"name": "byo", "key": "kubeconfig"}, **existing}}
    return {
        "apiVersion": API_VERSION,
        "kind": "InferenceCluster",
        "metadata": {"name": "east", "uid": "u"},
        "spec": {
            "cluster": {"source": source, **(how if source == "Existing" else {})},
            "nodePools": list(pools or ({"name": "gpu", "className": "h200", "nodeCount": 2},)),
        },
    }


def replica(name: str = "chat-1", pool: str = "gpu", nodes: int = 1) -> Plain:
    deployment = build.deployment(name=name.rpartition("-")[0])
    return build.replica(deployment, "east", nodes, pools=pool)


def looked_at(key: str, *, synced: bool, message: str = "", remote: Plain | None = None) -> dict[str, Plain]:
    """Return an observed Object by its key: whether it was looked at, and what was found."""
    condition = {"type": "Synced", "status": str(synced), "message": message}
    status: Plain = {"conditions": [condition]}
    if remote is not None:
        status["atProvider"] = {"manifest": remote}
    spec = {
        "forProvider": {"manifest": LOOKS[key]},
        "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "p"},
    }
    return {
        key: {
            "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
            "kind": "Object",
            "metadata": {"name": key},
            "spec": spec,
            "status": status,
        }
    }


@dataclass
class Case:
    """One cluster and what surrounds it. None is not delivered, empty is absent."""

    cluster: Plain = field(default_factory=cluster)
    classes: dict[str, Plain | None] = field(default_factory=lambda: {"h200": inference_class()})
    undelivered: tuple[str, ...] = ()
    replicas: list[Plain] | None = field(default_factory=list)
    observed: dict[str, Plain] = field(default_factory=dict)
    input: Plain | None = None
    desired: frozenset[str] = frozenset()
    desired_status: Plain = field(default_factory=dict)

    @property
    def required(self) -> dict[str, list[Plain]]:
        """What was delivered, by requirement."""
        required = {
            class_requirement(name): [content] if content else []
            for name, content in self.classes.items()
            if name not in self.undelivered
        }
        return required | ({} if self.replicas is None else {REPLICAS: self.replicas})

    def request(self) -> Request:
        return Request(
            PlainDocument(self.cluster),
            {key: PlainDocument(content) for key, content in self.observed.items()},
            {name: tuple(map(PlainDocument, items)) for name, items in self.required.items()},
            self.input or {},
            self.desired,
            self.desired_status,
        )

    @property
    def asked(self) -> AnyRequest:
        """The same as a request of any kind."""
        return AnyRequest(self.cluster, self.observed, self.required, self.input)

    def answer(self) -> Response:
        return handler.run(self.request())

    def settled(self) -> Case:
        """Return the case after its answer was applied: objects observed, status written."""
        response = self.answer()
        observed = {key: dict(desired.resource) for key, desired in response.desired.items()}
        status = {**self.cluster.get("status", {}), **response.status}
        return Case(
            {**self.cluster, "status": status},
            self.classes,
            self.undelivered,
            self.replicas,
            observed,
            self.input or {},
            self.desired,
            self.desired_status,
        )


def reason(response: Response, kind: str) -> str:
    """Return the reason of a condition."""
    return next(condition.reason for condition in response.conditions if condition.type == kind)


def running(draw: random.Random) -> Case:
    """Return a random cluster that runs: everything desired is observed, everything published is there."""
    classes = {
        name: inference_class(name) for name in draw.sample(["h200", "l4", "b200"], draw.randint(1, 3))
    }
    for name, content in classes.items():
        content["spec"]["devices"][0]["deviceClassName"] = f"{name}.example.com"
    pools = [
        {"name": f"pool-{at}", "className": draw.choice(sorted(classes)), "nodeCount": draw.randint(0, 9)}
        for at in range(draw.randint(1, 4))
    ]
    named = {str(pool["className"]) for pool in pools}
    return Case(
        cluster(*pools, gateway={"address": "203.0.113.7"}),
        {name: classes[name] for name in sorted(named)},
        replicas=[replica(pool="pool-0") for _ in range(draw.randint(0, 2))],
        input={"stack": draw.choice(["Modelplane"]), "publish": "Attributes"}
        if draw.random() < 0.5
        else None,
    ).settled()
