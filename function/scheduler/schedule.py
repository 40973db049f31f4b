"""One pass over a deployment: the whole placement, every time, in this order and in no other.

1. Retain: every existing replica stays, unless Law 2 lists a reason for it to leave (`retain`).
2. Scale down: if more are kept than wanted, some leave (`scale_down`).
3. Fill: the shortfall is placed one by one, each on the best cluster (`fill`, `placer`); or, where less than
   minReplicas would stand, nothing is.
4. Replace: a mismatched replica leaves once its replacement has a place, else it is held (`replace`).
5. Roll: a staged edit of the template reaches the replicas that stay, some at a time (`rollout`).

While anything that placing depends on is unknown or invalid, only 1, 2 and 5 run (`may_place`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from function.api import ModelReplica
from function.api.cluster import NamedVictim
from function.api.names import NamespacedName
from function.api.ownership import OwnReplica
from function.api.reasons import Rejection
from function.api.replica import BORROWED_VALUE, GuaranteeShare
from function.api.taints import untolerated
from function.boundary import Resolution, frozen
from function.scheduler import disruption, mismatch, stamp
from function.scheduler.budget import CallBudget
from function.scheduler.decision import Decision
from function.scheduler.device_accounting import Demand
from function.scheduler.ledger import Ledger, ReplicaCounts, overcommitted_pools
from function.scheduler.matcher import Matcher
from function.scheduler.outcomes import Cause, Dropped, Kept, Placed
from function.scheduler.placer import Placer
from function.scheduler.preemption import Arbitration, Victim, arbitrate, over_quota, shares_of
from function.scheduler.quota import QuotaUsage
from function.scheduler.scheduling_input import Evacuation, SchedulingInput, evacuation, scheduling_input
from function.scheduler.selectors import MAX_LENGTH, MOST, PEER_LENGTH, Share

# Retain: every existing replica keeps its cluster, index and pools unless Law 2 lists a reason not to.
#
# Law 2. Crossplane deletes what is missing from the desired state, so doubt never removes a running replica.
# One leaves only for a reason of this list, and the reason is on record:
#
# 1. its InferenceCluster no longer exists: the list was delivered, is not empty, and does not have it (here);
# 2. its cluster has a NoExecute taint that the deployment does not tolerate (here);
# 3. it is mismatched (`mismatch`), or superseded by a rollout with surge, which is opt-in (`rollout`),
#    and its replacement has a place (`replace`);
# 4. scale down (`scale_down`);
# 5. it is being deleted already (here);
# 6. it yields its place in an overcommitted pool, where that is asked for (here, from `ledger`);
# 7. it or its cluster has been degraded for longer than asked, which is opt-in (`mismatch`), and its
#    replacement has a place (`replace`);
# 8. it gives way to a replica of a higher class that preempts, which is opt-in: the cluster names it, and its
#    deployment can spare it (here, from `preemption`). So does what is borrowed beyond a guarantee, which
#    ranks below every class, to one of another team that is within its own.
#
# A line that makes one leave cites its reason. Another way to leave is another line here, and a discussion
# before that. Who is dropped in this module is in `_leaves`, `_yields` and `_gives_way`, and nowhere else.


NOBODY = Arbitration()


@frozen
class Retained:
    """The replicas that stay and those that leave, before anything is scaled or placed."""

    kept: tuple[Kept, ...]
    dropped: tuple[Dropped, ...]


def _leaves(inputs: SchedulingInput, own_replica: OwnReplica) -> Dropped | None:
    """The reason, of those that need no replacement, for which a replica leaves."""
    if own_replica.terminating:  # Law 2, reason 5.
        return Dropped(own_replica, Cause.Terminating)
    # Doubt: whose it is, what there is, or where it runs cannot be read. Doubt keeps.
    if (
        own_replica.identity is None
        or not inputs.fleet.inputs_delivered
        or own_replica.holds != own_replica.cluster
    ):
        return None
    if inputs.fleet.gone(own_replica.cluster):  # Law 2, reason 1.
        return Dropped(own_replica, Cause.ClusterGone, f"cluster {own_replica.cluster}")
    cluster = inputs.fleet.clusters.get(own_replica.cluster)
    taints = untolerated(cluster.spec.taints, inputs.deployment.template.tolerations) if cluster else ()
    for taint in taints:
        if taint.effect == "NoExecute":  # Law 2, reason 2.
            return Dropped(own_replica, Cause.Drained, str(taint))
    return None


def _stays(
    inputs: SchedulingInput,
    matcher: Matcher,
    ledger: Ledger,
    evacuating: Evacuation,
    own_replica: OwnReplica,
) -> Kept:
    """How a replica stays: in doubt as it is observed, else as `mismatch` finds it."""
    if own_replica.identity is None:
        return Kept(own_replica, doubt=f"the key {own_replica.key} cannot be read")
    if not inputs.fleet.inputs_delivered:
        return Kept(own_replica, doubt="required resources are not delivered yet")
    if not own_replica.readable:
        return Kept(own_replica, doubt="the replica cannot be read")
    if inputs.selectors.invalid or inputs.config_fault:
        fault = "a selector does not compile" if inputs.selectors.invalid else "the input is invalid"
        return Kept(own_replica, doubt=fault)
    cluster = inputs.fleet.clusters.get(own_replica.cluster)
    kept = mismatch.examine(inputs, matcher, ledger, own_replica, cluster)
    too_long = None if kept.mismatch else mismatch.lasting_fault(evacuating, own_replica, cluster)
    if too_long is None:
        return kept
    # Law 2, reason 7. It matches as ever: while it has nowhere to go it is updated like any other, which
    # may mend it.
    return replace(kept, mismatch=too_long, detail=f"for over {evacuating.after} s")


def _yields(inputs: SchedulingInput, arbitration: Arbitration) -> dict[str, Dropped]:
    """Own replicas that give way in an overcommitted pool, or a quota, by key (Law 2, reason 6)."""
    pools = {
        (yielding.replica.namespace, yielding.replica.name): yielding.pool for yielding in arbitration.yields
    }
    dropped = {}
    for own_replica in inputs.fleet.own_replicas:
        name = (own_replica.replica.namespace, own_replica.replica.name)
        if own_replica.identity is None:
            continue
        if name in pools:
            dropped[own_replica.key] = Dropped(own_replica, Cause.Yielded, f"pool {pools[name]}")
        elif name in arbitration.over_quota:
            quota = f"quota {arbitration.over_quota[name]}"
            dropped[own_replica.key] = Dropped(own_replica, Cause.OverQuota, quota)
    return dropped


def _outranked(
    inputs: SchedulingInput,
    victim: Victim,
    named: NamedVictim,
    shares: Mapping[NamespacedName, GuaranteeShare] | None,
) -> str:
    """To whom a replica gives way, for people; empty where it does not, by the input and what is observed.

    The class must be strictly higher than its deployment's. Within its guarantee it gives way to its own team
    only; beyond it to every class, and to who reclaims within another guarantee.
    """
    classes = {listed.name: listed.value for listed in inputs.config.priority_classes if listed.preempts}
    ours = (shares or {}).get((victim.replica.namespace, victim.replica.name))
    theirs = (shares or {}).get((victim.to.namespace, victim.to.name))
    borrowed = ours is not None and ours.borrowed
    # What is noted of it and cannot be judged now is doubt.
    if (theirs is not None and theirs.borrowed) or (
        shares is not None and theirs is None and victim.to.share is not None
    ):
        return ""
    if named.quota:
        returns = borrowed and theirs is not None and ours is not None and not ours.quotas & theirs.quotas
        return f"to {named.to}, quota {named.quota}" if returns else ""
    value = BORROWED_VALUE if borrowed else inputs.priority.value
    strangers = ours is not None and not borrowed and not (theirs and ours.quotas & theirs.quotas)
    higher = classes.get(named.class_name, value) > value
    return f"to {named.to}, class {named.class_name}" if higher and not strangers else ""


def _gives_way(
    inputs: SchedulingInput, arbitration: Arbitration, staying: Iterable[OwnReplica]
) -> dict[str, Dropped]:
    """The own replica, by key, that gives way to one of a higher class in this pass (Law 2, reason 8).

    One a pass, so that the next is judged by what came of it. Doubt keeps: it goes only where its cluster
    names it by its uid, what is observed here says so too, and the deployment can spare it, now and by its
    latest note. What either side noted of its standing is judged anew (`_outranked`).

    `staying`: those that no other reason takes. One that a drain or the loss of its cluster takes in the same
    pass serves no more, so it makes no other one dispensable.
    """
    victims, shares = arbitration.victims, arbitration.shares
    team = (quota for quota in inputs.config.quotas if inputs.deployment.namespace in quota.namespaces)
    if shares is None and any(quota.guaranteed is not None for quota in team):
        return {}
    ours = {
        (own_replica.replica.namespace, own_replica.replica.name): own_replica
        for own_replica in staying
        if own_replica.readable
    }
    if disruption.spare(inputs, ours.values()) < 1:
        return {}
    for victim in victims:
        own_replica = ours.get((victim.replica.namespace, victim.replica.name))
        cluster = inputs.fleet.clusters.get(own_replica.holds) if own_replica is not None else None
        if own_replica is None or cluster is None:
            continue
        named = cluster.gives_way.get(own_replica.replica.uid)
        to = _outranked(inputs, victim, named, shares) if named is not None else ""
        if to:
            cause = Cause.Returned if named is not None and named.quota else Cause.GaveWay
            return {own_replica.key: Dropped(own_replica, cause, to)}
    return {}


def retain(
    inputs: SchedulingInput, matcher: Matcher, ledger: Ledger, arbitration: Arbitration = NOBODY
) -> Retained:
    """Go through the existing replicas in the order of cluster and index. `arbitration`: who gives way."""
    leaving = {own_replica.key: _leaves(inputs, own_replica) for own_replica in inputs.fleet.own_replicas}
    others = [own_replica for own_replica in inputs.fleet.own_replicas if leaving[own_replica.key] is None]
    yields = _yields(inputs, arbitration) | _gives_way(inputs, arbitration, others)
    leaving |= {own_replica.key: yields.get(own_replica.key) for own_replica in others}
    drains = {key: drop for key, drop in leaving.items() if drop and drop.cause is Cause.Drained}
    staying = [
        own_replica
        for own_replica in inputs.fleet.own_replicas
        if leaving[own_replica.key] is None or own_replica.key in drains
    ]
    now = disruption.leaving_now(inputs, staying, [drain.own_replica for drain in drains.values()])
    stays = partial(_stays, inputs, matcher, ledger, evacuation(inputs))
    kept: list[Kept] = []
    dropped: list[Dropped] = []
    for own_replica in inputs.fleet.own_replicas:
        gone = leaving[own_replica.key]
        if gone is None:
            kept.append(stays(own_replica))
        elif own_replica.key in drains and own_replica.key not in now:
            kept.append(replace(stays(own_replica), waits=f"drain ({gone.detail})"))
        else:
            dropped.append(gone)
    return Retained(tuple(kept), tuple(dropped))


# Reserve places for deployments that come before ours in the common order.
#
# `coordination: GlobalOrder`. Every instance places for all deployments in one order, on one ledger. Those
# whose turn comes before ours are taken through a pass of their own first; what they would place is
# charged, and only our slice is emitted. Equal snapshots give disjoint claims without a lock; old lists may
# differ, and what they did is mended by `overcommit: Yield` only. A deployment whose selectors do not
# compile places nothing in its pass, here as on its own.
#
# `overcommit: Yield` alone knows no other deployment, but it knows every replica that gives way. Were each
# deployment to place its own on the best cluster, all of them would meet there, give way again, and so on
# through the fleet. So those of others that are more senior are placed first, as if they were ours.


def reserve(
    inputs: SchedulingInput,
    ledger: Ledger,
    budget: CallBudget,
    run: Callable[..., Decision],
) -> tuple[str, ...]:
    """Charge what every earlier deployment would place now. All passes share the budget of the call.

    No more than its own answer can carry: else one of large templates would hold places that it never takes.
    What one of them gives up in its pass stays charged for all others until it is really gone. Returns
    those whose selectors cost more than the passes of others may: where one does, nothing is reserved.
    """
    left_out, most, length = [], MOST, MAX_LENGTH
    for peer in inputs.peers.earlier:
        share = Share(most // 2, PEER_LENGTH + length // 2)
        peer_input = scheduling_input(peer.deployment, peer.fleet, inputs.config, share=share)
        length -= max(0, peer_input.selectors.length - PEER_LENGTH)
        part = budget.portion()
        decision = run(peer_input, ledger, part, room=peer.room)
        budget.with_portion(part)
        selectors = peer_input.selectors
        if selectors.too_many or selectors.too_long or peer_input.evaluations.dear:
            left_out.append(f"{peer.deployment.namespace}/{peer.deployment.name}")
        elif selectors.many:
            most -= selectors.work(peer.fleet.clusters.values())
        for placed in decision.placed:
            if placed.replaces is not None:
                ledger.charge(placed.replaces.holds, _stood_on(placed, placed.replaces))
    return tuple(left_out)


def _stood_on(placed: Placed, own_replica: OwnReplica) -> dict[str, Demand]:
    """Nodes of a replica given up that its own replacement stands on: its pass charged them only once."""
    if placed.identity.cluster != own_replica.holds:
        return {}
    nodes = placed.candidate.nodes
    return {pool: Demand(min(held, nodes.get(pool, 0))) for pool, held in own_replica.replica.nodes.items()}


class Queue:
    """The replicas that give way, in the order in which they get new places: ours between those of others."""

    def __init__(self, inputs: SchedulingInput, placer: Placer, arbitration: Arbitration) -> None:
        """Line them up by seniority; none is in it where the deployments themselves have an order."""
        self._placer = placer
        self._ours = {
            (own_replica.replica.namespace, own_replica.replica.name)
            for own_replica in inputs.fleet.own_replicas
        }
        self._waiting = deque(arbitration.yields if inputs.config.coordination == "None" else ())
        names = {(yields.replica.namespace, yields.replica.deployment) for yields in self._waiting}
        self._counts = {name: ReplicaCounts() for name in names}
        for replica in inputs.fleet.other_replicas if names else ():
            if not replica.deleting and (replica.namespace, replica.deployment) in names:
                self._counts[replica.namespace, replica.deployment].add(replica.cluster)
        for yields in self._waiting:
            replica = yields.replica
            self._counts[replica.namespace, replica.deployment].add(replica.cluster, -1)

    def serve_seniors(self) -> None:
        """Charge a place for every replica whose turn comes before the next of ours."""
        ledger = self._placer.ledger
        while self._waiting:
            replica = self._waiting.popleft().replica
            if (replica.namespace, replica.name) in self._ours:
                return
            # It is placed as if it were ours, with the counts of its own deployment.
            ours = ledger.count_for(self._counts[replica.namespace, replica.deployment])
            placement = self._placer.best()
            if placement is not None:
                candidate = placement.candidate
                ledger.charge(candidate.cluster.name, candidate.demands)
                ledger.count(candidate.cluster.name)
            ledger.count_for(ours)


# Fill: one replica at a time on the best place, until none is missing or one fits nowhere.
#
# What was placed stands. Every new replica charges the ledger as it is placed, so one pass never
# overcommits a pool.


def fill(placer: Placer, shortfall: int, queue: Queue | None = None) -> list[Placed]:
    """Place up to `shortfall` replicas; stop at the first that fits nowhere.

    `queue` has the replicas of others that get their new places before ours.
    """
    placed: list[Placed] = []
    while len(placed) < shortfall:
        if queue is not None:
            queue.serve_seniors()
        replica = placer.place() or placer.preempt()
        if replica is None:
            break
        placed.append(replica)
    return placed


def open_ledger(inputs: SchedulingInput) -> Ledger:
    """Charge every replica that exists, of all deployments, until it is really gone."""
    fleet = inputs.fleet
    held = {own_replica.holds for own_replica in fleet.own_replicas}
    ledger = fleet.other_replicas.charged(fleet.clusters, held)
    for own_replica in fleet.own_replicas:
        ledger.open(_known_to_leave(own_replica), own_replica.holds)
    if inputs.config.quotas:
        ledger.limit(QuotaUsage(inputs.config.quotas, fleet.clusters))
    return ledger


def _known_to_leave(own_replica: OwnReplica) -> ModelReplica:
    """The replica, marked as being deleted where only the list knows that."""
    stale = own_replica.terminating and not own_replica.replica.deleting
    return own_replica.replica._replace(deleting=True) if stale else own_replica.replica


def may_place(inputs: SchedulingInput) -> bool:
    """Tell whether anything new may be placed: all inputs delivered, none absent, every selector valid."""
    fleet = inputs.fleet
    fleet_delivered = fleet.inputs_delivered and fleet.clusters_resolution is Resolution.DELIVERED
    fleet_delivered = fleet_delivered and fleet.whole
    cache_delivered = fleet.cache_resolution in (None, Resolution.DELIVERED)
    resolved = fleet_delivered and cache_delivered
    # Without one list of coordination the turns before ours are not known, so ours would overlap with them.
    resolved = resolved and Resolution.UNRESOLVED not in inputs.peers.resolutions.values()
    return resolved and not inputs.selectors.invalid and not inputs.config_fault


def schedule(inputs: SchedulingInput, *, room: int | None = None, most: int | None = None) -> Decision:
    """Decide. `room` caps how many new replicas the answer can carry; None is no cap.

    `most` bounds the steps of all searches together; None leaves it to the budget of the input.
    """
    ledger = open_ledger(inputs)
    budget = CallBudget(inputs.config.search_budget, len(inputs.fleet.clusters), most=most)
    arbitration = _arbitration(inputs, ledger)
    run = partial(run_pass, arbitration=arbitration)
    left_out: tuple[str, ...] = ()
    if may_place(inputs):
        left_out = reserve(inputs, ledger, budget, partial(run, survey=False))
    ours = budget.portion() if inputs.config.coordination == "GlobalOrder" else budget
    decision = run(inputs, ledger, ours, room=room)
    publishing = {} if inputs.fleet.whole else inputs.fleet.clusters
    overcommitted = overcommitted_pools(inputs.fleet.own_replicas, ledger, publishing)
    return replace(
        decision,
        overcommitted=overcommitted,
        shares=arbitration.shares,
        budget=budget.with_portion(ours),
        left_out=left_out,
    )


def _arbitration(inputs: SchedulingInput, ledger: Ledger) -> Arbitration:
    """The replicas that give way in overcommitted pools, where replicas are asked to."""
    fleet = inputs.fleet
    if inputs.config.overcommit != "Yield" or not fleet.inputs_delivered:
        return NOBODY
    if fleet.gives_way is not None:
        return Arbitration(fleet.gives_way)
    clusters = fleet.clusters.items() if inputs.config.preempts else ()
    made = arbitrate(ledger, {name for name, cluster in clusters if cluster.arbitrates})
    if ledger.quotas is None or not fleet.whole:
        return made
    over = over_quota(ledger, ledger.quotas.copy(empty=True), made.yields)
    if not inputs.config.guarantees:
        return replace(made, over_quota=over)
    ours = (own_replica.replica for own_replica in fleet.own_replicas)
    values = {(replica.namespace, replica.name): inputs.priority.value for replica in ours}
    shares = shares_of(ledger, ledger.quotas.copy(empty=True), values, inputs.deployment.namespace)
    return replace(made, over_quota=over, shares=shares)


def run_pass(
    inputs: SchedulingInput,
    ledger: Ledger,
    budget: CallBudget,
    *,
    arbitration: Arbitration,
    room: int | None = None,
    survey: bool = True,
) -> Decision:
    """Take one deployment through its pass, on a ledger that may hold what others would take.

    Without `survey` the clusters are looked at only if something is to be placed.
    """
    matcher = Matcher(inputs, budget)
    retained = retain(inputs, matcher, ledger, arbitration)  # 1
    kept, scaled = disruption.scale_down(inputs, ledger, disruption.supersede(inputs, retained.kept))  # 2
    dropped = [*retained.dropped, *scaled]
    changing = any(stays.needs_replacement or (stays.outgoing and disruption.surge(inputs)) for stays in kept)
    idle = len(kept) >= inputs.deployment.wanted and not changing
    if not may_place(inputs) or (idle and not survey):
        return Decision(
            inputs, ledger, disruption.roll(inputs, kept), (), tuple(dropped), matched=matcher.matched
        )
    ledger.count_for(ReplicaCounts(replica.own_replica.cluster for replica in kept))
    placer = Placer(inputs, matcher, ledger, stamp.Indices(inputs.deployment, inputs.fleet))
    shortfall = max(0, inputs.deployment.wanted - len(kept))
    allowed = shortfall if room is None else min(shortfall, room)
    placed = fill(placer, allowed, Queue(inputs, placer, arbitration))  # 3
    least = inputs.deployment.least
    enough = least is None or len(kept) + len(placed) >= least
    withheld, full = (0, {}) if enough else _withhold(placer, placed)
    if enough:  # 4
        left = None if room is None else room - len(placed)
        replaced = disruption.replace(inputs, placer, kept, len(placed), left)
        kept = replaced.kept
        placed.extend(replaced.placed)
        dropped.extend(replaced.dropped)
    return Decision(
        inputs,
        ledger,
        disruption.roll(inputs, kept),  # 5
        tuple(placed),
        tuple(dropped),
        full=full,
        stopped="the response would grow too large" if allowed < shortfall and len(placed) == allowed else "",
        withheld=withheld,
        matched=matcher.matched,
        placer=placer,
    )


def _withhold(placer: Placer, placed: list[Placed]) -> tuple[int, dict[str, Rejection]]:
    """Below minReplicas nothing new is placed, no replacement either; it never drops what runs.

    Returns how many had a place, and why no cluster took one more than those.
    """
    withheld, full = len(placed), placer.rejections() if placed else {}
    while placed:
        placer.give_back(placed.pop().candidate)
    return withheld, full
