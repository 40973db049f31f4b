"""Read everything one request tells about a replica, and say what of it is in doubt.

A replica's pods are the most expensive thing that this function composes: one that restarts loads its weights
for minutes, and one whose object moves leaves its devices taken on another cluster. So before anything is
composed, this file proves that all is known that the objects are made of:

    declared ▶ what Crossplane fetches        read_observed ▶ our composed resources, by key
    read_snapshot ▶ a ReplicaSnapshot that can be composed, or a Doubt

In doubt (Law C 2) nothing is composed and everything observed stays as it is. The doubts, in their order:

1. The replica or the input of the step cannot be read.
2. Its cluster is not delivered, does not exist, cannot be read or has no ProviderConfig yet.
3. An object of somebody else stands under a key of ours.
4. Objects are on another cluster than the replica's (Law C 5), or of another stack than its cluster has.
5. The stack of the cluster has no words for the spec.
6. A namesake in another namespace would share objects with it, and came first.
7. It has room for adapters, and those that are placed on it are not delivered.

A fault in a field that pods are not made of is no doubt: `api.workload` and `api.declared_cluster` read only
what this handler stands on. Other readers of the same objects have models of their own, for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from function import boundary, objects
from function.api.adapter import PLACEMENT_KIND, REPLICA_LABEL, AdapterPlacement, read_placements
from function.api.declared_cluster import WorkloadCluster, read_workload_cluster
from function.api.expressible import obstacle, pods_of
from function.api.fault import Fault, Malformed
from function.api.inputs import WorkloadConfig, invalid_input
from function.api.model import KSERVE, KSERVE_V1ALPHA2, STANDARD, condition_of, mapping, mappings, plain_of
from function.api.names import API_VERSION, BASE_LENGTH, DNS_LABEL, DNS_SUBDOMAIN, NamespacedName
from function.api.replica import CLUSTER_LABEL, DEPLOYMENT_LABEL, INDEX_LABEL
from function.api.text import one_line
from function.api.workload import Workload, read_workload
from function.boundary import Document, Request, Requirement, Resolution, Reuse, Shape, Unreadable, text_at
from function.fail_static import Doubt
from function.objects import ObservedObject
from function.replica import names

CLUSTER, NAMESAKES, CACHES, PLACEMENTS = "cluster", "namesakes", "caches", "adapters"
"""Names of requirements; those of ModelCaches that are fetched by name go on with a number."""
REMOTE_NAMESPACE = "default"
"""Where Modelplane has all pods of a cluster, whatever the namespace of their replica."""
UPDATED = "ModelUpdated"
WAITING, MALFORMED, NAME_TAKEN = "WaitingForCluster", "Malformed", "NameTaken"
KEPT_AS_IS = "everything running is kept, nothing new is composed"

_IN_FULL = frozenset(
    {
        *(names.WORKLOAD, names.CLAIM, names.SERVICE, names.SEEN),
        *(names.PICKER, names.PICKER_CONFIG, names.PICKER_SERVICE, names.PICKER_ROLE, names.ADAPTERS),
    }
)
"""Objects that are compared with the wanted ones; of the rest only the identity and the status count."""
_OF_STACK = {
    STANDARD: frozenset({names.WORKLOAD, names.ADAPTERS, *names.ROUTING}),
    KSERVE: frozenset({names.SERVICE, names.SEEN}),
}
"""Objects that are composed on one stack and on no other."""


def declared(request: Request) -> tuple[Requirement, ...]:
    """Declare what this request needs, whatever was delivered.

    - Always the InferenceCluster of the replica, by name; nothing for a replica that names none.
    - The adapters that are placed on it, where an engine has room for some.
    - With `namesakes: Refuse` the replicas and ModelCaches that may have its names (`required_namesakes`).
    - With `diagnose: Pods` the members of every collection of pods that is observed. They are known by the
      name that Crossplane gave the collection, and unwatched: pods change too often to wake anybody.
    """
    requirements = []
    cluster = text_at(request.composite, "spec", "clusterName")
    if cluster:
        requirements.append(Requirement(CLUSTER, API_VERSION, "InferenceCluster", match_name=cluster))
    name, namespace = (text_at(request.composite, "metadata", key) for key in ("name", "namespace"))
    if has_room(request):
        requirements.append(
            Requirement(
                *(PLACEMENTS, API_VERSION, PLACEMENT_KIND),
                namespace=namespace,
                match_labels=((REPLICA_LABEL, name),),
            )
        )
    requirements += required_namesakes(request)
    if request.asks("diagnose", "Pods"):
        for key in sorted(request.observed):
            document = request.observed[key]
            name = text_at(document, "metadata", "name")
            if names.what_of(key) == names.PODS and text_at(document, "kind") == objects.COLLECTION and name:
                labels = ((objects.MEMBERSHIP_LABEL, name),)
                requirements.append(
                    Requirement(
                        *(key, objects.API_VERSION, objects.KIND),
                        namespace=namespace,
                        match_labels=labels,
                        watched=False,
                    )
                )
    return tuple(requirements)


def has_room(request: Request) -> bool:
    """Tell whether an engine of the composite has room for adapters, whatever else of it can be read."""
    engines = mappings(mapping(plain_of(request.composite).get("spec")).get("engines"))
    return any(engine.get("adapters") for engine in engines)


@boundary.frozen
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
    placements: tuple[AdapterPlacement, ...] = ()
    """The adapters that are placed on it."""


def read_observed(request: Request, reuse: Reuse) -> dict[str, ObservedObject]:
    """Read the observed composed resources that are ours, not those that an earlier step desires."""
    return {
        key: reuse.parsed(
            request.observed[key], objects.read_object if what in _IN_FULL else objects.read_briefly
        )
        for key in sorted(request.observed)
        if key not in request.desired and (what := names.what_of(key))
    }


def was_updated(request: Request) -> bool:
    """Tell whether the condition ModelUpdated is True."""
    try:
        plain = request.composite.project({"status": {"conditions": {"type": None, "status": None}}})
    except Unreadable:
        return False
    return condition_of(mapping(plain.get("status")), UPDATED)[0] is True


def read_snapshot(
    request: Request, observed: Mapping[str, ObservedObject], reuse: Reuse
) -> ReplicaSnapshot | Doubt:
    """Read what the replica is made of, or return the first doubt of the module's list."""
    try:
        replica = reuse.parsed(request.composite, read_workload)
    except ValueError as error:
        return _doubt(MALFORMED, f"The ModelReplica cannot be read: {error}")
    try:
        config = WorkloadConfig.parse(request.input)
    except Malformed as error:
        return _doubt(MALFORMED, invalid_input(request, error))
    cluster = _cluster(request, reuse)
    if isinstance(cluster, Doubt):
        return cluster
    doubt = _unfit(cluster, replica, observed) or _name_taken(request, replica)
    if doubt is not None:
        return doubt
    if has_room(request) and request.resolution(PLACEMENTS) is Resolution.UNRESOLVED:
        text = "Waiting for the adapters that are placed here; everything running is kept"
        return Doubt("WaitingForAdapters", text)
    placements = read_placements(request.required[PLACEMENTS], reuse) if has_room(request) else ()
    # Law C 6: objects stay in the namespace where the replica runs, whatever the input now wants for new
    # ones. A successor in another namespace would need the devices that the running workload holds, in all
    # replicas at once. Only a move that an earlier release began goes on, to where the input wants it.
    wanted = replica.namespace if config.remote_namespace == "Same" else REMOTE_NAMESPACE
    running = {
        composed.identity.namespace for composed in names.among(observed, names.WORKLOAD, names.SERVICE)
    } - {""}
    remote_namespace = wanted if wanted in running else min(running, default=wanted)
    return ReplicaSnapshot(
        replica, config, cluster, observed, was_updated(request), remote_namespace, placements
    )


