"""Read the snapshots of a pass: what the request delivers, sorted, each object parsed or unreadable.

There are two. The *standing* one has what the deployment's replicas stand on and nothing else, however that
was delivered: an answer at rest is decided on it alone. The *whole* one has everything, if all was delivered.
Nothing is decided here.

Three states of a requirement are kept apart, because Law 2 hangs on them. *Unresolved* was not delivered yet,
and then nothing may leave. *Absent* was delivered with nothing in it. For the clusters that is doubt, too: a
list that is empty by mistake looks the same. *Delivered* has something in it, and only then is a cluster
that is missing known to be gone (`Fleet.gone`).

An object that cannot be read costs exactly itself. A cluster becomes an unreadable one, which is there and
takes nothing. Of a replica as much is read as can be (`api.replica`); one that cannot be decoded keeps its
name, and is kept as it is observed.

Parsing goes through `Reuse`, which may have the result from an earlier call; `COSTS` says what holding it
takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from function.api import InferenceCluster, ModelCache, ModelDeployment, ModelReplica, replica as replica_api
from function.api.names import read_key
from function.api.ownership import OwnReplica
from function.api.replica import DEPLOYMENT_LABEL
from function.boundary import Cost, Costs, Document, Request, Resolution, Reuse, frozen, text_at
from function.deployment import requirements
from function.deployment.requirements import CACHE, CLUSTER, CLUSTERS, HOLDERS, named
from function.deployment.snapshot import charges
from function.deployment.snapshot.ownership import Sorting
from function.scheduler.ledger import may_yield
from function.scheduler.memo import Shared
from function.scheduler.scheduling_input import Fleet, OthersListed, UnreadableCluster, Unshared


def _equivalent(
    earlier: InferenceCluster | UnreadableCluster, later: InferenceCluster | UnreadableCluster
) -> bool:
    """Tell whether two versions of a cluster decide the same: a heartbeat, say, changes no answer."""
    if isinstance(earlier, InferenceCluster) and isinstance(later, InferenceCluster):
        return earlier.decides_like(later)
    return earlier == later


POOL = 1_400
"""Bytes for each pool: as it is declared, as it is published and as the scheduler sees it."""
COSTS: Costs = {
    charges.read_cluster: Cost(
        factor=1.5,
        fixed=4_000,
        size=lambda read: POOL * len(read.published),
        parts=lambda read: read.shared,
        equivalent=_equivalent,
    ),
    charges.read_charged: Cost(
        factor=1.5,
        fixed=4_000,
        size=lambda read: read.size + POOL * len(read.cluster.published),
        parts=lambda read: read.cluster.shared,
        # What a cluster publishes of its charges decides too.
        equivalent=lambda earlier, later: (
            _equivalent(earlier.cluster, later.cluster) and earlier == replace(later, cluster=earlier.cluster)
        ),
    ),
    replica_api.parse: Cost(factor=0.5),
    replica_api.parse_charge: Cost(factor=0.3),
}
"""What it takes to remember what is read of a fleet."""


def _replica(
    document: Document, reuse: Reuse, parse: Callable[[Document], ModelReplica] = replica_api.parse
) -> ModelReplica:
    """Read a replica. Law 2: one that cannot be decoded is there, so its name is taken and it stays."""
    try:
        return reuse.parsed(document, parse)
    except ValueError:
        return ModelReplica(name=text_at(document, "metadata", "name"), whole=False)


def _observed(request: Request, reuse: Reuse) -> tuple[list[OwnReplica], dict[str, Document]]:
    """Own replicas and endpoints among the observed composed resources.

    A key of ours is ours whatever stands under it; a replica or endpoint under a key that cannot be read
    is ours too. What else is observed belongs to other steps of the pipeline.
    """
    own_replicas: list[OwnReplica] = []
    endpoints: dict[str, Document] = {}
    for key in sorted(request.observed):
        document, read = request.observed[key].opened(), read_key(key)
        if key in request.desired:
            continue
        kind = text_at(document, "kind") if read is None else ""
        if read is not None and read[0] == "endpoint":
            endpoints[key] = document
        elif read is not None or kind == "ModelReplica":
            replica = _replica(document, reuse)
            own_replicas.append(
                OwnReplica(
                    key,
                    read[1] if read else None,
                    replica,
                    document,
                    observed=True,
                    terminating=replica.deleting,
                )
            )
        elif kind == "ModelEndpoint":
            endpoints[key] = document
    return own_replicas, endpoints


def read_cache(
    request: Request, name: str, namespace: str
) -> tuple[Resolution | None, ModelCache | None, str]:
    """Read the referenced cache, and its fault. One that cannot be read is not known yet.

    Where it was not fetched by its name it is looked up among all caches: a bootstrap block cannot name it.
    """
    if not name:
        return None, None, ""
    source = requirements.source_of(request, named(CACHE, name))
    if source is None:
        return Resolution.UNRESOLVED, None, ""
    listed = request.required[source]
    if source in requirements.ALL_CACHES:
        listed = tuple(
            document
            for document in listed
            if (text_at(document, "metadata", "namespace"), text_at(document, "metadata", "name"))
            == (namespace, name)
        )
    if not listed:
        return Resolution.ABSENT, None, ""
    try:
        return Resolution.DELIVERED, ModelCache.parse(listed[0].plain()), ""
    except ValueError as error:
        return Resolution.UNRESOLVED, None, str(error)


def _read_clusters(
    listed: Iterable[Document], reuse: Reuse, *, published: bool
) -> tuple[charges.Clusters, list[charges.ChargedCluster]]:
    """Read the clusters, and what is charged to those that can be read: nothing unless that is published."""
    if not published:
        return charges.by_name(reuse.parsed(document, charges.read_cluster) for document in listed), []
    charged = [reuse.parsed(document, charges.read_charged) for document in listed]
    clusters = charges.by_name(read.cluster for read in charged)
    return clusters, [read for read in charged if read.cluster.name in clusters.readable]


def _read_replicas(
    sorting: Sorting,
    documents: tuple[Document, ...],
    clusters: charges.Clusters,
    reading: tuple[Reuse, Shared | None],
    *,
    thorough: bool,
) -> tuple[tuple[OwnReplica, ...], Unshared | OthersListed]:
    """Read the listed replicas: our own, and the others. With `shared` they are read once for a whole run.

    Of others only what it takes to charge them is read, unless `thorough`.
    """
    reuse, shared = reading
    parse = replica_api.parse if thorough else replica_api.parse_charge
    if shared is None:
        for document in documents:
            replica = _replica(document, reuse, parse)
            if sorting.concerns(replica):
                sorting.add(replica if thorough else _replica(document, reuse), document)
            else:
                sorting.others.append(replica)
        own_replicas = sorting.finish()
        return own_replicas, Unshared(sorting.others)
    listing = shared.listing(
        documents, clusters.readable, lambda document: _replica(document, reuse, parse), of=parse
    )
    places = listing.concerning(sorting.name, sorting.observed)
    for place in places:
        document = documents[place]
        sorting.add(listing.replicas[place] if thorough else _replica(document, reuse), document)
    own_replicas = sorting.finish()
    return own_replicas, OthersListed(listing, len(documents), frozenset(places), tuple(sorting.others))


@frozen
class Snapshots:
    """The objects that a deployment's replicas stand on, and the whole fleet."""

    standing: Fleet
    whole: Fleet | None
    """None where its clusters or its replicas were not delivered."""
    requirements: tuple[str, ...]
    """The standing set, by name."""


