"""The condition ReplicasUpdated: how far a staged rollout is, and which replica it waits for.

| status | reason | when |
|---|---|---|
| True | `AllReplicasUpdated` | every replica has the current template, and none is seen to run another |
| False | `RollingOut` | a replica is updated in this pass, or the last ones that were have not started yet |
| False | `RolloutPaused` | outdated replicas wait; the message names what has to be in service first |
| False | `UpdateHeld` | none waits for its turn, but some are held as they are: ReplicasScheduled says why |
| False | `InputsUnresolved` | the fleet has not been delivered, so nothing is updated |
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from function.api.model import conditions_of, mapping
from function.api.text import LIMIT, counted, joined, listed, one_line
from function.boundary import Condition, Resolution, Unreadable
from function.scheduler.disruption import rollout_budget, surge
from function.scheduler.filters import CacheFootprint, ClusterSelectorFilter
from function.scheduler.outcomes import Update, evacuation, suspects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from function.boundary import Shape
    from function.scheduler.decision import Decision
    from function.scheduler.ledger import Overcommitted
    from function.scheduler.outcomes import Kept


# Add to the message of ReplicasScheduled what holds whatever its reason is.

SHOWN = 3
"""How many pools, or doubts, a message names."""
NOTES_RESERVE = 160
"""Characters kept for the notes at least, so that a long message does not push them out."""


def _overcommitted(decision: Decision) -> Iterator[str]:
    """The pools of its replicas that hold more than they have: somebody has to act, or to yield."""
    if decision.overcommitted:
        yield f"PoolOvercommitted: {listed_pools(decision.overcommitted)}"


def listed_pools(pools: Sequence[Overcommitted]) -> str:
    """Overcommitted pools, the first few by name."""
    return listed([*map(str, pools)], SHOWN)


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
    if beyond > 0 and surge(decision.inputs):
        yield f"{beyond} more than wanted until replacements are in service (placement.disruption.maxSurge)"


def _doubted(decision: Decision) -> Iterator[str]:
    """Replicas that are kept in doubt, and the edits that wait for the doubt to end.

    Where nothing at all can be looked at (inputs undelivered, no cluster, an invalid selector), the reason
    of the condition says already that everything is kept.
    """
    inputs = decision.inputs
    if inputs.selectors.invalid or not inputs.fleet.inputs_delivered:
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
    gates = [gate for kind in (ClusterSelectorFilter, CacheFootprint) if (gate := kind.of(inputs))]
    hosts = Counter(kept.own_replica.cluster for kept in decision.kept if not kept.mismatch)
    named = []
    for name, number in sorted(hosts.items()) if gates else ():
        cluster = inputs.fleet.clusters.get(name)
        rejections = (gate.reject(cluster) for gate in gates) if cluster else ()
        rejection = next(filter(None, rejections), None)
        if rejection is not None:
            particular = f": {rejection.particular}" if rejection.particular else ""
            named.append(f"{number} on {name} ({rejection.reason.value}{particular})")
    if named:
        yield f"kept where no new one would go: {listed(named, SHOWN)}"


def _left_out(decision: Decision) -> Iterator[str]:
    """Deployments for which nothing is reserved, so that two may pick the same node."""
    if decision.left_out:
        names = listed([*decision.left_out], SHOWN)
        yield f"nothing is reserved for {names}: their selectors cost more than a call spends on others"


NOTES = (_overcommitted, _evacuation, _waiting, _beside, _doubted, _outside, _left_out)
"""What is added, in this order."""


def noted(decision: Decision, text: str) -> str:
    """A message with the notes that hold, in one line of at most the length a condition has."""
    notes = "; ".join(note for notes in NOTES for note in notes(decision))
    if not notes:
        return one_line(text)
    tail = one_line(notes, max(NOTES_RESERVE, LIMIT - 2 - len(one_line(text))))
    return f"{one_line(text, LIMIT - 2 - len(tail))}; {tail}"


UPDATED = "ReplicasUpdated"
"""How many replicas a message names."""
WORDS = 160
"""Characters of what a replica says itself."""
_CONDITION: Shape = {"type": None, "status": None, "reason": None, "message": None}
_TELLING = ("ModelUpdated", "ModelReady", "ModelAccepted", "Synced", "Ready")
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
        return unresolved_rollout("the fleet has not been delivered")
    groups = progress(decision)
    reason, text = _progress_phrase(decision, groups)
    done = reason == "AllReplicasUpdated"
    counts = f"{len(groups.updated) + len(decision.placed)} of {counted(decision.total, 'replica')} updated"
    return Condition(UPDATED, status=done, reason=reason, message=one_line(joined(counts, text)))


def unresolved_rollout(why: str) -> Condition:
    """ReplicasUpdated while nothing can be said of it; everything keeps its template then."""
    return Condition(UPDATED, status=False, reason="InputsUnresolved", message=one_line(f"Unknown: {why}"))


def _progress_phrase(decision: Decision, groups: Progress) -> tuple[str, str]:
    if groups.now:
        waits = f"{_awaited(groups)} for that" if groups.waiting else ""
        return "RollingOut", joined(f"updating {_names(groups.now)}", waits)
    if groups.waiting and decision.placed and rollout_budget(decision.inputs) == 0:
        return "RollingOut", f"{_awaited(groups)} for {len(decision.placed)} placed now"
    if groups.waiting:
        return "RolloutPaused", f"{_awaited(groups)} until {listed(list(_blocks(decision)), SHOWN)}"
    if groups.starting:
        return "RollingOut", f"{_names(groups.starting)} {_does(groups.starting)} not run the template yet"
    if groups.held:
        return (
            "UpdateHeld",
            f"{_names(groups.held)} {_is(groups.held)} held as observed, see ReplicasScheduled",
        )
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
    if rollout_budget(inputs) == 0 and not starting:
        yield "there is a place for one more (see ReplicasScheduled)"
    doubtful = [kept for kept in decision.kept if kept.update and not inputs.serving(kept.own_replica)]
    for kept in starting or doubtful:
        words = own_words(kept)
        yield f"{name_of(kept)} is in service{f' ({words})' if words else ''}"
    missing = inputs.deployment.wanted - len(decision.kept)
    if missing > 0:
        yield f"{missing} more {'is' if missing == 1 else 'are'} placed and in service"


def own_words(kept: Kept) -> str:
    """Return a replica's own explanation of why it is not in service: `ModelStarting: pulling the image`."""
    try:
        status = mapping(
            kept.own_replica.document.project({"status": {"conditions": _CONDITION}}).get("status")
        )
    except Unreadable:
        return ""
    reports = {
        condition.get("type"): condition
        for condition in conditions_of(status)
        if condition.get("status") == "False"
    }
    first = next((reports[kind] for kind in _TELLING if kind in reports), {})
    words = (first.get("reason"), first.get("message"))
    return one_line(": ".join(word for word in words if isinstance(word, str) and word), WORDS)


def name_of(kept: Kept) -> str:
    """`use1/chat-0a1b2`."""
    return f"{kept.own_replica.cluster}/{kept.own_replica.replica.name}"


def _names(replicas: list[Kept]) -> str:
    return listed([name_of(kept) for kept in replicas], SHOWN)


def _does(replicas: list[Kept]) -> str:
    return "does" if len(replicas) == 1 else "do"


def _is(replicas: list[Kept]) -> str:
    return "is" if len(replicas) == 1 else "are"
