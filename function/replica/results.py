"""Events of a replica: its first composition, and what `transitions` has for every handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.lenient import mapping
from function.api.text import listed, one_line
from function.boundary import Result
from function.fail_static import Doubt
from function.replica.conditions import ACCEPTED, SHOWN
from function.transitions import MISSING, conditions_before, transitions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from function.boundary import Condition
    from function.replica.snapshot import ReplicaSnapshot
    from function.transitions import Before


def results(
    snapshot: ReplicaSnapshot | Doubt, conditions: tuple[Condition, ...], composite: Mapping[str, Any]
) -> tuple[Result, ...]:
    """Return the events of this call: the first composition, a milestone, a new problem."""
    status = mapping(composite.get("status"))
    events = transitions("ModelReplica", conditions, status)
    return (*_composing(snapshot, conditions, conditions_before(status)), *events)


def _composing(
    snapshot: ReplicaSnapshot | Doubt,
    conditions: tuple[Condition, ...],
    before: Mapping[str, Before],
) -> Iterator[Result]:
    deploying = any(
        condition.type == ACCEPTED and condition.reason == "Deploying" for condition in conditions
    )
    if isinstance(snapshot, Doubt) or not deploying or before.get(ACCEPTED, MISSING).reason == "Deploying":
        return
    replica = snapshot.replica
    images = list(dict.fromkeys(engine.serving.template.container.image for engine in replica.engines))
    text = f"Composing {listed(images, SHOWN)} on {replica.spec.cluster_name}"
    yield Result("NORMAL", "Composing", one_line(text))
