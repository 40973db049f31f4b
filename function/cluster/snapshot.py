"""Read everything one request tells about a cluster, and say what of it is in doubt (Law C)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from function.api import ModelReplica
from function.api import replica as replica_api
from function.api.declared_cluster import DeclaredCluster
from function.api.fault import Malformed
from function.api.inputs import ClusterConfig, invalid_input
from function.api.model import condition_of, mapping, mappings, plain_of
from function.api.names import API_VERSION
from function.api.replica import CLUSTER_LABEL
from function.boundary import Document, Plain, Request, Requirement, Resolution, Reuse, Unreadable, text_at
from function.cluster.names import (
    PROVIDER_CONFIG,
    STACK,
    attributes_of,
    devices_of,
    kind_of,
    provider_config_name,
)
from function.cluster.usable import ObservedPool, usable_nodes
from function.cluster.verification import members
from function.fail_static import Doubt, foreign
from function.objects import ObservedObject, read_object

# Declare what the handler needs of the control plane: the one table of requirement names.
#
# Each class that a pool names, by name, sorted. The replicas on the cluster, by label, in all namespaces:
# they are read and not watched, because two hundred of them that start write some thousand times. One of
# them is watched by name, so that the cluster learns of its end. Read leniently: what is required must not
# depend on whether the rest of the cluster can be read.

REPLICAS = "model-replicas"
WITNESS = "witness"


def class_requirement(name: str) -> str:
    """Return the name of the requirement of a class."""
    return f"class-{name}"


def declared(request: Request) -> tuple[Requirement, ...]:
    """Return what this request needs, whatever was delivered."""
    name = text_at(request.composite, "metadata", "name")
    labels = ((CLUSTER_LABEL, name),)
    replicas = Requirement(REPLICAS, API_VERSION, "ModelReplica", match_labels=labels, watched=False)
    classes = tuple(
        Requirement(class_requirement(name), API_VERSION, "InferenceClass", match_name=name)
        for name in class_names(request)
    )
    return (*classes, *((replicas,) if name else ()), *_witness(request), *members(request))


def _witness(request: Request) -> Iterator[Requirement]:
    """Yield one replica on the cluster, once they are listed: as long as it is there, the guard is right.

    One that is being deleted is the last choice, so that the next witness is there when it is gone.
    """
    witness = min(map(_standing, request.required.get(REPLICAS, ())), default=None)
    if witness is not None and witness[2]:
        _, namespace, name = witness
        yield Requirement(
            *(f"{WITNESS}/{namespace}/{name}", API_VERSION, "ModelReplica"),
            match_name=name,
            namespace=namespace,
            served_by=REPLICAS,
        )


def _standing(replica: Document) -> tuple[bool, str, str]:
    namespace, name, deleted = (
        text_at(replica, "metadata", key) for key in ("namespace", "name", "deletionTimestamp")
    )
    return bool(deleted), namespace, name


def class_names(request: Request) -> list[str]:
    """Return the classes that the cluster's pools name, as far as they can be read."""
    try:
        plain = request.composite.project({"spec": {"nodePools": {"className": None}}})
    except Unreadable:
        return []
    names = (pool.get("className") for pool in mappings(mapping(plain.get("spec")).get("nodePools")))
    return sorted({name for name in names if isinstance(name, str) and name})


DeviceEntries = tuple[dict[str, Any], ...]

INVALID_POOL, SECRET_INVALID, MALFORMED = "InvalidNodePool", "SecretInvalid", "Malformed"


@dataclass(frozen=True, slots=True)
class MissingClass:
    """A class whose devices are not known, and why: `ClassMissing` or `ClassUnreadable`."""

    reason: str
    why: str


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """One cluster, and all that is known around it."""

    cluster: DeclaredCluster | Doubt
    config: ClusterConfig
    classes: Mapping[str, DeviceEntries | MissingClass]
    """Devices by class name, each as it is published."""
    class_attributes: Mapping[str, Mapping[str, Plain]]
    """Typed facts about the nodes of each class, as far as it can be read."""
    replicas: tuple[ModelReplica, ...] | None
    """The replicas on the cluster; None while they are not delivered."""
    observed: Mapping[str, ObservedObject]
    """Observed composed resources of ours, by key, as far as they are Objects."""
    status: Mapping[str, Plain]
    """The composite's status as an earlier step desires it, over the one it has."""
    before: Mapping[str, Plain]
    """The composite's status as it is."""
    provider_config: str
    """The name of the ClusterProviderConfig: as observed, else as published, else as it will be."""
    usable: tuple[ObservedPool, ...] | Doubt | None
    """What can be used of each pool; None where nobody asks, or the cluster cannot be read."""
    stack: Mapping[str, Plain]
    """The observed ServingStack; empty where there is none or it cannot be read."""

    @property
    def stack_status(self) -> Mapping[str, Plain]:
        """The status of the ServingStack."""
        return mapping(self.stack.get("status"))

    @property
    def stack_ready(self) -> tuple[bool, str]:
        """Tell whether the ServingStack is Ready, and what it says where it is not."""
        ready, message = condition_of(self.stack_status, "Ready")
        return ready is True, message

    @property
    def missing(self) -> dict[str, MissingClass]:
        """The classes whose devices are not known."""
        return {name: devices for name, devices in self.classes.items() if isinstance(devices, MissingClass)}