def read_snapshots(
    request: Request,
    deployment: ModelDeployment,
    reuse: Reuse,
    *,
    thorough: bool = False,
    shared: Shared | None = None,
) -> Snapshots:
    """Read everything the request delivers, in an order of its own.

    Of other deployments' replicas only what it takes to charge them is read, unless `thorough`, or unless
    some pool charges devices, for which their requests are needed too. Where charges are published they are
    not listed: what they hold is what the clusters say, see `charges`.
    """
    published = requirements.published(request)
    whole_names = (CLUSTERS, requirements.all_replicas(request))
    listed = requirements.delivered(request, CLUSTERS)
    documents = listed
    if documents is None:  # One that bears another name is not the one that was asked for.
        documents = tuple(
            document
            for name, named_so in _by_name(request)
            for document in named_so
            if text_at(document, "metadata", "name") == name
        )
    read = partial(_read_clusters, documents, reuse, published=published)
    clusters, charging = read() if shared is None else shared.once((documents, published), read)
    devices = any(cluster.counts_devices for cluster in clusters.readable.values())
    observed, endpoints = _observed(request, reuse)
    theirs = {parsed[1] for key in request.desired if (parsed := read_key(key)) is not None}
    sorting = Sorting.beside(deployment, observed, theirs)
    own_replicas, others = _read_replicas(
        sorting,
        _listed_replicas(request, deployment),
        clusters,
        (reuse, None if published else shared),
        thorough=thorough or published or devices,
    )
    state, cache, cache_fault = read_cache(request, deployment.cache, deployment.namespace)
    unresolved_cache = (named(CACHE, deployment.cache),) if state is Resolution.UNRESOLVED else ()
    identities = {own_replica.identity for own_replica in own_replicas if own_replica.identity}
    routed = {parsed[1] for key in endpoints if (parsed := read_key(key)) is not None}
    everything = Fleet(
        clusters=clusters.readable,
        unreadable=clusters.unreadable if listed is None else _unlisted(request, clusters),
        nameless=clusters.nameless,
        clusters_resolution=requirements.resolution(request, CLUSTERS),
        replicas_resolution=requirements.resolution(request, whole_names[1]),
        cache_resolution=state,
        cache=cache,
        cache_fault=cache_fault,
        own_replicas=own_replicas,
        other_replicas=Unshared(charges.others_of(deployment, charging, own_replicas, tuple(others)))
        if published
        else others,
        endpoints=endpoints,
        taken=frozenset(theirs | routed | identities),
        theirs=request.desired,
        uncharged={charged.cluster.name: charged.fault for charged in charging if charged.fault},
        gives_way=charges.leaving_of(charging, own_replicas) if published else None,
        undelivered=unresolved_cache,
    )
    whose = (deployment.namespace, deployment.name)
    namesakes = [other for other in sorting.others if (other.namespace, other.deployment) == whose]
    standing, names = _standing(request, everything, deployment, charging, namesakes)
    return Snapshots(
        replace(standing, undelivered=(*standing.undelivered, *unresolved_cache)),
        None if requirements.undelivered(request, whole_names) else everything,
        names,
    )


