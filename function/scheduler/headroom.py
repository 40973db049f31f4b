"""Headroom: go on where a decision stopped, and count how many more replicas would fit.

Why: people plan by it ("would three more fit?"), so it has to be what the algorithm would do and no estimate.
It places by the same code, on copies or to be taken back: the decision stays as it is.

Limit: every replica is counted up to a bound that the caller names, since each costs a search.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from function.api import Device, InferenceCluster, Pool
from function.api.deployment import MAX_REPLICAS
from function.api.reasons import Rejection
from function.api.text import counted, listed
from function.boundary import frozen
from function.scheduler import engine_options, filters, memo, schedule, stamp
from function.scheduler.budget import PACKING, Budget, OutOfSteps
from function.scheduler.decision import Decision
from function.scheduler.device_accounting import (
    Copies,
    Demand,
    DeviceCapacity,
    PoolDevices,
    stamped_gangs,
    total,
)
from function.scheduler.ledger import PoolCapacity, PoolKey, ReplicaCounts
from function.scheduler.matcher import Matcher
from function.scheduler.placer import Placer
from function.scheduler.quota import UNITS

_NOT_ASKED: Any = {"serving": True, **memo.TEMPLATES}
"""Fields of a replica's spec of which rejections read nothing but `Question.obstacles`."""


@frozen
class Room:
    """How many more replicas one cluster takes, alone, and why not one more."""

    cluster: str
    more: int
    first: Rejection | None
    """What runs out first; None where the limit was reached."""
    cents: int | None = None
    """What the first of them would cost an hour; None where that is not known."""


@frozen
class FittingPool:
    """One pool that a deployment of one engine fits, capacity aside."""

    cluster: str
    pool: str
    needs: int
    """Nodes a replica takes."""
    more: int
    """Replicas that have room there, whatever bars them."""
    total: int
    devices: tuple[Device, ...]
    """The device entries of the pool that would be chosen."""
    barred: Rejection | None
    """Why the cluster takes nothing new, whatever is free; None where it does."""


@frozen
class Question:
    """The facts that `rejections_of_another` rests on, by value: equal facts have equal rejections.

    Doubt shares nothing: of a spec everything counts but for what is named in `_NOT_ASKED`.
    """

    asked: str
    """The spec of a replica, the policy, and the function's input, as JSON."""
    obstacles: Mapping[tuple[str, str], str]
    """What is in the way of each shape on each stack: all that is read of templates and `serving`."""
    counts: frozenset[tuple[str, int]] | None
    """Where its replicas are; None where no filter counts them."""
    fleet: tuple[object, ...]
    levels: tuple[object, ...]
    """What the ledger says."""

    def __hash__(self) -> int:
        """Hash texts and numbers; maps are only compared."""
        return hash((self.asked, self.counts))

    @classmethod
    def of(cls, decision: Decision) -> Question:
        """Return what would be asked of the fleet for one more replica."""
        inputs, fleet = decision.inputs, decision.inputs.fleet
        spec = inputs.deployment.template.model_dump_json(exclude=_NOT_ASKED)
        stack = filters.StackExpresses.of(inputs)
        return cls(
            f"{spec}\n{inputs.policy.model_dump_json()}\n{inputs.config.model_dump_json()}",
            stack.obstacles if stack else {},
            _counts(decision).key if filters.counting(inputs) else None,
            (schedule.may_place(inputs), fleet.clusters, fleet.unreadable, fleet.cache, fleet.uncharged),
            decision.ledger.levels(inputs.deployment.namespace),
        )


def rejections_of_another(decision: Decision) -> Mapping[str, Rejection]:
    """Why each cluster takes no other replica; nothing about any where nothing new may be placed at all."""
    if not schedule.may_place(decision.inputs):
        return {}
    return _going_on(decision, decision.inputs.fleet.clusters).rejections()


def count_more(decision: Decision, limit: int) -> int:
    """How many more replicas fit on the whole fleet, counted up to a limit."""
    return len(schedule.fill(_going_on(decision, decision.inputs.fleet.clusters), limit))


def room_by_cluster(decision: Decision, limit: int) -> Iterator[Room]:
    """Each cluster's own room, counted up to a limit: the others take nothing meanwhile."""
    clusters = decision.inputs.fleet.clusters
    whole = _going_on(decision, clusters)
    full = whole.rejections()
    # Spreading looks at all clusters, so the others must be there, closed: not Ready. Nothing else does.
    spread = clusters if decision.inputs.policy.topology_spread else {}
    others = {name: _closed(cluster) for name, cluster in spread.items()}
    for name, cluster in clusters.items():
        if name in full:
            yield Room(name, 0, full[name])
            continue
        placer = _going_on(decision, {**others, name: cluster}, whole)
        placed = schedule.fill(placer, limit)
        cents = placed[0].candidate.cents if placed else None
        yield Room(name, len(placed), placer.rejections().get(name), cents)
        for replica in reversed(placed):
            placer.give_back(replica.candidate)
    for name in decision.inputs.fleet.unreadable:
        yield Room(name, 0, full[name])


