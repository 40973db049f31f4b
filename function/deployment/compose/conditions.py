"""The composite's conditions: the same on every path, the same text for the same problem, no time.

Why. A user who waits for a model reads `kubectl get` and the conditions, and often nothing else. Crossplane
keeps the last value of a condition that a function does not return. So a condition that was returned once is
returned ever after, or its last value would stand there and lie (`optional`).

Theory of operation
1. `ReplicasScheduled` reports the first problem that holds, in the order of `_problems`: what keeps the
   function from knowing comes before what it found out. Its reason is API and never changes its meaning.
2. What holds besides the reason is a note (`NOTES`). Notes have characters of their own, so that a long
   reason never pushes them out.
3. `ReplicasReady` counts what serves: Ready replicas with an endpoint. A replica that is Ready on a cluster
   that is not fit to serve is named with the fault of the cluster, others with their own words (`_remarks`).
4. `ReplicasUpdated`, `CapacityRespected` and `PriorityResolved` are optional. Each is asked for by the policy
   or the input of the function that it tells about.

Limits. A message has one line of at most 512 characters. It names the first few of a kind, sorted by name, so
that it is the same while the problem is. No text holds a time, an age or a counter that runs: a condition
that changes with every call would be a write, and every write wakes Crossplane again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

from function.api import Pool
from function.api.model import mapping, mappings, plain_of, string
from function.api.reasons import CONDITION_REASONS
from function.api.text import LIMIT, QUOTED, counted, joined, listed, one_line
from function.boundary import Condition, Request, Resolution, Shape, Unreadable
from function.deployment.explain.lint import advice
from function.deployment.explain.message import around, placed_of, replacement_cause
from function.deployment.requirements import coordinated, published
from function.scheduler import disruption, filters, headroom
from function.scheduler.decision import Decision
from function.scheduler.outcomes import Cause, Kept, Update
from function.scheduler.scheduling_input import evacuation, suspects
from function.transitions import MISSING, Before, conditions_before, unmet

# The condition ReplicasUpdated: how far a staged rollout is, and which replica it waits for.
#
# | status | reason | when |
# |---|---|---|
# | True | `AllReplicasUpdated` | every replica has the current template, and none is seen to run another |
# | False | `RollingOut` | a replica is updated in this pass, or the last that were have not started yet |
# | False | `RolloutPaused` | outdated replicas wait; the message names what has to be in service first |
# | False | `UpdateHeld` | none waits for its turn, some are held as they are: ReplicasScheduled says why |
# | False | `InputsUnresolved` | the fleet has not been delivered, so nothing is updated |


# Add to the message of ReplicasScheduled what holds whatever its reason is.

SHOWN = 3
"""How many pools, or doubts, a message names."""
NOTES_RESERVE = 160
"""Characters kept for the notes at least, so that a long message does not push them out."""


def _held_beyond(decision: Decision) -> Iterator[str]:
    """Pools of its replicas that hold more than they have, than can be used, or than has come yet.

    For the first somebody has to act, or to yield. On nodes that are gone replicas stay (Law 2), and to wait
    for nodes that are added is no shortage; both are said by the clusters.
    """
    if decision.overcommitted:
        yield f"PoolOvercommitted: {listed([*map(str, decision.overcommitted)], SHOWN)}"
    for pool, name, replicas in _marked_pools(decision, "exceeded"):
        usable = f"can use {pool.nodes - pool.unusable} of {counted(pool.nodes, 'node')}"
        yield f"NodesUnusable: {name} {usable} and holds more; {replicas} may stand on nodes that are gone"
    for pool, name, replicas in _marked_pools(decision, "awaiting"):
        there = f"has {pool.nodes - pool.unusable - pool.to_come} of {counted(pool.nodes, 'node')} yet"
        yield f"NodesToCome: {name} {there} and holds more; {replicas} may wait for nodes to be added"


def _marked_pools(
    decision: Decision, mark: Literal["exceeded", "awaiting"]
) -> Iterator[tuple[Pool, str, str]]:
    """Yield the marked pools that kept replicas hold something of: the pool, its name, and theirs.

    On which node a pod runs is not known here: where some are not Ready, only these are named.
    """
    clusters, here = decision.inputs.fleet.clusters, defaultdict(list)
    for replica in (kept.own_replica.replica for kept in decision.kept):
        cluster = clusters.get(replica.cluster)
        for pool in sorted(cluster.marked[mark].intersection(replica.nodes)) if cluster else ():
            here[replica.cluster, pool].append(replica)
    for (name, pool), replicas in sorted(here.items()):
        published = clusters[name].by_name.get(pool)
        suspects = [replica for replica in replicas if replica.ready is not True] or replicas
        if published is not None:
            yield published, f"{name}/{pool}", listed(sorted(one.name for one in suspects), SHOWN)


def _evacuation(decision: Decision) -> Iterator[str]:
    """Why nothing is evacuated though something may have to be: doing nothing would look like all is well."""
    inputs = decision.inputs
    if inputs.fleet.whole and inputs.fleet.clusters_resolution is Resolution.DELIVERED and suspects(inputs):
        paused = evacuation(inputs).paused
        if paused:
            yield paused


def _waiting(decision: Decision) -> Iterator[str]:
    """Replicas that would leave now, were it not for the disruption budget."""
    waiting = Counter(kept.waits for kept in decision.kept if kept.waits and not kept.blocked)
    for cause, number in sorted(waiting.items()):
        yield f"{number} wait{'s' * (number == 1)} for {cause}, within placement.disruption.maxUnavailable"


def _beside(decision: Decision) -> Iterator[str]:
    """Replicas beyond those wanted, which stand beside what they replace."""
    beyond = decision.total - decision.wanted
    if beyond > 0 and disruption.surge(decision.inputs):
        yield f"{beyond} more than wanted until replacements are in service (placement.disruption.maxSurge)"


def _doubted(decision: Decision) -> Iterator[str]:
    """Replicas that are kept in doubt, and the edits that wait for the doubt to end.

    Where nothing at all can be looked at (inputs undelivered, no cluster, an invalid selector or input), the
    reason of the condition says already that everything is kept.
    """
    inputs = decision.inputs
    if inputs.selectors.invalid or inputs.config_fault or not inputs.fleet.inputs_delivered:
        return
    if inputs.fleet.clusters_resolution is not Resolution.DELIVERED:
        return
    doubts = Counter((kept.own_replica.cluster, kept.doubt) for kept in decision.kept if kept.doubt)
    if doubts:
        named = [
            f"{number} on {cluster or 'an unknown cluster'} ({doubt})"
            for (cluster, doubt), number in sorted(doubts.items())
        ]
        yield f"kept in doubt: {listed(named, SHOWN)}"
    until = sorted({condition for kept in decision.kept for condition in kept.withheld_until})
    if until:
        yield f"edits are withheld until {listed(until, SHOWN)}"


def _outside(decision: Decision) -> Iterator[str]:
    """Replicas on clusters that a new one would not be put on: labels gate new placements only.

    A label or a selector that was mistyped looks just like one that was meant, so it is said. Where something
    is missing, the message has said it of every cluster.
    """
    inputs = decision.inputs
    if decision.rejections or inputs.selectors.invalid or not inputs.fleet.inputs_delivered:
        return
    gates = [
        gate for kind in (filters.ClusterSelectorFilter, filters.CacheFootprint) if (gate := kind.of(inputs))
    ]
    hosts = Counter(kept.own_replica.cluster for kept in decision.kept if not kept.mismatch)
    named = []
    for name, number in sorted(hosts.items()):
        cluster = inputs.fleet.clusters.get(name)
        rejections = (gate.reject(cluster) for gate in gates) if cluster else ()
        rejection = next(filter(None, rejections), None)
        if rejection is not None:
            particular = f": {rejection.particular}" if rejection.particular else ""
            named.append(f"{number} on {name} ({rejection.reason.value}{particular})")
    if named:
        yield f"kept where no new one would go: {listed(named, SHOWN)}"


def _preempting(decision: Decision) -> Iterator[str]:
    """Replicas that wait for others to give way, by the word of their clusters."""
    inputs = decision.inputs
    ours = f"{inputs.deployment.namespace}/{inputs.deployment.name}"
    waiting = Counter(
        kept.own_replica.cluster
        for kept in decision.kept
        if kept.own_replica.replica.preempting and kept.own_replica.replica.ready is not True
    )
    for name, number in sorted(waiting.items()):
        cluster = inputs.fleet.clusters.get(name)
        named = cluster.gives_way.values() if cluster and inputs.config.preempts else ()
        victims = [victim for victim in named if victim.to == ours]
        if victims:
            borrowed = any(victim.quota for victim in victims)
            lower = f"that borrow{'s' * (len(victims) == 1)}" if borrowed else "of lower classes"
            who = f"{counted(len(victims), 'replica')} {lower}"
            yield f"{number} on {name} wait{'s' * (number == 1)} for {who} to give way"


def _guaranteed(decision: Decision) -> Iterator[str]:
    """How far a team has what it is guaranteed, and what of it others borrow; what it borrows itself."""
    inputs, quotas, shares = decision.inputs, decision.ledger.quotas, decision.shares
    if shares is None or quotas is None:
        return
    kept = (kept.own_replica.replica for kept in decision.kept)
    ours = [shares.get((replica.namespace, replica.name)) for replica in kept]
    borrowed = sum(share is not None and share.borrowed for share in ours)
    if borrowed:
        names = ", ".join(quota.name for quota in quotas.team(inputs.deployment.namespace).guarantees)
        yield f"{counted(borrowed, 'replica')} borrowed beyond what {names} guarantees, the first to give way"
    for holding in headroom.guarantees(decision) if decision.total < decision.wanted else ():
        yield str(holding)


def _too_dear(decision: Decision) -> Iterator[str]:
    """Selectors that cost more than a call spends: those of earlier deployments, and preferences of our own.

    For such a deployment nothing is reserved, so two may pick the same node. Such a preference counts as if
    it did not match.
    """
    if decision.left_out:
        names = listed([*decision.left_out], SHOWN)
        yield f"nothing is reserved for {names}: their selectors cost more than a call spends on others"
    unjudged = sorted(decision.inputs.evaluations.unjudged.items())
    named = [f"preferences[{at}] on {counted(len(clusters), 'cluster')}" for at, clusters in unjudged]
    if named:
        yield f"counted as no match, because evaluating it costs too much: {listed(named, SHOWN)}"


NOTES = (
    *(_held_beyond, _evacuation, _waiting, _beside, _doubted, _outside, _too_dear),
    *(_preempting, _guaranteed),
)
"""What is added, in this order."""


def noted(decision: Decision, text: str) -> str:
    """A message with the notes that hold, in one line of at most the length a condition has."""
    notes = "; ".join(note for notes in NOTES for note in notes(decision))
    if not notes:
        return one_line(text)
    tail = one_line(notes, max(NOTES_RESERVE, LIMIT - 2 - len(one_line(text))))
    return f"{one_line(text, LIMIT - 2 - len(tail))}; {tail}"


UPDATED = "ReplicasUpdated"
WORDS = 160
"""Characters of what a replica says itself, where more is said beside it."""
LEAST_WORDS = 40
"""Characters of it beside a long name: the reason, at least."""
REMARKS_FRAME = 48
"""Characters around what replicas say, and of how many more say something."""
_CONDITION: Shape = {"type": None, "status": None, "reason": None, "message": None}
_TELLING = ("ModelAccepted", "ModelReady", "Synced", "Ready")
"""Conditions of a ModelReplica that say why it is not in service, the most telling first."""


class Progress(NamedTuple):
    """The kept replicas by how far they are. Each is in one of the lists."""

    updated: list[Kept]
    starting: list[Kept]
    """They have the current template, and are seen to run another."""
    now: list[Kept]
    waiting: list[Kept]
    held: list[Kept]
    """Not updated for another reason than the rollout: mismatched, or in doubt."""


def progress(decision: Decision) -> Progress:
    """Sort the kept replicas by how far they are."""
    groups = Progress([], [], [], [], [])
    for kept in decision.kept:
        if kept.update is not None:
            (groups.now if kept.update is Update.Now else groups.waiting).append(kept)
        elif kept.shape is None:
            groups.held.append(kept)
        else:
            runs = decision.inputs.serving.runs_its_template(kept.own_replica)
            (groups.updated if runs else groups.starting).append(kept)
    return groups


def replicas_updated(decision: Decision) -> Condition:
    """ReplicasUpdated, where a rollout is staged and ever after."""
    if not decision.inputs.fleet.inputs_delivered:
        return unresolved(UPDATED, "the fleet has not been delivered")
    groups = progress(decision)
    reason, text = _progress_phrase(decision, groups)
    done = reason == "AllReplicasUpdated"
    counts = f"{len(groups.updated) + len(decision.placed)} of {counted(decision.total, 'replica')} updated"
    return Condition(UPDATED, status=done, reason=reason, message=one_line(joined(counts, text)))


def unresolved(kind: str, why: str) -> Condition:
    """An optional condition while nothing can be said of it: doubt, so all stays as it is."""
    return unmet(kind, "InputsUnresolved", f"Unknown: {why}")


def _progress_phrase(decision: Decision, groups: Progress) -> tuple[str, str]:
    """Return reason and text of a rollout, by the table above: what moves comes before what waits."""
    if groups.now:
        waits = f"{_awaited(groups)} for that" if groups.waiting else ""
        return "RollingOut", joined(f"updating {_names(groups.now)}", waits)
    if groups.waiting and decision.placed and disruption.rollout_budget(decision.inputs) == 0:
        return "RollingOut", f"{_awaited(groups)} for {len(decision.placed)} placed now"
    if groups.waiting:
        return "RolloutPaused", f"{_awaited(groups)} until {listed(list(_blocks(decision)), SHOWN)}"
    if groups.starting:
        do = "does" if len(groups.starting) == 1 else "do"
        return "RollingOut", f"{_names(groups.starting)} {do} not run the template yet"
    if groups.held:
        are = "is" if len(groups.held) == 1 else "are"
        return "UpdateHeld", f"{_names(groups.held)} {are} held as observed, see ReplicasScheduled"
    return "AllReplicasUpdated", ""


def _awaited(groups: Progress) -> str:
    """`2 wait, within placement.rollout.maxUnavailable,`."""
    number = len(groups.waiting)
    return f"{number} wait{'s' * (number == 1)}, within placement.rollout.maxUnavailable,"


def _blocks(decision: Decision) -> Iterator[str]:
    """Yield the replicas that must be in service before the next one is updated or replaced."""
    inputs = decision.inputs
    starting = [
        kept for kept in decision.kept if kept.update is None and not inputs.serving(kept.own_replica)
    ]
    if disruption.rollout_budget(inputs) == 0 and not starting:
        yield "there is a place for one more (see ReplicasScheduled)"
    doubtful = [kept for kept in decision.kept if kept.update and not inputs.serving(kept.own_replica)]
    for kept in starting or doubtful:
        words = own_words(kept)
        where = f"{kept.own_replica.cluster}/{kept.own_replica.replica.name}"
        yield f"{where} is in service{f' ({words})' if words else ''}"
    missing = inputs.deployment.wanted - len(decision.kept)
    if missing > 0:
        yield f"{missing} more {'is' if missing == 1 else 'are'} placed and in service"


def own_words(kept: Kept) -> str:
    """Return a replica's own explanation of why it is not in service: `ModelStarting: pulling the image`."""
    reports = _reports(kept)
    false = (reports[kind] for kind in ("ModelUpdated", *_TELLING) if kind in reports)
    report = next((report for report in false if report.status == "False"), MISSING)
    return one_line(joined(report.reason, report.message, by=": "), WORDS)


