"""What the oracle reads out of a world, in its own values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.world import World

Plain = dict[str, Any]
Claims = tuple[tuple[str, str, int], ...]
"""The DRA requests of a member: name, device class, count."""


@dataclass(frozen=True)
class Pool:
    """A published pool."""

    name: str
    nodes: int
    devices: tuple[Plain, ...]
    usable: int
    by_devices: bool = False
    """Whether it charges devices, not whole nodes."""
    across: bool = False
    """Whether no two pods of an engine share a node of it."""
    to_come: int = 0
    """Of the usable ones, nodes that are added once they are needed."""


@dataclass(frozen=True)
class Cluster:
    """A cluster."""

    name: str
    labels: Plain
    taints: tuple[Plain, ...]
    ready: bool
    unready: bool
    """Whether it says that it is not Ready; False also where it says nothing."""
    deleting: bool
    gateway: str
    pools: dict[str, Pool]
    declared: frozenset[str] | None
    """The pools of its spec; None when the spec tells of none."""
    beat: int | None = None
    """Its heartbeat, in seconds."""
    ill: int | None = None
    """Since when it is not Ready, in seconds."""
    reached: bool = False
    """The control plane says that it reaches it."""

    @property
    def usable(self) -> tuple[Pool, ...]:
        """The published pools that a new replica may use: those the spec still has."""
        pools = self.pools.values()
        return tuple(pool for pool in pools if self.declared is None or pool.name in self.declared)


@dataclass(frozen=True)
class Replica:
    """A replica that exists. `key` is None for one that is not ours to emit."""

    key: str | None
    cluster: str
    index: int
    plain: Plain
    observed: bool
    terminating: bool = False
    """It is being deleted. A deletion cannot be undone: it is enough that one source tells of it."""

    @property
    def name(self) -> str:
        """Its object name."""
        return str(self.plain["metadata"]["name"])

    @property
    def ill(self) -> int | None:
        """Since when it is not Ready, in seconds."""
        return _ill(self.plain)

    @property
    def engines(self) -> list[Plain]:
        """Its engines as they were stamped."""
        return list(self.plain["spec"]["engines"])

    @property
    def condition(self) -> str:
        """The status of its Ready condition, "" when it has none."""
        return _condition(self.plain, "Ready")

    @property
    def cache(self) -> str:
        """The model cache it was stamped with, "" for none."""
        return str(self.plain["spec"].get("modelCacheRef", {}).get("name", ""))


@dataclass(frozen=True)
class Facts:
    """A world, read."""

    deployment: Plain
    clusters: dict[str, Cluster] | None
    """The clusters that can be read."""
    own_replicas: tuple[Replica, ...]
    """Ours: one for each identity, observed ones first."""
    others: tuple[Replica, ...]
    """All that exists besides: charged, never emitted."""
    listed: bool
    """The list of all replicas was delivered."""
    observed_keys: frozenset[str]
    cache: Plain | None
    cache_known: bool
    """True when no cache is asked for, or when its answer has arrived."""
    defaults: Plain
    """The function's defaults for a deployment's policy."""
    unreadable: frozenset[str] = frozenset()
    """The names of clusters that are there and cannot be read."""

    @property
    def fleet(self) -> frozenset[str]:
        """The names of all clusters there are."""
        return self.unreadable | (self.clusters or {}).keys()

    @property
    def wanted(self) -> int:
        """How many replicas the deployment wants."""
        return int(self.deployment["spec"]["replicas"])

    @property
    def surge(self) -> int:
        """How many more there may be while some are replaced. The function's defaults count as well."""
        return int(self.disruption.get("maxSurge", 0))

    @property
    def disruption(self) -> Plain:
        """The deployment's policy for disruptions."""
        return dict(self.placement.get("disruption", {}))

    @property
    def placement(self) -> Plain:
        """The deployment's policy, over the function's defaults."""
        return self.defaults | dict(self.deployment["spec"].get("placement", {}))

    @property
    def inner(self) -> Plain:
        """The specification of one replica."""
        return dict(self.deployment["spec"]["template"]["spec"])

    @property
    def phases(self) -> dict[str, str]:
        """The phase of the referenced cache by cluster, as far as it says one."""
        listed = (self.cache or {}).get("status", {}).get("clusters", [])
        return {entry["name"]: entry["phase"] for entry in listed}

    @property
    def cache_name(self) -> str:
        """The model cache asked for, "" for none."""
        return str(self.inner.get("modelCacheRef", {}).get("name", ""))


def read(world: World) -> Facts:
    """Read a world."""
    cache_asked = "modelCacheRef" in world.deployment["spec"]["template"]["spec"]
    own_replicas, others = _replicas(world)
    whole = [cluster for cluster in world.clusters or () if _readable(cluster)]
    return Facts(
        deployment=world.deployment,
        clusters=None
        if world.clusters is None
        else {cluster.name: cluster for cluster in map(_cluster, whole)},
        unreadable=frozenset(
            cluster["metadata"]["name"] for cluster in world.clusters or () if not _readable(cluster)
        ),
        own_replicas=own_replicas,
        others=others,
        listed=world.replicas is not None,
        observed_keys=frozenset(world.observed),
        cache=world.cache[0] if cache_asked and world.cache else None,
        cache_known=not cache_asked or world.cache is not None,
        defaults=dict((world.input or {}).get("defaults", {}).get("placement", {})),
    )