def _closed(cluster: InferenceCluster) -> InferenceCluster:
    """Return a cluster that does not say that it is Ready, and nothing that was derived before."""
    status = cluster.status and cluster.status.model_copy(update={"conditions": ()})
    return InferenceCluster.model_construct(metadata=cluster.metadata, spec=cluster.spec, status=status)


@frozen
class PartlyHeld:
    """A pool whose whole nodes replicas of a deployment hold for a part of their devices."""

    cluster: str
    pool: str
    nodes: int
    """Nodes they hold."""
    by_nodes: int
    """How many more such replicas fit as it is."""
    by_devices: int
    """How many more would, if the pool charged devices; counted up to a limit."""

    @property
    def plain(self) -> dict[str, str | int]:
        """The finding as data; `message` is the text of it."""
        return {
            "cluster": self.cluster,
            "pool": self.pool,
            "nodes": self.nodes,
            "byNodes": self.by_nodes,
            "byDevices": self.by_devices,
            "message": str(self),
        }

    def __str__(self) -> str:
        """`use1/frontier: 2 whole nodes are held for a part of their devices ...`."""
        one = self.nodes == 1
        held = "1 whole node is" if one else f"{self.nodes} whole nodes are"
        fit = f"{counted(self.by_nodes, 'more replica')} {'fits' if self.by_nodes == 1 else 'fit'}"
        would = f"{'at least ' if self.by_devices == SHARING else ''}{self.by_devices}"
        where = f"{self.cluster}/{self.pool}: {held} held for a part of {'its' if one else 'their'} devices"
        return f"{where}; {fit} there, {would} with accounting: Device on the pool"


@frozen
class Guarantee:
    """How much of what a quota guarantees its team holds, and what others borrow of the same pools."""

    quota: str
    unit: str
    holds: int
    guaranteed: int
    borrowers: Mapping[str, int]
    """What others hold of it beyond their own guarantees, by namespace."""

    def __str__(self) -> str:
        """`team-a holds 21 of 24 guaranteed nodes; 3 more when team-b returns what it borrows`."""
        text = f"{self.quota} holds {self.holds} of {self.guaranteed} guaranteed {UNITS[self.unit]}"
        more = min(self.guaranteed - self.holds, sum(self.borrowers.values()))
        if more <= 0:
            return text
        one = len(self.borrowers) == 1
        who = f"{listed(sorted(self.borrowers), NAMED)} return{'s' if one else ''}"
        return f"{text}; {more} more when {who} what {'it borrows' if one else 'they borrow'}"


def guarantees(decision: Decision) -> Iterator[Guarantee]:
    """Say how far the guarantees of a deployment's namespace are held. Nothing where that is not known."""
    ledger, shares = decision.ledger, decision.shares
    if shares is None or ledger.quotas is None:
        return
    for quota in ledger.quotas.team(decision.inputs.deployment.namespace).guarantees:
        others: dict[str, Counter[str]] = defaultdict(Counter)
        for cluster in ledger.holding_clusters:
            for replica in ledger.living(cluster):
                share = shares.get((replica.namespace, replica.name))
                if share is not None and share.borrowed and quota.name not in share.quotas:
                    others[replica.namespace].update(ledger.quotas.amounts(quota, cluster, replica))
        held = ledger.quotas.living(quota)
        for unit, limit in ledger.quotas.limits(quota).items():
            borrowers = {name: amounts[unit] for name, amounts in others.items() if amounts[unit]}
            yield Guarantee(quota.name, unit, held[unit], limit, borrowers)


NAMED = 3
"""Namespaces that a message names."""
SHARING = 50
"""Replicas up to which it is counted how many share nodes."""


def partly_held(decision: Decision) -> Iterator[PartlyHeld]:
    """Find the pools where charging devices would let more replicas like those that stand there fit.

    Those of which most nodes are held come first. A fleet has thousands, so who reads on pays for it.
    """
    demands: dict[PoolKey, list[Demand]] = defaultdict(list)
    for replica in (kept.own_replica.replica for kept in decision.kept):
        gangs = stamped_gangs(replica.engines)
        for name, nodes in replica.nodes.items():
            demands[replica.cluster, name].append(Demand(nodes, gangs.get(name, ())))
    for placed in decision.placed:
        for name, demand in placed.candidate.demands.items():
            demands[placed.candidate.cluster.name, name].append(demand)
    most_held = sorted(
        demands.items(), key=lambda entry: (-sum(demand.nodes for demand in entry[1]), entry[0])
    )
    for (cluster, name), held in most_held:
        there = decision.inputs.fleet.clusters.get(cluster)
        pool = there.by_name.get(name) if there else None
        if pool is not None and pool.accounting == "Node" and held[-1].nodes:
            yield from _partly_held(decision, cluster, pool, held)


