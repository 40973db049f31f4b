"""Workloads: the Deployment of a Standalone, the LeaderWorkerSet of a Leader with its Workers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

from function.api.model import mapping
from function.api.workload import ClaimedRequest, WorkloadEngine, WorkloadMember
from function.fail_static import base_of, key_of, until_edited
from function.objects import AVAILABLE, KEEP_REMOTE, NOTE, ObservedObject, composed_object
from function.replica import names
from function.replica.pods import GANG_LABEL, WORKLOAD_LABEL, pod_template, running_template
from function.replica.snapshot import ReplicaSnapshot
from function.replica.state import Edit, digest_of, is_known, noted, template_of

# Claims: one ResourceClaimTemplate for each member that claims devices, and its generations.
#
# A template's spec is immutable. So a wanted spec that is observed already is used as it is, key and name
# included, and any other one becomes a new object under a new key and a new name. The old one stays until
# no pod refers to it (`succession`).

DIGEST = 8
"""Hex digits that tell the generations of a template apart."""


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """The template that a member's pods refer to."""

    key: str
    name: str
    resource: dict[str, Any]


def claim_templates(snapshot: ReplicaSnapshot) -> dict[tuple[str, str], ClaimTemplate]:
    """Return the template of every member that claims devices, by engine and role."""
    return {
        (engine.name, member.role): _template(snapshot, engine.name, member)
        for engine in snapshot.replica.engines
        for member in engine.members
        if member.claims
    }


def _template(snapshot: ReplicaSnapshot, engine: str, member: WorkloadMember) -> ClaimTemplate:
    spec = {"spec": {"devices": _devices(member)}}
    replica, role = snapshot.replica.name, member.role
    generations = dict(_generations(snapshot.observed, engine, role))
    key, name = names.claim_key(engine, role), names.claim_name(replica, engine, role)
    same = [
        generation
        for generation, observed in generations.items()
        if observed.manifest.get("spec") == spec
        # Pods refer to a template by its name, in their own namespace.
        and observed.identity.name
        and observed.identity.namespace == snapshot.remote_namespace
    ]
    if same:
        key = min(same, key=lambda candidate: (len(candidate), candidate))
        name = generations[key].identity.name
    elif generations:
        digest = sha256(json.dumps(spec, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:DIGEST]
        key, name = names.claim_key(engine, role, digest), names.claim_name(replica, engine, role, digest)
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": snapshot.remote_namespace},
        "spec": spec,
    }
    key = key_of(base_of(key), manifest, snapshot.observed)
    return ClaimTemplate(key, name, composed_object(manifest, snapshot.cluster.provider_config))


def _generations(
    observed: Mapping[str, ObservedObject], engine: str, role: str
) -> Iterator[tuple[str, ObservedObject]]:
    """Yield the observed templates of a member."""
    for key, observed_object in observed.items():
        read = names.read_key(base_of(key))
        if read == names.Key(names.CLAIM, engine, role.lower()):
            yield key, observed_object


def _devices(member: WorkloadMember) -> dict[str, Any]:
    devices: dict[str, Any] = {"requests": [claimed(request) for request in member.device_requests]}
    if member.device_constraints:
        devices["constraints"] = [
            {
                **({"requests": list(constraint.requests)} if constraint.requests else {}),
                "matchAttribute": constraint.match_attribute,
            }
            for constraint in member.device_constraints
        ]
    return devices


def claimed(request: ClaimedRequest) -> dict[str, Any]:
    """Return a request as the claim on the cluster has it."""
    exactly: dict[str, Any] = {"deviceClassName": request.device_class_name, "count": request.count}
    if request.selectors:
        exactly["selectors"] = [{"cel": {"expression": selector.cel}} for selector in request.selectors]
    if request.tolerations:
        exactly["tolerations"] = [toleration.stated() for toleration in request.tolerations]
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


