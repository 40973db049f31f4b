"""Workloads: the Deployment of a Standalone, the LeaderWorkerSet of a gang, and the claims of their devices.

    claim_template ▶ the devices of each member        engine_workloads ▶ what runs its pods
    pod_groups ▶ what binds a gang's pods together     budgets, secrets ▶ what a platform asks for besides

Two things of Kubernetes shape this file:

- The spec of a ResourceClaimTemplate is immutable. So a wanted spec that is observed already is used as it
  is, key and name included, and any other one becomes a new object under a new key and a new name, a
  *generation*. The old one stays until no pod can refer to it (`state.remaining`).
- A pod template that changes restarts pods, which load their weights for minutes. So a template is edited
  only where the spec says something else. What this release would write differently of the same spec waits
  for the replica's next edit (Law C 6, `fail_static.until_edited`).

Limits: how pods of one engine are spread and drained is the pods' own (`pods.py`). How many may be missing in
a rollout is decided here, since a surge pod needs devices that the scheduler charged nobody for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from function.api.model import KSERVE, mapping, number
from function.api.workload import ClaimedRequest, WorkloadEngine, WorkloadMember, digest_of
from function.boundary import frozen
from function.fail_static import base_of, key_of, until_edited
from function.objects import AVAILABLE, COPIES_WAIT, NOTE, ObservedObject, composed_object
from function.replica import names
from function.replica.pods import GANG_LABEL, WORKLOAD_LABEL, pod_template, running_template
from function.replica.snapshot import ReplicaSnapshot
from function.replica.state import (
    GROUP_FIELD,
    Edit,
    engine_state,
    is_grouped,
    is_known,
    noted,
    replicas_of,
    template_of,
)

DIGEST = 8
"""Hex digits that tell the generations of a template apart."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""The queue of Kueue that admits a workload."""


@frozen
class ClaimTemplate:
    """The template that a member's pods refer to."""

    key: str
    name: str
    resource: dict[str, Any]


def claim_template(snapshot: ReplicaSnapshot, engine: str, member: WorkloadMember) -> ClaimTemplate:
    """Return the claim template of one member: the devices that the scheduler resolved for it.

    A template never changes: other devices get another one, whose name has a digest of its spec.
    """
    devices: dict[str, Any] = {"requests": [claimed(request) for request in member.device_requests]}
    if member.device_constraints:
        devices["constraints"] = [
            {
                **({"requests": list(constraint.requests)} if constraint.requests else {}),
                "matchAttribute": constraint.match_attribute,
            }
            for constraint in member.device_constraints
        ]
    spec = {"spec": {"devices": devices}}
    replica, role = snapshot.replica.name, member.role
    ours = names.Key(names.CLAIM, engine, role.lower())
    generations = {key: claim for key, claim in snapshot.observed.items() if names.read_key(key) == ours}
    key, name = f"{names.CLAIM}-{engine}-{role.lower()}", names.claim_name(replica, engine, role)
    same = [
        generation
        for generation, observed in generations.items()
        if observed.manifest.get("spec") == spec
        # Pods refer to a template by its name, in their own namespace.
        and observed.identity.name
        and observed.identity.namespace == snapshot.remote_namespace
    ]
    if same:
        # An edit that is taken back finds the template of before, and restarts nothing.
        key = min(same)
        name = generations[key].identity.name
    elif generations:
        digest = digest_of(spec)[:DIGEST]
        key, name = f"{key}-{digest}", names.claim_name(replica, engine, role, digest)
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": snapshot.remote_namespace},
        "spec": spec,
    }
    key = key_of(base_of(key), manifest, snapshot.observed)
    return ClaimTemplate(key, name, composed_object(manifest, snapshot.cluster.provider_config))


def claimed(request: ClaimedRequest) -> dict[str, Any]:
    """Return a request as the claim on the cluster has it."""
    exactly: dict[str, Any] = {"deviceClassName": request.device_class_name, "count": request.count}
    if request.selectors:
        exactly["selectors"] = [{"cel": {"expression": selector.cel}} for selector in request.selectors]
    if request.tolerations:
        exactly["tolerations"] = [toleration.as_written() for toleration in request.tolerations]
    return {"name": request.name, "exactly": exactly}


ONE_COPY = " && has(object.status.availableReplicas) && object.status.availableReplicas > 0"
"""Without surge, one copy may be unavailable, and a Deployment of one is Available without a single pod."""