def _partly_held(
    decision: Decision, cluster: str, pool: Pool, held: Sequence[Demand]
) -> Iterator[PartlyHeld]:
    """Yield the finding about one pool; nothing where sharing gains nothing, or its packing is not found out.

    Devices are counted by packing everything that stands there, not by dividing sums. Of others the requests
    may not have been read (`read_snapshots`): those keep their nodes whole, so no more is said than fits.
    """
    ledger = decision.ledger
    holding = ledger.holding(cluster, pool.name)
    others = [stamped_gangs(replica.engines).get(pool.name, ()) for replica in holding]
    unread = sum(replica.nodes[pool.name] for replica in holding if not replica.engines)
    new = [placed.candidate for placed in decision.placed if placed.candidate.cluster.name == cluster]
    placed = [candidate.demands[pool.name].gangs for candidate in new if pool.name in candidate.demands]
    room = DeviceCapacity(pool.nodes - pool.unusable - unread, PoolDevices(pool), total([*others, *placed]))
    by_nodes, by_devices = max(0, ledger.capacity(cluster, pool.name).free_nodes) // held[-1].nodes, 0
    budget = Budget(PACKING)
    try:
        while by_devices < SHARING and (left := room.take(held[-1], budget)):
            room, by_devices = left, by_devices + 1
    except OutOfSteps:
        return
    if by_devices > by_nodes:
        yield PartlyHeld(cluster, pool.name, sum(demand.nodes for demand in held), by_nodes, by_devices)


def fitting_pools(decision: Decision) -> Iterator[FittingPool]:
    """Every pool that the first engine of the first shape fits, whether or not there is room now.

    A cluster without such a pool is not explained: on most of a large fleet nothing matches.
    """
    matcher, (shape, *_) = Matcher(decision.inputs), decision.inputs.deployment.shapes
    clusters = decision.inputs.fleet.clusters
    placer = _going_on(decision, clusters) if schedule.may_place(decision.inputs) else None
    times = cache(_times)  # Most pools of a fleet are as empty as others.
    for cluster in clusters.values():
        (engine, *_) = matcher.fit(shape, cluster).engines
        rejection = placer.rejection(cluster) if placer and engine.options else None
        for option in engine.options:
            yield _pool_fit(decision, cluster, option, rejection, times)


def _pool_fit(
    decision: Decision,
    cluster: InferenceCluster,
    option: engine_options.EngineOption,
    rejection: Rejection | None,
    times: Callable[[PoolCapacity, Demand], int],
) -> FittingPool:
    """Return what an option takes and finds on its pool. A want of room bars nothing: it is a number."""
    pool = cluster.pools[option.pools[0]]
    resolved = (choice for match in option.matches for choice in match.resolved)
    chosen = {device.name for choice in resolved for device in choice.devices}
    demand = next((taken.demand for taken in option.demands if taken.pool == option.pools[0]), Demand(0))
    return FittingPool(
        cluster.name,
        pool.name,
        max(1, option.nodes),
        times(decision.ledger.capacity(cluster.name, pool.name), demand),
        pool.nodes,
        tuple(device for device in pool.devices or () if device.name in chosen),
        rejection if rejection is not None and not rejection.pool else None,
    )


def _times(capacity: PoolCapacity, demand: Demand) -> int:
    """How many times a pool takes a demand. One more never makes room, so it is found by halves.

    Where devices are charged it stops at as many replicas as a deployment may have.
    """

    def is_refused(number: int) -> bool:
        gangs = tuple(Copies(copies.gang, copies.number * number) for copies in demand.gangs)
        try:
            return not capacity.fits(Demand(demand.nodes * number, gangs), Budget(PACKING))
        except OutOfSteps:
            return True

    by_nodes = max(0, capacity.free_nodes) // max(1, demand.nodes)
    if not is_refused(by_nodes) and is_refused(by_nodes + 1):
        return by_nodes
    return bisect_right(range(1, MAX_REPLICAS + 1), x=False, key=is_refused)


def _going_on(
    decision: Decision, clusters: Mapping[str, InferenceCluster], earlier: Placer | None = None
) -> Placer:
    """Go on placing where a decision stopped, on these clusters.

    With `earlier`, its ledger and indices are used on; what was placed there must have been given back.
    """
    inputs = replace(decision.inputs, fleet=replace(decision.inputs.fleet, clusters=clusters))
    ledger = earlier.ledger if earlier else decision.ledger.copy()
    indices = earlier.indices if earlier else stamp.Indices(inputs.deployment, inputs.fleet)
    ledger.count_for(_counts(decision))
    return Placer(inputs, Matcher(inputs), ledger, indices)


def _counts(decision: Decision) -> ReplicaCounts:
    """Where the replicas of a deployment are, once all is done that was decided."""
    kept = [replica.own_replica.cluster for replica in decision.kept]
    return ReplicaCounts([*kept, *(replica.identity.cluster for replica in decision.placed)])
