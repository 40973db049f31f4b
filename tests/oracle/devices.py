"""Pools that charge devices: whether every pod finds a node wherever all the others are, by every packing.

Rules that api.md leaves open, decided as follows:

1.  A claim of a class with one entry on the node binds devices of that entry. Of several, those that its
    selectors select, and also those on which they err: these may be bound, and may not be.
2.  A claim that no entry can serve may hold any device of its class. Where that, or an error, leaves open
    which devices a pod holds, all that it may hold must be free for it.
3.  A claim of a class that the pool does not have fills a node, and nothing is kept free for its pod.
4.  k pods of one engine that share no node need k nodes that pods outside their engine leave open.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.accounting.packings import can_close
from tests.oracle import matching

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.accounting.packings import Pod, Way
    from tests.oracle.facts import Pool

Plain = dict[str, Any]
STEPS = 100_000


class Held(NamedTuple):
    """What one pod holds of a node."""

    engine: tuple[str, str]
    """The replica and its engine."""
    ways: Pod
    """Every way in which it may hold devices; none: it fills the node."""
    needs: Pod
    """Ways of which each would serve it."""


def entries(pool: Pool) -> list[Plain]:
    """Return what pods can bind on a node."""
    return [device for device in pool.devices if device.get("claim", "DRA") == "DRA" and _count(device)]


def _count(device: Plain) -> int:
    return int(device.get("count", 1))


def held(member: Plain, pool: Pool, engine: tuple[str, str]) -> Held:
    """Find out what a pod of a stamped member holds."""
    there, requests = entries(pool), member["deviceRequests"]
    of_class = [
        [at for at, device in enumerate(there) if device["deviceClassName"] == request["deviceClassName"]]
        for request in requests
    ]
    if not all(of_class):
        return Held(engine, (), ())
    alone = all(len(listed) == 1 for listed in of_class)
    said = [
        {at: len(listed) == 1 or _selected(request, there[at]) for at in listed}
        for request, listed in zip(requests, of_class, strict=True)
    ]
    may = [[at for at, answer in row.items() if answer is not False] for row in said]
    numbers, counts = [request["count"] for request in requests], list(map(_count, there))
    served = all(sum(counts[at] for at in some) >= number for some, number in zip(may, numbers, strict=True))
    chosen = may if served else of_class
    ways = _ways(numbers, chosen, counts)
    certain = alone or (served and not any(answer is None for row in said for answer in row.values()))
    if certain or not ways:
        return Held(engine, ways, ways)
    most = [
        sum(number for number, some in zip(numbers, chosen, strict=True) if at in some)
        for at in range(len(there))
    ]
    return Held(engine, ways, (tuple(map(min, most, counts)),))


def _selected(request: Plain, device: Plain) -> bool | None:
    """Say whether a request may bind a device; of one with a taint that is not known."""
    said = matching.meaning(request, device)
    return None if said and device.get("taints") else said


def _ways(numbers: Sequence[int], chosen: Sequence[list[int]], counts: list[int]) -> Pod:
    loads: set[Way] = {(0,) * len(counts)}
    for number, some in zip(numbers, chosen, strict=True):
        shares = [
            dict(zip(some, share, strict=True))
            for share in itertools.product(*(range(min(number, counts[at]) + 1) for at in some))
            if sum(share) == number
        ]
        loads = {
            tuple(taken + share.get(at, 0) for at, taken in enumerate(load))
            for load in loads
            for share in shares
        }
    return tuple(sorted(load for load in loads if all(map(int.__le__, load, counts))))


def strands(pool: Pool, nodes: int, pods: Mapping[Held, int]) -> bool:
    """Say whether some packing leaves a pod, or the pods of an engine, without a node."""
    devices = tuple(map(_count, entries(pool)))
    living = {pod: number for pod, number in pods.items() if number > 0}
    for waiting in living:
        outside = {pod: number for pod, number in living.items() if pod.engine != waiting.engine}
        of_engine = sum(living.values()) - sum(outside.values())
        others: Counter[Pod] = Counter()
        for pod, number in (outside if pool.across else living).items():
            others[pod.ways] += number - (pod == waiting)
        enough = nodes - (of_engine if pool.across else 1) + 1 - others.pop((), 0)
        if waiting.needs and (enough <= 0 or can_close(enough, waiting.needs, +others, devices, STEPS)):
            return True
    return False
