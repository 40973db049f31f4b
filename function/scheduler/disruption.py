"""placement.disruption: how many of the wanted replicas may be missing or not Ready at a time.

A draining or mismatched replica is given up only if, afterwards, wanted minus (kept and in service) is at
most maxUnavailable. It does not hold back the loss of a cluster that is gone, nor scale down. With `maxSurge`
its replacement is placed beside it first: see below.

Replacing a mismatched replica is paced by `placement.rollout` where disruption says nothing: an edit of the
engines' shape is an edit of the template.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Generic, TypeAlias, TypeVar, cast

from function.api.ownership import OwnReplica
from function.api.replica import MANY
from function.api.taints import untolerated
from function.boundary import Unreadable
from function.boundary.memory import Memo
from function.scheduler import scores, stamp
from function.scheduler.device_accounting import Demand
from function.scheduler.ledger import Ledger
from function.scheduler.outcomes import OUTDATED, Cause, Dropped, Kept, Placed, Update
from function.scheduler.placer import Placer
from function.scheduler.scheduling_input import SchedulingInput

T = TypeVar("T")
Rank: TypeAlias = tuple[int, ...]
"""What comes before the load of its cluster, weightiest first: the larger leaves first."""


def drain_budget(inputs: SchedulingInput) -> int | None:
    """How many may be out of service for drains; None for no limit. Left out beside a surge: none."""
    stated = inputs.policy.disruption
    if stated is None or (stated.max_unavailable is None and not stated.max_surge):
        return None
    return stated.max_unavailable or 0


def surge(inputs: SchedulingInput) -> int:
    """How many replicas more than wanted there may be while some are replaced."""
    return inputs.policy.disruption.max_surge if inputs.policy.disruption else 0


def rollout_budget(inputs: SchedulingInput) -> int | None:
    """How many may be out of service because of an edit of the template; None where that is not staged.

    Zero means by surge. Where the function's defaults say so for a deployment whose own disruption has no
    surge, it is 1: else nothing could be updated.
    """
    rollout = inputs.policy.rollout
    return max(rollout.max_unavailable, 0 if surge(inputs) else 1) if rollout else None


def replacement_budget(inputs: SchedulingInput) -> int | None:
    """How many may be out of service because of replacements; None for no limit."""
    stated = drain_budget(inputs)
    return rollout_budget(inputs) if stated is None else stated


def spare(inputs: SchedulingInput, staying: Iterable[OwnReplica]) -> int:
    """How many of the replicas that stay can be spared now, for a higher class.

    By the budget for replacements and by `minReplicas`; where neither is set, any number.
    """
    serving = sum(map(inputs.serving, staying))
    budget, least = replacement_budget(inputs), inputs.deployment.least
    limits = [MANY]
    if budget is not None:
        limits.append(budget - (inputs.deployment.wanted - serving))
    if least is not None:
        limits.append(serving - least)
    return max(0, min(limits))


def leaving_now(
    inputs: SchedulingInput, staying: Iterable[OwnReplica], draining: Iterable[OwnReplica]
) -> set[str]:
    """The keys of those draining replicas that may be given up in this pass.

    As in scale down, one that is not Ready goes first, then one on the cluster with most of the deployment's
    replicas (recomputed for each), then the highest index, then the later cluster.
    """
    left, waiting = list(staying), list(draining)
    outgoing, gone = {own_replica.key for own_replica in waiting}, set[str]()
    serving = sum(map(inputs.serving, left))
    lasting = sum(inputs.serving(own_replica) for own_replica in left if own_replica.key not in outgoing)
    budget, wanted = drain_budget(inputs), inputs.deployment.wanted
    ranked = [((not inputs.serving(own_replica),), own_replica, own_replica) for own_replica in waiting]
    leaving = Leaving(ranked, (own_replica.cluster for own_replica in left))
    while (first := leaving.next()) is not None:
        replaced = surge(inputs) > 0 and lasting > wanted - len(outgoing)  # As in `_may_leave_idle`.
        others = serving - inputs.serving(first)
        if (inputs.serving.lost(first) and replaced) or budget is None or wanted - others <= budget:
            leaving.left(first)
            outgoing.remove(first.key)
            gone.add(first.key)
            serving = others
    return gone


class Leaving(Generic[T]):
    """Replicas that may leave, in turn: by rank, by the load of their cluster, then index and cluster name.

    Only loads change while they leave, and only down. So the next is the last of some cluster's, and those of
    3,000 are found in a tenth of a second instead of ten.
    """

    def __init__(self, ranked: Iterable[tuple[Rank, OwnReplica, T]], clusters: Iterable[str]) -> None:
        """Take the replicas, each with its rank, and the clusters of all that count."""
        self._load = Counter(clusters)
        self._queues: dict[tuple[Rank, str], list[tuple[int, T]]] = defaultdict(list)
        for rank, own_replica, item in ranked:
            index = own_replica.identity.index if own_replica.identity else -1
            self._queues[rank, own_replica.cluster].append((index, item))
        names = sorted({cluster for _, cluster in self._queues}, reverse=True)
        self._position = {cluster: position for position, cluster in enumerate(names)}
        for queue in self._queues.values():
            queue.sort(key=itemgetter(0))
        self._heap = [self._entry(*key) for key in self._queues]
        heapify(self._heap)

    def _entry(self, rank: Rank, cluster: str) -> tuple[object, ...]:
        """Return the sort key of the last of a queue; the lowest leaves first, so what weighs is negated."""
        later = tuple(-said for said in rank)
        index = self._queues[rank, cluster][-1][0]
        return (later, -self._load[cluster], -index, self._position[cluster], rank, cluster)

    def next(self) -> T | None:
        """Take the next out of the queue; None when it is empty."""
        while self._heap:
            entry = heappop(self._heap)
            rank, cluster = cast("tuple[Rank, str]", entry[-2:])
            if entry != self._entry(rank, cluster):  # Its cluster has fewer replicas than it had.
                heappush(self._heap, self._entry(rank, cluster))
                continue
            _, item = self._queues[rank, cluster].pop()
            if self._queues[rank, cluster]:
                heappush(self._heap, self._entry(rank, cluster))
            return item
        return None

    def left(self, own_replica: OwnReplica) -> None:
        """Count a replica no longer."""
        self._load[own_replica.cluster] -= 1


# Scale down: who leaves when more are kept than wanted. Survivors are never moved.
#
# Mismatched first; then unhealthy (on a cluster under an untolerated taint or known not to be Ready, then a
# replica not Ready; what a cluster does not say makes nothing unhealthy); then, with `placement.preferences`,
# the place that it prefers least; then the cluster with most of this deployment's replicas, recomputed for
# each victim; then the highest index; then the later cluster
# name. A replica whose key cannot be read is never a victim. With surge, what is not in service goes before
# all others, the mismatched that serve until they are replaced included.
#
# Load comes before the index: where fresh identities left gaps in the indices, the highest index first
# would empty one cluster and leave the others full.


def _sick(inputs: SchedulingInput, cluster: str) -> bool:
    """Tell if a cluster is under an untolerated taint or says that it is not Ready. Its silence is doubt."""
    inference_cluster = inputs.fleet.clusters.get(cluster)
    return inference_cluster is not None and (
        inference_cluster.ready is False
        or bool(untolerated(inference_cluster.spec.taints, inputs.deployment.template.tolerations))
    )


def _ranked(inputs: SchedulingInput, among: Iterable[Kept]) -> Iterator[tuple[Rank, OwnReplica, Kept]]:
    """Those that can leave, each with what comes before the load of its cluster."""
    sick = Memo(partial(_sick, inputs))
    preferences = scores.PreferencesScore.of(inputs)
    for replica in among:
        own_replica = replica.own_replica
        if own_replica.identity is None:
            continue
        unready = not inputs.serving.seems_to(own_replica)
        ill = sick.of(own_replica.cluster, own_replica.cluster)
        rank: Rank = (unready and surge(inputs) > 0, replica.mismatch is not None, ill, unready)
        if preferences is not None:
            cluster = inputs.fleet.clusters.get(own_replica.cluster)
            rank = (*rank, -preferences.of_replica(own_replica.replica, cluster))
        yield rank, own_replica, replica


def _leaving(inputs: SchedulingInput, kept: Iterable[Kept], among: Iterable[Kept]) -> Leaving[Kept]:
    """Line up those that can leave among some of all that are kept: `next` is the one that leaves first."""
    return Leaving(_ranked(inputs, among), (stays.own_replica.cluster for stays in kept))


def _excess(inputs: SchedulingInput, kept: tuple[Kept, ...]) -> Iterator[Kept]:
    """Yield the replicas that are too many, in the order in which they leave.

    Surge: outgoing ones stay for their replacements, as far as surge allows, and then any may be too many.
    Where none is wanted nothing is replaced, so none stays for a replacement.
    """
    wanted = inputs.deployment.wanted
    allowed = surge(inputs) if wanted else 0
    gone: set[str] = set()
    for most, held in ((wanted, allowed), (wanted + allowed, 0)):
        staying = [replica for replica in kept if replica.own_replica.key not in gone]
        among = [replica for replica in staying if not (held and replica.outgoing)]
        leaving = _leaving(inputs, staying, among)
        for _ in range(len(among) - most):
            victim = leaving.next()
            if victim is None:
                return
            leaving.left(victim.own_replica)
            gone.add(victim.own_replica.key)
            yield victim


def scale_down(
    inputs: SchedulingInput, ledger: Ledger, kept: tuple[Kept, ...]
) -> tuple[tuple[Kept, ...], list[Dropped]]:
    """Drop the excess over what is wanted. What a victim would have grown by is given back."""
    victims = list(_excess(inputs, kept)) if inputs.fleet.inputs_delivered else []
    for victim in victims:
        ledger.release(victim.own_replica.cluster, victim.growth)
    gone = {victim.own_replica.key for victim in victims}
    staying = tuple(replica for replica in kept if replica.own_replica.key not in gone)
    # Law 2, reason 4.
    return staying, [Dropped(victim.own_replica, Cause.ScaledDown) for victim in victims]


# Replace: a mismatched replica leaves only when a place for its replacement was found in the same pass.
#
# One at a time, in the order of scale down: its nodes are freed in the ledger, a place is looked for as
# fill does (neither it nor terminating replicas count for spreading), and it is given up if there is one;
# else it is charged again and held. With a disruption budget, one that may not leave now waits, and is not
# tried.
#
# With surge (`placement.disruption.maxSurge`) a replacement is placed beside what it replaces first. That
# goes for every *outgoing* replica: mismatched, drained, or superseded by a rollout.
#
# 1. While kept and placed together are less than wanted plus maxSurge, another is placed for it. It is
#    charged
#    in full: what it replaces stands on its nodes, and serves.
# 2. One that needs replacement leaves when it has one and the replicas in service without it are at least
#    wanted minus maxUnavailable. (Drained ones leave in `retain`, when that holds.)
# 3. Where that holds before it has one, because maxUnavailable is more than 0, it is replaced as without
#    surge.
#
# There is no memory: as many as exist beyond those wanted are the replacements of the first that are
# outgoing.


@dataclass(slots=True)
class Replaced:
    """The outcome of replacing."""

    staying: list[Kept]
    dropped: list[Dropped] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    covered: set[str] = field(default_factory=set)
    """The keys of outgoing replicas that stay although their replacement stands."""
    waits: set[str] = field(default_factory=set)
    """The keys of those that may not leave now."""
    blocked: str | None = None
    """The key of the first for which there is surge, and no place."""
    crowded: set[str] = field(default_factory=set)
    """Clusters without a place beside a replica of theirs: none is sought until one is placed or leaves."""

    @property
    def kept(self) -> tuple[Kept, ...]:
        """Those that stay, marked with what they wait for."""
        marked = []
        for kept in self.staying:
            key = kept.own_replica.key
            waits = kept.waits or ("replacement" if key in self.waits else "")
            covered, blocked = key in self.covered, key == self.blocked
            marked.append(dataclasses.replace(kept, waits=waits, covered=covered, blocked=blocked))
        return tuple(marked)


def replace(
    inputs: SchedulingInput, placer: Placer, kept: tuple[Kept, ...], new: int = 0, room: int | None = None
) -> Replaced:
    """Try to replace every replica that needs it. `new` are placed in this pass already.

    `room` caps how many more the answer can carry beside those that are replaced.
    """
    done, extra = Replaced(list(kept)), surge(inputs)
    waiting = [replica for replica in kept if replica.needs_replacement or (extra and replica.outgoing)]
    while waiting and (victim := _leaving(inputs, done.staying, waiting).next()) is not None:
        waiting.remove(victim)
        standing = len(done.staying) + len(done.placed) + new
        covered = bool(extra) and standing - inputs.deployment.wanted > len(done.covered)
        if covered:
            placer.ledger.count(victim.own_replica.cluster, -1)
        elif 0 <= standing - inputs.deployment.wanted < extra and len(done.placed) != room:
            covered = _place_beside(placer, done, victim)
        if _may_leave(inputs, done, victim) and (covered or _place_instead(placer, done, victim)):
            _give_up(placer, done, victim)
        elif covered:
            done.covered.add(victim.own_replica.key)
    return done


def _may_leave(inputs: SchedulingInput, done: Replaced, victim: Kept) -> bool:
    """Tell if a replica may leave for a replacement; one that may not yet waits. Drained ones left before."""
    if not victim.needs_replacement:
        return False
    if inputs.serving.lost(victim.own_replica) and _may_leave_idle(inputs, done, victim):
        return True  # It takes nothing with it. Else who fails with more than the budget has stays for ever.
    budget = replacement_budget(inputs) if victim.mismatch else rollout_budget(inputs)
    others = (stays.own_replica for stays in done.staying if stays.own_replica is not victim.own_replica)
    leaves = budget is None or inputs.deployment.wanted - sum(map(inputs.serving, others)) <= budget
    if not leaves and victim.mismatch:  # What is superseded waits for its turn in the rollout.
        done.waits.add(victim.own_replica.key)
    return leaves


def _may_leave_idle(inputs: SchedulingInput, done: Replaced, victim: Kept) -> bool:
    """Tell whether one that takes no requests may leave whatever the budget says.

    As an outdated one is updated at once in a staged rollout, a mismatched one is replaced at once. With
    surge it also leaves when more of those that last are in service than there would be without replacements.
    Else several of them would hold the surge for ever: none is enough for the budget while the others are
    out of service too.
    """
    if victim.mismatch and (victim.mismatch.evacuates or inputs.policy.rollout is not None):
        return True
    lasting = [stays.own_replica for stays in done.staying if not stays.outgoing]
    outgoing = len(done.staying) - len(lasting)
    return surge(inputs) > 0 and sum(map(inputs.serving, lasting)) > inputs.deployment.wanted - outgoing


def _place_beside(placer: Placer, done: Replaced, victim: Kept) -> bool:
    """Place another while a replica stands. It counts for spreading no longer, once there is one.

    Where it counts is all that two replicas differ in here, so while nothing changes a cluster is tried once.
    """
    cluster = victim.own_replica.cluster
    if cluster in done.crowded:
        return False
    placer.ledger.count(cluster, -1)
    placed = placer.place()
    if placed is not None:
        done.placed.append(placed)
        done.crowded.clear()
        return True
    placer.ledger.count(cluster)
    done.crowded.add(cluster)
    done.blocked = done.blocked or victim.own_replica.key
    return False


def _place_instead(placer: Placer, done: Replaced, victim: Kept) -> bool:
    """Place another on what a mismatched replica leaves free; without a place nothing is changed."""
    own_replica, ledger = victim.own_replica, placer.ledger
    if victim.mismatch is None:
        return False
    ledger.release(own_replica.cluster, victim.growth)
    ledger.vacate(own_replica.replica, own_replica.holds)
    ledger.count(own_replica.cluster, -1)
    placed = placer.place(replaces=own_replica)
    ledger.charge(own_replica.cluster, victim.growth)
    if placed is not None:
        _linger(ledger, own_replica, placed)
        done.placed.append(placed)
        return True
    ledger.occupy(own_replica.replica, own_replica.holds)
    ledger.count(own_replica.cluster)
    return False


def _give_up(placer: Placer, done: Replaced, victim: Kept) -> None:
    """Let a replica go, with the reason on record. It is charged until it is gone."""
    why = victim.mismatch.value if victim.mismatch else OUTDATED
    placer.ledger.release(victim.own_replica.cluster, victim.growth)
    done.staying.remove(victim)
    done.crowded.clear()
    detail = f"{why}: {victim.detail}" if victim.detail else why
    evacuated = victim.mismatch is not None and victim.mismatch.evacuates  # Law 2, reason 7; else 3.
    done.dropped.append(Dropped(victim.own_replica, Cause.Evacuated if evacuated else Cause.Replaced, detail))


def _linger(ledger: Ledger, own_replica: OwnReplica, placed: Placed) -> None:
    """Charge what is given up until it is gone: its nodes are free for its own replacement only."""
    standing = placed.candidate.nodes if placed.identity.cluster == own_replica.holds else {}
    held = ledger.demands(own_replica.replica)
    left = {
        pool: Demand(max(0, demand.nodes - standing.get(pool, 0)), demand.gangs)
        for pool, demand in held.items()
    }
    ledger.charge(own_replica.holds, left)


# placement.rollout: an edit of the template goes replica by replica.
#
# A kept replica is *outdated* if what it would be updated to has another template than it is observed with.
#
# 1. Outdated replicas that take no requests are updated at once: there is nothing to lose. Those in doubt
#    are, while wanted minus those in service is at most maxUnavailable. Beyond that one is that takes
#    requests half updated, when every replica that has the template is in service: else an edit could never
#    mend what an earlier one left so. It goes on taking requests.
# 2. Of the others one is updated, in the order of scale down, as long as afterwards wanted minus those in
#    service is at most maxUnavailable. The order is that in which they would be scaled down were there no
#    others, so it is the same in whichever pass their turn comes. Those that are about to leave come last.
# 3. All others keep the template they are observed with.
#
# With maxUnavailable 0 no replica in service is updated in place: it is *superseded*. Another is placed
# beside it, with the current template, and it leaves when that one is in service.
#
# So a template that does not start stops at the first replica, and taking the edit back makes that one
# outdated and the others up to date. The state of a rollout is what is observed; indices decide the order,
# not time.


def supersede(inputs: SchedulingInput, kept: tuple[Kept, ...]) -> tuple[Kept, ...]:
    """Mark the outdated replicas in service that are replaced, where the rollout goes by surge."""
    if rollout_budget(inputs) != 0:
        return kept
    return tuple(
        dataclasses.replace(replica, update=Update.Superseded)
        if not (inputs.serving.lost(replica.own_replica) or inputs.serving.half_updated(replica.own_replica))
        and is_outdated(inputs, replica)
        else replica
        for replica in kept
    )


def roll(inputs: SchedulingInput, kept: tuple[Kept, ...]) -> tuple[Kept, ...]:
    """Say of every outdated replica whether it is updated in this pass. Without a rollout all of them are."""
    budget = rollout_budget(inputs)
    if budget is None:
        return kept
    outdated = {
        replica.own_replica.key for replica in kept if replica.update is None and is_outdated(inputs, replica)
    }
    now = {
        replica.own_replica.key
        for replica in kept
        if replica.own_replica.key in outdated and inputs.serving.lost(replica.own_replica)
    }
    now |= _next(
        inputs, kept, budget, [replica for replica in kept if replica.own_replica.key in outdated - now]
    )
    return tuple(
        dataclasses.replace(replica, update=Update.Now if replica.own_replica.key in now else Update.Waits)
        if replica.own_replica.key in outdated
        else replica
        for replica in kept
    )


def is_outdated(inputs: SchedulingInput, kept: Kept) -> bool:
    """Tell if an update would change the template of a replica. One that is not updated is not outdated."""
    own_replica = kept.own_replica
    if kept.shape is None:
        return False
    try:
        observed = own_replica.document.project(stamp.RUNNING)["spec"]
    except Unreadable:
        return False
    updated = stamp.updated_spec(inputs.deployment, own_replica.cluster, kept.shape, observed)
    return bool(stamp.template_of(updated) != stamp.template_of(observed))


def _next(inputs: SchedulingInput, kept: tuple[Kept, ...], budget: int, waiting: list[Kept]) -> set[str]:
    """The keys of those outdated replicas in service, or in doubt, that the budget lets be updated now.

    No budget counts one in doubt as in service, so it costs nothing of it; what it may lose is within it.
    """
    serving = sum(inputs.serving(replica.own_replica) for replica in kept)
    doubtful = [replica for replica in waiting if not inputs.serving(replica.own_replica)]
    if inputs.deployment.wanted - serving > budget:
        halves = [replica for replica in doubtful if inputs.serving.half_updated(replica.own_replica)]
        has_template = [replica for replica in kept if replica.update is None and replica not in waiting]
        if all(inputs.serving(replica.own_replica) for replica in has_template):
            first = _leaving(inputs, waiting, halves).next()
            return set() if first is None else {first.own_replica.key}
        return set()
    now = {replica.own_replica.key for replica in doubtful}
    waiting = [replica for replica in waiting if replica.own_replica.key not in now]
    while waiting and inputs.deployment.wanted - (serving - 1) <= budget:
        lasting = [replica for replica in waiting if not replica.waits]
        following = _leaving(inputs, waiting, lasting or waiting).next()
        if following is None:
            break
        waiting.remove(following)
        now.add(following.own_replica.key)
        serving -= 1
    return now