def _reports(kept: Kept) -> dict[str, Before]:
    """Return the conditions of a replica, by type."""
    plain = plain_of(kept.own_replica.document, {"status": {"conditions": _CONDITION}})
    parts = ("status", "reason", "message")
    return {
        string(condition.get("type")): Before(*(string(condition.get(part)) for part in parts))
        for condition in mappings(mapping(plain, "status").get("conditions"))
    }


def _remarks(decision: Decision, room: int) -> str:
    """Name replicas with what they say themselves, the worst first, in at most `room` characters.

    A problem comes before something that is on its way. Last comes what is wrong beside a model that serves:
    ModelAccepted says that when it is True.
    """
    remarks: list[tuple[int, str, Before]] = []
    for kept in decision.kept:
        replica, reports = kept.own_replica.replica, _reports(kept)
        false = [reports[kind] for kind in _TELLING if reports.get(kind, MISSING).status == "False"]
        rank, report = 2, reports.get("ModelAccepted", MISSING)
        if replica.ready is not True and false:
            problem = next(filter(_is_problem, false), None)
            rank, report = (1, false[0]) if problem is None else (0, problem)
        if report.message:
            remarks.append((rank, f"{kept.own_replica.cluster}/{replica.name}", report))
    if not remarks or room < LEAST_WORDS:
        return ""
    width = room // min(len(remarks), SHOWN)
    named = [
        f"{name} ({one_line(joined(reason, message, by=': '), max(width - len(name), LEAST_WORDS))})"
        for _, name, (_, reason, message) in sorted(remarks)
    ]
    return f"{QUOTED}{listed(named, SHOWN)}"


