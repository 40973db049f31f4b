"""Compose what a platform asks for on top: the namespace, disruption budgets, mirrored Secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.lenient import mapping
from function.objects import KEEP_REMOTE, composed_object
from function.replica import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from function.replica.snapshot import ReplicaSnapshot
    from function.replica.workloads import EnginePods

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
