"""Events: only on a transition, compared with the conditions that the composite has now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.boundary import Result
from function.cluster.conditions import CLUSTER_READY, PROBLEMS
from function.objects import mapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.boundary import Condition, Plain


def results(told: tuple[Condition, ...], before: Mapping[str, Plain]) -> tuple[Result, ...]:
    """Return the events of this call: a new problem, and a cluster that starts to run."""
    return tuple(_transitions(told, before))


def _transitions(told: tuple[Condition, ...], before: Mapping[str, Plain]) -> Iterator[Result]:
    listed = before.get("conditions")
    last = {
        str(condition.get("type")): (str(condition.get("status")), str(condition.get("reason")))
        for condition in map(mapping, listed if isinstance(listed, list) else ())
    }
    for condition in told:
        if last.get(condition.type) == (str(condition.status), condition.reason):
            continue
        if condition.reason in PROBLEMS:
            yield Result("WARNING", condition.reason, condition.message)
        elif condition.type == CLUSTER_READY and condition.status:
            yield Result("NORMAL", condition.reason, "The cluster is published")
