"""placement.disruption: how many of the wanted replicas may be missing or not Ready at a time.

There is no surge: a draining or mismatched replica is given up only if, afterwards, wanted minus (kept and
Ready) is at most maxUnavailable. It does not hold back the loss of a cluster that is gone, nor scale down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.own import Own
    from function.scheduler.question import Question


def may_leave(question: Question, staying: Iterable[Own], leaving: Own) -> bool:
    """Whether a replica may be given up now, seen who stays besides it."""
    stated = question.policy.disruption
    if stated is None or stated.max_unavailable is None:
        return True
    ready = sum(1 for each in staying if each is not leaving and each.replica.ready is True)
    return question.deployment.wanted - ready <= stated.max_unavailable


def _order(own: Own) -> tuple[object, ...]:
    """Who drains first, as in scale down: one that is not Ready, the highest index, the later cluster."""
    return (own.replica.ready is not True, own.identity.index if own.identity else -1, own.cluster)


def leaving_now(question: Question, staying: Iterable[Own], draining: Iterable[Own]) -> set[str]:
    """The keys of those draining replicas that may be given up in this pass."""
    left, gone = list(staying), set()
    for own in sorted(draining, key=_order, reverse=True):
        if may_leave(question, left, own):
            left.remove(own)
            gone.add(own.key)
    return gone
