"""Workloads: the Deployment of a Standalone, the LeaderWorkerSet of a Leader with its Workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from function.fail_static import key_of, until_edited
from function.objects import AVAILABLE, composed_object
from function.replica import names
from function.replica.pods import GANG_LABEL, WORKLOAD_LABEL, pod_template, running_template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.api.workload import WorkloadEngine, WorkloadMember
    from function.replica.claims import ClaimTemplate
    from function.replica.snapshot import ReplicaSnapshot

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
    """What runs an engine."""

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
    return EngineWorkload(engine, key, name, manifest, resource, before is not None and running != templates)


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