def _by_name(request: Request) -> Iterator[tuple[str, tuple[Document, ...]]]:
    """Yield the names by which clusters were asked for, in order, each with what was delivered for it."""
    prefix = named(CLUSTER, "")
    for name in sorted(request.required):
        if name.startswith(prefix):
            yield name.removeprefix(prefix), request.required[name]


def _unlisted(request: Request, clusters: charges.Clusters) -> dict[str, UnreadableCluster]:
    """Return the unreadable clusters of a list, with those that it lacks and that their name finds.

    Law 2: two reads that do not agree whether a cluster exists are doubt, and doubt is no loss of a cluster.
    """
    there = {name for name, documents in _by_name(request) if documents}
    unlisted = sorted(there.difference(clusters.readable, clusters.unreadable))
    fault = "its name finds it, and the list of all clusters lacks it"
    return {**clusters.unreadable, **{name: UnreadableCluster(name, fault) for name in unlisted}}


def _listed_replicas(request: Request, deployment: ModelDeployment) -> tuple[Document, ...]:
    """Return the replicas that were delivered: all of them, or our own and those on clusters of ours."""
    listed = requirements.delivered(request, requirements.all_replicas(request))
    if listed is not None:
        return listed
    own_replicas = requirements.delivered(request, requirements.own_replicas(request)) or ()
    holders = (name for name in sorted(request.required) if name.startswith(named(HOLDERS, "")))
    others = (
        document
        for name in holders
        for document in request.required[name]
        if text_at(document, "metadata", "namespace") != deployment.namespace
        or text_at(document, "metadata", "labels", DEPLOYMENT_LABEL) != deployment.name
    )
    return (*own_replicas, *others)


