"""The state of a fleet, and its faults before anybody decides anything.

`State` is what exists, `Decided` what was decided for one deployment: replicas before and after. From these
two every rule is checked, by `rules` and `capacity`. Nodes are counted here anew, and not by the scheduler's
ledger: one node for each pod of a member that claims devices, times the copies of its engine.

`check_state` needs no decision: pools that hold more than they publish, and replicas pinned to a pool or a
cluster that is not there. A fleet may be in such a state through nobody's decision, since a pool can shrink
under what runs on it.

Limits: devices are only counted here, class by class. Whether some packing strands a pod is `matching`'s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from function.api import InferenceCluster, ModelCache, ModelDeployment, ModelReplica, Pool
from function.api.deployment import ReplicaShape
from function.api.inputs import Quota
from function.boundary import frozen


@frozen(order=True)
class Violation:
    """One rule that a decision or a fleet breaks, and where."""

    rule: str
    """Name of the rule, in one word."""
    where: str
    """The replica, the pool or the deployment it concerns."""
    message: str

    def __str__(self) -> str:
        """`Overcommitted use1/frontier: 5 of 4 nodes held by ...`."""
        return f"{self.rule} {self.where}: {self.message}"


@frozen
class Decided:
    """The decision for one deployment, as the checker sees it: replicas before and after."""

    deployment: ModelDeployment
    existing: tuple[ModelReplica, ...]
    """Its own replicas as they are observed, without those being deleted."""
    desired: tuple[ModelReplica, ...]
    """Its replicas as they are desired."""

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return f"{self.deployment.namespace}/{self.deployment.name}"

    @property
    def new(self) -> tuple[ModelReplica, ...]:
        """Desired replicas that do not exist."""
        names = {replica.name for replica in self.existing}
        return tuple(replica for replica in self.desired if replica.name not in names)

    @property
    def lost(self) -> tuple[ModelReplica, ...]:
        """Existing replicas that are not desired."""
        names = {replica.name for replica in self.desired}
        return tuple(replica for replica in self.existing if replica.name not in names)

    @property
    def kept(self) -> tuple[tuple[ModelReplica, ModelReplica], ...]:
        """Replicas that stay: as observed and as desired."""
        desired = {replica.name: replica for replica in self.desired}
        return tuple((replica, desired[replica.name]) for replica in self.existing if replica.name in desired)


HeldNodes = dict[tuple[str, str], int]
"""Nodes by (cluster, pool)."""


@frozen
class State:
    """The existing objects."""

    clusters: Mapping[str, InferenceCluster]
    replicas: tuple[ModelReplica, ...]
    caches: Mapping[tuple[str, str], ModelCache] = field(default_factory=dict)
    """By namespace and name."""
    unreadable: frozenset[str] = frozenset()
    """Names of clusters that are there and cannot be read."""
    yields: bool = False
    """Whether the function's input says `overcommit: Yield`."""
    quotas: tuple[Quota, ...] = ()
    """Limits and guarantees of namespaces, by the function's input."""
    preempts: Mapping[str, int] = field(default_factory=dict)
    """Values of the classes that preempt, by the function's input."""
    closed: bool = False
    """Whether the function's input is invalid: then nothing new may be placed anywhere."""
    expressed: dict[tuple[int, str], tuple[ReplicaShape, bool]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """What stacks can express: shapes by identity, and the dialect of a stack."""


def held_by(replica: ModelReplica) -> HeldNodes:
    """Nodes a replica holds: one per pod of a member that claims devices, times the engine's copies."""
    held: HeldNodes = defaultdict(int)
    for engine in replica.engines:
        for member in engine.members:
            if member.requests:
                held[replica.cluster, member.pool] += engine.copies * member.pods
    return held


def total_of(replicas: Iterable[ModelReplica]) -> HeldNodes:
    """Nodes that replicas hold together."""
    held: HeldNodes = defaultdict(int)
    for replica in replicas:
        for where, nodes in held_by(replica).items():
            held[where] += nodes
    return held


def pools(state: State, *, usable: bool = False) -> dict[tuple[str, str], Pool]:
    """Every published pool by (cluster, pool). `usable`: only with the nodes that new replicas count on."""
    return {
        (name, pool.name): replace(pool, nodes=pool.nodes - pool.unusable) if usable else pool
        for name, cluster in state.clusters.items()
        for pool in cluster.pools
    }


def beyond(
    state: State, replicas: Iterable[ModelReplica], *, usable: bool = False
) -> Iterator[tuple[tuple[str, str], str]]:
    """Pools that hold more than they have, or more than can be used of them, each with the numbers.

    A pool accounted by devices is held to what is certain: no more devices of a class than it has.
    """
    listed, published = tuple(replicas), pools(state, usable=usable)
    for where, nodes in sorted(total_of(listed).items()):
        pool = published.get(where)
        if pool is not None and pool.accounting == "Node" and nodes > pool.nodes:
            yield where, f"{nodes} nodes held, {pool.nodes} published"
    held: dict[tuple[str, str, str], int] = defaultdict(int)
    for replica in listed:
        for engine in replica.engines:
            for member in engine.members:
                for request in member.requests:
                    count = engine.copies * member.pods * request.count
                    held[replica.cluster, member.pool, request.device_class] += count
    for (cluster, name, kind), devices in sorted(held.items()):
        pool = published.get((cluster, name))
        if pool is None or pool.accounting == "Node" or pool.devices is None:
            continue
        capacity = pool.nodes * sum(
            device.count for device in pool.devices if device.device_class_name == kind
        )
        if devices > capacity:
            yield (cluster, name), f"{devices} devices of {kind} held, {capacity} published"


def check_state(state: State) -> list[Violation]:
    """Say what is wrong with a fleet as it stands: overcommitted pools, replicas pinned to nothing."""
    living = [replica for replica in state.replicas if not replica.deleting]
    holders: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for replica in living:
        for where, nodes in held_by(replica).items():
            if nodes:
                holders[where].append((nodes, f"{replica.namespace}/{replica.name}"))
    findings = []
    for where, text in beyond(state, living):
        names = ", ".join(f"{name} ({nodes})" for nodes, name in sorted(holders[where], reverse=True))
        findings.append(Violation("Overcommitted", f"{where[0]}/{where[1]}", f"{text}, by {names}"))
    for replica in living:
        name = f"{replica.namespace}/{replica.name}"
        if not replica.whole:
            findings.append(Violation("Unreadable", name, "some field of it has the wrong type"))
        if not state.clusters or replica.cluster in state.unreadable:
            continue  # Law 2: nothing is known of what it is pinned to.
        cluster = state.clusters.get(replica.cluster)
        if cluster is None:
            text = f"on {replica.cluster}, which is not in the fleet"
            findings.append(Violation("NoSuchCluster", name, text))
            continue
        pool_names = {pool.name for pool in cluster.pools}
        pinned = {member.pool for engine in replica.engines for member in engine.members}
        why = "which is not published" if pool_names else "and the cluster publishes no pools"
        findings += [
            Violation("NoSuchPool", name, f"pinned to {replica.cluster}/{pool}, {why}")
            for pool in sorted(pinned - pool_names)
        ]
    return sorted(findings)
