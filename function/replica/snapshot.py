"""Read everything one request tells about a replica, and say what of it is in doubt.

In doubt (Law C) nothing is composed and everything observed stays as it is: a replica, an input or a cluster
that cannot be read, a cluster that is not delivered or has no ProviderConfig, an object of somebody else
under a key of ours, Objects that are on another cluster or another stack than the replica's, a spec that the
stack of its cluster cannot express, and objects that a namesake in another namespace would share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from function.api.declared_cluster import WorkloadCluster, read_workload_cluster
from function.api.expressible import obstacle, pods_of
from function.api.fault import Fault, Malformed
from function.api.inputs import WorkloadConfig, invalid_input
from function.api.model import KSERVE, STANDARD, condition_of, mapping
from function.api.names import API_VERSION
from function.api.text import one_line
from function.api.workload import Workload, read_workload
from function.boundary import Request, Requirement, Resolution, Reuse, Unreadable, text_at
from function.fail_static import Doubt, base_of
from function.objects import API_VERSION as OBJECT_API_VERSION
from function.objects import COLLECTION, KIND, MEMBERSHIP_LABEL, ObservedObject, read_briefly, read_object
from function.replica import names
from function.replica.names import (
    CLAIM,
    PICKER,
    PICKER_CONFIG,
    PICKER_SERVICE,
    PODS,
    ROUTING,
    SEEN,
    SERVICE,
    WORKLOAD,
    read_key,
)

# Declare what the handler needs of the control plane: the one table of requirement names.
#
# Always the InferenceCluster of the replica, by name. With `diagnose: Pods` also the members of every
# collection of pods that is observed: they are known by the name that Crossplane gave the collection. With
# `namesakes: Refuse` also the replicas of deployments of this name on its cluster, in all namespaces, and the
# ModelCaches whose volume may be that of its own.


CLUSTER = "cluster"


def diagnoses_pods(request: Request) -> bool:
    """Tell whether the input asks for the pods. Read by itself: the rest of the input may be invalid."""
    return (request.input or {}).get("diagnose") == "Pods"


def declared(request: Request) -> tuple[Requirement, ...]:
    """Return what this request needs, whatever was delivered; nothing for a replica that names no cluster."""
    cluster = text_at(request.composite, "spec", "clusterName")
    by_name = (Requirement(CLUSTER, API_VERSION, "InferenceCluster", match_name=cluster),) if cluster else ()
    return (*by_name, *names.required(request), *_pods(request))


def _pods(request: Request) -> tuple[Requirement, ...]:
    if not diagnoses_pods(request):
        return ()
    namespace = text_at(request.composite, "metadata", "namespace")
    collections = {
        key: text_at(request.observed[key], "metadata", "name")
        for key in sorted(request.observed)
        if (read := read_key(base_of(key))) is not None and read.what == PODS
        if text_at(request.observed[key], "kind") == COLLECTION
    }
    return tuple(
        Requirement(
            *(key, OBJECT_API_VERSION, KIND),
            namespace=namespace,
            match_labels=((MEMBERSHIP_LABEL, name),),
            watched=False,
        )
        for key, name in collections.items()
        if name
    )


REMOTE_NAMESPACE = "default"
_IN_FULL = frozenset({WORKLOAD, CLAIM, PICKER, PICKER_CONFIG, PICKER_SERVICE, SERVICE, SEEN})
"""What is compared with what is wanted; of the rest only the identity and the status count."""

WAITING_FOR_CLUSTER, MALFORMED, CLUSTER_CHANGED = "WaitingForCluster", "Malformed", "ClusterChanged"
STACK_CHANGED, STACK_CANNOT_EXPRESS = "StackChanged", "StackCannotExpress"
NAME_TAKEN = "NameTaken"
UPDATED = "ModelUpdated"

_OF_STACK = {STANDARD: frozenset({WORKLOAD, *ROUTING}), KSERVE: frozenset({SERVICE, SEEN})}
"""What is composed on one stack and on no other."""


@dataclass(frozen=True, slots=True)
class ReplicaSnapshot:
    """A replica that can be composed, and all that its objects are made of."""

    replica: Workload
    config: WorkloadConfig
    cluster: WorkloadCluster
    observed: Mapping[str, ObservedObject]
    """The observed composed resources that are ours, by key."""
    was_updated: bool
    """Whether ModelUpdated was True."""
    remote_namespace: str
    """Where its objects are on its cluster."""


def read_observed(request: Request, reuse: Reuse) -> dict[str, ObservedObject]:
    """Read the observed composed resources that are ours, not those that an earlier step desires."""
    return {
        key: reuse.parsed(request.observed[key], read_object if read.what in _IN_FULL else read_briefly)
        for key in sorted(request.observed)
        if key not in request.desired and (read := read_key(base_of(key))) is not None
    }


def was_updated(request: Request) -> bool:
    """Tell whether the condition ModelUpdated is True."""
    try:
        plain = request.composite.project({"status": {"conditions": {"type": None, "status": None}}})
    except Unreadable:
        return False
    return condition_of(mapping(plain.get("status")), UPDATED)[0] is True


def read_config(request: Request) -> WorkloadConfig:
    """Read the input of the step. Raises Malformed."""
    return WorkloadConfig.parse(request.input or {})


def read_snapshot(
    request: Request, observed: Mapping[str, ObservedObject], reuse: Reuse
) -> ReplicaSnapshot | Doubt:
    """Read what the replica is made of, or say what is in doubt: the first thing of the module's list."""
    try:
        replica = reuse.parsed(request.composite, read_workload)
    except ValueError as error:
        return _malformed(f"The ModelReplica cannot be read: {error}")
    try:
        config = read_config(request)
    except Malformed as error:
        return _malformed(invalid_input(request, error))
    cluster = _cluster(request, reuse)
    if isinstance(cluster, Doubt):
        return cluster
    foreign = [key for key in observed if not _is_ours(key, observed[key])]
    if foreign:
        fault = Fault(f"composed resource {foreign[0]}", "expected an Object of provider-kubernetes")
        return _malformed(f"Something else stands under a key of this replica: {fault}")
    moved = sorted(
        {observed_object.provider_config for observed_object in observed.values()} - {cluster.provider_config}
    )
    if moved:
        return _changed(cluster.provider_config, moved[0])
    return (
        _on_another_stack(cluster, observed)
        or _inexpressible(cluster, replica)
        or _name_taken(request, replica)
        or ReplicaSnapshot(
            *(replica, config, cluster, observed, was_updated(request)),
            remote_namespace=_remote_namespace(replica, config, observed),
        )
    )