def read_snapshot(request: Request, reuse: Reuse) -> ClusterSnapshot:
    """Read one request."""
    composite = plain_of(request.composite)
    before = mapping(composite.get("status"))
    name = str(mapping(composite.get("metadata")).get("name") or "")
    cluster, config = _cluster(composite), ClusterConfig()
    try:
        config = ClusterConfig.parse(request.input or {})
    except Malformed as error:
        cluster = Doubt(MALFORMED, invalid_input(request, error))
    ours = {key: kind for key in sorted(request.observed) if (kind := kind_of(key)) is not None}
    fault = foreign(request, ours)
    if fault:
        cluster = Doubt(MALFORMED, fault)
    classes = {name: _class(request, name) for name in class_names(request)}
    declared_pools = cluster.spec.node_pools if isinstance(cluster, DeclaredCluster) else ()
    return ClusterSnapshot(
        cluster=cluster,
        config=config,
        classes=classes,
        class_attributes={
            name: attributes_of(request.required[class_requirement(name)][0].plain())
            for name, devices in classes.items()
            if not isinstance(devices, MissingClass)
        },
        usable=usable_nodes(request, declared_pools, classes, reuse) if declared_pools else None,
        replicas=_replicas(request, reuse),
        observed={
            key: reuse.parsed(request.observed[key], read_object)
            for key in ours
            if key not in request.desired
        },
        status={**before, **request.desired_status},
        before=before,
        provider_config=_provider_config(request, name, before),
        stack=plain_of(request.observed[STACK]) if STACK in request.observed else {},
    )


def _cluster(composite: dict[str, Any]) -> DeclaredCluster | Doubt:
    try:
        cluster = DeclaredCluster.parse(composite)
    except Malformed as error:
        return Doubt(_reason(error), f"The InferenceCluster cannot be read: {error}")
    if cluster.is_existing and cluster.existing is None:
        return Doubt(SECRET_INVALID, "spec.cluster.existing.secretRef is missing: it names the kubeconfig")
    return cluster


def _reason(error: Malformed) -> str:
    """Name the part of the cluster that is wrong."""
    path = error.faults[0].path
    if path.startswith("spec.nodePools"):
        return INVALID_POOL
    return SECRET_INVALID if path.startswith("spec.cluster.existing") else MALFORMED


def _class(request: Request, name: str) -> DeviceEntries | MissingClass:
    """Return the devices of a class as they are published: verbatim, with the defaults of the API."""
    required = class_requirement(name)
    match request.resolution(required):
        case Resolution.UNRESOLVED:
            return MissingClass("ClassMissing", f"InferenceClass {name} is not delivered yet")
        case Resolution.ABSENT:
            return MissingClass("ClassMissing", f"InferenceClass {name} does not exist")
        case Resolution.DELIVERED:
            pass
    document = request.required[required][0]
    if text_at(document, "metadata", "name") != name:
        return MissingClass("ClassMissing", f"InferenceClass {name} was not delivered")
    try:
        return devices_of(document.plain())
    except ValueError as error:
        return MissingClass("ClassUnreadable", f"InferenceClass {name} cannot be read: {error}")


def _replicas(request: Request, reuse: Reuse) -> tuple[ModelReplica, ...] | None:
    if request.resolution(REPLICAS) is Resolution.UNRESOLVED:
        return None
    replicas = (_replica(document, reuse) for document in request.required[REPLICAS])
    return tuple(sorted(replicas, key=lambda replica: (replica.namespace, replica.name, replica.uid)))


def _replica(document: Document, reuse: Reuse) -> ModelReplica:
    try:
        return reuse.parsed(document, replica_api.parse)
    except ValueError:
        return replica_api.ModelReplica(name="", whole=False)


def _provider_config(request: Request, cluster: str, before: Mapping[str, Plain]) -> str:
    """Law C 5: the name under which everything on the cluster was made stays."""
    observed = request.observed.get(PROVIDER_CONFIG)
    named = mapping(plain_of(observed).get("metadata")).get("name") if observed else None
    published = mapping(before.get("providerConfigRef")).get("name")
    return next(
        (name for name in (named, published) if isinstance(name, str) and name),
        provider_config_name(cluster),
    )