def _standing(
    request: Request,
    everything: Fleet,
    deployment: ModelDeployment,
    charging: Sequence[charges.ChargedCluster],
    namesakes: Sequence[ModelReplica],
) -> tuple[Fleet, tuple[str, ...]]:
    """Cut a fleet down to what the deployment's replicas stand on; the same, wherever that was delivered.

    Returns the requirements of that, too. `namesakes`: listed replicas with our label that are not our own.
    """
    own_replicas = everything.own_replicas
    here = [replica for replica in own_replicas if replica.observed or not replica.terminating]
    names = sorted({replica.cluster for replica in here} - {""})
    young = {replica.cluster for replica in here if not replica.terminating and may_yield(replica.replica)}
    # Who it gives way to must be seen, or a name that is old would take one away for nothing.
    named_here = {
        replica.cluster
        for replica in here
        if (cluster := everything.clusters.get(replica.cluster)) is not None
        and replica.replica.uid in cluster.gives_way
    }
    yields = request.asks("overcommit", "Yield") and not requirements.published(request)
    holders = sorted((young | named_here) & {*names}) if yields else []
    required = requirements.standing(request, names, holders)
    missing, unresolved = requirements.undelivered(request, required), Resolution.UNRESOLVED
    clusters_missing = any(name.startswith(named(CLUSTER, "")) for name in missing)
    replicas_missing = requirements.own_replicas(request) in missing
    ours = [charged for charged in charging if charged.cluster.name in names]
    others: Iterable[ModelReplica] = namesakes
    if requirements.published(request):
        others = charges.others_of(deployment, ours, own_replicas, tuple(namesakes))
    elif holders:
        whose = (deployment.namespace, deployment.name)
        others = [
            other
            for other in everything.other_replicas
            if other.cluster in holders or (other.namespace, other.deployment) == whose
        ]
    standing = replace(
        everything,
        whole=False,
        clusters={name: everything.clusters[name] for name in names if name in everything.clusters},
        unreadable={name: everything.unreadable[name] for name in names if name in everything.unreadable},
        nameless=False,
        clusters_resolution=unresolved if clusters_missing else Resolution.DELIVERED,
        replicas_resolution=unresolved if replicas_missing else Resolution.DELIVERED,
        other_replicas=Unshared(others),
        uncharged={charged.cluster.name: charged.fault for charged in ours if charged.fault},
        gives_way=charges.leaving_of(ours, own_replicas) if requirements.published(request) else None,
        undelivered=tuple(name for name in missing if not name.startswith(named(CACHE, ""))),
    )
    return standing, required


def as_if_delivered(standing: Fleet) -> Fleet:
    """Return what a deployment's replicas stand on as if it had come, and no cluster could be read.

    What then needs the fleet is seen of the composite and the observed resources alone.
    """
    hosts = {replica.cluster for replica in standing.own_replicas} - {
        *standing.clusters,
        *standing.unreadable,
    }
    unknown = {name: UnreadableCluster(name, "not delivered yet") for name in hosts}
    return replace(
        standing,
        clusters_resolution=Resolution.DELIVERED,
        replicas_resolution=Resolution.DELIVERED,
        unreadable={**standing.unreadable, **unknown},
    )
