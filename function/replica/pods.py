"""Pods: the template of a member, for a Deployment and for a LeaderWorkerSet.

A *serving* pod takes requests: a Standalone or a Leader. It alone has the port, the probe and the label that
the InferencePool selects. A *follower* is a Worker. With prefill and decode apart, both exchange KV blocks
over NIXL. Requests then reach a decode pod at its sidecar, which has prefill done elsewhere and passes on to
the engine beside it.

A pod is what a user writes, and around it what placement needs: the claim of its devices, the labels and
tolerations of the nodes of its pool, and how the cluster wants pods to be scheduled. Labels and annotations
stack in that order, ours on top, so that no user can put a pod behind another's selector (docs/threats.md).

Every change here restarts every pod of every replica at its next edit. Law C 6: `workloads.py` keeps what
runs until then, and `node_placement` and `spread` keep what a cluster no longer says of a pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from function.api.expressible import DECODE_PORT, PORT
from function.api.model import KSERVE, mapping
from function.api.names import POOL_LABEL, SERVING_LABEL
from function.api.taints import GPU_TOLERATION
from function.api.workload import (
    HUGGING_FACE,
    LEADER_ADDRESS,
    RANK,
    Container,
    Workload,
    WorkloadEngine,
    WorkloadMember,
)
from function.objects import ObservedObject
from function.replica import names
from function.replica.adapters import UPDATING, room_flags, with_room
from function.replica.snapshot import ReplicaSnapshot


def number(text: str, otherwise: int, highest: int) -> int:
    """Return a flag's value as a number from 1 to `highest`, `otherwise` for anything else."""
    value = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(highest)) else 0
    return value if 1 <= value <= highest else otherwise


def engine_port(replica: Workload, engine: WorkloadEngine) -> int:
    """Return the port that an engine listens on: behind a sidecar not the one that takes requests."""
    if not replica.is_disaggregated or engine.phase != "Decode":
        return PORT
    return number(engine.serving.template.container.flag("--port"), DECODE_PORT, 65_535)


def listening(port: int) -> dict[str, Any]:
    """Return the port of a container that takes requests, and the probe that says it does."""
    return {
        "ports": [{"containerPort": port}],
        "readinessProbe": {
            "httpGet": {"path": "/health", "port": port},
            "initialDelaySeconds": 30,
            "periodSeconds": 10,
            "timeoutSeconds": 5,
        },
    }


