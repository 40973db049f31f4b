"""Read what clusters publish of their charges, in the place of all replicas (`capacity: Published`).

A share becomes replicas that only hold nodes, so what reads the fleet need not know where it was told. The
shares of holders whose replicas are listed are left out: the list is newer, and each replica counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api import InferenceCluster, ModelReplica
from function.api import cluster as cluster_api
from function.api.charge import Charged, holder, keys, shown, stray
from function.deployment.snapshot.clusters import read_by
from function.scheduler.capacity.overcommit import Yielding, may_yield, seniority

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from function.api import ModelDeployment, Pool
    from function.api.charge import GivesWay
    from function.api.ownership import OwnReplica
    from function.boundary import Document, Plain
    from function.scheduler.fleet import UnreadableCluster


@dataclass(frozen=True, slots=True)
class ChargedCluster:
    """A cluster, and what it says that its pools are charged."""

    cluster: InferenceCluster | UnreadableCluster
    shares: tuple[tuple[str, ModelReplica], ...] = ()
    """Replicas that hold nodes, each with the key or digest of its holder."""
    gives_way: tuple[Yielding, ...] = ()
    fault: str = ""
    """Why its charges are not known; empty where they are."""

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.cluster.name


def read_charged(document: Document) -> ChargedCluster:
    """Read one InferenceCluster with its charges; one that cannot be read costs exactly itself."""
    cluster, plain = read_by(document, cluster_api.CHARGED_SHAPE)
    if not isinstance(cluster, InferenceCluster):
        return ChargedCluster(cluster)
    published = {pool["name"]: pool for pool in plain["status"]["gpuPools"]} if cluster.pools else {}
    shares: list[tuple[str, ModelReplica]] = []
    leaving: list[Yielding] = []
    for pool in cluster.pools:
        try:
            charged = _charge(published[pool.name], pool)
        except ValueError as error:
            return ChargedCluster(cluster, fault=f"pool {pool.name}: {error}")
        shares.extend(_held(cluster.name, pool.name, charged))
        leaving.extend(_gives_way(cluster.name, pool.name, gives_way) for gives_way in charged.gives_way)
    return ChargedCluster(cluster, tuple(shares), tuple(leaving))


def _charge(published: Mapping[str, Plain], pool: Pool) -> Charged:
    """Return the charge of a pool. Raises ValueError where it has none that can be read."""
    if published.get("charged") is None:
        raise ValueError("no charge")
    charged = Charged.parse(published["charged"])
    if pool.accounting == "Device" and not charged.counts_devices:
        raise ValueError("its charge does not say which devices are claimed")
    return charged


def _held(cluster: str, pool: str, charged: Charged) -> Iterator[tuple[str, ModelReplica]]:
    for key, share in charged.shares:
        namespace, deployment = shown(key)
        replica = ModelReplica(
            name=f"(on {pool})",  # No object has such a name, so it keeps none from being given.
            namespace=namespace,
            deployment=deployment,
            cluster=cluster,
            deleting=share.leaving,
            engines=tuple(engine.stamped(pool) for engine in share.engines),
            nodes={pool: share.nodes // share.replicas},
        )
        yield from [(key, replica)] * share.replicas


def _gives_way(cluster: str, pool: str, gives_way: GivesWay) -> Yielding:
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

    Whoever has one replica in the list has all of them there: it is selected by the name of the deployment.
    """
    counted = {f"{deployment.namespace}/{deployment.name}", *(holder(replica) for replica in listed)}
    counted |= {
        stray(f"{own_replica.replica.namespace}/{own_replica.replica.name}") for own_replica in own_replicas
    }
    left_out = keys(counted)
    shares = (replica for cluster in clusters for key, replica in cluster.shares if key not in left_out)
    return (*listed, *shares)


def leaving_of(
    clusters: Iterable[ChargedCluster], own_replicas: Iterable[OwnReplica]
) -> tuple[Yielding, ...]:
    """Return who gives way, by seniority. Of our own, only those that still are what was told of them."""
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