def _is_problem(report: Before) -> bool:
    """Tell whether somebody may have to act on what a replica reports."""
    row = CONDITION_REASONS["ModelReplica"].get(report.reason)
    return row is not None and row.is_problem


def _names(replicas: list[Kept]) -> str:
    """Name the first few; the rest is a number, so that the message stays one line."""
    return listed([f"{kept.own_replica.cluster}/{kept.own_replica.replica.name}" for kept in replicas], SHOWN)


# Find degraded clusters, whose replicas may run and cannot be relied on, and say what is wrong there.
#
# A degraded cluster keeps its replicas (Law 2). That nothing is wrong with the replica itself is worth
# saying: who looks for the fault has to look at the cluster.


class DegradedCluster(NamedTuple):
    """A cluster of this deployment's replicas that is not fit to serve."""

    name: str
    fault: str
    holds_ready: bool
    """Whether a replica on it is Ready itself: then the cluster is all that is wrong with that one."""


def degraded_clusters(decision: Decision, routable: Collection[str]) -> tuple[DegradedCluster, ...]:
    """The degraded clusters of the kept replicas, by name; none while the clusters are not delivered.

    A cluster without a gateway address is degraded only for a replica that has no endpoint from before:
    one whose endpoint is still there is reached as ever (`routable` holds the keys of those that are).
    """
    if decision.inputs.fleet.clusters_resolution is Resolution.UNRESOLVED:
        return ()
    degraded: dict[str, DegradedCluster] = {}
    for kept in decision.kept:
        own_replica = kept.own_replica
        fault = _fault(decision, own_replica.cluster, routed=own_replica.key in routable)
        if fault:
            before = degraded.get(own_replica.cluster)
            ready = own_replica.replica.ready is True or (before is not None and before.holds_ready)
            degraded[own_replica.cluster] = DegradedCluster(own_replica.cluster, fault, ready)
    return tuple(degraded[name] for name in sorted(degraded))