def _remote_namespace(
    replica: Workload, config: WorkloadConfig, observed: Mapping[str, ObservedObject]
) -> str:
    """Return where the objects of a replica are: where it runs, else where the input wants new ones.

    Law C 6: a successor in another namespace would need the devices that the running workload holds, in all
    replicas at once. One that an earlier release began to move goes on.
    """
    wanted = replica.namespace if config.remote_namespace == "Same" else REMOTE_NAMESPACE
    running = {
        observed[key].identity.namespace
        for key in observed
        if (read := read_key(base_of(key))) is not None and read.what in (WORKLOAD, SERVICE)
    } - {""}
    return wanted if wanted in running else min(running, default=wanted)


def _on_another_stack(cluster: WorkloadCluster, observed: Mapping[str, ObservedObject]) -> Doubt | None:
    """Law C: pods of two stacks would need the devices twice, so what runs stays as it is."""
    kinds = {read.what for key in observed if (read := read_key(base_of(key))) is not None}
    other = next(
        (stack for stack, theirs in _OF_STACK.items() if stack != cluster.stack and theirs & kinds), None
    )
    if other is None:
        return None
    text = f"This replica runs on the stack {other}, its cluster now has {cluster.stack}"
    text += ": everything is kept as it is; delete the replica to have it placed anew"
    return Doubt(STACK_CHANGED, one_line(text))


def _inexpressible(cluster: WorkloadCluster, replica: Workload) -> Doubt | None:
    """An edit that the stack has no words for: what runs stays as it is."""
    text = obstacle(cluster.stack, pods_of(replica))
    return Doubt(STACK_CANNOT_EXPRESS, one_line(f"{text}; everything running is kept")) if text else None


def _name_taken(request: Request, replica: Workload) -> Doubt | None:
    """A namesake in another namespace has objects of the same names there, and came first."""
    cluster = replica.spec.cluster_name
    required = tuple(names.required(request))
    for requirement in required:
        if not requirement.delivered(request):
            return _waiting(f"Waiting for the {requirement.kind}s that may have its names on {cluster}")
    holder = names.earlier_namesake(request) if required else ""
    cache = names.earlier_cache(request) if required else ""
    if holder:
        text = (
            f"ModelReplica {holder}/{replica.name} came first on {cluster}, and in the namespace"
            f" {REMOTE_NAMESPACE} the pods of both would have the same names: delete this ModelReplica, and"
            " its deployment places one of another name"
        )
    elif cache:
        text = (
            f"ModelCache {cache} came first, and in the namespace {REMOTE_NAMESPACE} of {cluster} its volume"
            f" has the name that {replica.namespace}/{replica.cache} would get: give this one another name"
        )
    else:
        return None
    return Doubt(NAME_TAKEN, one_line(f"{text}; everything running is kept, nothing new is composed"))


def _is_ours(key: str, observed: ObservedObject) -> bool:
    read = read_key(base_of(key))
    return observed.kind == (COLLECTION if read is not None and read.what == PODS else KIND)


def _cluster(request: Request, reuse: Reuse) -> WorkloadCluster | Doubt:
    """Read the cluster. Law C: one that is not delivered, absent or incomplete is doubt."""
    name = text_at(request.composite, "spec", "clusterName")
    match request.resolution(CLUSTER):
        case Resolution.UNRESOLVED:
            return _waiting(f"Waiting for InferenceCluster {name}")
        case Resolution.ABSENT:
            return _waiting(f"InferenceCluster {name} does not exist")
        case Resolution.DELIVERED:
            pass
    document = request.required[CLUSTER][0]
    if text_at(document, "metadata", "name") != name:
        return _waiting(f"InferenceCluster {name} was not delivered")
    try:
        cluster = reuse.parsed(document, read_workload_cluster)
    except ValueError as error:
        return _waiting(f"InferenceCluster {name} cannot be read: {error}")
    if not cluster.provider_config:
        return _waiting(f"InferenceCluster {name} has no status.providerConfigRef yet")
    return cluster


def _waiting(text: str) -> Doubt:
    return Doubt(
        WAITING_FOR_CLUSTER, one_line(f"{text}; everything running is kept, nothing new is composed")
    )


def _malformed(fault: str) -> Doubt:
    return Doubt(MALFORMED, one_line(f"{fault}; everything running is kept"))


def _changed(now: str, before: str) -> Doubt:
    held = (
        f"Objects of this replica are on {before}" if before else "An Object of this replica names no cluster"
    )
    return Doubt(CLUSTER_CHANGED, one_line(f"{held}, its cluster is on {now}: everything is kept as it is"))
