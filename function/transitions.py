"""Conditions that are False; and events, on transitions only: the conditions against those of before.

An event on every call would be one every few seconds for as long as a problem lasts. A function remembers no
call, so the comparison is with the status in the request: what the last answer made of it (Law 1). Which
reasons are problems and which are milestones is a table, `api.reasons`.

Limits: where Crossplane did not write the last answer's conditions, an event comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from function.api.model import mappings
from function.api.reasons import CONDITION_REASONS
from function.api.text import one_line
from function.boundary import Condition, Plain, Result

RESPONSIVE = "Responsive"
"""Crossplane's own condition: False while its circuit breaker is open for the composite."""


def unmet(kind: str, reason: str, message: str) -> Condition:
    """Return a condition that is False, with its message as one line of bounded length."""
    return Condition(kind, status=False, reason=reason, message=one_line(message))


class Before(NamedTuple):
    """A condition as the composite has it."""

    status: str = ""
    reason: str = ""
    message: str = ""


MISSING = Before()


def conditions_before(status: Mapping[str, Plain]) -> dict[str, Before]:
    """Return the conditions in a composite's status, by type; the first of a type counts."""
    return {
        str(condition.get("type")): Before(
            str(condition.get("status")), str(condition.get("reason")), str(condition.get("message") or "")
        )
        for condition in reversed(mappings(status.get("conditions")))
    }


def circuit_open(status: Mapping[str, Plain]) -> bool:
    """Tell whether Crossplane's circuit breaker lets no events of the composite through (`WatchCircuitOpen`).

    Only the ttl brings a change to us then, so it is as short as while something is awaited.
    """
    return conditions_before(status).get(RESPONSIVE, MISSING).status == "False"


def transitions(
    kind: str, conditions: tuple[Condition, ...], status: Mapping[str, Plain]
) -> Iterator[Result]:
    """Yield a warning for each problem that is new, and an event for each milestone that is reached.

    `kind`: of the composite; `api.reasons` lists its reasons. `status`: what the composite has now.
    """
    before = conditions_before(status)
    for condition in conditions:
        row = CONDITION_REASONS[kind].get(condition.reason)
        has = before.get(condition.type, MISSING)
        if row is None or (has.status, has.reason) == (str(condition.status), condition.reason):
            continue
        if row.is_problem:
            yield Result("WARNING", condition.reason, condition.message)
        elif row.milestone:
            yield Result("NORMAL", condition.reason, row.milestone)