def _fault(decision: Decision, name: str, *, routed: bool) -> str:
    """Return the fault of a cluster as far as traffic is concerned; empty for none."""
    fleet = decision.inputs.fleet
    cluster = fleet.clusters.get(name)
    if cluster is None:
        if routed:
            return ""  # Whether it is Ready is not known, and its endpoint is there.
        missing = "is not in the fleet" if fleet.whole else "is not known"
        return "cannot be read" if name in fleet.unreadable else missing
    if cluster.status is None:
        return "has no status"
    if not cluster.ready:
        return "is not Ready" if cluster.ready is False else "does not say whether it is Ready"
    return "" if cluster.gateway or routed else "has no gateway address"


def degraded_text(clusters: Sequence[DegradedCluster]) -> str:
    """`cluster use1 is not Ready, use2 has no gateway address`; empty for none."""
    if not clusters:
        return ""
    return f"cluster {listed([f'{cluster.name} {cluster.fault}' for cluster in clusters], SHOWN)}"


SCHEDULED, READY, CACHE_RESOLVED = "ReplicasScheduled", "ReplicasReady", "ModelCacheResolved"
CAPACITY, PRIORITY = "CapacityRespected", "PriorityResolved"
WAITED_FOR = 4
"""How many undelivered requirements a message names."""


