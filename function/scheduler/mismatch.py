"""Mismatch: whether an existing replica still matches what is wanted of it, or whether that is unknown.

Law 2, reason 3 lets a mismatched replica go, so everything that makes one mismatched must live here. They are
looked at in the order M1, M6, M7, M2, then M3 and M4 for each member, M5, and M8 where none of them holds:

M1. the engines changed shape: names, roles, numbers of members (`ShapeChanged`);
M2. its cluster's `spec.nodePools`, present and not empty, no longer has its pinned pool (`PoolGone`);
M3. the devices of that pool no longer satisfy the nodeSelector of its member (`DevicesChanged`);
M4. the resolved requests of a member changed in name, count or device class (`RequestsChanged`);
M5. its cost grew beyond what its pool has free: an edit overcommits nothing (`CostGrew`);
M6. another ModelCache is referenced, whose footprint leaves its cluster out (`CacheMoved`);
M7. a gang has another number of pods, on a cluster with KServe, which refuses that edit (`SizeFixed`);
M8. it or its cluster has been degraded for longer than asked, which is opt-in (`lasting_fault`; reason 7).

Everything else keeps it. An edit that leaves no mismatch updates it in place. What is unknown, because a
selector errs, costs too much, or reads what is not published, is doubt: then the replica stays as it is
observed, or is updated where the edit does not depend on what is unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from function.api import Engine, InferenceCluster, Member, Pool, StampedEngine, StampedMember
from function.api.deployment import ReplicaShape
from function.api.model import KSERVE
from function.api.ownership import OwnReplica
from function.api.reasons import Nature, Reason, Rejection
from function.api.text import joined
from function.boundary import Resolution, frozen
from function.scheduler.budget import OutOfSteps
from function.scheduler.device_accounting import Demand, minus, stamped_gangs, total
from function.scheduler.device_matching import Match, errs
from function.scheduler.ledger import Ledger
from function.scheduler.matcher import Matcher
from function.scheduler.outcomes import Kept, Mismatch
from function.scheduler.scheduling_input import Evacuation, SchedulingInput, unready_since

Pair = tuple["Engine", "Member", "StampedMember"]


@frozen
class Deviation:
    """A mismatch or a doubt, with its particulars."""

    mismatch: Mismatch | None
    detail: str = ""
    until: str = ""
    """What would end a doubt: an edit that depends on it is withheld until then."""


def _shape(inputs: SchedulingInput, own_replica: OwnReplica) -> ReplicaShape | None:
    """The shape a replica was placed as: the primary, or its own alternative if that still exists."""
    named = [shape for shape in inputs.deployment.shapes if shape.name == own_replica.replica.alternative]
    return named[0] if named else None


def same_shape(engines: tuple[Engine, ...], stamped: tuple[StampedEngine, ...]) -> bool:
    """Tell whether names, roles and numbers of members agree; their order does not matter."""
    wanted = {engine.name: sorted(member.role for member in engine.members) for engine in engines}
    roles = {engine.name: sorted(member.role for member in engine.members) for engine in stamped}
    return wanted == roles and len(engines) == len(stamped)


def _pairs(engines: tuple[Engine, ...], stamped: tuple[StampedEngine, ...]) -> Iterator[Pair]:
    """Each stamped member with the member it came from."""
    by_name = {engine.name: engine for engine in engines}
    for stamped_engine in stamped:
        engine = by_name[stamped_engine.name]
        by_role = {str(member.role): member for member in engine.members}
        for member in stamped_engine.members:
            yield engine, by_role[member.role], member


def _on_pool(inputs: SchedulingInput, matcher: Matcher, pair: Pair, pool: Pool) -> Deviation | None:
    """Compare one member with its pinned pool's published devices."""
    _, member, stamped = pair
    barred = matcher.barred(member, pool)
    if barred is None and {request.name for request in stamped.requests} <= {
        request.name for request in member.requests
    }:
        if pool.devices is None:  # Doubt: nothing says what the pool has.
            detail = f"pool {pool.name} does not publish its devices"
            return Deviation(None, detail, f"pool {pool.name} publishes its devices")
        verdict = matcher.as_stamped(member, stamped, pool)
        if isinstance(verdict, Match):
            return None
        barred = verdict.explained(inputs.evaluations)
    return _why(inputs, matcher, pair, pool, barred)