class EnginePods(Protocol):
    """The pods of an engine, whatever runs them."""

    @property
    def engine(self) -> WorkloadEngine:
        """The engine."""

    @property
    def pod_labels(self) -> dict[str, str]:
        """The labels that all of its pods have, and no others."""


@frozen
class EngineWorkload:
    """The workload of an engine."""

    engine: WorkloadEngine
    key: str
    pod_labels: dict[str, str]
    """The labels that all of its pods have, and no others."""
    manifest: dict[str, Any]
    resource: dict[str, Any]
    group: str
    """The digest in the name of the PodGroup that binds its pods together, "" where there is none."""
    is_edited: bool
    """Whether its pods are to run another template than was last applied."""
    shrinks: bool
    """Whether groups of it have, or may have, more pods than is wanted now."""


def engine_workloads(
    snapshot: ReplicaSnapshot, claims: Mapping[tuple[str, str], ClaimTemplate]
) -> list[EngineWorkload]:
    """Return the workloads of all engines. While one gives nodes back, none gets more copies.

    More copies need the nodes that groups with fewer pods give back. A LeaderWorkerSet counts new groups that
    wait for a node as its unavailable ones, and then replaces none of those that have the nodes: for ever.
    """
    engines = snapshot.replica.spec.engines
    workloads = [engine_workload(snapshot, engine, claims) for engine in engines]
    if any(workload.shrinks for workload in workloads):
        return [engine_workload(snapshot, engine, claims, grows=False) for engine in engines]
    return workloads


def engine_workload(
    snapshot: ReplicaSnapshot,
    engine: WorkloadEngine,
    claims: Mapping[tuple[str, str], ClaimTemplate],
    *,
    grows: bool = True,
) -> EngineWorkload:
    """Return the workload of an engine: its name and key, its pod templates, its Object.

    `grows`: whether it may get more copies now.
    """
    base = f"{names.WORKLOAD}-{engine.name}"
    replica, cluster, config = snapshot.replica.name, snapshot.cluster, snapshot.config
    api_version, kind = "apps/v1", "Deployment"
    if engine.is_gang:
        api_version, kind = "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"
        name = names.gang_name(replica, engine.name)
        # A gang that runs under the longer name that v0.3 gave it keeps that: another name restarts all pods.
        legacy = names.legacy_gang_name(replica, engine.name, engine.copies)
        running_gang = snapshot.observed.get(base)
        where = ("leaderworkerset.x-k8s.io", kind, snapshot.remote_namespace, legacy)
        if legacy and running_gang is not None and running_gang.identity == where:
            name = legacy
    else:
        name = names.deployment_name(replica, engine.name)
    metadata: dict[str, Any] = {"name": name, "namespace": snapshot.remote_namespace}
    if cluster.spec.scheduling.labels:
        # The cluster's labels stand on the workload too: queues such as Kueue's admit workloads, not pods.
        metadata["labels"] = dict(cluster.spec.scheduling.labels)
    head = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    key = key_of(base, head, snapshot.observed)
    before = snapshot.observed.get(key)
    running, templates = _templates(snapshot, engine, claims, name, before)
    is_edited, group = before is not None and running != templates, ""
    readiness, pod_labels, copies = AVAILABLE, {WORKLOAD_LABEL: name}, engine.copies
    if before is not None and not grows:
        copies = min(copies, number(mapping(before.manifest.get("spec")).get("replicas"), copies))
    spec: dict[str, Any]
    if engine.is_gang:
        if _names_group(snapshot, engine, before, is_edited=is_edited):
            # Another one after every edit that restarts pods: in the one of before those count that are on
            # their way out, so the first new pod would be bound alone. Taken back, an edit accepts just that.
            group = digest_of({"size": engine.pods, "templates": templates})[:DIGEST]
            named = {GROUP_FIELD: {"podGroupName": names.part_name(replica, engine.name, "gang", group)}}
            templates = [{**template, "spec": template["spec"] | named} for template in templates]
        leader, worker = templates
        pod_labels = {GANG_LABEL: name}
        # Without a rollout strategy a LeaderWorkerSet updates group by group, none on top.
        parts = {"size": engine.pods, "leaderTemplate": leader, "workerTemplate": worker}
        spec = {"replicas": copies, "leaderWorkerTemplate": parts}
    else:
        spec = {
            "replicas": copies,
            "selector": {"matchLabels": pod_labels},
            "template": templates[0],
            "progressDeadlineSeconds": config.progress_deadline_seconds,
        }
        if engine.serving.device_requests:
            # NoSurge of docs/compatibility.md: a surge pod needs devices that nobody charged, and on a full
            # pool it would wait for them for ever.
            surges = config.rollout == "Surge"
            budget = {"maxSurge": 1, "maxUnavailable": 0} if surges else {"maxSurge": 0, "maxUnavailable": 1}
            spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": budget}
        if config.readiness == "AvailableCopies":
            readiness += ONE_COPY
    manifest = {**head, "spec": spec}
    resource = composed_object(manifest, cluster.provider_config, readiness=readiness, watch=config.watch)
    shrinks = engine.is_gang and before is not None and _shrinks(snapshot, engine, key, manifest)
    note = _note(snapshot, key, manifest) + (COPIES_WAIT if shrinks else "")
    if note:
        resource["metadata"] = {"annotations": {NOTE: note}}
    return EngineWorkload(engine, key, pod_labels, manifest, resource, group, is_edited, shrinks)