SIDECAR_IMAGE = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0"
"""Beside a decode engine: it takes the requests, and has a prefill engine compute the prompt first."""
_SIDE_CHANNEL: tuple[dict[str, Any], ...] = (
    {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    {"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": "5557"},
)


def with_side_channel(env: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return variables with those of the channel over which KV blocks are exchanged, unless they are set."""
    given = list(env)
    names = {variable["name"] for variable in given}
    return [*given, *(dict(variable) for variable in _SIDE_CHANNEL if variable["name"] not in names)]


WORKLOAD_LABEL = "modelplane.ai/workload"
"""The Deployment of a pod, which selects its pods by it."""
GANG_ROLE_LABEL = "modelplane.ai/lws-role"
"""`leader` on the pod of a gang that takes requests."""
GANG_LABEL = "leaderworkerset.sigs.k8s.io/name"
GROUP_LABEL = "leaderworkerset.sigs.k8s.io/group-key"
"""The LeaderWorkerSet of a pod, and its group there; its controller sets both."""
HOSTNAME = "kubernetes.io/hostname"

CLAIM = "devices"
"""The name that a pod has for its one claim."""
MODELS = "/mnt/models"
"""Where the weights of a ModelCache are mounted, on either stack."""
DRAIN_MARGIN = 30
"""Seconds a container may take to stop after it was drained."""

# What every pod of a gang is told: who leads it, and which of its pods it is.
_GANG_ENV = (
    {"name": LEADER_ADDRESS, "value": "$(LWS_LEADER_ADDRESS)"},
    {"name": RANK, "value": "$(LWS_WORKER_INDEX)"},
)


def pod_template(
    snapshot: ReplicaSnapshot,
    engine: WorkloadEngine,
    member: WorkloadMember,
    *,
    workload: str,
    claim: str,
    before: ObservedObject | None,
) -> dict[str, Any]:
    """Return the pod template of a member.

    `workload` is the name of what runs it, `claim` the name of its claim template ("" when it claims
    nothing), `before` the workload as observed.
    """
    replica, stamps = snapshot.replica, snapshot.cluster.spec.scheduling
    serves = member.role != "Worker"
    mounts: list[dict[str, Any]] = [{"name": "dshm", "mountPath": "/dev/shm"}]  # noqa: S108 - a mount, not our file
    volumes: list[dict[str, Any]] = [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]
    if replica.cache:
        mounts.append({"name": "model-cache", "mountPath": MODELS})
        cache = names.cache_claim_name(replica.namespace, replica.cache)
        volumes.append({"name": "model-cache", "persistentVolumeClaim": {"claimName": cache}})
    mounts += [mount.as_written() for mount in member.template.container.volume_mounts]
    volumes += volumes_of(snapshot, member)
    container = _engine_container(snapshot, engine, member, mounts)
    running = mapping(running_template(member, before).get("spec"))
    spec: dict[str, Any] = {"containers": [container], "volumes": volumes}
    if claim:
        spec["resourceClaims"] = [{"name": CLAIM, "resourceClaimTemplateName": claim}]
    ours = {} if member.role == "Worker" else {SERVING_LABEL: names.serving_label(replica.name)}
    if member.role == "Leader":
        ours[GANG_ROLE_LABEL] = "leader"
    if not engine.is_gang:
        ours[WORKLOAD_LABEL] = workload
    # The member's, then the cluster's stamps, then (winning) ours, by which pods are selected.
    labels = {**member.template.metadata.labels, **stamps.labels, **ours}
    annotations = {**member.template.metadata.annotations, **stamps.annotations}
    if serves and replica.is_disaggregated and engine.phase is not None:
        container["env"] = with_side_channel(container.get("env", ()))
        volumes.append({"name": "nixl-shm", "emptyDir": {"medium": "Memory"}})
        if engine.phase == "Decode":
            sidecar = {
                "name": "pd-sidecar",
                "image": snapshot.config.images.sidecar or SIDECAR_IMAGE,
                "args": [
                    "--secure-proxy=false",
                    "--kv-connector=nixlv2",
                    f"--vllm-port={engine_port(replica, engine)}",
                ],
                **listening(PORT),
            }
            spec["containers"].append(sidecar)
        labels |= {
            "app": labels[SERVING_LABEL],
            "llm-d.ai/inference-serving": "true",
            "llm-d.ai/role": engine.phase.lower(),
        }
    if serves and engine.adapters is not None:
        with_room(spec, replica, engine, snapshot.config.images.loader)
    label = GANG_LABEL if engine.is_gang else WORKLOAD_LABEL
    add_cluster_rules(spec, snapshot, engine, member, {label: workload}, running)
    metadata = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    return {"metadata": metadata, "spec": spec} if metadata else {"spec": spec}


def _engine_container(
    snapshot: ReplicaSnapshot, engine: WorkloadEngine, member: WorkloadMember, mounts: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the engine's container. A worker takes no requests, so it gets neither port nor probe."""
    source, serves = member.template.container, member.role != "Worker"
    container: dict[str, Any] = {"name": "engine", "image": source.image, "volumeMounts": mounts}
    args = arguments(snapshot, source, serves=serves)
    room = engine.adapters if serves else None
    if room is not None:
        args += room_flags(source, room)
    if args or not engine.is_gang:
        # Modelplane writes an empty list into a Deployment, and none into a gang: either stays as it was.
        container["args"] = args
    if source.command:
        container["command"] = list(source.command)
    env = environment(snapshot, source, is_gang=engine.is_gang)
    if room is not None and all(variable["name"] != UPDATING for variable in env):
        env.append({"name": UPDATING, "value": "True"})
    if env:
        container["env"] = env
    if serves:
        container |= listening(engine_port(snapshot.replica, engine))
    resources = resources_of(member)
    if resources:
        container["resources"] = resources
    return container


def resources_of(member: WorkloadMember) -> dict[str, Any]:
    """Return what a member's container asks for: its claim, and what the user says besides."""
    claims = {"claims": [{"name": CLAIM}]} if member.device_requests else {}
    return {**claims, **member.template.container.resources.stated}


def volumes_of(snapshot: ReplicaSnapshot, member: WorkloadMember) -> list[dict[str, Any]]:
    """Return the user's volumes: verbatim, but for the name under which a Secret is mirrored."""
    volumes = []
    for volume in member.template.spec.volumes:
        secret = volume.get("secret")
        if snapshot.config.secrets == "Mirror" and isinstance(secret, dict):
            mirrored = names.part_name(snapshot.replica.name, names.SECRET, str(secret.get("secretName", "")))
            volume = {**volume, "secret": {**secret, "secretName": mirrored}}  # noqa: PLW2901 - the same one
        volumes.append(volume)
    return volumes


def add_cluster_rules(
    spec: dict[str, Any],
    snapshot: ReplicaSnapshot,
    engine: WorkloadEngine,
    member: WorkloadMember,
    labels: Mapping[str, str],
    running: Mapping[str, Any],
) -> None:
    """Add to the spec of a member's pods what the cluster and the input say of them, whoever runs them.

    `labels` are those by which the engine's pods are selected, `running` is the spec as it was last applied.
    """
    spec |= _node_placement(snapshot, member, running)
    spec |= pull_secrets(snapshot, [secret.name for secret in member.template.spec.image_pull_secrets])
    spec |= pod_scheduling(snapshot)
    spec |= _spread(snapshot, engine, labels, running)
    seconds = snapshot.config.drain_seconds
    if seconds is not None:  # Every container sleeps before it is stopped, so that requests leave first.
        for container in spec["containers"]:
            container["lifecycle"] = {"preStop": {"sleep": {"seconds": seconds}}}
        spec["terminationGracePeriodSeconds"] = seconds + DRAIN_MARGIN


def pull_secrets(snapshot: ReplicaSnapshot, secrets: Sequence[str]) -> dict[str, Any]:
    """Return the Secrets that images of a pod are pulled with, by the names that they have there."""
    if snapshot.config.secrets == "Mirror":
        secrets = [names.part_name(snapshot.replica.name, names.SECRET, secret) for secret in secrets]
    return {"imagePullSecrets": [{"name": secret} for secret in secrets]} if secrets else {}


def arguments(snapshot: ReplicaSnapshot, source: Container, *, serves: bool) -> list[str]:
    """Return the arguments; a serving image that is started without a command is pointed to the model.

    To its mounted path where there is one, else to the name that an engine loads it by.
    """
    args, model = list(source.args), snapshot.replica.spec.serving.model
    if not serves or source.command or any(arg == "--model" or arg.startswith("--model=") for arg in args):
        return args
    if snapshot.replica.cache or snapshot.cluster.spec.stack == KSERVE:
        args.append(f"--model={MODELS}")
    elif model is not None and model.uri.startswith(HUGGING_FACE):
        name, _, revision = model.uri.removeprefix(HUGGING_FACE).partition(":")
        args.append(f"--model={name}")
        if revision:
            args.append(f"--revision={revision}")
    return args


def environment(snapshot: ReplicaSnapshot, source: Container, *, is_gang: bool) -> list[dict[str, Any]]:
    """Return the variables, after those of a gang.

    A name stands once, or a server-side apply is refused: one that the user sets too is the user's (OneName
    of docs/compatibility.md). A variable is verbatim, but for the name under which its Secret is mirrored.
    """
    given = {variable["name"] for variable in source.env}
    env: list[dict[str, Any]] = [
        dict(variable) for variable in _GANG_ENV if is_gang and variable["name"] not in given
    ]
    for variable in source.env:
        origin = mapping(variable.get("valueFrom"))
        reference = origin.get("secretKeyRef")
        if snapshot.config.secrets == "Mirror" and isinstance(reference, dict):
            mirrored = names.part_name(snapshot.replica.name, names.SECRET, str(reference.get("name", "")))
            secret = {**origin, "secretKeyRef": {**reference, "name": mirrored}}
            env.append({**variable, "valueFrom": secret})
        else:
            env.append(variable)
    return env


def _node_placement(
    snapshot: ReplicaSnapshot, member: WorkloadMember, running: Mapping[str, Any]
) -> dict[str, Any]:
    """Pin the pods to the nodes of their pool. `running`: their spec as it was last applied.

    Law C 2: what the cluster no longer says of the pool is taken from the pods that run, so that a pool that
    leaves the declaration does not restart them under a label that no node has.
    """
    pool = snapshot.cluster.pools.get(member.node_pool_name)
    if pool is None and isinstance(running.get("nodeSelector"), dict):
        return {key: running[key] for key in ("nodeSelector", "tolerations") if key in running}
    selector, tolerations = {POOL_LABEL: member.node_pool_name}, [dict(GPU_TOLERATION)]
    if pool is not None:
        selector = dict(pool.node_selector) or selector
        tolerations += [toleration for toleration in pool.tolerations if toleration != GPU_TOLERATION]
    return {"nodeSelector": selector, "tolerations": tolerations}


_STEPS = {
    "Standalone": ("template",),
    "Leader": ("leaderWorkerTemplate", "leaderTemplate"),
    "Worker": ("leaderWorkerTemplate", "workerTemplate"),
}
"""Where a workload's spec has the template of a member."""


def running_template(member: WorkloadMember, before: ObservedObject | None) -> dict[str, Any]:
    """Return the template of a member's pods as it was last applied."""
    template = mapping({} if before is None else before.manifest.get("spec"))
    for step in _STEPS[member.role]:
        template = mapping(template.get(step))
    return template


def pod_scheduling(snapshot: ReplicaSnapshot) -> dict[str, Any]:
    """Return the scheduler and the priority that the cluster asks for, where it does."""
    stamps = snapshot.cluster.spec.scheduling
    fields = (("schedulerName", stamps.scheduler_name), ("priorityClassName", stamps.priority_class_name))
    return {key: value for key, value in fields if value}


def _spread(
    snapshot: ReplicaSnapshot, engine: WorkloadEngine, labels: Mapping[str, str], running: Mapping[str, Any]
) -> dict[str, Any]:
    """Keep the pods with these labels, those of one engine, on different nodes.

    Of a gang `podsAcrossNodes` is about the pods of one group, `replicasAcrossNodes` about those of several,
    and `acrossNodes` of a pool about all of them. `running`: the spec of the pods as it was last applied,
    which holds where the cluster no longer has the pool (Law C 2).
    """
    config = snapshot.config
    pools = [snapshot.cluster.pools.get(member.node_pool_name) for member in engine.members]
    if None in pools and "affinity" in running:
        return {"affinity": running["affinity"]}
    wishes = (
        (config.pods_across_nodes, "matchLabelKeys"),
        (config.replicas_across_nodes, "mismatchLabelKeys"),
    )
    terms: dict[str, list[dict[str, Any]]] = {"Required": [], "Preferred": []}
    for wish, keys in wishes:
        term: dict[str, Any] = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": dict(labels)}}
        if engine.is_gang:
            term[keys] = [GROUP_LABEL]
        if wish is not None and term not in terms["Required"]:
            terms["Preferred"] = [other for other in terms["Preferred"] if other != term]
            terms[wish].append(term)
    if any(pool is not None and pool.across_nodes for pool in pools):
        whole = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": dict(labels)}}
        terms = {"Required": [whole], "Preferred": []}
    rules: dict[str, Any] = {}
    if terms["Required"]:
        rules["requiredDuringSchedulingIgnoredDuringExecution"] = terms["Required"]
    if terms["Preferred"]:
        weighted = [{"weight": 100, "podAffinityTerm": term} for term in terms["Preferred"]]
        rules["preferredDuringSchedulingIgnoredDuringExecution"] = weighted
    return {"affinity": {"podAntiAffinity": rules}} if rules else {}