def _unfit(
    cluster: WorkloadCluster, replica: Workload, observed: Mapping[str, ObservedObject]
) -> Doubt | None:
    """Return the doubt where what is observed, or what is wanted, does not fit the cluster: 3, 4 and 5."""
    for key, composed in observed.items():
        if composed.kind != (objects.COLLECTION if names.what_of(key) == names.PODS else objects.KIND):
            fault = Fault(f"composed resource {key}", "expected an Object of provider-kubernetes")
            return _doubt(MALFORMED, f"Something else stands under a key of this replica: {fault}")
    moved = sorted({composed.provider_config for composed in observed.values()} - {cluster.provider_config})
    if moved:
        # Law C 5: applied to another cluster, every manifest would leave its object on the first one behind.
        held = f"Objects of this replica are on {moved[0]}"
        if not moved[0]:
            held = "An Object of this replica names no cluster"
        text = f"{held}, its cluster is on {cluster.provider_config}: everything is kept as it is"
        return Doubt("ClusterChanged", one_line(text))
    kinds = {names.what_of(key) for key in observed}
    for stack, composed_there in _OF_STACK.items():
        if stack != cluster.spec.stack and composed_there & kinds:
            # Law C 1: pods of two stacks at once would need the devices twice, so there is no succession.
            text = f"This replica runs on the stack {stack}, its cluster now has {cluster.spec.stack}"
            text += ": everything is kept as it is; delete the replica to have it placed anew"
            return Doubt("StackChanged", one_line(text))
    in_the_way = obstacle(cluster.spec.dialect, pods_of(replica)) or _relabelled(cluster, replica, observed)
    if in_the_way:
        return Doubt("StackCannotExpress", one_line(f"{in_the_way}; everything running is kept"))
    return None