def _kept(decision: Decision, whole: str) -> str:
    """Say what doubt keeps: `whole`, or all but those that leave for a reason beyond doubt."""
    causes = Counter(dropped.cause for dropped in decision.dropped if dropped.cause is not Cause.Terminating)
    if not causes:
        return f"{whole} is kept"
    leave = f"{counted(causes.total(), 'replica')} leave{'s' * (causes.total() == 1)}"
    why = "; ".join(cause.value for cause in Cause if cause in causes)
    return f"{leave} ({why}), every other one is kept"


def _invalid_selectors(decision: Decision) -> Iterator[tuple[str, str]]:
    """Selectors that do not compile: the first of its level, how many more, and what may be meant."""
    for of_clusters, reason in ((True, "InvalidClusterSelector"), (False, "InvalidNodeSelector")):
        invalid = [
            selector
            for selector in decision.inputs.selectors.invalid
            if selector.cluster_level is of_clusters
        ]
        if invalid:
            more = f" (and {len(invalid) - 1} more)" if len(invalid) > 1 else ""
            fault = f"{invalid[0].path}: {invalid[0].error}{more}"
            kept = f"{_kept(decision, 'every running replica')}, nothing new is placed"
            yield reason, joined(fault, advice(invalid[0], decision.inputs.fleet), kept)


