"""What every message of ReplicasScheduled adds where it holds, whatever the reason is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.explain.message import LIMIT, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.scheduler.decision import Decision
    from function.scheduler.overcommit import Overcommitted

SHOWN = 3
"""How many overcommitted pools a message names."""
ROOM = 160
"""Characters kept for the notes at least, so that a long message does not push them out."""


def _overcommitted(decision: Decision) -> Iterator[str]:
    """The pools of its replicas that hold more than they have: somebody has to act, or to yield."""
    found = decision.overcommitted
    if found:
        named = [_held(each) for each in found]
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        yield f"PoolOvercommitted: {', '.join(named[:SHOWN])}{more}"


def _held(each: Overcommitted) -> str:
    pool, nodes = f"{each.cluster}/{each.pool}", f"{each.total} node{'s' * (each.total != 1)}"
    if each.by_devices:
        return f"{pool} holds {each.nodes} pods, and some packing on its {nodes} strands one"
    return f"{pool} holds {each.nodes} of {nodes}"


def _waiting(decision: Decision) -> Iterator[str]:
    """Replicas that would leave now, were it not for the disruption budget."""
    waiting = sorted({each.waits for each in decision.kept if each.waits})
    for cause in waiting:
        number = sum(1 for each in decision.kept if each.waits == cause)
        yield f"{number} wait{'s' * (number == 1)} for {cause}, within placement.disruption.maxUnavailable"


def noted(decision: Decision, text: str) -> str:
    """A message with the notes that hold, in one line of at most the length a condition has."""
    notes = "; ".join((*_overcommitted(decision), *_waiting(decision)))
    if not notes:
        return one_line(text)
    tail = one_line(notes, max(ROOM, LIMIT - 2 - len(one_line(text))))
    return f"{one_line(text, LIMIT - 2 - len(tail))}; {tail}"