def _condition(plain: Plain, kind: str) -> str:
    statuses = [
        condition["status"]
        for condition in plain.get("status", {}).get("conditions", [])
        if condition["type"] == kind
    ]
    return str(statuses[0]) if statuses else ""


def _readable(cluster: Plain) -> bool:
    """Say whether a cluster's status is one, as far as random worlds spoil it."""
    status = cluster.get("status", {})
    pools = status.get("gpuPools", []) if isinstance(status, dict) else None
    return isinstance(pools, list) and all(isinstance(pool, dict) for pool in pools)


def _cluster(plain: Plain) -> Cluster:
    status, spec = plain.get("status", {}), plain.get("spec", {})
    said = {pool["name"]: pool for pool in spec.get("nodePools", [])}
    pools = [
        Pool(
            pool["name"],
            max(0, pool.get("nodes", 0)),
            tuple(pool["devices"]),
            min(max(0, pool.get("nodes", 0)), pool.get("usable", {}).get("nodes", pool.get("nodes", 0))),
            by_devices=(said.get(pool["name"], {}) | pool).get("accounting") == "Device",
            across=said.get(pool["name"], {}).get("acrossNodes") == "Required",
            to_come=pool.get("usable", {}).get("toCome", 0),
        )
        for pool in status.get("gpuPools", [])
    ]
    return Cluster(
        name=plain["metadata"]["name"],
        labels=plain["metadata"].get("labels", {}),
        taints=tuple(spec.get("taints", [])),
        ready=_condition(plain, "Ready") == "True",
        unready=_condition(plain, "Ready") == "False",
        deleting="deletionTimestamp" in plain["metadata"],
        gateway=status.get("gateway", {}).get("address", ""),
        pools={pool.name: pool for pool in pools},
        declared=frozenset(pool["name"] for pool in spec.get("nodePools", [])) or None,
        beat=instant(status.get("heartbeat")),
        ill=_ill(plain),
        reached=_condition(plain, "ClusterReachable") == "True",
    )


def instant(stated: Any) -> int | None:
    """Return a stated time in whole seconds, None where it is none."""
    try:
        return int(datetime.fromisoformat(stated).timestamp())
    except (TypeError, ValueError):
        return None


def _ill(plain: Plain) -> int | None:
    """Return since when an object is not Ready, and at most as long as it exists."""
    said = [
        condition
        for condition in plain.get("status", {}).get("conditions", [])
        if condition["type"] == "Ready"
    ]
    if not said or said[0]["status"] != "False":
        return None
    since, created = said[0].get("lastTransitionTime"), plain["metadata"].get("creationTimestamp")
    times = [instant(item) for item in (since, created) if item is not None]
    instants = [time for time in times if time is not None]
    return None if since is None or len(instants) < len(times) else max(instants)


def _replicas(world: World) -> tuple[tuple[Replica, ...], tuple[Replica, ...]]:
    doomed = {
        manifest["metadata"]["uid"]
        for manifest in (*world.observed.values(), *(world.replicas or ()))
        if "deletionTimestamp" in manifest["metadata"]
    }
    own_replicas = [
        Replica(
            key, *_identity(key), manifest, observed=True, terminating=manifest["metadata"]["uid"] in doomed
        )
        for key, manifest in sorted(world.observed.items())
        if manifest["kind"] == "ModelReplica"
    ]
    seen = {(document.plain["metadata"]["namespace"], document.name) for document in own_replicas}
    others: list[Replica] = []
    for replica in sorted(world.replicas or (), key=_seniority):
        if _place(replica) in seen:
            continue
        listed_replica = _listed(replica, world.deployment)
        taken = listed_replica.key in {one.key for one in own_replicas}
        if listed_replica.key is None or taken:
            others.append(listed_replica)
        else:
            own_replicas.append(listed_replica)
    return tuple(own_replicas), tuple(others)


def _seniority(plain: Plain) -> tuple[Any, ...]:
    """Who comes first of several listed objects with one identity: a living one, then the oldest."""
    metadata = plain["metadata"]
    return "deletionTimestamp" in metadata, metadata.get("creationTimestamp", ""), _place(plain)


def _place(plain: Plain) -> tuple[str, str]:
    return plain["metadata"]["namespace"], plain["metadata"]["name"]


def _identity(key: str) -> tuple[str, int]:
    """Return cluster and index of a key: an observed replica's identity is its resource key."""
    matched = re.fullmatch(r"replica-(.+)-(\d+)", key)
    assert matched, key
    return matched[1], int(matched[2])


def _listed(plain: Plain, deployment: Plain) -> Replica:
    """Return a replica of the list; its key is None when it is another's."""
    on = plain["spec"]["clusterName"]
    labels = plain["metadata"].get("labels", {})
    index = int(labels.get("modelplane.ai/replica-index", "-1"))
    key = f"replica-{on}-{index}" if _ours(plain, labels, deployment) else None
    doomed = "deletionTimestamp" in plain["metadata"]
    return Replica(key, on, index, plain, observed=False, terminating=doomed)


def _ours(plain: Plain, labels: Plain, deployment: Plain) -> bool:
    metadata = deployment["metadata"]
    owners = [owner for owner in plain["metadata"].get("ownerReferences", []) if owner.get("controller")]
    return (
        plain["metadata"]["namespace"] == metadata["namespace"]
        and labels.get("modelplane.ai/deployment") == metadata["name"]
        and all(owner["uid"] == metadata["uid"] for owner in owners)
    )