def _held(decision: Decision) -> Iterator[tuple[str, str]]:
    """Replicas whose replacement has no place: mismatched, or blocked. Law 2: they are kept as observed."""
    held = [kept for kept in decision.held if kept.blocked or not kept.waits]
    if held:
        why = replacement_cause(held[0])
        first = held[0]
        noun = "replica needs" if len(held) == 1 else "replicas need"
        evacuated = all(kept.mismatch and kept.mismatch.evacuates for kept in held)
        stay = "stay where they are" if evacuated else "keep running as they are"
        text = f"{len(held)} {noun} replacement and none has a place, so they {stay}"
        text = f"{text}: {first.own_replica.cluster}/{first.own_replica.replica.name}: {why}"
        blocked = around(text, decision) if decision.rejections else joined(text, placed_of(decision))
        yield "ReplacementBlocked", blocked


def _shortfall(decision: Decision) -> Iterator[tuple[str, str]]:
    """Fewer are placed than wanted, or than minReplicas asks for."""
    total, least = decision.total, decision.inputs.deployment.least
    if total >= decision.wanted:
        return
    if least is not None and total < least:
        others = (
            f"{decision.withheld} more had a place" if decision.withheld else "no place was found for more"
        )
        after = f"minReplicas is {least}, {others}, so nothing new is placed"
        yield "MinReplicasNotMet", _missing(decision, after)
    yield ("PartiallyScheduled" if total else "InsufficientCapacity"), _missing(decision)


def _missing(decision: Decision, after: str = "") -> str:
    """Why fewer are placed than wanted."""
    if decision.rejections and not decision.stopped:
        return around(placed_of(decision), decision, after)
    return joined(placed_of(decision), decision.stopped or _obstacle(decision), after)


def _obstacle(decision: Decision) -> str:
    """Why nothing was looked for, when no cluster was to blame."""
    fleet, name = decision.inputs.fleet, decision.inputs.deployment.cache
    if fleet.cache_resolution is Resolution.ABSENT:
        return f"nothing new is placed until ModelCache {decision.inputs.deployment.namespace}/{name} exists"
    return "nothing new is placed until every input is known"