def _why(
    inputs: SchedulingInput, matcher: Matcher, pair: Pair, pool: Pool, barred: Rejection | None
) -> Deviation:
    """Name what stands between a member and its pinned pool; an error anywhere on the way is doubt."""
    _, member, _ = pair
    answer = f"the selectors give an answer on pool {pool.name}"
    verdict = matcher.member(member, pool)
    free = None if isinstance(verdict, Match) else verdict.explained(inputs.evaluations)
    for rejection in (barred, free):
        # Law 2: a selector that gave no answer is doubt, and doubt keeps.
        if rejection is not None and rejection.reason.nature is Nature.DOUBT:
            detail = joined(f"pool {pool.name}", rejection.reason.value, rejection.particular, by=": ")
            return Deviation(None, detail, answer)
    if errs(inputs.evaluations, member, pool.devices or ()):
        detail = f"pool {pool.name}: {Reason.DeviceSelectorError.value}"
        return Deviation(None, detail, answer)
    # A taint came later than what runs there, so it is no change of the devices.
    if free is not None and free.reason is not Reason.UntoleratedDeviceTaint:
        # M3: `pool frontier: no matching device: memory 40Gi`.
        detail = joined(f"pool {pool.name}", free.reason.value, free.particular, by=": ")
        return Deviation(Mismatch.DevicesChanged, detail)
    return Deviation(Mismatch.RequestsChanged, f"pool {pool.name}")  # M4: it matches, but claims otherwise.


def _pools(
    inputs: SchedulingInput, matcher: Matcher, cluster: InferenceCluster, pairs: list[Pair]
) -> Iterator[Deviation]:
    """Findings of every member against its pinned pool; lost pools first."""
    for _, _, stamped in pairs:
        if cluster.lost(stamped.pool):
            yield Deviation(Mismatch.PoolGone, f"pool {stamped.pool}")  # M2
    for pair in pairs:
        pool = cluster.by_name.get(pair[2].pool)
        if pool is None:  # Doubt: the pool is in the spec, or the spec says nothing, and is not published.
            name = pair[2].pool
            yield Deviation(None, f"pool {name} is not published", f"pool {name} is published")
        elif (finding := _on_pool(inputs, matcher, pair, pool)) is not None:
            yield finding


def _larger(engine: Engine, stamped: StampedEngine) -> StampedEngine:
    """A stamped engine with as many pods of each kind as it has now, where they are more.

    Members that claim the same on one pool have pods of one kind: only their sum counts.
    """
    by_role = {str(member.role): member.pods * engine.copies for member in engine.members}
    kinds: dict[tuple[object, ...], list[StampedMember]] = defaultdict(list)
    for member in stamped.members:
        kinds[member.pool, member.requests, member.constraints].append(member)
    members = [
        replace(
            kind[0],
            pods=max(
                sum(member.pods for member in kind) * stamped.copies,
                sum(by_role[member.role] for member in kind),
            ),
        )
        for kind in kinds.values()
    ]
    return replace(stamped, copies=1, members=tuple(members))


def _growth(
    own_replica: OwnReplica, shape: ReplicaShape, pairs: list[Pair], cluster: InferenceCluster | None
) -> dict[str, Demand]:
    """Return the growth of a replica beyond its stamp, by pool: the larger of both is charged."""
    by_devices = cluster is not None and cluster.counts_devices
    apart = [pool.name for pool in cluster.pools if pool.across_nodes] if cluster and by_devices else []
    needed: dict[str, int] = defaultdict(int)
    for engine, member, stamped in pairs:
        if stamped.requests:
            needed[stamped.pool] += member.pods * engine.copies
    by_name = {engine.name: engine for engine in shape.engines}
    before = stamped_gangs(own_replica.replica.engines if by_devices else (), apart=apart)
    larger = (_larger(by_name[engine.name], engine) for engine in own_replica.replica.engines if by_devices)
    after = stamped_gangs(larger, apart=apart)
    growth = {
        pool: Demand(
            max(0, needed[pool] - own_replica.replica.nodes.get(pool, 0)),
            total((after.get(pool, ()), minus(before.get(pool, ())))),
        )
        for pool in sorted({*needed, *after})
    }
    return {pool: demand for pool, demand in growth.items() if any(demand)}