def _relabelled(cluster: WorkloadCluster, replica: Workload, observed: Mapping[str, ObservedObject]) -> str:
    """Return which labels of running single pods an edit would change, where KServe selects pods by them.

    KServe 0.20 makes them part of the selector of a Deployment, which the API server lets nobody change.
    """
    running = [service.manifest for service in names.among(observed, names.SERVICE)]
    if cluster.spec.dialect != KSERVE_V1ALPHA2 or not running:
        return ""
    labels, spec = (mapping(running[0].get(part)) for part in ("metadata", "spec"))
    for engine in replica.spec.engines:
        section = mapping(spec.get("prefill")) if engine.phase == "Prefill" else spec
        held = {**mapping(labels.get("labels")), **mapping(section.get("labels"))}
        wanted = {**cluster.spec.scheduling.labels, **engine.serving.template.metadata.labels}
        changed = sorted(key for key in held.keys() | wanted.keys() if held.get(key) != wanted.get(key))
        if changed and not engine.is_gang:
            return f"{KSERVE}: engine {engine.name}: the label {changed[0]} of single pods is for life"
    return ""


def _cluster(request: Request, reuse: Reuse) -> WorkloadCluster | Doubt:
    """Read the cluster. Law C 2: one that is not delivered, absent or incomplete is doubt."""
    name = text_at(request.composite, "spec", "clusterName")
    match request.resolution(CLUSTER):
        case Resolution.UNRESOLVED:
            return _doubt(WAITING, f"Waiting for InferenceCluster {name}")
        case Resolution.ABSENT:
            return _doubt(WAITING, f"InferenceCluster {name} does not exist")
        case Resolution.DELIVERED:
            pass
    document = request.required[CLUSTER][0]
    if text_at(document, "metadata", "name") != name:
        # The replica's spec changed, and what was delivered is the cluster of before.
        return _doubt(WAITING, f"InferenceCluster {name} was not delivered")
    try:
        cluster = reuse.parsed(document, read_workload_cluster)
    except ValueError as error:
        return _doubt(WAITING, f"InferenceCluster {name} cannot be read: {error}")
    if not cluster.provider_config:
        return _doubt(WAITING, f"InferenceCluster {name} has no status.providerConfigRef yet")
    return cluster