@dataclass(frozen=True, slots=True)
class EngineWorkload:
    """The workload of an engine."""

    engine: WorkloadEngine
    key: str
    name: str
    manifest: dict[str, Any]
    resource: dict[str, Any]
    is_edited: bool
    """Whether its pods are to run another template than was last applied."""

    @property
    def pod_labels(self) -> dict[str, str]:
        """The labels that all of its pods have, and no others."""
        return {GANG_LABEL if self.engine.is_gang else WORKLOAD_LABEL: self.name}


def engine_workloads(
    snapshot: ReplicaSnapshot, claims: Mapping[tuple[str, str], ClaimTemplate]
) -> tuple[EngineWorkload, ...]:
    """Return the workload of every engine, in their order."""
    return tuple(_workload(snapshot, engine, claims) for engine in snapshot.replica.engines)


def _workload(
    snapshot: ReplicaSnapshot, engine: WorkloadEngine, claims: Mapping[tuple[str, str], ClaimTemplate]
) -> EngineWorkload:
    base = names.workload_key(engine.name)
    name = _name(snapshot, engine, base)
    head = _head(snapshot, engine, name)
    key = key_of(base, head, snapshot.observed)

    before = snapshot.observed.get(key)
    members = [member for member in (engine.serving, engine.follower) if member is not None]

    def template(member: WorkloadMember) -> dict[str, Any]:
        claim = claims.get((engine.name, member.role))
        named = "" if claim is None else claim.name
        return pod_template(snapshot, engine, member, workload=name, claim=named, before=before)

    running = [running_template(member, before) for member in members]
    templates = until_edited(
        [template(member.unreserved) for member in members], [template(member) for member in members], running
    )
    spec = _gang(engine, *templates) if engine.is_gang else _deployment(snapshot, engine, name, *templates)
    manifest = {**head, "spec": spec}
    resource = composed_object(
        manifest,
        snapshot.cluster.provider_config,
        readiness=_readiness(snapshot, engine),
        watch=snapshot.config.watch,
    )
    note = _note(snapshot, key, manifest)
    if note:
        resource["metadata"] = {"annotations": {NOTE: note}}
    return EngineWorkload(engine, key, name, manifest, resource, before is not None and running != templates)


def _note(snapshot: ReplicaSnapshot, key: str, manifest: Mapping[str, Any]) -> str:
    """Return what the Object of a gang says of the pods that it has when it is edited."""
    before = snapshot.observed.get(key)
    if before is None or before.identity.kind != "LeaderWorkerSet":
        return ""
    template, wanted = (template_of(one.get("spec")) for one in (before.manifest, manifest))
    changes = Edit.NOTHING if before.manifest == manifest else Edit.NO_TEMPLATE
    evident = before.is_applied(was_applied=snapshot.was_updated) and is_known(
        before, was_updated=snapshot.was_updated
    )
    edit = changes if template == wanted else Edit.TEMPLATE
    return noted(before, digest_of(template), edit, evident=evident)


def _name(snapshot: ReplicaSnapshot, engine: WorkloadEngine, base: str) -> str:
    """Return the workload's name: a gang that runs under a longer one keeps it."""
    replica = snapshot.replica.name
    if not engine.is_gang:
        return names.deployment_name(replica, engine.name)
    legacy = names.legacy_gang_name(replica, engine.name, engine.copies)
    running = snapshot.observed.get(base)
    if (
        legacy
        and running is not None
        and running.identity
        == (
            *("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
            *(snapshot.remote_namespace, legacy),
        )
    ):
        return legacy
    return names.gang_name(replica, engine.name)


def _head(snapshot: ReplicaSnapshot, engine: WorkloadEngine, name: str) -> dict[str, Any]:
    """Return what a workload is. The cluster's labels stand here too: queues admit workloads."""
    kind = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet") if engine.is_gang else ("apps/v1", "Deployment")
    metadata: dict[str, Any] = {"name": name, "namespace": snapshot.remote_namespace}
    if snapshot.cluster.scheduling.labels:
        metadata["labels"] = dict(snapshot.cluster.scheduling.labels)
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata}


