"""Events: only on a transition, compared with the conditions that the composite has now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.text import one_line
from function.boundary import Result
from function.objects import mapping
from function.replica.conditions import ACCEPTED, PROBLEMS, READY, SHOWN
from function.replica.snapshot import Doubt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from function.boundary import Condition
    from function.replica.snapshot import Snapshot

_MILESTONES = {(ACCEPTED, "Accepted"): "accepted", (READY, "Serving"): "serving"}


def results(
    snapshot: Snapshot | Doubt, told: tuple[Condition, ...], composite: Mapping[str, Any]
) -> tuple[Result, ...]:
    """Return the events of this call: the first composition, a milestone, a new problem."""
    before = _before(composite)
    return (*_composing(snapshot, told, before), *_transitions(told, before))


def _composing(
    snapshot: Snapshot | Doubt, told: tuple[Condition, ...], before: Mapping[str, tuple[str, str]]
) -> Iterator[Result]:
    deploying = any(condition.type == ACCEPTED and condition.reason == "Deploying" for condition in told)
    if isinstance(snapshot, Doubt) or not deploying or before.get(ACCEPTED, ("", ""))[1] == "Deploying":
        return
    replica = snapshot.replica
    images = list(dict.fromkeys(engine.serving.template.container.image for engine in replica.engines))
    more = f" and {len(images) - SHOWN} more" if len(images) > SHOWN else ""
    text = f"Composing {', '.join(images[:SHOWN])}{more} on {replica.spec.cluster_name}"
    yield Result("NORMAL", "Composing", one_line(text))


def _transitions(told: tuple[Condition, ...], before: Mapping[str, tuple[str, str]]) -> Iterator[Result]:
    for condition in told:
        if before.get(condition.type) == (str(condition.status), condition.reason):
            continue
        if condition.reason in PROBLEMS:
            yield Result("WARNING", condition.reason, condition.message)
        elif (condition.type, condition.reason) in _MILESTONES:
            yield Result(
                "NORMAL", condition.reason, f"The model is {_MILESTONES[condition.type, condition.reason]}"
            )


def _before(composite: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return status and reason of the composite's conditions by type."""
    listed = mapping(composite.get("status")).get("conditions")
    return {
        str(item.get("type")): (str(item.get("status")), str(item.get("reason")))
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict)
    }
