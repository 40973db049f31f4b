"""Large fleets from a seed, stored as Crossplane stores them: with managedFields, so that sizes are real.

A fleet is plain objects. Pools are cut from a catalogue of devices; driver versions differ from cluster to
cluster, so that there are more distinct devices than entries in the catalogue and far fewer than devices.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench import stored
from bench.stored import API, Plain
from function.api import replica as replica_api
from function.boundary import PlainDocument
from function.cluster.publish import charge

if TYPE_CHECKING:
    from function.api import ModelReplica

NVIDIA, AMD = "gpu.nvidia.com", "gpu.amd.com"

CATALOGUE = (
    (NVIDIA, "NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", "81559Mi", 8),
    (NVIDIA, "NVIDIA H200", "Hopper", "9.0.0", "143771Mi", 8),
    (NVIDIA, "NVIDIA B200", "Blackwell", "10.0.0", "183359Mi", 8),
    (NVIDIA, "NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0", "40Gi", 8),
    (NVIDIA, "NVIDIA L4", "Ada Lovelace", "8.9.0", "23034Mi", 1),
    (NVIDIA, "NVIDIA L4", "Ada Lovelace", "8.9.0", "23034Mi", 4),
    (AMD, "AMD Instinct MI300X", "CDNA3", "9.4.2", "192Gi", 8),
)
VERSIONS = ("570.124.6", "570.133.20", "575.57.8", "580.65.6", "580.95.5")
REGIONS = ("us-east", "us-west", "eu-north", "eu-west", "ap-south")
MODELS = ("qwen", "llama", "kimi", "mixtral", "gemma", "glm", "phi", "nemotron")


@dataclass(frozen=True)
class Size:
    """How large a fleet is."""

    clusters: int
    pools: int
    replicas: int
    gangs: float = 0.25
    """Share of replicas that are gangs of several nodes."""

    def __str__(self) -> str:
        """Return the size as the tables of `docs/scale.md` write it."""
        return f"{self.clusters:,} x {self.pools}, {self.replicas:,}"


SIZES = (Size(10, 2, 50), Size(100, 4, 500), Size(1000, 4, 5000), Size(2000, 8, 20_000))


@dataclass(frozen=True)
class Fleet:
    """The objects of one request."""

    deployment: Plain
    clusters: list[Plain]
    replicas: list[Plain]
    observed: dict[str, Plain]
    input: Plain | None = None
    listed: str = "all-replicas"
    """The requirement that the replicas are delivered for."""


def fleet(size: Size, seed: int = 1) -> Fleet:
    """Return the fleet of a size and a seed."""
    draw = random.Random(seed)
    clusters = [cluster(draw, number, size.pools) for number in range(size.clusters)]
    deployment = under_test(wanted=8)
    observed = running_replicas(deployment, clusters, kept=6)
    replicas = [
        stranger(draw, number, draw.choice(clusters), size) for number in range(size.replicas - len(observed))
    ]
    return Fleet(deployment, clusters, [*replicas, *observed.values()], observed)


def misspelt(source: Fleet) -> Fleet:
    """Return the fleet with a mistake in the deployment: a selector reads what no device publishes."""
    written = json.dumps(source.deployment)
    return replace(source, deployment=json.loads(written.replace("].architecture ", "].architecure ")))


def by_charges(fleet: Fleet) -> Fleet:
    """Return the fleet as it is delivered with `capacity: Published`, its clusters with their charges."""
    held: dict[str, list[ModelReplica]] = defaultdict(list)
    for manifest in fleet.replicas:
        replica = replica_api.parse(PlainDocument(manifest))
        held[replica.cluster].append(replica)
    clusters = [_with_charges(manifest, held[manifest["metadata"]["name"]]) for manifest in fleet.clusters]
    own_replicas = list(fleet.observed.values())
    return replace(
        fleet,
        clusters=clusters,
        replicas=own_replicas,
        input={"capacity": "Published"},
        listed="own-replicas",
    )


def _with_charges(manifest: Plain, replicas: list[ModelReplica]) -> Plain:
    status = manifest["status"]
    pools = charge(manifest["metadata"]["name"], status["gpuPools"], replicas)
    charged = {**manifest, "metadata": dict(manifest["metadata"]), "status": {**status, "gpuPools": pools}}
    return stored.managed(charged, "spec", "status")


def churn(draw: random.Random, source: Fleet, objects: int) -> list[Plain]:
    """Change some objects as a control plane does, and return them: a new version, a new status."""
    everything = [*source.clusters, *source.replicas]
    changed = draw.sample(everything, min(objects, len(everything)))
    for document in changed:
        metadata = document["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        for condition in document["status"]["conditions"]:
            condition["lastTransitionTime"] = (
                f"2026-03-02T08:{draw.randrange(60):02}:{draw.randrange(60):02}Z"
            )
    return changed


def _device(draw: random.Random, version: str) -> Plain:
    driver, product, architecture, capability, memory, count = draw.choice(CATALOGUE)
    return {
        "name": "gpu",
        "claim": "DRA",
        "driver": driver,
        "deviceClassName": driver,
        "count": count,
        "attributes": {
            "type": {"string": "gpu"},
            "productName": {"string": product},
            "architecture": {"string": architecture},
            "cudaComputeCapability": {"version": capability},
            "driverVersion": {"version": version},
            "mig": {"bool": False},
        },
        "capacity": {"memory": {"value": memory}},
    }


def _network(rate: int) -> Plain:
    return {
        "name": "nic",
        "claim": "Synthetic",
        "driver": "dra.net",
        "count": 8,
        "attributes": {"rdma": {"bool": True}, "rate": {"int": rate}, "state": {"string": "up"}},
    }


def cluster(draw: random.Random, number: int, pools: int) -> Plain:
    """Return a cluster: now and then NotReady, tainted, or with an InfiniBand network."""
    region = draw.choice(REGIONS)
    name = f"{region}-{number:04}"
    version = draw.choice(VERSIONS)
    published = [
        {
            "name": f"pool-{place}",
            "nodes": draw.choice((2, 4, 8, 16, 32)),
            "devices": [_device(draw, version), *([_network(400)] if draw.random() < 0.2 else [])],
        }
        for place in range(pools)
    ]
    declared = [
        {
            "name": entry["name"],
            "className": f"class-{place}",
            "nodeCount": entry["nodes"],
            "zones": [f"{region}-a"],
        }
        for place, entry in enumerate(published)
    ]
    tier = draw.choice(("prod", "prod", "staging"))
    labels = {"crossplane.io/composite": name, "modelplane.ai/region": region, "tier": tier}
    spec: Plain = {
        "cluster": {"source": "Existing"},
        "crossplane": stored.machinery(name, 4),
        "nodePools": declared,
    }
    if draw.random() < 0.03:
        spec["taints"] = [{"key": "maintenance", "effect": "NoSchedule"}]
    ready = draw.random() > 0.03
    made = {
        "apiVersion": API,
        "kind": "InferenceCluster",
        "metadata": stored.metadata(name, 1000 + number, labels=labels),
        "spec": spec,
        "status": {
            "conditions": [
                stored.condition("Synced", "ReconcileSuccess"),
                stored.condition("Ready", "Available", status=ready),
            ],
            "gateway": {"address": f"10.{number // 250}.{number % 250}.7"},
            "providerConfigRef": {"name": f"{name}-cluster"},
            "gpuPools": published,
        },
    }
    return stored.managed(made, "spec", "status")


def _template(model: str) -> Plain:
    """Return a pod template with the arguments and environment of a real engine."""
    return {
        "metadata": {"labels": {"team": "ml", "model": model}},
        "spec": {
            "containers": [
                {
                    "name": "engine",
                    "image": "vllm/vllm-openai:v0.23.0",
                    "args": [
                        f"--model=/mnt/models/{model}",
                        f"--served-model-name={model}",
                        "--tensor-parallel-size=8",
                        "--max-model-len=32768",
                        "--enable-auto-tool-choice",
                        "--tool-call-parser=hermes",
                    ],
                    "env": [
                        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
                        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    ],
                }
            ]
        },
    }


GPU_SELECTORS = (
    f'device.attributes["{NVIDIA}"].architecture == "Hopper"',
    f'device.capacity["{NVIDIA}"].memory.compareTo(quantity("80000Mi")) >= 0',
    f'device.attributes["{NVIDIA}"].driverVersion.compareTo(semver("575.0.0")) >= 0',
)


def under_test(wanted: int) -> Plain:
    """Return the deployment that is node_selector about: a gang and a draft model beside it."""

    def node_selector(count: int, *selectors: str) -> Plain:
        guard = f'device.driver == "{NVIDIA}"'
        cel = [{"cel": f"{guard} && {selector}"} for selector in selectors]
        return {"devices": [{"name": "gpu", "count": count, "selectors": cel}]}

    engines = [
        {
            "name": "main",
            "members": [
                {
                    "role": "Leader",
                    "nodeSelector": node_selector(8, *GPU_SELECTORS),
                    "template": _template("kimi"),
                },
                {
                    "role": "Worker",
                    "worker": {"nodes": 1},
                    "nodeSelector": node_selector(8, *GPU_SELECTORS),
                    "template": _template("kimi"),
                },
            ],
        },
        {
            "name": "draft",
            "members": [
                {
                    "role": "Standalone",
                    "nodeSelector": node_selector(1, GPU_SELECTORS[1]),
                    "template": _template("phi"),
                }
            ],
        },
    ]
    inner = {"clusterSelector": {"matchLabels": {"tier": "prod"}}, "engines": engines}
    return {
        "apiVersion": API,
        "kind": "ModelDeployment",
        "metadata": stored.metadata("kimi-prod", 77, namespace="ml-team"),
        "spec": {"replicas": wanted, "template": {"spec": inner}},
    }


def running_replicas(parent: Plain, clusters: list[Plain], kept: int) -> dict[str, Plain]:
    """Return replicas of the deployment that run already, on clusters that suit it."""
    observed: dict[str, Plain] = {}
    for item in clusters:
        fitting = [pool["name"] for pool in item["status"]["gpuPools"] if _suits(pool)]
        if fitting and len(observed) < kept and "taints" not in item["spec"]:
            name = item["metadata"]["name"]
            engines = [
                _stamped(engine, fitting[0]) for engine in parent["spec"]["template"]["spec"]["engines"]
            ]
            observed[f"replica-{name}-0"] = _replica(parent, name, 0, engines, 5000 + len(observed))
    return observed


def _suits(pool: Plain) -> bool:
    device = pool["devices"][0]
    attributes = device["attributes"]
    new = tuple(map(int, attributes["driverVersion"]["version"].split("."))) >= (575, 0, 0)
    return attributes["architecture"]["string"] == "Hopper" and new and pool["nodes"] >= 8


def _stamped(engine: Plain, pool: str) -> Plain:
    members = [
        {
            "role": member["role"],
            "nodePoolName": pool,
            "deviceRequests": [
                device | {"deviceClassName": NVIDIA} for device in member["nodeSelector"]["devices"]
            ],
            "template": member["template"],
        }
        | ({"worker": member["worker"]} if "worker" in member else {})
        for member in engine["members"]
    ]
    return {"name": engine["name"], "copies": 1, "members": members}


def _replica(parent: Plain, on: str, index: int, engines: list[Plain], version: int) -> Plain:
    metadata = parent["metadata"]
    name = metadata["name"]
    called = f"{name}-{hashlib.sha256(f'{name}-{on}-{index}'.encode()).hexdigest()[:5]}"
    labels = {
        "crossplane.io/composite": name,
        "modelplane.ai/deployment": name,
        "modelplane.ai/cluster": on,
        "modelplane.ai/replica-index": str(index),
    }
    owner = {
        "apiVersion": API,
        "kind": "ModelDeployment",
        "name": name,
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    made = {
        "apiVersion": API,
        "kind": "ModelReplica",
        "metadata": stored.metadata(
            called, version, namespace=metadata["namespace"], labels=labels, ownerReferences=[owner]
        ),
        "spec": {"clusterName": on, "crossplane": stored.machinery(called, 3), "engines": engines},
        "status": {
            "conditions": [
                stored.condition("Synced", "ReconcileSuccess"),
                stored.condition("Ready", "Available"),
            ],
        },
    }
    return stored.managed(made, "metadata", "spec", "status")


def endpoints(observed: dict[str, Plain]) -> dict[str, Plain]:
    """Return the endpoint of each observed replica, by its key."""
    made = {}
    for key, replica in observed.items():
        metadata = replica["metadata"]
        where = f"{metadata['namespace']}/{metadata['name']}"
        endpoint = {
            "apiVersion": API,
            "kind": "ModelEndpoint",
            "metadata": {name: item for name, item in metadata.items() if name != "managedFields"},
            "spec": {"url": f"http://10.0.0.7/{where}/v1", "rewritePath": f"/{where}/"},
            "status": replica["status"],
        }
        made[key.replace("replica-", "endpoint-", 1)] = stored.managed(endpoint, "metadata", "spec", "status")
    return made


def stranger(draw: random.Random, number: int, on: Plain, size: Size) -> Plain:
    """Return a replica of another deployment."""
    model = draw.choice(MODELS)
    parent = {"metadata": stored.metadata(f"{model}-{number % 997}", 1, namespace=f"team-{number % 20}")}
    pool = draw.choice(on["status"]["gpuPools"])["name"]
    request = {
        "name": "gpu",
        "count": draw.choice((1, 4, 8)),
        "deviceClassName": NVIDIA,
        "selectors": [{"cel": draw.choice(GPU_SELECTORS)}],
    }
    member: Plain = {
        "role": "Standalone",
        "nodePoolName": pool,
        "deviceRequests": [request],
        "template": _template(model),
    }
    members = [member]
    if draw.random() < size.gangs:
        members = [member | {"role": "Leader"}, member | {"role": "Worker", "worker": {"nodes": 1}}]
    engines = [{"name": "main", "copies": 1, "members": members}]
    return _replica(parent, on["metadata"]["name"], number, engines, 10_000 + number)