def _names_group(
    snapshot: ReplicaSnapshot, engine: WorkloadEngine, before: ObservedObject | None, *, is_edited: bool
) -> bool:
    """Tell whether the pods of a gang name a PodGroup.

    They do as they did until an edit restarts them (Law C 6), unless no pod does because the LeaderWorkerSets
    of the cluster have no such field. Which of the two holds is known once the provider has acted. All copies
    share their templates, so one group would bind several copies together, or protect one of them only.
    """
    if before is not None and not is_edited:
        running = mapping(before.manifest, "spec", "leaderWorkerTemplate")
        if number(running.get("size"), engine.pods) == engine.pods:
            seen = None if before.pending else before.remote
            is_there = not before.refusal if seen is None else is_grouped(seen)
            if is_there or not is_grouped(before.manifest):
                return is_grouped(before.manifest)
    return snapshot.cluster.spec.scheduling.gangs is not None and engine.copies == 1


def _shrinks(
    snapshot: ReplicaSnapshot, engine: WorkloadEngine, key: str, manifest: Mapping[str, Any]
) -> bool:
    """Tell whether groups of an observed gang may have more pods than is wanted.

    They have from the edit on, which leaves a mark in the note, until all are known to have been replaced.
    """
    before = snapshot.observed[key]
    group = mapping(before.manifest, "spec", "leaderWorkerTemplate")
    if number(group.get("size"), engine.pods) > engine.pods:
        return True
    if not before.copies_wait:
        return False
    copies = replicas_of(before.manifest)
    same = {**manifest, "spec": manifest["spec"] | {"replicas": copies}}
    was_updated, observed = snapshot.was_updated, snapshot.observed
    return not engine_state(engine.name, copies, key, same, observed, was_updated=was_updated).rolled_out


