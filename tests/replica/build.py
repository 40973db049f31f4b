"""Short builders for replicas, their clusters, and a request about one."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tests.support.any_request import AnyRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crossplane.function.proto.v1 import run_function_pb2 as pb

    from tests.support import drive

Plain = dict[str, Any]

API = "modelplane.ai/v1alpha1"
NAMESPACE, REPLICA, CLUSTER = "ml-team", "my-model-5ab63", "cluster-a"
PROVIDER_CONFIG = "cluster-a-cluster-kubeconfig-0a1b2"
IMAGE = "registry.example.com/vllm/vllm-openai:v0.23.0"
MEMORY = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0'


def claim(name: str = "gpu", count: int = 8, *selectors: str) -> Plain:
    """Return a device request as the scheduler resolved it."""
    made: Plain = {"name": name, "deviceClassName": "gpu.nvidia.com", "count": count}
    return made | {"selectors": [{"cel": selector} for selector in selectors or (MEMORY,)]}


def member(
    role: str = "Standalone",
    claims: Sequence[Plain] | None = None,
    *,
    pool: str = "frontier",
    nodes: int | None = None,
    image: str = IMAGE,
    command: Sequence[str] = (),
    args: Sequence[str] = ("--model=small",),
    env: Sequence[Plain] = (),
    metadata: Plain | None = None,
    secrets: Sequence[str] = (),
) -> Plain:
    """Return a member; `claims` None means one GPU request, an empty list none."""
    container: Plain = {"name": "engine", "image": image}
    for key, value in (("command", command), ("args", args), ("env", env)):
        if value:
            container[key] = list(value)
    spec: Plain = {"containers": [container]}
    if secrets:
        spec["imagePullSecrets"] = [{"name": secret} for secret in secrets]
    made: Plain = {"role": role, "nodePoolName": pool, "template": {"spec": spec}}
    if metadata:
        made["template"]["metadata"] = metadata
    wanted = [claim()] if claims is None else list(claims)
    if wanted:
        made["deviceRequests"] = wanted
    if nodes is not None:
        made["worker"] = {"nodes": nodes}
    return made


def engine(name: str = "main", *members: Plain, copies: int = 1, phase: str | None = None) -> Plain:
    """Return an engine; without members, one Standalone."""
    made: Plain = {"name": name, "copies": copies, "members": list(members or (member(),))}
    return made if phase is None else made | {"phase": phase}


def gang(name: str = "main", *, nodes: int = 1, copies: int = 1, **options: Any) -> Plain:
    """Return an engine of a leader and `nodes` workers."""
    phase = options.pop("phase", None)
    members = member("Leader", **options), member("Worker", nodes=nodes, **options)
    return engine(name, *members, copies=copies, phase=phase)


def replica(
    *engines: Plain,
    name: str = REPLICA,
    namespace: str = NAMESPACE,
    mode: str | None = None,
    cache: str | None = None,
    conditions: Sequence[Plain] = (),
) -> Plain:
    """Return a ModelReplica."""
    spec: Plain = {"clusterName": CLUSTER, "engines": list(engines or (engine(),))}
    if mode:
        spec["serving"] = {"mode": mode}
    if cache:
        spec["modelCacheRef"] = {"name": cache}
    metadata: Plain = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"}
    made: Plain = {"apiVersion": API, "kind": "ModelReplica", "metadata": metadata, "spec": spec}
    return made | ({"status": {"conditions": list(conditions)}} if conditions else {})


def cluster(*pools: Plain, provider_config: str | None = PROVIDER_CONFIG, **spec: Any) -> Plain:
    """Return the InferenceCluster; without pools, one that is called frontier."""
    made: Plain = {
        "apiVersion": API,
        "kind": "InferenceCluster",
        "metadata": {"name": CLUSTER},
        "spec": {
            "cluster": {"source": "Existing"},
            "nodePools": list(pools or ({"name": "frontier", "className": "any", "nodeCount": 4},)),
            **spec,
        },
        "status": {"gateway": {"address": "203.0.113.10"}},
    }
    if provider_config is not None:
        made["status"]["providerConfigRef"] = {"name": provider_config}
    return made


@dataclass(frozen=True)
class Scene:
    """One request about a replica. `cluster` None: not delivered; `absent`: delivered, and there is none."""

    replica: Plain
    cluster: Plain | None = field(default_factory=cluster)
    observed: Mapping[str, Plain] = field(default_factory=dict)
    input: Plain | None = None
    absent: bool = False
    more: Mapping[str, Sequence[Plain]] = field(default_factory=dict)
    """Further required resources, by requirement name."""

    def but(self, **changes: Any) -> Scene:
        """Return this scene with `changes`."""
        return replace(self, **changes)

    def edited(self, **spec: Any) -> Scene:
        """Return this scene with fields of the replica's spec changed."""
        made = copy.deepcopy(self.replica)
        made["spec"].update(spec)
        return self.but(replica=made)

    @property
    def required(self) -> dict[str, list[Plain]]:
        """The required resources that were delivered."""
        if self.absent:
            return {"cluster": []} | {name: list(items) for name, items in self.more.items()}
        delivered = {} if self.cluster is None else {"cluster": [self.cluster]}
        return delivered | {name: list(items) for name, items in self.more.items()}

    @property
    def asked(self) -> AnyRequest:
        """The same as a request."""
        return AnyRequest(self.replica, self.observed, self.required, self.input)

    def message(self) -> pb.RunFunctionRequest:
        """Return the request as Crossplane sends it, in a later call of the reconcile."""
        return self.asked.message()


def config(**fields: Any) -> Plain:
    """Return the input of the step."""
    return {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "WorkloadConfig", **fields}


def run(scene: Scene, *, level: str = "plain") -> drive.Answer:
    """Ask the function: at the level of the core, or (`level="wire"`) with serialised protobuf."""
    return scene.asked.answer(level=level)


def run_bytes(scene: Scene) -> bytes:
    """Ask the function in the form it has on the wire."""
    return scene.asked.answer_bytes()


def manifests(answer: drive.Answer) -> dict[str, Plain]:
    """Return the manifests of an answer's Objects by key."""
    return {
        key: manifest["spec"]["forProvider"]["manifest"]
        for key, manifest in answer.desired.items()
        if manifest["kind"] == "Object"
    }
