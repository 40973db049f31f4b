"""The message every Kubernetes user reads: how many are placed, and why no cluster takes another.

One line, at most 512 characters, the same for the same problem: counts per reason in a fixed order.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from function.scheduler.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from function.scheduler.decision import Decision
    from function.scheduler.reason import Rejection

LIMIT = 512
"""Characters of a condition's message."""

_CAPACITY = {Reason.InsufficientNodes, Reason.PoolOvercommitted, Reason.InsufficientDevices}


def one_line(text: str, limit: int = LIMIT) -> str:
    """Fold white space and cut to the limit, so that every text stays one readable line."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 1].rstrip() + "…"


def placed_of(decision: Decision) -> str:
    """`Scheduled 2 of 3 replicas`."""
    noun = "replica" if decision.wanted == 1 else "replicas"
    return f"Scheduled {decision.total} of {decision.wanted} {noun}"


def histogram(rejections: Mapping[str, Rejection]) -> dict[Reason, int]:
    """How many clusters each headline reason holds back, the nearest to fitting first."""
    counts = Counter(each.reason for each in rejections.values())
    return dict(sorted(counts.items(), key=lambda item: -item[0].depth))


def _nearest(found: Iterable[tuple[str, Rejection]]) -> str:
    """The nearest miss of a capacity reason: `nearest: use1/frontier needs 2, 1 free of 4`."""
    name, best = min(found, key=lambda item: ((item[1].needs or 0) - (item[1].free or 0), item[0]))
    free = max(0, best.free or 0)
    return f"nearest: {name}/{best.pool} needs {best.needs}, {free} free of {best.total}"


def _example(found: Iterable[tuple[str, Rejection]]) -> str:
    """The particular of a reason, when it is worth a word: a taint, a device's actual value."""
    _, first = min(found, key=lambda item: item[0])
    if first.request:
        selector = "" if first.selector is None else f"selector {first.selector}"
        short = f"needs {first.needs}, has {first.free}" if first.needs is not None else ""
        told = ", ".join(part for part in (first.detail, short, selector) if part)
        return f"{first.request}: {told}" if told else first.request
    return first.detail


def _described(reason: Reason, rejections: Mapping[str, Rejection]) -> str:
    found = [(name, each) for name, each in rejections.items() if each.reason is reason]
    text = f"{len(found)} {reason.value}"
    if reason in _CAPACITY and all(each.needs is not None for _, each in found):
        return f"{text} ({_nearest(found)})"
    example = one_line(_example(found), 120)
    if not example:
        return text
    return f"{text} {example}" if example.startswith("{") else f"{text} ({example})"


def unplaced(decision: Decision) -> str:
    """Why no cluster takes another: `0/5 clusters can host another: 2 insufficient nodes (...), ...`."""
    fleet = decision.question.fleet
    total = len(fleet.clusters) + len(fleet.broken)
    rejections = decision.rejections
    able = total - len(rejections)
    reasons = ", ".join(_described(reason, rejections) for reason in histogram(rejections))
    head = f"{able}/{total} clusters can host another"
    return f"{head}: {reasons}" if reasons else head
