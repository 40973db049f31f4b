"""Capacity: nothing is overcommitted by a decision, and nothing is left undone that there is room for.

Both sides of the same count. `check_capacity` looks at pools that a decision adds to. `check_completeness`
looks for a cluster that is open, matches and has room for one more while replicas are missing, and for new
replicas that were packed where the rule says to spread. `may_give_way` is reason 6 of Law 2: who may leave a
pool that holds more than it has; `named_to_give_way` is reason 8.

Room is looked for by trying every choice of a pool for each engine, which needs no cleverness that could
share a fault with the scheduler's search.

Limits: completeness is only certified where nothing but room decides. With a policy that may leave a replica
out (topology spread, a limit per cluster, disruption, evacuation) it says nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

from function.api import Engine, InferenceCluster, ModelReplica
from function.api.inputs import Quota
from function.api.names import NamespacedName
from function.cel import compile_node
from function.verify.gates import closed, compiles, expressible
from function.verify.matching import LIMIT, Matching, TooMany, strandings
from function.verify.state import (
    Decided,
    HeldNodes,
    State,
    Violation,
    beyond,
    held_by,
    pools,
    total_of,
)


def may_give_way(state: State) -> frozenset[NamespacedName]:
    """Return the replicas of the fleet that may give way; none where the function's input asks for none.

    `overcommit: Yield` allows it to a replica that never was Ready and that can be read. Those that may not
    give way hold their nodes whatever comes; the others keep theirs in the order of creation, namespace and
    name, while there is room. In a pool that is accounted by devices every one that never was Ready may: how
    pods are packed on its nodes is not known here, only that some packing strands one.
    """
    if not state.yields:
        return frozenset()
    living = [replica for replica in state.replicas if not replica.deleting]
    published = pools(state)
    over = {where for where, _ in beyond(state, living)}
    over |= {where for where, _ in strandings(state, living)}
    free = {where: published[where].nodes for where in over if published[where].accounting == "Node"}
    held: Counter[tuple[str, str]] = Counter()
    gives_way: set[NamespacedName] = set()
    for quota in state.quotas:  # Of one that was passed at once, those that never were Ready.
        amounts = _held_of(state, quota, living)
        limits = {unit: getattr(quota.at_most, unit, None) for unit in amounts}
        passed = any(limit is not None and amounts[unit] > limit for unit, limit in limits.items())
        if passed or getattr(quota.at_most, "cents_per_hour", None) is not None:  # Money is not counted here.
            gives_way.update(
                (replica.namespace, replica.name)
                for replica in living
                if replica.namespace in quota.namespaces and _never_ready(replica)
            )
    # Who cannot give way has the right to its nodes first; the others have it by creation, and on clusters
    # that arbitrate by class before that. For one that preempts others may go, so it holds them either way.
    for replica in sorted(
        living,
        key=lambda one: (_never_ready(one), *_by_class(state, one), *(one.created, one.namespace, one.name)),
    ):
        nodes = {where: count for where, count in held_by(replica).items() if where in over}
        crowded = any(
            where not in free or held[where] + count > free[where] for where, count in nodes.items()
        )
        if crowded and _never_ready(replica):
            gives_way.add((replica.namespace, replica.name))
            if not (replica.preempting and _arbitrates(state, replica)):
                continue
        held.update(nodes)
    return frozenset(gives_way)


def _arbitrates(state: State, replica: ModelReplica) -> bool:
    """Tell whether preemption is asked for, and the cluster of a replica says who gives way."""
    cluster = state.clusters.get(replica.cluster)
    asked = bool(state.preempts) or any(quota.guaranteed is not None for quota in state.quotas)
    return asked and cluster is not None and cluster.arbitrates


def _by_class(state: State, replica: ModelReplica) -> tuple[bool, int]:
    """Order replicas by class: those whose rank is known later, the highest first among them.

    Unknown is doubt, and doubt keeps: such a replica has its nodes before any that could give way.
    """
    value = replica.priority if _arbitrates(state, replica) else None
    return (value is not None, -(value or 0))


def named_to_give_way(state: State) -> frozenset[NamespacedName]:
    """Return the replicas that their clusters name to give way to a class that is strictly higher.

    The name must be for this object, a replica of that deployment must wait there with the label, and the
    note of what can be spared must allow it.
    """
    waiting = {
        (replica.cluster, f"{replica.namespace}/{replica.deployment}")
        for replica in state.replicas
        if replica.preempting and _never_ready(replica) and not replica.deleting
    }
    gives_way = set()
    for replica in state.replicas:
        cluster = state.clusters.get(replica.cluster)
        named = cluster.gives_way.get(replica.uid) if cluster is not None else None
        if named is None or replica.priority is None or replica.notes is None or not replica.notes.spared:
            continue
        # Borrowed capacity returns to a guarantee; all else gives way to a class that is strictly higher.
        if named.quota:
            higher = replica.priority < 0 and _borrows(state, replica)
        else:
            higher = (
                named.class_name in state.preempts and state.preempts[named.class_name] > replica.priority
            )
        if higher and (replica.cluster, named.to) in waiting:
            gives_way.add((replica.namespace, replica.name))
    return frozenset(gives_way)


def _borrows(state: State, replica: ModelReplica) -> bool:
    """Tell whether the team of a replica holds more than it is guaranteed. Money is not counted here."""
    living = [one for one in state.replicas if not one.deleting]
    for quota in state.quotas:
        if quota.guaranteed is None or replica.namespace not in quota.namespaces:
            continue
        held = _held_of(state, quota, living)
        limits = {unit: getattr(quota.guaranteed, unit) for unit in held}
        passed = any(limit is not None and held[unit] > limit for unit, limit in limits.items())
        if passed or quota.guaranteed.cents_per_hour is not None:
            return True
    return False


def _could_go(state: State, new: Sequence[ModelReplica]) -> set[NamespacedName]:
    """Return the replicas that could give way to those of a decision that preempt, by class and notes."""
    values: dict[str, int] = {}
    for replica in new:
        if replica.preempting and replica.priority is not None and _arbitrates(state, replica):
            reclaims = replica.share is not None and replica.share.reclaims
            values[replica.cluster] = max(values.get(replica.cluster, 0), 0 if reclaims else replica.priority)
    return {
        (replica.namespace, replica.name)
        for replica in state.replicas
        if replica.deleting
        or (
            replica.priority is not None
            and replica.priority < values.get(replica.cluster, 0)
            and (_never_ready(replica) or (replica.notes is not None and replica.notes.spared > 0))
        )
        if replica.cluster in values
    }


def _never_ready(replica: ModelReplica) -> bool:
    """Tell whether it may yield: it can be read, is not Ready and never was (reason 6 of Law 2)."""
    return replica.whole and replica.ready is not True and not replica.was_ready


def _existing(state: State, decisions: Sequence[Decided], *, replaced: bool) -> Iterator[ModelReplica]:
    """Everything that exists, as it will be charged: an updated replica by the larger of its two forms.

    `replaced`: leave out replicas that are given up for a replacement; its nodes may be their nodes.
    """
    kept = {
        (decided.deployment.namespace, before.name): after
        for decided in decisions
        for before, after in decided.kept
    }
    given_up = {
        (decided.deployment.namespace, lost.name)
        for decided in decisions
        if decided.new
        for lost in decided.lost
    }
    for replica in state.replicas:
        key = (replica.namespace, replica.name)
        if replaced and key in given_up:
            continue
        after = kept.get(key, replica)
        yield after if sum(held_by(after).values()) > sum(held_by(replica).values()) else replica


def check_capacity(state: State, decisions: Sequence[Decided]) -> Iterator[Violation]:
    """No pool that a decision adds to holds more than can be used of it.

    An edit of what runs may add to a pool up to what it has: that is no new replica. Where a new one
    preempts, those that could give way to it are left out.
    """
    new = [replica for decided in decisions for replica in decided.new]
    added = {where for where, nodes in total_of(new).items() if nodes}
    gone = _could_go(state, new)
    existing = _existing(state, decisions, replaced=True)
    replicas = [*(one for one in existing if (one.namespace, one.name) not in gone), *new]
    for where, text in [*beyond(state, replicas, usable=True), *strandings(state, replicas, usable=True)]:
        if where in added:
            names = sorted(
                f"{replica.namespace}/{replica.name}" for replica in new if held_by(replica).get(where)
            )
            yield Violation("Overcommit", f"{where[0]}/{where[1]}", f"{text}, new there: {', '.join(names)}")


def check_quotas(state: State, decisions: Sequence[Decided]) -> Iterator[Violation]:
    """No quota is passed by what a decision places."""
    new = [replica for decided in decisions for replica in decided.new]
    for quota in state.quotas:
        before = _held_of(state, quota, _existing(state, decisions, replaced=True))
        more = _held_of(state, quota, new)
        for unit, amount in more.items():
            limit = getattr(quota.at_most, unit, None)
            if limit is not None and amount and before[unit] + amount > limit:
                text = f"{before[unit]} {unit} held and {amount} placed, at most {limit}"
                yield Violation("Quota", quota.name, text)


def _held_of(state: State, quota: Quota, replicas: Iterable[ModelReplica]) -> Counter[str]:
    """Return how much replicas of a quota's namespaces hold of its pools, by unit."""
    held: Counter[str] = Counter()
    covered = {
        where
        for where, pool in pools(state).items()
        if quota.device_class_name is None
        or any(device.device_class_name == quota.device_class_name for device in pool.devices or ())
        if quota.cel is None or compile_node(quota.cel).evaluate(pool.node).kind == "match"
    }
    for replica in replicas:
        if replica.namespace not in quota.namespaces:
            continue
        nodes = {
            where: number
            for where, number in held_by(replica).items()
            if number and (where in covered or where[0] not in state.clusters)
        }
        held["replicas"] += bool(nodes)
        held["nodes"] += sum(nodes.values())
        held["devices"] += sum(
            engine.copies * member.pods * request.count
            for engine in replica.engines
            for member in engine.members
            if (replica.cluster, member.pool) in nodes
            for request in member.requests
        )
    return held


