"""Read everything one request tells about a cluster, and say what of it is in doubt (Law C).

    declared ▶ what Crossplane fetches        read_snapshot ▶ the cluster, its classes, its replicas, what is
    seen

Everything that this handler reads of a request is read here, each part by itself: a class that is not
delivered is no doubt about the cluster, and a cluster that cannot be read still holds replicas that a guard
protects. The cluster is in doubt as a whole where it, or the input of the step, cannot be read, or where
somebody else's object stands under a key of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from function.api import ModelReplica, replica as replica_api
from function.api.declared_cluster import EXISTING, DeclaredCluster
from function.api.fault import Malformed
from function.api.inputs import ClusterConfig, invalid_input
from function.api.model import condition_of, mapping, mappings, plain_of
from function.api.names import API_VERSION
from function.api.replica import CLUSTER_LABEL, PREEMPTING_LABEL
from function.boundary import Plain, Request, Requirement, Resolution, Reuse, frozen, text_at
from function.cluster.classes import attributes_of, devices_of
from function.cluster.names import PROVIDER_CONFIG, STACK, kind_of, members, provider_config_name
from function.cluster.usable import ObservedPool, usable_nodes
from function.fail_static import Doubt, foreign
from function.objects import ObservedObject, read_object

REPLICAS, WITNESS, PREEMPTING = "model-replicas", "witness", "preempting"


def class_requirement(name: str) -> str:
    """Return the name of the requirement of a class."""
    return f"class-{name}"


def declared(request: Request) -> tuple[Requirement, ...]:
    """Declare what this request needs, whatever was delivered: the one table of requirement names.

    - Each class that a pool names, by name.
    - The replicas on the cluster, by label, in all namespaces. They are read and not watched: two hundred of
      them that start write some thousand times.
    - One of these by name, the witness, watched: as long as it is there, the guard against deletion is right,
      and the cluster learns of its end.
    - Those that preempt, watched, where the cluster arbitrates: few, and each waits for its word.
    - What was seen of the cluster's nodes, where somebody asks for it (`names.members`).

    All is read leniently: what is required must not depend on whether the rest of the cluster can be read.
    """
    requirements = [
        Requirement(class_requirement(name), API_VERSION, "InferenceClass", match_name=name)
        for name in class_names(request)
    ]
    cluster = text_at(request.composite, "metadata", "name")
    if cluster:
        labels = ((CLUSTER_LABEL, cluster),)
        requirements.append(
            Requirement(REPLICAS, API_VERSION, "ModelReplica", match_labels=labels, watched=False)
        )
        if request.asks("preemption", "Arbitrate"):
            waiting = tuple(sorted((*labels, (PREEMPTING_LABEL, "true"))))
            requirements.append(
                Requirement(PREEMPTING, API_VERSION, "ModelReplica", match_labels=waiting, served_by=REPLICAS)
            )
    standing = []
    for document in request.required.get(REPLICAS, ()):
        # One that is being deleted is the last choice, so that the next witness is there when it is gone.
        deleted = bool(text_at(document, "metadata", "deletionTimestamp"))
        standing.append(
            (deleted, text_at(document, "metadata", "namespace"), text_at(document, "metadata", "name"))
        )
    _, namespace, name = min(standing, default=(False, "", ""))
    if name:
        requirements.append(
            Requirement(
                *(f"{WITNESS}/{namespace}/{name}", API_VERSION, "ModelReplica"),
                match_name=name,
                namespace=namespace,
                served_by=REPLICAS,
            )
        )
    return (*requirements, *members(request))


def class_names(request: Request) -> list[str]:
    """Return the classes that the cluster's pools name, as far as they can be read."""
    plain = plain_of(request.composite, {"spec": {"nodePools": {"className": None}}})
    names = (pool.get("className") for pool in mappings(mapping(plain.get("spec")).get("nodePools")))
    return sorted({name for name in names if isinstance(name, str) and name})


DeviceEntries = tuple[dict[str, Any], ...]