def _doubt(reason: str, text: str) -> Doubt:
    """Return a doubt whose message ends with what Law C 2 keeps: a user sees that nothing is taken away."""
    kept = "everything running is kept" if reason == MALFORMED else KEPT_AS_IS
    return Doubt(reason, one_line(f"{text}; {kept}"))


# Objects of two namespaces that would be one object on their cluster: replicas of one name, and volumes.
#
# A replica's name is made of the deployment's name, the cluster and an index, not of the namespace, and
# without `remoteNamespace: Same` all pods are in one namespace of the cluster. The scheduler takes no index
# whose name another replica on the cluster has; but deployments of one name in two namespaces that are
# created at once do not see each other's replicas yet, and a hand may make one of any name. Workloads,
# claims and routes of both would have one name, and each would replace the other's.
#
# The volume of a ModelCache is named after namespace and cache, joined by a dash: team-a/weights and
# team/a-weights have one, and pods of both would write to it. Its name stays what it was, so the other
# spellings are looked up by name; a name that is too long to be whole is compared with those of all caches.
#
# With `namesakes: Refuse` whoever came first has the name, and nothing is composed for the other.

_NOT_YET = "9999"
"""When an object was created that a file has before any API server: it comes after all others."""
_LABELS = (CLUSTER_LABEL, DEPLOYMENT_LABEL)
_SHAPE: Shape = {
    "metadata": {
        "name": None,
        "namespace": None,
        "creationTimestamp": None,
        "labels": dict.fromkeys((*_LABELS, INDEX_LABEL)),
    },
    "spec": {"clusterName": None, "engines": {"name": None}},
}


@boundary.frozen
class NameTaken(Doubt):
    """The objects on the cluster are another replica's: its pods are not ours, and what is ours lets go."""

    engines: frozenset[str] = frozenset()
    """Engines of those replicas: only their workloads can be theirs."""


class _Namesake(NamedTuple):
    """A ModelReplica or ModelCache, as far as it decides whose a name is."""

    place: tuple[object, object]
    """Name and cluster: they decide what the objects on the cluster are called."""
    standing: tuple[str, str]
    """When it was created, as the API server writes it so that texts sort, and its namespace."""
    labels: dict[str, Any]
    engines: frozenset[str] = frozenset()


def _namesake(document: Document) -> _Namesake:
    """Read what decides whose a name is. An object that cannot be decoded has no name, so it takes none."""
    plain = plain_of(document, _SHAPE)
    metadata = mapping(plain.get("metadata"))
    return _Namesake(
        place=(metadata.get("name"), mapping(plain.get("spec")).get("clusterName")),
        standing=(
            str(metadata.get("creationTimestamp") or _NOT_YET),
            str(metadata.get("namespace") or ""),
        ),
        labels=mapping(metadata.get("labels")),
        engines=frozenset(
            str(engine.get("name")) for engine in mappings(mapping(plain.get("spec")).get("engines"))
        ),
    )


