"""Read the fleet for an Operation: clusters as placement reads them, replicas by cluster, and shortfalls.

An object that cannot be read counts as far as it can: asking a deployment once too often costs a call.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from function.api.model import condition_of, mapping, string
from function.api.names import RECONCILE_ANNOTATION
from function.api.replica import DEPLOYMENT_LABEL
from function.boundary import Unreadable, text_at
from function.deployment.snapshot.charges import read_cluster
from function.scheduler.scheduling_input import UnreadableCluster

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Document, Request, Reuse, Shape

WATCHED = "ops.crossplane.io/watched-resource"
"""The requirement under which Crossplane delivers the object that changed; empty when it was deleted."""
CLUSTERS, REPLICAS, DEPLOYMENTS = "clusters", "all-replicas", "all-deployments"
FLEET: Mapping[str, str] = {
    CLUSTERS: "InferenceCluster",
    REPLICAS: "ModelReplica",
    DEPLOYMENTS: "ModelDeployment",
}
"""What must be delivered besides: requirement name and kind."""

_DEPLOYMENT: Shape = {
    "metadata": {
        "namespace": None,
        "name": None,
        "uid": None,
        "resourceVersion": None,
        "deletionTimestamp": None,
        "annotations": {RECONCILE_ANNOTATION: None},
    },
    "spec": {"replicas": None},
    "status": {"replicas": {"total": None}, "conditions": {"type": None, "status": None}},
}
_REPLICA: Shape = {
    "metadata": {"namespace": None, "name": None, "uid": None, "labels": {DEPLOYMENT_LABEL: None}},
    "spec": {"clusterName": None},
}


@dataclass(frozen=True, slots=True)
class Deployment:
    """The facts that decide whether a deployment is concerned."""

    namespace: str
    name: str
    uid: str
    deleting: bool
    version: str
    """Its resource version."""
    requested: str
    """The token it was last asked with."""
    short: bool
    """Whether it wants something from the fleet: not everything is placed, or it has a problem."""
    clusters: frozenset[str] = frozenset()
    """Clusters its replicas are on."""


@dataclass(frozen=True, slots=True)
class OwnedReplica:
    """Whose a replica is, and where."""

    namespace: str
    name: str
    uid: str
    deployment: str
    cluster: str


@dataclass(frozen=True, slots=True)
class FleetState:
    """The fleet as one Operation sees it."""

    changed: str
    """The name of the cluster that changed, "" when it is gone."""
    clusters: Mapping[str, str]
    """What placements read of each cluster, as a text."""
    replicas: tuple[str, ...]
    """Every replica by namespace, name and uid, sorted."""
    deployments: tuple[Deployment, ...]
    """By namespace and name."""

    def concerned(self) -> tuple[Deployment, ...]:
        """Those with a replica on the changed cluster or on one that does not exist, and the short ones."""
        return tuple(
            deployment
            for deployment in self.deployments
            if not deployment.deleting
            and (
                deployment.short
                or self.changed in deployment.clusters
                or deployment.clusters - self.clusters.keys()
            )
        )


def read_state(request: Request, reuse: Reuse) -> FleetState:
    """Read what was delivered."""
    clusters = _clusters(request, reuse)
    replicas = [reuse.parsed(document, _replica) for document in request.required[REPLICAS]]
    on: dict[tuple[str, str], set[str]] = defaultdict(set)
    for replica in replicas:
        on[replica.namespace, replica.deployment].add(replica.cluster)
    parsed = (reuse.parsed(document, _deployment) for document in request.required[DEPLOYMENTS])
    deployments = [
        replace(deployment, clusters=frozenset(on[deployment.namespace, deployment.name]))
        for deployment in parsed
        if deployment.uid
    ]
    return FleetState(
        changed=next((text_at(watched, "metadata", "name") for watched in request.required[WATCHED]), ""),
        clusters=clusters,
        replicas=tuple(sorted(f"{replica.namespace}/{replica.name} {replica.uid}" for replica in replicas)),
        deployments=tuple(
            sorted(deployments, key=lambda deployment: (deployment.namespace, deployment.name))
        ),
    )


def _clusters(request: Request, reuse: Reuse) -> dict[str, str]:
    texts: dict[str, list[str]] = defaultdict(list)
    for document in request.required[CLUSTERS]:
        cluster = reuse.parsed(document, read_cluster)
        texts[cluster.name].append(
            cluster.fault if isinstance(cluster, UnreadableCluster) else cluster.canonical
        )
    return {name: "\n".join(sorted(texts[name])) for name in texts}


def _deployment(document: Document) -> Deployment:
    plain = _projected(document, _DEPLOYMENT)
    metadata, status = mapping(plain.get("metadata")), mapping(plain.get("status"))
    wanted, total = mapping(plain.get("spec")).get("replicas"), mapping(status.get("replicas")).get("total")
    scheduled, _ = condition_of(status, "ReplicasScheduled")
    return Deployment(
        namespace=string(metadata.get("namespace")),
        name=string(metadata.get("name")),
        uid=string(metadata.get("uid")),
        deleting=bool(metadata.get("deletionTimestamp")),
        version=string(metadata.get("resourceVersion")),
        requested=string(mapping(metadata.get("annotations")).get(RECONCILE_ANNOTATION)),
        short=not scheduled or wanted != total,
    )


def _replica(document: Document) -> OwnedReplica:
    plain = _projected(document, _REPLICA)
    metadata = mapping(plain.get("metadata"))
    return OwnedReplica(
        namespace=string(metadata.get("namespace")),
        name=string(metadata.get("name")),
        uid=string(metadata.get("uid")),
        deployment=string(mapping(metadata.get("labels")).get(DEPLOYMENT_LABEL)),
        cluster=string(mapping(plain.get("spec")).get("clusterName")),
    )


def _projected(document: Document, shape: Shape) -> dict[str, Any]:
    try:
        return document.project(shape)
    except Unreadable:
        return {}