def _deployment(
    snapshot: ReplicaSnapshot, engine: WorkloadEngine, name: str, template: dict[str, Any]
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "replicas": engine.copies,
        "selector": {"matchLabels": {WORKLOAD_LABEL: name}},
        "template": template,
        "progressDeadlineSeconds": snapshot.config.progress_deadline_seconds,
    }
    if engine.serving.claims:
        spec["strategy"] = _strategy(surges=snapshot.config.rollout == "Surge")
    return spec


def _strategy(*, surges: bool) -> dict[str, Any]:
    """A surge pod needs devices that nobody charged; on a full pool it would wait for them for ever."""
    budget = {"maxSurge": 1, "maxUnavailable": 0} if surges else {"maxSurge": 0, "maxUnavailable": 1}
    return {"type": "RollingUpdate", "rollingUpdate": budget}


def _gang(engine: WorkloadEngine, leader: dict[str, Any], worker: dict[str, Any]) -> dict[str, Any]:
    """Without a rollout strategy a LeaderWorkerSet updates group by group, none on top."""
    return {
        "replicas": engine.copies,
        "leaderWorkerTemplate": {
            "size": engine.pods,
            "leaderTemplate": leader,
            "workerTemplate": worker,
        },
    }


def _readiness(snapshot: ReplicaSnapshot, engine: WorkloadEngine) -> str:
    counts = snapshot.config.readiness == "AvailableCopies" and not engine.is_gang
    return AVAILABLE + ONE_COPY if counts else AVAILABLE


# Compose what a platform asks for on top: the namespace, disruption budgets, mirrored Secrets.

_MIRRORED = ("data", "type")
"""Fields of a Secret that its mirror takes over."""


def namespace(snapshot: ReplicaSnapshot) -> dict[str, Any]:
    """Return the Object of the remote namespace. It outlives the replica: others may be in it."""
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": snapshot.remote_namespace}}
    return composed_object(manifest, snapshot.cluster.provider_config, management=KEEP_REMOTE)


def budgets(
    snapshot: ReplicaSnapshot, workloads: Sequence[EnginePods]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a budget for every engine of several copies. One of a single copy would block drains for ever."""
    for workload in workloads:
        engine = workload.engine
        if engine.copies > 1:
            manifest = {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {
                    "name": names.budget_name(snapshot.replica.name, engine.name),
                    "namespace": snapshot.remote_namespace,
                },
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": workload.pod_labels}},
            }
            yield f"{names.BUDGET}-{engine.name}", manifest


def secrets(snapshot: ReplicaSnapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an Object for every Secret that pods refer to. The provider copies the data, unseen by us."""
    for name in sorted(_referenced(snapshot)):
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": names.secret_name(snapshot.replica.name, name),
                "namespace": snapshot.remote_namespace,
            },
        }
        source = {"apiVersion": "v1", "kind": "Secret", "namespace": snapshot.replica.namespace, "name": name}
        references = [
            {"patchesFrom": {**source, "fieldPath": path}, "toFieldPath": path} for path in _MIRRORED
        ]
        provider_config = snapshot.cluster.provider_config
        yield f"{names.SECRET}-{name}", composed_object(manifest, provider_config, references=references)


def _referenced(snapshot: ReplicaSnapshot) -> set[str]:
    """Return the names of the Secrets that pods refer to."""
    names = set()
    for engine in snapshot.replica.engines:
        for member in engine.members:
            names |= {secret.name for secret in member.template.spec.image_pull_secrets}
            for variable in member.template.container.env:
                name = mapping(mapping(variable.get("valueFrom")).get("secretKeyRef")).get("name")
                if isinstance(name, str) and name:
                    names.add(name)
    return names
