"""Events: only on a transition, compared with the conditions the composite has now. Never on every call."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from function.api.lenient import mapping
from function.api.text import counted, listed, one_line
from function.boundary import Result
from function.deployment.compose.conditions import SCHEDULED
from function.scheduler.causes import Cause
from function.scheduler.outcomes import Update
from function.transitions import conditions_before, transitions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.boundary import Condition, Plain
    from function.scheduler.decision import Decision

SHOWN = 5
"""How many replicas an event names."""

_SEVERITY = {Cause.ScaledDown: "NORMAL", Cause.Replaced: "NORMAL"}


def _dropped(decision: Decision) -> Iterator[Result]:
    """One event per reason for which observed replicas leave now. They leave `observed` at once."""
    causes: dict[Cause, list[str]] = defaultdict(list)
    details: dict[Cause, str] = {}
    for dropped in decision.dropped:
        if dropped.own_replica.observed and dropped.cause is not Cause.Terminating:
            causes[dropped.cause].append(f"{dropped.own_replica.cluster}/{dropped.own_replica.replica.name}")
            details.setdefault(dropped.cause, dropped.detail)
    for cause, names in causes.items():
        detail = f" ({details[cause]})" if details[cause] else ""
        replicas = counted(len(names), "replica")
        text = f"Removing {replicas}, {cause.value}{detail}: {listed(names, SHOWN)}"
        yield Result(_SEVERITY.get(cause, "WARNING"), f"Replica{cause.name}", one_line(text))


def _placed(decision: Decision) -> Iterator[Result]:
    names = [f"{placed.identity.cluster}/{placed.name}" for placed in decision.placed]
    if names:
        clusters = counted(len({placed.identity.cluster for placed in decision.placed}), "cluster")
        text = f"Placed {counted(len(names), 'replica')} on {clusters}: {listed(names, SHOWN)}"
        yield Result("NORMAL", "ReplicasPlaced", one_line(text))


def _updated(decision: Decision) -> Iterator[Result]:
    """One event for the replicas that a staged rollout updates now."""
    names = [
        f"{kept.own_replica.cluster}/{kept.own_replica.replica.name}"
        for kept in decision.kept
        if kept.update is Update.Now
    ]
    if names:
        text = f"Updating {counted(len(names), 'replica')} to the current template: {listed(names, SHOWN)}"
        yield Result("NORMAL", "ReplicasUpdating", one_line(text))


def results(
    decision: Decision, conditions: tuple[Condition, ...], composite: Mapping[str, Plain]
) -> tuple[Result, ...]:
    """The events of this call: what leaves, what is new, and a problem that was not there before."""
    events = list(_dropped(decision))
    scheduled = next(condition for condition in conditions if condition.type == SCHEDULED)
    status = mapping(composite.get("status"))
    before = conditions_before(status).get(SCHEDULED)
    if events or before != (str(scheduled.status), scheduled.reason, scheduled.message):
        events.extend(_placed(decision))
    events.extend(_updated(decision))
    events.extend(transitions("ModelDeployment", conditions, status))
    return tuple(events)
