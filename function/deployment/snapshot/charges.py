"""Read what clusters publish of their charges, in the place of all replicas (`capacity: Published`).

Why. Every call about every deployment lists every replica of the fleet, unless the clusters sum up what their
pools are charged. A sum is a few kilobytes for each cluster; the list grows with all deployments.

Rules
1. A share becomes replicas that only hold nodes, so what reads the fleet need not know where it was read.
2. The shares of holders whose replicas are listed are left out: the list is newer, and each replica counts
   once, however old the sum is.
3. Doubt: a cluster whose sum is missing, malformed or absurd is *uncharged* (`Fleet.uncharged`). It takes
   nothing new, and what runs there stays and does not grow.
4. Who gives way in an overcommitted pool is taken from the cluster's word, as every instance sees the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from function.api import ModelDeployment, ModelReplica, charge as charge_api, cluster as cluster_api
from function.api.charge import Charged, ChargedShare, ClaimingEngine, GivesWay
from function.api.cluster import InferenceCluster, Pool
from function.api.ownership import OwnReplica
from function.api.replica import StampedEngine
from function.boundary import Document, Plain, Unreadable, frozen, text_at
from function.scheduler.ledger import Yielding, may_yield, seniority
from function.scheduler.scheduling_input import UnreadableCluster

# Read InferenceClusters, each parsed or unreadable; and tell apart those that share a name.

UNNAMED = "(unnamed)"
"""What stands for clusters whose names cannot be read, where they are counted."""

Read = InferenceCluster | UnreadableCluster


def read_cluster(document: Document) -> Read:
    """Read one InferenceCluster; one that cannot be read costs exactly itself.

    Law 2: its replicas stay, since a cluster that is there and unreadable is doubt, and not a cluster gone.
    """
    try:
        return InferenceCluster.parse(document.project(cluster_api.SHAPE))
    except ValueError as error:
        return UnreadableCluster(text_at(document, "metadata", "name"), str(error))


@frozen
class Clusters:
    """The clusters of a fleet by name."""

    readable: dict[str, InferenceCluster]
    unreadable: dict[str, UnreadableCluster]
    nameless: bool
    """Whether the name of one could not be read."""


def by_name(read: Iterable[Read]) -> Clusters:
    """Sort clusters by name. One that is listed more than once is unreadable."""
    listed = sorted(read, key=attrgetter("name"))
    times = Counter(map(attrgetter("name"), listed))
    clusters: dict[str, InferenceCluster] = {}
    unreadable: dict[str, UnreadableCluster] = {}
    for cluster in listed:
        if times[cluster.name] > 1:  # Doubt: which of them is meant is not known.
            unreadable[cluster.name] = UnreadableCluster(cluster.name, "listed more than once")
        elif isinstance(cluster, UnreadableCluster):
            unreadable[cluster.name] = cluster
        else:
            clusters[cluster.name] = cluster
    nameless = unreadable.pop("", None)
    if nameless is not None:
        unreadable[UNNAMED] = nameless
    return Clusters(clusters, unreadable, nameless is not None)


SHARE_SIZE, REPLICA_SIZE = 500, 8
"""Bytes that a share takes, and who gives way; and those of each replica in it."""
MAX_REPLICAS = 50_000
"""Replicas that the pools of one cluster may be charged with. A number takes no more room in a status for
being absurd, and every call goes through all of them."""


@frozen
class ChargedCluster:
    """A cluster, and what it says that its pools are charged."""

    cluster: InferenceCluster | UnreadableCluster
    shares: tuple[tuple[str, ModelReplica], ...] = ()
    """Replicas that hold nodes, each with the key or digest of its holder."""
    gives_way: tuple[Yielding, ...] = ()
    fault: str = ""
    """Why its charges are not known; empty where they are."""
    size: int = 0
    """Bytes that its shares take."""


def read_charged(document: Document) -> ChargedCluster:
    """Read one InferenceCluster with its charges; one that cannot be read costs exactly itself."""
    cluster = read_cluster(document)
    if not isinstance(cluster, InferenceCluster):
        return ChargedCluster(cluster)
    if not cluster.pools:
        return ChargedCluster(cluster)
    try:
        plain = document.project(cluster_api.CHARGED_SHAPE)
    except Unreadable as error:
        return ChargedCluster(UnreadableCluster(cluster.name, str(error)))
    published = {pool["name"]: pool.get("charged") for pool in plain["status"]["gpuPools"]}
    read: dict[str, Charged] = {}
    for pool in cluster.pools:
        try:
            read[pool.name] = _charge_of(pool, published[pool.name])
        except ValueError as error:
            return ChargedCluster(cluster, fault=f"pool {pool.name}: {error}")
    replicas = sum(charged.replicas for charged in read.values())
    if replicas > MAX_REPLICAS:
        return ChargedCluster(cluster, fault=_too_many(read))
    shares = (share for pool, charged in read.items() for share in _held(cluster.name, pool, charged.shares))
    leaving = (
        _gives_way(cluster.name, pool, entry) for pool, charged in read.items() for entry in charged.gives_way
    )
    entries = sum(len(charged.shares) + len(charged.gives_way) for charged in read.values())
    size = SHARE_SIZE * entries + REPLICA_SIZE * replicas
    return ChargedCluster(cluster, tuple(shares), tuple(leaving), size=size)


def _charge_of(pool: Pool, published: Plain) -> Charged:
    """Read what a pool publishes of its charge. Raises ValueError where that cannot be read."""
    if published is None:
        raise ValueError("no charge")
    charged = Charged.parse(published)
    if pool.accounting == "Device" and not all(share.engines for share in charged.shares):
        raise ValueError("its charge does not say which devices are claimed")
    return charged


def _too_many(read: Mapping[str, Charged]) -> str:
    """Say that the pools of a cluster are charged with too many replicas: all of them, on those that are."""
    pools = [name for name, charged in read.items() if charged.replicas]
    where = f"pool {pools[0]}" if len(pools) == 1 else f"{len(pools)} pools together"
    total = sum(charged.replicas for charged in read.values())
    return f"status.gpuPools[].charged: {total} replicas on {where}, a cluster has at most {MAX_REPLICAS}"


def _held(cluster: str, pool: str, shares: Iterable[ChargedShare]) -> Iterator[tuple[str, ModelReplica]]:
    """Yield the replicas of shares, each with the key of its holder: they hold nodes and nothing else."""
    nodes: dict[str, int] = {}
    claims: tuple[ClaimingEngine, ...] = ()
    engines: tuple[StampedEngine, ...] = ()
    for share in shares:  # Equal ones follow each other, and share what they hold.
        if share.nodes != nodes.get(pool):
            nodes = {pool: share.nodes}
        if share.engines is not claims:
            claims, engines = share.engines, tuple(engine.stamped(pool) for engine in share.engines)
        namespace, deployment = charge_api.shown(share.holder)
        replica = ModelReplica(
            name=f"(on {pool})",  # No object has such a name, so it keeps none from being given.
            namespace=namespace,
            deployment=deployment,
            cluster=cluster,
            deleting=share.leaving,
            engines=engines,
            nodes=nodes,
        )
        yield from [(share.holder, replica)] * share.replicas


def _gives_way(cluster: str, pool: str, gives_way: GivesWay) -> Yielding:
    """Return who gives way, with the fields by which its own deployment knows it again, and its seniority."""
    namespace, _, name = gives_way.replica.partition("/")
    return Yielding(
        ModelReplica(
            name,
            namespace,
            gives_way.uid,
            deployment=gives_way.deployment,
            cluster=cluster,
            created=gives_way.created,
        ),
        pool,
    )


def others_of(
    deployment: ModelDeployment,
    clusters: Iterable[ChargedCluster],
    own_replicas: Sequence[OwnReplica],
    listed: Sequence[ModelReplica],
) -> tuple[ModelReplica, ...]:
    """Return what others hold: listed replicas, and the shares of every holder that is not listed.

    A holder with one replica in the list has all of them there: deployments are selected by name.
    """
    counted = {
        f"{deployment.namespace}/{deployment.name}",
        *(charge_api.holder(replica) for replica in listed),
    }
    counted |= {
        f"{charge_api.STRAY}{own_replica.replica.namespace}/{own_replica.replica.name}"
        for own_replica in own_replicas
    }
    left_out = charge_api.keys(counted)
    shares = (replica for cluster in clusters for key, replica in cluster.shares if key not in left_out)
    return (*listed, *shares)


def leaving_of(
    clusters: Iterable[ChargedCluster], own_replicas: Iterable[OwnReplica]
) -> tuple[Yielding, ...]:
    """Return who gives way, by seniority. Of our own, only those that still are as they were published."""
    ours = {
        (own_replica.replica.namespace, own_replica.replica.name): own_replica for own_replica in own_replicas
    }
    leaving_ones = []
    for yielding in (gives_way for cluster in clusters for gives_way in cluster.gives_way):
        replica = yielding.replica
        own_replica = ours.get((replica.namespace, replica.name))
        if own_replica is None:
            leaving_ones.append(yielding)
        elif (
            not own_replica.terminating
            and own_replica.replica.uid == replica.uid
            and may_yield(own_replica.replica)
        ):
            leaving_ones.append(Yielding(own_replica.replica, yielding.pool))
    return tuple(sorted(leaving_ones, key=lambda yielding: seniority(yielding.replica)))
