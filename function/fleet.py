"""The snapshot one pass works on: everything the request told, sorted, each object parsed or broken.

Unknown (not delivered yet), absent (delivered: there is none) and empty are three different things, and so
is a cluster that is there but cannot be read. Nothing is decided here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from function.api import InferenceCluster, ModelCache, ModelDeployment, ModelReplica
from function.api import cluster as cluster_api
from function.api import replica as replica_api
from function.api.names import Identity, read_key
from function.exchange import text_at
from function.own import Own, Sorting, order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from function.exchange import Document, Request, Reuse

UNNAMED = "(unnamed)"
"""What stands for clusters whose names cannot be read, where they are counted."""

CLUSTERS, REPLICAS, CACHE = "clusters", "all-replicas", "cache"
DEPLOYMENTS, CACHES = "all-deployments", "all-caches"
"""Requirement names (the wire contract); the last two are what coordination adds."""


class Told(Enum):
    """What Crossplane told about a requirement."""

    UNRESOLVED = "unresolved"
    ABSENT = "absent"
    DELIVERED = "delivered"


@dataclass(frozen=True, slots=True)
class Broken:
    """An object that is there and cannot be read."""

    name: str
    fault: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """Everything one pass knows."""

    clusters: Mapping[str, InferenceCluster]
    broken: Mapping[str, Broken]
    nameless: bool
    """Whether some cluster's name could not be read: then no cluster is known to be gone."""
    told_clusters: Told
    told_replicas: Told
    told_cache: Told | None
    """None without a modelCacheRef."""
    cache: ModelCache | None
    cache_fault: str
    """Why the referenced cache cannot be read, though it was delivered; it then counts as unresolved."""
    own: tuple[Own, ...]
    """Own replicas with an identity of their own, in the order of cluster and index."""
    charged: tuple[ModelReplica, ...]
    """Every other replica that exists: foreign ones, and own objects whose identity another one has."""
    endpoints: Mapping[str, Document]
    """Observed endpoints by key."""
    taken: frozenset[Identity] = field(default_factory=frozenset)
    """Identities that an own object, an observed key or a key of an earlier step has."""
    theirs: frozenset[str] = frozenset()
    """Keys that earlier steps of the pipeline desire."""

    @property
    def inputs_told(self) -> bool:
        """Whether the clusters and the replicas were both delivered (perhaps as an empty list)."""
        return Told.UNRESOLVED not in (self.told_clusters, self.told_replicas)

    def gone(self, cluster: str) -> bool:
        """Whether the cluster is known not to exist: the list was delivered, is not empty, lacks it."""
        listed = cluster in self.clusters or cluster in self.broken
        return self.told_clusters is Told.DELIVERED and not self.nameless and not listed


def told(request: Request, name: str) -> Told:
    """Whether a requirement was delivered, and with anything in it."""
    items = request.required.get(name)
    if items is None:
        return Told.UNRESOLVED
    return Told.DELIVERED if items else Told.ABSENT


def _name_of(document: Document) -> str:
    return text_at(document, "metadata", "name")


def read_cluster(document: Document) -> InferenceCluster | Broken:
    """Read one InferenceCluster; one that cannot be read costs exactly itself."""
    try:
        return InferenceCluster.parse(document.project(cluster_api.SHAPE))
    except ValueError as error:
        return Broken(_name_of(document), str(error))


def _clusters(request: Request, reuse: Reuse) -> tuple[dict[str, InferenceCluster], dict[str, Broken], bool]:
    read = [reuse.parsed(document, read_cluster) for document in request.required.get(CLUSTERS, ())]
    times = Counter(each.name for each in read)
    clusters: dict[str, InferenceCluster] = {}
    broken: dict[str, Broken] = {}
    for each in sorted(read, key=lambda item: item.name):
        if times[each.name] > 1:
            broken[each.name] = Broken(each.name, "listed more than once")
        elif isinstance(each, Broken):
            broken[each.name] = each
        else:
            clusters[each.name] = each
    nameless = broken.pop("", None)
    if nameless is not None:
        broken[UNNAMED] = nameless
    return clusters, broken, nameless is not None