SECRET_INVALID, MALFORMED = "SecretInvalid", "Malformed"


@frozen
class MissingClass:
    """A class whose devices are not known, and why: `ClassMissing` or `ClassUnreadable`."""

    reason: str
    why: str


@frozen
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
    """The usable nodes of each pool; None where the input does not ask, or the cluster is unreadable."""
    missing: Mapping[str, MissingClass]
    """The classes whose devices are not known."""
    stack: Mapping[str, Plain]
    """The observed ServingStack; empty where there is none or it cannot be read."""

    @property
    def stack_ready(self) -> tuple[bool, str]:
        """Tell whether the ServingStack is Ready, and what it says where it is not."""
        ready, message = condition_of(mapping(self.stack.get("status")), "Ready")
        return ready is True, message


def read_snapshot(request: Request, reuse: Reuse) -> ClusterSnapshot:
    """Read one request."""
    composite = plain_of(request.composite)
    before = mapping(composite.get("status"))
    cluster, config = _cluster(composite), ClusterConfig()
    try:
        config = ClusterConfig.parse(request.input)
    except Malformed as error:
        cluster = Doubt(MALFORMED, invalid_input(request, error))
    ours = {key: kind for key in sorted(request.observed) if (kind := kind_of(key)) is not None}
    fault = foreign(request, ours)
    if fault:
        cluster = Doubt(MALFORMED, fault)
    classes = {name: _class(request, name) for name in class_names(request)}
    replicas = _replicas(request, reuse)
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
        missing={name: devices for name, devices in classes.items() if isinstance(devices, MissingClass)},
        usable=usable_nodes(request, declared_pools, classes, replicas, reuse) if declared_pools else None,
        replicas=replicas,
        observed={
            key: reuse.parsed(request.observed[key], read_object)
            for key in ours
            if key not in request.desired
        },
        status={**before, **request.desired_status},
        before=before,
        provider_config=_provider_config(request, composite),
        stack=plain_of(request.observed[STACK]) if STACK in request.observed else {},
    )


def _cluster(composite: dict[str, Any]) -> DeclaredCluster | Doubt:
    """Read the cluster, or say in the words of its condition which part of it is wrong."""
    try:
        cluster = DeclaredCluster.parse(composite)
    except Malformed as error:
        # The reason names the part that is wrong, for the two parts that most often are.
        path = error.faults[0].path
        reason = "InvalidNodePool" if path.startswith("spec.nodePools") else MALFORMED
        reason = SECRET_INVALID if path.startswith("spec.cluster.existing.secretRef") else reason
        return Doubt(reason, f"The InferenceCluster cannot be read: {error}")
    if cluster.spec.cluster.source == EXISTING and cluster.existing is None:
        return Doubt(SECRET_INVALID, "spec.cluster.existing.secretRef is missing: it names the kubeconfig")
    return cluster


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
    """Read the replicas on the cluster. One that cannot be read is there all the same, and guards it."""
    if request.resolution(REPLICAS) is Resolution.UNRESOLVED:
        return None
    replicas = []
    for document in request.required[REPLICAS]:
        try:
            replicas.append(reuse.parsed(document, replica_api.parse))
        except ValueError:
            replicas.append(ModelReplica(name="", whole=False))
    return tuple(sorted(replicas, key=lambda replica: (replica.namespace, replica.name, replica.uid)))


def _provider_config(request: Request, composite: Mapping[str, Plain]) -> str:
    """Return the name of the ClusterProviderConfig: as observed, else as published, else as it will be.

    Law C 5: everything on the cluster was made under that name, so it stays.
    """
    observed = request.observed.get(PROVIDER_CONFIG)
    named = mapping(plain_of(observed).get("metadata")).get("name") if observed else None
    published = mapping(composite, "status", "providerConfigRef").get("name")
    cluster = str(mapping(composite.get("metadata")).get("name") or "")
    stated = (name for name in (named, published) if isinstance(name, str) and name)
    return next(stated, provider_config_name(cluster))