def required_namesakes(request: Request) -> list[Requirement]:
    """Return what namesakes are found by; nothing where the input does not refuse them.

    The input is read by itself, because the rest of it may be invalid.
    """
    config = request.input
    if config.get("namesakes") != "Refuse" or config.get("remoteNamespace") == "Same":
        return []
    requirements = []
    labels = _namesake(request.composite).labels
    stated = [
        (label, labels[label])
        for label in (*_LABELS, INDEX_LABEL)
        if isinstance(labels.get(label), str) and labels[label]
    ]
    if {label for label, _ in stated}.issuperset(_LABELS):
        # A replica without both labels was made by a hand: nothing says which others to fetch. A deployment's
        # name that is cut in those of its replicas may be another's there, so then the cluster alone selects.
        # The index is a part of the name, and leaves the replica's siblings out: each of their writes would
        # wake it.
        is_whole = len(labels[DEPLOYMENT_LABEL]) <= BASE_LENGTH
        match_labels = tuple(stated if is_whole else stated[:1])
        requirements.append(
            Requirement(NAMESAKES, API_VERSION, "ModelReplica", match_labels=match_labels, watched=is_whole)
        )
    namespace, cache = _cache_of(request)
    if not (namespace and cache):
        return requirements
    whole = f"{namespace}-{cache}"
    if whole not in names.cache_claim_name(namespace, cache):
        return [*requirements, Requirement(CACHES, API_VERSION, "ModelCache")]
    dashes = (at for at, character in enumerate(whole) if character == "-")
    spellings = [(whole[:at], whole[at + 1 :]) for at in dashes]
    spellings = [
        (first, rest)
        for first, rest in spellings
        if DNS_LABEL.fullmatch(first) and DNS_SUBDOMAIN.fullmatch(rest)
    ]
    # Its own cache is among them; alone it has no namesake, and nothing is fetched.
    for number, (first, rest) in enumerate(spellings if len(spellings) > 1 else ()):
        name = f"{CACHES}-{number}"
        requirements.append(Requirement(name, API_VERSION, "ModelCache", match_name=rest, namespace=first))
    return requirements


def _cache_of(request: Request) -> NamespacedName:
    """Return the ModelCache that a replica mounts, "" as its name for none."""
    cache = text_at(request.composite, "spec", "modelCacheRef", "name")
    return text_at(request.composite, "metadata", "namespace"), cache


def _name_taken(request: Request, replica: Workload) -> Doubt | None:
    """Return the doubt where a namesake in another namespace has objects of the same names, and came first.

    First is the one that was created first; of two in one second, that of the namespace that sorts first.
    """
    cluster = replica.spec.cluster_name
    required = required_namesakes(request)
    for requirement in required:
        if not requirement.delivered(request):
            return _doubt(
                WAITING, f"Waiting for the {requirement.kind}s that may have its names on {cluster}"
            )
    if not required:
        return None
    ours = _namesake(request.composite)
    namesakes = map(_namesake, request.required.get(NAMESAKES, ()))
    earlier = [one for one in namesakes if one.place == ours.place and one.standing < ours.standing]
    if earlier:
        holder = min(one.standing for one in earlier)
        # Two of one second may both be composed before either sees the other.
        text = (
            f"ModelReplica {holder[1]}/{replica.name} came first on {cluster}, and in the namespace"
            f" {REMOTE_NAMESPACE} the pods of both would have the same names: delete this ModelReplica, and"
            " its deployment places one of another name; what is on the cluster is left to the other,"
            " nothing new is composed"
        )
        return NameTaken(NAME_TAKEN, one_line(text), frozenset().union(*(one.engines for one in earlier)))
    cache = _earlier_cache(request, required)
    if cache:
        return _doubt(
            NAME_TAKEN,
            f"ModelCache {cache} came first, and in the namespace {REMOTE_NAMESPACE} of {cluster} its volume"
            f" has the name that {replica.namespace}/{replica.cache} would get: give this one another name",
        )
    return None


def _earlier_cache(request: Request, required: Iterable[Requirement]) -> str:
    """Return the ModelCache, as `namespace/name`, whose volume ours would be, "" for none.

    `required`: what was delivered. The one that was created first has it. One that does not exist comes after
    all that do.
    """
    caches: dict[NamespacedName, tuple[str, str]] = {}
    for requirement in required:
        documents = () if requirement.name == NAMESAKES else request.required[requirement.name]
        for document in documents:
            cache = _namesake(document)
            caches[cache.standing[1], str(cache.place[0] or "")] = cache.standing
    ours = _cache_of(request)
    standing = caches.pop(ours, (_NOT_YET, ours[0]))
    claim = names.cache_claim_name(*ours)
    earlier = [
        (theirs, cache)
        for cache, theirs in caches.items()
        if names.cache_claim_name(*cache) == claim and theirs < standing
    ]
    return "/".join(min(earlier)[1]) if earlier else ""