def _replica(
    document: Document, reuse: Reuse, parse: Callable[[Document], ModelReplica] = replica_api.parse
) -> ModelReplica:
    try:
        return reuse.parsed(document, parse)
    except ValueError:
        return ModelReplica(name=_name_of(document), whole=False)


def _is(kind: str, document: Document) -> bool:
    return text_at(document, "kind") == kind


def _observed(request: Request, reuse: Reuse) -> tuple[list[Own], dict[str, Document]]:
    """Own replicas and endpoints among the observed composed resources.

    A key of ours is ours whatever stands under it; a replica or endpoint under a key that cannot be read
    is ours too. What else is observed belongs to other steps of the pipeline.
    """
    own: list[Own] = []
    endpoints: dict[str, Document] = {}
    for key in sorted(request.observed):
        document, read = request.observed[key], read_key(key)
        if key in request.desired:
            continue
        if read is not None and read[0] == "endpoint":
            endpoints[key] = document
        elif read is not None or _is("ModelReplica", document):
            replica = _replica(document, reuse)
            own.append(
                Own(
                    key,
                    read[1] if read else None,
                    replica,
                    document,
                    observed=True,
                    terminating=replica.deleting,
                )
            )
        elif _is("ModelEndpoint", document):
            endpoints[key] = document
    return own, endpoints


def _endpoint_identities(endpoints: Mapping[str, Document]) -> set[Identity]:
    return {read[1] for key in endpoints if (read := read_key(key)) is not None}


def told_cache(request: Request, name: str, namespace: str) -> tuple[Told | None, ModelCache | None, str]:
    """What is told about the referenced cache, and its fault. One that cannot be read is not known yet.

    Where it was not fetched by its name it is looked up among all caches, which coordination delivers: a
    bootstrap block cannot name it.
    """
    if not name:
        return None, None, ""
    if CACHE in request.required:
        listed = request.required[CACHE]
    else:
        listed = tuple(
            each
            for each in request.required.get(CACHES, ())
            if (text_at(each, "metadata", "namespace"), _name_of(each)) == (namespace, name)
        )
    if not listed:
        delivered = CACHE in request.required or CACHES in request.required
        return Told.ABSENT if delivered else Told.UNRESOLVED, None, ""
    try:
        return Told.DELIVERED, ModelCache.parse(listed[0].plain()), ""
    except ValueError as error:
        return Told.UNRESOLVED, None, str(error)


def read_fleet(
    request: Request, deployment: ModelDeployment, reuse: Reuse, *, thorough: bool = False
) -> Fleet:
    """Read everything the request tells into one snapshot, in an order of its own.

    Of other deployments' replicas only what it takes to charge them is read, unless `thorough`, or unless
    some pool charges devices, for which their requests are needed too.
    """
    clusters, broken, nameless = _clusters(request, reuse)
    thorough = thorough or any(each.counts_devices for each in clusters.values())
    parse = replica_api.parse if thorough else replica_api.parse_charge
    observed, endpoints = _observed(request, reuse)
    identities = {own.identity for own in observed if own.identity}
    by_name = {own.replica.name: own for own in reversed(observed) if own.replica.name}
    unmatched = [own for own in observed if by_name.get(own.replica.name) is not own]
    theirs = {read[1] for key in request.desired if (read := read_key(key)) is not None}
    sorting = Sorting(deployment, by_name, identities | theirs)
    for document in request.required.get(REPLICAS, ()):
        replica = _replica(document, reuse, parse)
        if sorting.concerns(replica):
            sorting.add(replica if thorough else _replica(document, reuse), document)
        else:
            sorting.charged.append(replica)
    own = sorted((*sorting.finish(), *unmatched), key=order)
    cache_told, cache, cache_fault = told_cache(request, deployment.cache, deployment.namespace)
    return Fleet(
        clusters=clusters,
        broken=broken,
        nameless=nameless,
        told_clusters=told(request, CLUSTERS),
        told_replicas=told(request, REPLICAS),
        told_cache=cache_told,
        cache=cache,
        cache_fault=cache_fault,
        own=tuple(own),
        charged=tuple(sorting.charged),
        endpoints=endpoints,
        taken=frozenset(
            theirs | _endpoint_identities(endpoints) | {each.identity for each in own if each.identity}
        ),
        theirs=request.desired,
    )