def _templates(
    snapshot: ReplicaSnapshot,
    engine: WorkloadEngine,
    claims: Mapping[tuple[str, str], ClaimTemplate],
    workload: str,
    before: ObservedObject | None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the pod templates of an engine's members as they were last applied, and as they are wanted.

    `workload`: the name of what runs them; `before`: it as observed.
    """
    members = [member for member in (engine.serving, engine.follower) if member is not None]

    def template(member: WorkloadMember) -> dict[str, Any]:
        """Return the pods of one member, with the claim of its devices where it has one."""
        claim = claims.get((engine.name, member.role))
        named = "" if claim is None else claim.name
        return pod_template(snapshot, engine, member, workload=workload, claim=named, before=before)

    running = [_ungrouped(running_template(member, before)) for member in members]
    stamped = [template(member.unreserved) for member in members]
    wanted, reserved = stamped, [template(member) for member in members]
    if engine.is_gang and QUEUE_LABEL in snapshot.cluster.spec.scheduling.labels:
        wanted = [_unqueued(one) for one in stamped]
    # Law C 6: earlier releases passed reserved labels on, and the queue to the pods of gangs. Pods that have
    # them run until the next edit.
    return running, until_edited(until_edited(wanted, stamped, running), reserved, running)


def _ungrouped(template: dict[str, Any]) -> dict[str, Any]:
    """Return pods without the PodGroup that they name, whose name follows from the rest."""
    spec = mapping(template.get("spec"))
    if GROUP_FIELD not in spec:
        return template
    return {**template, "spec": {key: value for key, value in spec.items() if key != GROUP_FIELD}}


def _unqueued(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pods of a gang without the queue, which their LeaderWorkerSet names.

    Kueue makes one workload of each group, and joins only pods without a queue to it: any other pod waits at
    its gate for ever.
    """
    metadata = mapping(template.get("metadata"))
    labels = {key: value for key, value in mapping(metadata.get("labels")).items() if key != QUEUE_LABEL}
    stated = {key: value for key, value in {**metadata, "labels": labels}.items() if value}
    rest = {key: value for key, value in template.items() if key != "metadata"}
    return {"metadata": stated, **rest} if stated else rest


def _note(snapshot: ReplicaSnapshot, key: str, manifest: Mapping[str, Any]) -> str:
    """Return what the Object of a gang says of the pods that it has when it is edited (`state.noted`).

    Only of a gang: the controller of Deployments reports which generation its status is about.
    """
    before, was_updated = snapshot.observed.get(key), snapshot.was_updated
    if before is None or before.identity.kind != "LeaderWorkerSet":
        return ""
    template, wanted = (template_of(one.get("spec")) for one in (before.manifest, manifest))
    edit = Edit.NOTHING if before.manifest == manifest else Edit.NO_TEMPLATE
    if template != wanted:
        edit = Edit.TEMPLATE
    applied = before.is_applied(was_applied=was_updated)
    evident = applied and is_known(before, was_updated=was_updated)
    return noted(before, digest_of(template), edit, applied=applied, evident=evident)


# What a platform asks for on top, by the cluster or the input of the step: PodGroups, disruption budgets,
# mirrored Secrets.


def pod_groups(
    snapshot: ReplicaSnapshot, workloads: Sequence[EngineWorkload]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the PodGroup that the pods of a gang name: all of them are bound, or none."""
    for workload in workloads:
        engine = workload.engine
        if workload.group:
            leader = workload.manifest["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
            named = {key: leader[key] for key in ("priorityClassName",) if key in leader}
            name = names.part_name(snapshot.replica.name, engine.name, "gang", workload.group)
            manifest = {
                "apiVersion": "scheduling.k8s.io/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": name, "namespace": snapshot.remote_namespace},
                "spec": {"schedulingPolicy": {"gang": {"minCount": engine.pods}}, **named},
            }
            key = key_of(f"{names.GROUP}-{engine.name}-{workload.group}", manifest, snapshot.observed)
            yield key, composed_object(manifest, snapshot.cluster.provider_config)


def budgets(
    snapshot: ReplicaSnapshot, workloads: Sequence[EnginePods]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a budget for every engine of several copies. One of a single copy would block drains for ever."""
    for workload in workloads:
        engine = workload.engine
        if engine.copies > 1:
            name = names.part_name(snapshot.replica.name, engine.name, names.BUDGET)
            manifest = {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": snapshot.remote_namespace},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": workload.pod_labels}},
            }
            key = key_of(f"{names.BUDGET}-{engine.name}", manifest, snapshot.observed)
            yield key, composed_object(manifest, snapshot.cluster.provider_config)


def secrets(snapshot: ReplicaSnapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an Object for every Secret that pods refer to.

    The provider copies the data from the control plane, unseen by us: no value of a Secret is in any answer.
    """
    # On KServe the picker is its controller's.
    referenced = set() if snapshot.cluster.spec.stack == KSERVE else {*snapshot.config.images.pull_secrets}
    for engine in snapshot.replica.spec.engines:
        for member in engine.members:
            referenced |= {secret.name for secret in member.template.spec.image_pull_secrets}
            for variable in member.template.container.env:
                name = mapping(variable, "valueFrom", "secretKeyRef").get("name")
                if isinstance(name, str) and name:
                    referenced.add(name)
            for volume in member.template.spec.volumes:
                name = mapping(volume.get("secret")).get("secretName")
                if isinstance(name, str) and name:
                    referenced.add(name)
    for name in sorted(referenced):
        metadata = {
            "name": names.part_name(snapshot.replica.name, names.SECRET, name),
            "namespace": snapshot.remote_namespace,
        }
        manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        source = {"apiVersion": "v1", "kind": "Secret", "namespace": snapshot.replica.namespace, "name": name}
        references = [
            {"patchesFrom": {**source, "fieldPath": path}, "toFieldPath": path} for path in ("data", "type")
        ]
        provider_config = snapshot.cluster.provider_config
        key = key_of(f"{names.SECRET}-{name}", manifest, snapshot.observed)
        yield key, composed_object(manifest, provider_config, references=references)
