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

from typing import TYPE_CHECKING, NamedTuple

from function.api.lenient import conditions_of, mapping
from function.api.text import counted, joined, listed, one_line
from function.boundary import Condition, Unreadable
from function.scheduler.outcomes import Update
from function.scheduler.policy.disruption import rollout_budget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.boundary import Shape
    from function.scheduler.decision import Decision
    from function.scheduler.outcomes import Kept

UPDATED = "ReplicasUpdated"
SHOWN = 3
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
        waits = f"{_waiting(groups)} for that" if groups.waiting else ""
        return "RollingOut", joined(f"updating {_names(groups.now)}", waits)
    if groups.waiting and decision.placed and rollout_budget(decision.inputs) == 0:
        return "RollingOut", f"{_waiting(groups)} for {len(decision.placed)} placed now"
    if groups.waiting:
        return "RolloutPaused", f"{_waiting(groups)} until {listed(list(_blocks(decision)), SHOWN)}"
    if groups.starting:
        return "RollingOut", f"{_names(groups.starting)} {_does(groups.starting)} not run the template yet"
    if groups.held:
        return (
            "UpdateHeld",
            f"{_names(groups.held)} {_is(groups.held)} held as observed, see ReplicasScheduled",
        )
    return "AllReplicasUpdated", ""


def _waiting(groups: Progress) -> str:
    """`2 wait, within placement.rollout.maxUnavailable,`."""
    number = len(groups.waiting)
    return f"{number} wait{'s' * (number == 1)}, within placement.rollout.maxUnavailable,"


def _blocks(decision: Decision) -> Iterator[str]:
    """What has to be in service before the next replica is updated, or replaced."""
    inputs = decision.inputs
    starting = [
        kept for kept in decision.kept if kept.update is None and not inputs.serving(kept.own_replica)
    ]
    if rollout_budget(inputs) == 0 and not starting:
        yield "there is a place for one more (see ReplicasScheduled)"
    for kept in starting:
        words = own_words(kept)
        yield f"{name_of(kept)} is in service{f' ({words})' if words else ''}"
    missing = inputs.deployment.wanted - len(decision.kept)
    if missing > 0:
        yield f"{missing} more {'is' if missing == 1 else 'are'} placed and in service"


def own_words(kept: Kept) -> str:
    """What a replica says itself about why it is not in service: `ModelStarting: pulling the image`."""
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