def check_completeness(
    state: State, decisions: Sequence[Decided], decided: Decided, matching: Matching
) -> Iterator[Violation]:
    """A replica is left out only where no cluster has room; new ones are spread before they are packed."""
    deployment = decided.deployment
    cached = not deployment.cache or (deployment.namespace, deployment.cache) in state.caches
    policy = deployment.spec.placement
    limited = policy is not None and bool(
        policy.topology_spread
        or policy.max_replicas_per_cluster
        or policy.disruption
        or policy.cache == "Require"
        or policy.evacuate
    )
    limited = limited or any(deployment.namespace in quota.namespaces for quota in state.quotas)
    # Only where nothing but room decides, and no place is kept for a replica that is being replaced.
    if limited or (decided.new and decided.lost) or state.closed:
        return
    if not (cached and state.clusters and compiles(deployment)):
        return
    new = [replica for other in decisions for replica in other.new]
    held = total_of([*_existing(state, decisions, replaced=False), *new])
    free = {where: pool.nodes - held.get(where, 0) for where, pool in pools(state, usable=True).items()}
    open_to = [
        cluster
        for cluster in state.clusters.values()
        if not any(closed(state, deployment, cluster)) and _has_room(state, decided, cluster, free, matching)
    ]
    least, total = deployment.least, len(decided.desired)
    enough = least is None or total + 1 >= least
    if total < deployment.wanted and open_to and enough:
        names = ", ".join(cluster.name for cluster in open_to)
        yield Violation(
            "LeftOut", decided.title, f"{total} of {deployment.wanted} placed, and {names} has room"
        )
    if policy is None and not deployment.template.alternatives:
        yield from _spread(state, decided, {cluster.name for cluster in open_to})