def _problems(decision: Decision) -> Iterator[tuple[str, str]]:
    """Every problem that holds, in the order in which the first one is reported."""
    undelivered = decision.inputs.fleet.undelivered
    if undelivered:
        waiting = f"Waiting for required resources: {listed(undelivered, WAITED_FOR)}"
        yield "InputsUnresolved", joined(waiting, _kept(decision, "everything running"))
    if decision.inputs.config_fault:
        kept = f"{_kept(decision, 'every running replica')}, nothing new is placed"
        yield "InvalidInput", joined(decision.inputs.config_fault, kept)
    yield from _invalid_selectors(decision)
    if decision.inputs.fleet.clusters_resolution is Resolution.ABSENT and (decision.wanted or decision.total):
        yield "NoClusters", f"There is no InferenceCluster; {_kept(decision, 'everything running')}"
    yield from _held(decision)
    yield from _shortfall(decision)


def scheduled(decision: Decision) -> Condition:
    """ReplicasScheduled: the first problem in order, or how far creation is."""
    problem = next(_problems(decision), None)
    if problem is not None:
        reason, text = problem
        met = reason == "PartiallyScheduled" and decision.inputs.deployment.least is not None
        return Condition(SCHEDULED, status=met, reason=reason, message=noted(decision, text))
    text = noted(decision, placed_of(decision))
    if decision.total and not any(kept.own_replica.observed for kept in decision.kept):
        return Condition(SCHEDULED, status=False, reason="Scheduling", message=text)
    return Condition(SCHEDULED, status=True, reason="ReplicasCreated", message=text)


def ready(decision: Decision, routable: Collection[str]) -> Condition:
    """ReplicasReady: Ready and routable replicas, counted against the placed ones.

    `routable` are the keys of the kept replicas that are Ready and have an endpoint.
    """
    if not decision.total and decision.wanted:
        return Condition(READY, status=False, reason="NoReplicasScheduled", message="No replica is placed")
    degraded = degraded_clusters(decision, routable)
    text = joined(f"{len(routable)} of {decision.total} ready", degraded_text(degraded))
    text = one_line(text + _remarks(decision, LIMIT - len(text) - REMARKS_FRAME))
    if any(cluster.holds_ready for cluster in degraded):
        return Condition(READY, status=False, reason="ClusterDegraded", message=text)
    done = len(routable) >= decision.total
    return Condition(READY, status=done, reason="AllReplicasReady" if done else "ModelStarting", message=text)


def cache_resolved(name: str, resolution: Resolution | None, fault: str) -> Condition | None:
    """ModelCacheResolved, only with a modelCacheRef. `fault` says why one that is there cannot be read."""
    match resolution:
        case None:
            return None
        case Resolution.DELIVERED:
            return Condition(CACHE_RESOLVED, status=True, reason="ModelCacheResolved")
        case Resolution.ABSENT:
            text = f"ModelCache {name} does not exist; nothing new is placed"
            return unmet(CACHE_RESOLVED, "ModelCacheNotFound", text)
        case Resolution.UNRESOLVED:
            text = f"ModelCache {name} cannot be read: {fault}" if fault else f"Waiting for ModelCache {name}"
            return unmet(CACHE_RESOLVED, "ModelCacheUnresolved", text)


def capacity_respected(decision: Decision) -> Condition:
    """CapacityRespected: whether the pools of the deployment's replicas hold no more than they have.

    It tells what is observed, so what gives way in this pass is still in it.
    """
    if not decision.inputs.fleet.inputs_delivered:
        return unresolved(CAPACITY, "the fleet has not been delivered")
    if not decision.overcommitted:
        return Condition(CAPACITY, status=True, reason="CapacityRespected")
    gives_way = sum(dropped.cause is Cause.Yielded for dropped in decision.dropped)
    leaving = f"{gives_way} of its replicas give{'s' * (gives_way == 1)} way" if gives_way else ""
    text = joined(listed([*map(str, decision.overcommitted)], SHOWN), leaving)
    return unmet(CAPACITY, "PoolOvercommitted", text)


