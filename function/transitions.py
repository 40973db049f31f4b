"""Events on transitions only: what a handler says now, compared with the conditions that the composite has.

An event on every call would be one every few seconds for as long as a problem lasts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.condition_reasons import CONDITION_REASONS
from function.boundary import Result
from function.objects import mapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.boundary import Condition, Plain

RESPONSIVE = "Responsive"
"""Crossplane's own condition: False while its circuit breaker is open for the composite."""


def conditions_before(status: Mapping[str, Plain]) -> dict[str, tuple[str, str]]:
    """Return status and reason of the conditions in a composite's status, by type; the first counts."""
    conditions = status.get("conditions")
    return {
        str(condition.get("type")): (str(condition.get("status")), str(condition.get("reason")))
        for condition in map(mapping, reversed(conditions) if isinstance(conditions, list) else ())
    }


def circuit_open(status: Mapping[str, Plain]) -> bool:
    """Whether Crossplane's circuit breaker lets no events of the composite through (`WatchCircuitOpen`).

    Only the ttl brings a change to us then, so it is as short as while something is awaited.
    """
    return conditions_before(status).get(RESPONSIVE, ("", ""))[0] == "False"


def transitions(
    kind: str, conditions: tuple[Condition, ...], status: Mapping[str, Plain]
) -> Iterator[Result]:
    """Yield a warning for each problem that is new, and an event for each milestone that is reached.

    `kind`: of the composite; `api.condition_reasons` lists its reasons. `status`: what the composite has now.
    """
    before = conditions_before(status)
    for condition in conditions:
        row = CONDITION_REASONS[kind].get(condition.reason)
        if row is None or before.get(condition.type) == (str(condition.status), condition.reason):
            continue
        if row.is_problem:
            yield Result("WARNING", condition.reason, condition.message)
        elif row.milestone:
            yield Result("NORMAL", condition.reason, row.milestone)