def _spread(state: State, decided: Decided, open_to: set[str]) -> Iterator[Violation]:
    """Each new replica went to the open cluster with the fewest, ties by name."""
    if any(cluster.nodes_to_come for cluster in state.clusters.values()):
        return  # What fits on nodes that are there comes first.
    # A prioritized list may prefer a cluster for its devices, whatever it holds already.
    if any(
        request.first_available
        for e in decided.deployment.template.engines
        for m in e.members
        for request in m.requests
    ):
        return
    counts = Counter(replica.cluster for replica in decided.desired)
    for cluster in sorted({replica.cluster for replica in decided.new}):
        for other in sorted(open_to - {cluster}):
            if (counts[other], other) < (counts[cluster] - 1, cluster):
                text = f"{counts[cluster]} on {cluster} but {counts[other]} on {other}, which has room"
                yield Violation("Spread", decided.title, text)


def _has_room(
    state: State, decided: Decided, cluster: InferenceCluster, free: HeldNodes, matching: Matching
) -> bool:
    """Tell whether some shape of the deployment fits: every choice of a pool per engine is tried."""
    try:
        return any(
            _fits(shape.engines, cluster, free, matching)
            for shape in decided.deployment.shapes
            if expressible(state, decided.deployment, shape, cluster)
        )
    except TooMany:
        return False


def _fits(engines: Sequence[Engine], cluster: InferenceCluster, free: HeldNodes, matching: Matching) -> bool:
    """Try every choice of a pool for each engine. Raises TooMany where there are more than `LIMIT`."""
    options = [_costs(engine, cluster, matching) for engine in engines]
    if prod(map(len, options)) > LIMIT:
        raise TooMany
    for chosen in product(*options):
        needed: dict[str, int] = defaultdict(int)
        for pool, nodes in chosen:
            needed[pool] += nodes
        if all(nodes <= free[cluster.name, pool] for pool, nodes in needed.items()):
            return True
    return False


def _costs(engine: Engine, cluster: InferenceCluster, matching: Matching) -> list[tuple[str, int]]:
    """The pools of the cluster the engine fits, capacity aside, with the nodes it takes there.

    Pools accounted by devices are left out: whether they have room is not counted in nodes.
    """
    findings = []
    for pool in (pool for pool in cluster.pools if pool.accounting == "Node"):
        if not all(matching.claims(member, pool) for member in engine.members):
            continue
        binding = [member for member in engine.members if matching.claimable(member, pool)]
        stranded = [
            member
            for member in engine.members
            if member.requests
            and member not in binding
            and any(matching.claimable(member, pool) for pool in cluster.pools)
        ]
        if binding and not stranded:
            findings.append((pool.name, engine.copies * sum(member.pods for member in binding)))
    return findings