def priority_resolved(decision: Decision) -> Condition:
    """PriorityResolved: which class the deployment has, and why it counts as having none."""
    inputs = decision.inputs
    if inputs.config_fault:
        return unresolved(PRIORITY, "the function's input is invalid")
    priority = inputs.priority
    if not priority.exists:
        classes = listed(sorted(named.name for named in inputs.config.priority_classes), SHOWN)
        exist = f"the classes are {classes}" if classes else "the function's input has none"
        text = f'There is no priority class "{priority.name}" ({exist}): it counts as the lowest'
        return unmet(PRIORITY, "PriorityClassUnknown", text)
    if not priority.allowed:
        where = f"namespace {inputs.deployment.namespace}"
        text = f'Priority class "{priority.name}" is not for {where}: it counts as the lowest'
        return unmet(PRIORITY, "PriorityClassForbidden", text)
    text = f"{priority.name}, value {priority.value}" if priority.name else "No class, which is the lowest"
    return Condition(PRIORITY, status=True, reason="PriorityResolved", message=one_line(text))


_TYPES: Shape = {"status": {"conditions": {"type": None}}}


def tells_priority(request: Request) -> bool:
    """Tell whether PriorityResolved is returned: where there are classes, or one is named, and ever after."""
    defaults = mapping(request.input, "defaults", "placement")
    if request.input.get("priorityClasses") or defaults.get("priorityClassName"):
        return True
    shape: Shape = {"spec": {"placement": {"priorityClassName": None}}, **_TYPES}
    composite = plain_of(request.composite, shape)
    named = mapping(composite, "spec", "placement").get("priorityClassName")
    return bool(named) or PRIORITY in conditions_before(mapping(composite.get("status")))


def tells_capacity(request: Request) -> bool:
    """Tell whether CapacityRespected is returned: where the input coordinates or reads sums, and ever after.

    A composite that has it keeps it when the input no longer asks: what is not returned would keep its last
    value and lie. One that never had it, as on Modelplane's own Composition, gets what it always got.
    """
    if coordinated(request) or published(request) or request.asks("overcommit", "Yield"):
        return True
    composite = plain_of(request.composite, _TYPES)
    return CAPACITY in conditions_before(mapping(composite.get("status")))


def tells_rollout(request: Request) -> bool:
    """Tell if ReplicasUpdated is returned: where a rollout is staged, and ever after as `tells_capacity`."""
    defaults = mapping(request.input, "defaults", "placement")
    try:
        composite = request.composite.project({"spec": {"placement": {"rollout": None}}, **_TYPES})
    except Unreadable:
        return False
    stated = mapping(composite, "spec", "placement")
    return stated.get("rollout", defaults.get("rollout")) is not None or UPDATED in conditions_before(
        mapping(composite.get("status"))
    )


def optional(request: Request) -> tuple[str, ...]:
    """The conditions that are returned because a policy or the input asks for them, in their order."""
    return (
        *((UPDATED,) if tells_rollout(request) else ()),
        *((CAPACITY,) if tells_capacity(request) else ()),
        *((PRIORITY,) if tells_priority(request) else ()),
    )


def conditions(
    decision: Decision, routable: Collection[str], requested: Collection[str]
) -> tuple[Condition, ...]:
    """All conditions, in their order. What is not returned would keep its last value and lie.

    `requested` are the optional ones that are returned.
    """
    fleet, of = decision.inputs.fleet, decision.inputs.deployment
    stated = (
        cache_resolved(f"{of.namespace}/{of.cache}", fleet.cache_resolution, fleet.cache_fault),
        scheduled(decision),
        ready(decision, routable),
        replicas_updated(decision) if UPDATED in requested else None,
        capacity_respected(decision) if CAPACITY in requested else None,
        priority_resolved(decision) if PRIORITY in requested else None,
    )
    return tuple(condition for condition in stated if condition is not None)