def _short(matcher: Matcher, ledger: Ledger, cluster: str, growth: Mapping[str, Demand]) -> Deviation | None:
    """The first pool that has no room for the growth, and by how much; None when all have."""
    budget = matcher.budget.open()
    try:
        for pool, demand in growth.items():
            # A pool that charges nodes may be overcommitted, which is no fault of who takes none of it.
            takes = demand.nodes or ledger.by_devices(cluster, pool)
            shortage = ledger.declared(cluster, pool).shortage(demand, budget) if takes else None
            if shortage is not None:
                return Deviation(Mismatch.CostGrew, f"pool {pool} needs {shortage.needs} more")  # M5
    except OutOfSteps as ended:  # Doubt: if there is room was not found out.
        why = str(ended) or f"{budget.steps} steps"
        detail = f"pool {pool}: {Reason.SearchBudgetExceeded.value}: {why}"
        return Deviation(None, detail, f"steps are enough to tell if pool {pool} has room")
    finally:
        matcher.budget.settle(budget)
    return None


def _moved_cache(
    inputs: SchedulingInput, own_replica: OwnReplica, cluster: InferenceCluster
) -> Deviation | None:
    """Another cache is referenced: it must be staged where the replica runs."""
    wanted, resolution = inputs.deployment.cache, inputs.fleet.cache_resolution
    if not wanted or wanted == own_replica.replica.cache:
        return None
    if resolution is not Resolution.DELIVERED or inputs.fleet.cache is None:
        absent = resolution is Resolution.ABSENT
        detail = f"ModelCache {wanted} does not exist" if absent else f"ModelCache {wanted} is not known yet"
        return Deviation(None, detail, f"ModelCache {wanted} {'exists' if absent else 'is known'}")
    if inputs.fleet.cache.footprint.items() <= cluster.labels.items():
        return None
    return Deviation(Mismatch.CacheMoved, f"cache {wanted}")  # M6


def _consistent(pairs: list[Pair]) -> bool:
    """Tell whether what is stamped is what is wanted, as far as that shows without the pool."""
    for _, member, stamped in pairs:
        counts = {request.name: {sub.count for sub in request.ranked} for request in member.requests}
        if any(request.count not in counts.get(request.name, ()) for request in stamped.requests):
            return False
    return True


def _examine(
    inputs: SchedulingInput, matcher: Matcher, own_replica: OwnReplica, cluster: InferenceCluster | None
) -> Iterator[Deviation]:
    """Yield every mismatch and doubt, M1 to M4, M6 and M7, in the order in which the first is reported.

    M1 and an unknown cluster end it: without a shape there are no members to compare, without the cluster no
    pools.
    """
    shape = _shape(inputs, own_replica)
    if shape is None or not same_shape(shape.engines, own_replica.replica.engines):
        yield Deviation(Mismatch.ShapeChanged)  # M1
        return
    if cluster is None:  # Doubt: the cluster is unreadable, or the list is empty.
        unreadable = inputs.fleet.unreadable.get(own_replica.cluster)
        detail = f"cluster {own_replica.cluster} cannot be read: {unreadable.fault}" if unreadable else ""
        detail = detail or f"cluster {own_replica.cluster} is not known"
        yield Deviation(
            None, detail, f"cluster {own_replica.cluster} {'can be read' if unreadable else 'is known'}"
        )
        return
    moved = _moved_cache(inputs, own_replica, cluster)
    if moved is not None:
        yield moved
    pairs = list(_pairs(shape.engines, own_replica.replica.engines))
    for engine, member, stamped in pairs if cluster.spec.stack == KSERVE else ():
        if member.pods != stamped.pods:
            detail = f"engine {engine.name}: {member.pods} workers instead of {stamped.pods}"
            yield Deviation(Mismatch.SizeFixed, detail)  # M7
    yield from _pools(inputs, matcher, cluster, pairs)


