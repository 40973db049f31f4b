"""Events on transitions only: what a handler says now, compared with the conditions that the composite has.

An event on every call would be one every few seconds for as long as a problem lasts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.boundary import Result
from function.objects import mapping

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from function.boundary import Condition, Plain


def conditions_before(status: Mapping[str, Plain]) -> dict[str, tuple[str, str]]:
    """Return status and reason of the conditions in a composite's status, by type."""
    conditions = status.get("conditions")
    return {
        str(condition.get("type")): (str(condition.get("status")), str(condition.get("reason")))
        for condition in map(mapping, conditions if isinstance(conditions, list) else ())
    }


def transitions(
    conditions: tuple[Condition, ...],
    status: Mapping[str, Plain],
    *,
    problems: Collection[str],
    milestones: Mapping[tuple[str, str], str],
) -> Iterator[Result]:
    """Yield a warning for each problem that is new, and an event for each milestone that is reached.

    `status`: the composite's. `problems`: reasons. `milestones`: texts by condition type and reason.
    """
    before = conditions_before(status)
    for condition in conditions:
        if before.get(condition.type) == (str(condition.status), condition.reason):
            continue
        if condition.reason in problems:
            yield Result("WARNING", condition.reason, condition.message)
        elif (condition.type, condition.reason) in milestones:
            yield Result("NORMAL", condition.reason, milestones[condition.type, condition.reason])
