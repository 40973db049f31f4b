"""Events: only on a transition, compared with the conditions the composite has now. Never on every call."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from function.api.text import one_line
from function.boundary import Result
from function.deployment.compose.conditions import PROBLEMS, SCHEDULED
from function.scheduler.decision import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.boundary import Condition, Plain
    from function.scheduler.decision import Decision

SHOWN = 5
"""How many replicas an event names."""

_SEVERITY = {Cause.ScaledDown: "NORMAL", Cause.Replaced: "NORMAL"}


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _dropped(decision: Decision) -> Iterator[Result]:
    """One event per reason for which observed replicas leave now. They leave `observed` at once."""
    causes: dict[Cause, list[str]] = defaultdict(list)
    details: dict[Cause, str] = {}
    for each in decision.dropped:
        if each.own.observed and each.cause is not Cause.Terminating:
            causes[each.cause].append(f"{each.own.cluster}/{each.own.replica.name}")
            details.setdefault(each.cause, each.detail)
    for cause, names in causes.items():
        detail = f" ({details[cause]})" if details[cause] else ""
        text = (
            f"Removing {len(names)} replica{'s' * (len(names) > 1)}, {cause.value}{detail}: {_listed(names)}"
        )
        yield Result(_SEVERITY.get(cause, "WARNING"), f"Replica{cause.name}", one_line(text))


def _placed(decision: Decision) -> Iterator[Result]:
    names = [f"{each.identity.cluster}/{each.name}" for each in decision.placed]
    if names:
        noun = "replica" if len(names) == 1 else "replicas"
        clusters = len({each.identity.cluster for each in decision.placed})
        where = "cluster" if clusters == 1 else "clusters"
        text = f"Placed {len(names)} {noun} on {clusters} {where}: {_listed(names)}"
        yield Result("NORMAL", "ReplicasPlaced", one_line(text))


def observed_condition(composite: Mapping[str, Plain], kind: str) -> tuple[object, object, object]:
    """Status, reason and message of a condition as the composite has it now; Nones when it has none."""
    status = composite.get("status")
    listed = status.get("conditions") if isinstance(status, dict) else None
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and each.get("type") == kind:
            return each.get("status"), each.get("reason"), each.get("message")
    return None, None, None


def results(
    decision: Decision, conditions: tuple[Condition, ...], composite: Mapping[str, Plain]
) -> tuple[Result, ...]:
    """The events of this call: what leaves, what is new, and a problem that was not there before."""
    found = list(_dropped(decision))
    now = next(each for each in conditions if each.type == SCHEDULED)
    status, reason, message = observed_condition(composite, SCHEDULED)
    changed = (status, reason) != (str(now.status), now.reason)
    if found or changed or (message or "") != now.message:
        found.extend(_placed(decision))
    found.extend(_new_problems(conditions, composite))
    return tuple(found)


def _new_problems(conditions: tuple[Condition, ...], composite: Mapping[str, Plain]) -> Iterator[Result]:
    """A warning per condition whose status or reason became a problem with this call."""
    for condition in conditions:
        status, reason, _ = observed_condition(composite, condition.type)
        if condition.reason in PROBLEMS and (status, reason) != (str(condition.status), condition.reason):
            yield Result("WARNING", condition.reason, condition.message)