def examine(
    inputs: SchedulingInput,
    matcher: Matcher,
    ledger: Ledger,
    own_replica: OwnReplica,
    cluster: InferenceCluster | None,
) -> Kept:
    """Say how a replica that stays is kept: updated in place, held as mismatched, or kept in doubt.

    Growth in nodes is charged here, when the pool has the free nodes for it.
    """
    matcher.budget.turn(own_replica.cluster)
    findings = list(_examine(inputs, matcher, own_replica, cluster))
    mismatch = next((finding for finding in findings if finding.mismatch), None)
    if mismatch is not None:
        return Kept(own_replica, mismatch=mismatch.mismatch, detail=mismatch.detail)
    doubt = "; ".join(dict.fromkeys(finding.detail for finding in findings))
    until = tuple(dict.fromkeys(finding.until for finding in findings if finding.until))
    shape = _shape(inputs, own_replica)
    assert shape is not None  # noqa: S101 - an unknown shape is a mismatch, returned above
    pairs = list(_pairs(shape.engines, own_replica.replica.engines))
    growth = _growth(own_replica, shape, pairs, cluster)
    if growth and not inputs.fleet.whole:  # Doubt: what is free is not known, so the fleet is needed.
        return Kept(own_replica, doubt=doubt or "what is free on its cluster is not known yet", grows=True)
    more_nodes = [pool for pool, demand in growth.items() if demand.nodes]
    unpublished = any(cluster is None or pool not in cluster.by_name for pool in more_nodes)
    if doubt and (
        unpublished or not _consistent(pairs) or own_replica.replica.cache != inputs.deployment.cache
    ):
        return Kept(own_replica, doubt=doubt, withheld_until=until)
    if growth and own_replica.cluster in inputs.fleet.uncharged:  # Doubt: what is free is not known.
        unknown = f"cluster {own_replica.cluster} does not publish what is charged to it"
        until = (f"cluster {own_replica.cluster} publishes what is charged to it",)
        return Kept(own_replica, doubt=joined(doubt, unknown), withheld_until=until)
    return _grow(matcher, ledger, Kept(own_replica, shape=shape, doubt=doubt, growth=growth), until)


def _grow(matcher: Matcher, ledger: Ledger, kept: Kept, until: tuple[str, ...]) -> Kept:
    """Charge the growth of a replica, if there is room for it."""
    cluster = kept.own_replica.cluster
    short = _short(matcher, ledger, cluster, kept.growth)
    if short is None:
        ledger.charge(cluster, kept.growth)
        return kept
    if short.mismatch and not kept.doubt:
        return Kept(kept.own_replica, mismatch=short.mismatch, detail=short.detail)
    # Doubt: a selector gave no answer, or the budget none. A want of room does not make that an answer.
    detail = joined(kept.doubt, short.detail)
    until = (*until, short.until) if short.until else until
    return Kept(kept.own_replica, doubt=detail, withheld_until=until)


def lasting_fault(
    evacuating: Evacuation, own_replica: OwnReplica, cluster: InferenceCluster | None
) -> Mismatch | None:
    """Why a replica is to be evacuated (M8), the widest reason first; None where it is not.

    Doubt: a cluster that is not known, and a time that cannot be read, evacuate nothing.
    """
    before = evacuating.before
    if before is None or cluster is None:
        return None
    if evacuating.lost(cluster):
        return Mismatch.ClusterLost
    if cluster.unready_since is not None and cluster.unready_since < before:
        return Mismatch.ClusterDegraded
    since = unready_since(own_replica)
    return Mismatch.ReplicaDegraded if since is not None and since < before else None
